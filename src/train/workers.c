/* workers.c: see workers.h. */
#include "train/workers.h"

pl_status pl_workers_check(const pl_config *config, const pl_machine *machine,
                           pl_error *err)
{
    const long long groups = (long long)config->gradient_groups;
    if (config->sync_interval == 1 || machine->ranks || groups == 1)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "sync_interval = %lld and gradient_groups = %lld: each "
                   "group is that of one process, and this one is alone. Start "
                   "as many: mpirun -n %lld plimsoll train, and the same "
                   "arguments",
                   (long long)config->sync_interval, groups, groups);
}

static pl_status copy_slice(pl_run *run, size_t slot, const pl_slice *own,
                            pl_error *err)
{
    const size_t each = sizeof(float), most = PL_RUN_STAGE_BYTES / each;
    pl_status status = PL_OK;
    for (size_t at = 0, count; at < own->count && !status; at += count) {
        count = own->count - at < most ? own->count - at : most;
        status = pl_device_read(run->device, run->gpt.weights[slot],
                                (own->first + at) * each, run->stage,
                                count * each, err);
        if (!status)
            status = pl_device_write(run->device, run->gpt.anchor[slot],
                                     at * each, run->stage, count * each, err);
    }
    return status;
}

pl_status pl_workers_begin(pl_run *run, pl_error *err)
{
    const pl_slices *slices = &run->gpt.slices;
    pl_status status = PL_OK;
    for (size_t i = 0; i < slices->slots && !status; i++) {
        const pl_slice own = pl_slices_at(slices, i, run->gpt.layout.rank);
        status = copy_slice(run, i, &own, err);
    }
    return status;
}
