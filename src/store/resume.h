/* resume.h: going on from a checkpoint in out_dir, with the same bits. */
#ifndef PL_STORE_RESUME_H
#define PL_STORE_RESUME_H

#include "store/checkpoint.h"

typedef struct pl_resume {
    char folder[PL_PATH_BYTES];
    pl_checkpoint_state state;
} pl_resume;

/* Finds the newest checkpoint that is whole and looks whether it fits, before
 * memory is taken. Another model, other data or another seed stop it, with the
 * difference; other keys may have changed, and those that have are said. */
PL_MUST_CHECK pl_status pl_resume_find(pl_resume *resume, pl_run *run,
                                       pl_error *err);

/* Fills the run. */
PL_MUST_CHECK pl_status pl_resume_load(const pl_resume *resume, pl_run *run,
                                       pl_error *err);

/* Lets both links point to where they should, in an out_dir whose newest whole
 * checkpoint is `newest`. */
PL_MUST_CHECK pl_status pl_resume_links(pl_outdir *outdir, uint64_t newest,
                                        pl_heap *heap, pl_error *err);

/* PL_E_CONFIG unless both are the same model. `folder` has the first. */
PL_MUST_CHECK pl_status pl_resume_same_model(const pl_shape *have,
                                             const pl_shape *want,
                                             const char *folder, pl_error *err);

#endif
