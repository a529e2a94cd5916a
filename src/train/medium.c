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

/* What this rank writes of a checkpoint at most, if it finds the folder: of its
 * slices the weights and two moments, or an anchor and an outer momentum; a
 * worker also has a file of its own. */
static pl_outdir_need need_of_another(const pl_gpt *gpt, uint64_t all_bytes)
{
    enum { MOST_BYTES = 3 * sizeof(float) }; /* for an element */
    uint64_t elements = pl_slices_elements(&gpt->slices, gpt->layout.rank);
    if (pl_gpt_workers(&gpt->layout))
        elements += gpt->slices.elements;
    const uint64_t bytes = MOST_BYTES * elements;
    return (pl_outdir_need){ bytes < all_bytes ? bytes : all_bytes, 0 };
}

/* At least one checkpoint comes to what is there. */
static pl_machine_files files_of(const void *context, const pl_config *config,
                                 const pl_gpt *gpt)
{
    const pl_medium *medium = context;
    pl_outdir_need need = pl_medium_need(config, gpt, medium->tokenizer_bytes);
    if (gpt->layout.rank > 0)
        need = need_of_another(gpt, need.checkpoint_bytes);
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
    if (status && machine->rank > 0) /* nothing is written there from here */
        return PL_OK;
    if (status || found == PL_DISK_STORAGE)
        return status;
    if (pl_config_beginning(config) == PL_BEGIN_RESUME && machine->rank == 0)
        status = pl_outdir_held_bytes(config->out_dir, &medium->held_bytes,
                                      err);
    if (status)
        return status;
    pl_machine_add_held(machine, medium->held_bytes);
    machine->files = files_of;
    machine->files_context = medium;
    return PL_OK;
}
