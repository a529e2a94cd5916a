/* stage.h: a few files that appear in a folder together or not at all.
 *
 * They are written as "<name>.tmp". Committing moves what has the final names
 * aside ("<name>.old"), puts the new files in place and removes the old ones;
 * a failure on the way puts everything back. names[0] goes first and comes
 * last, so after a crash in between it is absent, and a reader that asks for
 * it first never meets files that don't belong together. */
#ifndef PL_DATA_STAGE_H
#define PL_DATA_STAGE_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>

enum { PL_STAGE_MAX_FILES = 3 };

typedef struct pl_stage {
    pl_file files[PL_STAGE_MAX_FILES]; /* open for pl_file_append */
    const char *const *names;          /* borrowed */
    size_t count;
    char folder[PL_PATH_BYTES];
} pl_stage;

/* Creates the temporary files. On failure there are none. */
PL_MUST_CHECK pl_status pl_stage_open(pl_stage *stage, const char *folder,
                                      const char *const *names, size_t count,
                                      pl_error *err);

/* Ends the stage: with all files in place and on the disk, or with the folder
 * as it was before pl_stage_open. */
PL_MUST_CHECK pl_status pl_stage_commit(pl_stage *stage, pl_error *err);

/* Ends the stage: removes the temporary files. */
void pl_stage_discard(pl_stage *stage);

#endif
