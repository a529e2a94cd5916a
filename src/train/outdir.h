/* outdir.h: the folder of a run, tried before the first step and not at the
 * first save: it can be written, nobody else writes it, there is room, and
 * nothing stands where checkpoints go. */
#ifndef PL_TRAIN_OUTDIR_H
#define PL_TRAIN_OUTDIR_H

#include "base/file.h"

#include <stdint.h>

/* Makes the folder and holds its lock, which dies with the process or with
 * pl_outdir_close. `checkpoint_bytes`: what one checkpoint takes. */
PL_MUST_CHECK pl_status pl_outdir_open(pl_file *lock, const char *folder,
                                       uint64_t checkpoint_bytes,
                                       pl_error *err);
void pl_outdir_close(pl_file *lock);

#endif
