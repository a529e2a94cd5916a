/* run_files_parts.h: what the files of run_files share, and nobody else. */
#ifndef PL_WEB_RUN_FILES_PARTS_H
#define PL_WEB_RUN_FILES_PARTS_H

#include "base/file.h"
#include "web/run_files.h"

/* Whether that is a plain file, no link: *path is where. */
int pl_run_files_has(const char *folder, const char *name,
                     char path[PL_PATH_BYTES]);

/* plan.json, progress.json and state.json, where they are there. */
PL_MUST_CHECK pl_status pl_run_files_notes(pl_run_files *run, pl_heap *heap,
                                           pl_error *err);

/* samples.jsonl and warnings.jsonl: the last lines of each. */
PL_MUST_CHECK pl_status pl_run_files_texts(pl_run_files *run, pl_heap *heap,
                                           pl_error *err);

#endif
