/* medium.c: see medium.h. */
#include "train/medium.h"
#include "base/file.h"
#include "config/special.h"
#include "store/checkpoint.h"
#include "store/notes.h"

pl_outdir_need pl_medium_need(const pl_config *config, const pl_gpt *gpt,
                              uint64_t tokenizer_bytes)
{
    const pl_metrics_bytes most = pl_checkpoint_metrics_bytes(config);
    return (pl_outdir_need){
        .checkpoint_bytes = pl_checkpoint_bytes(config, gpt, tokenizer_bytes),
        .metrics_bytes = most.lines + most.events + most.samples + most.tasks +
                         PL_NOTES_MOST_BYTES,
    };
}

/* At least one checkpoint comes to what is there. */
static pl_machine_files files_of(const void *context, const pl_config *config,
                                 const pl_gpt *gpt)
{
    const pl_medium *medium = context;
    const pl_outdir_need need = pl_medium_need(config, gpt,
                                               medium->tokenizer_bytes);
    const size_t most = pl_outdir_most((size_t)config->keep);
    const uint64_t all = most * need.checkpoint_bytes + need.metrics_bytes,
                   least = medium->held_bytes + need.checkpoint_bytes;
    return (pl_machine_files){ .checkpoints = most,
                               .checkpoint_bytes = need.checkpoint_bytes,
                               .metrics_bytes = need.metrics_bytes,
                               .bytes = all > least ? all : least };
}

pl_status pl_medium_count(pl_medium *medium, pl_machine *machine,
                          const pl_config *config, uint64_t tokenizer_bytes,
                          pl_error *err)
{
    pl_disk_medium found;
    *medium = (pl_medium){ .tokenizer_bytes = tokenizer_bytes };
    pl_status status = pl_disk_look(config->out_dir, &found, err);
    if (status || found == PL_DISK_STORAGE)
        return status;
    if (pl_config_beginning(config) == PL_BEGIN_RESUME)
        status = pl_outdir_held_bytes(config->out_dir, &medium->held_bytes,
                                      err);
    if (status)
        return status;
    pl_machine_add_held(machine, medium->held_bytes);
    machine->files = files_of;
    machine->files_context = medium;
    return PL_OK;
}
