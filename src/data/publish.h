/* publish.h: finished files of one folder come into another together.
 *
 * What is there under the names of prepared data (tokens and their tokenizer,
 * whatever way they were made) goes away with it, so that a folder never has
 * files that don't belong together: first it is moved to "prepare.old", the
 * tokens before the rest, then the new files are moved in, the training tokens
 * last. A failure on the way puts everything back; after a crash in between
 * there are no training tokens, and the old files are in prepare.old. */
#ifndef PL_DATA_PUBLISH_H
#define PL_DATA_PUBLISH_H

#include "base/status.h"

#define PL_PUBLISH_OLD "prepare.old"

/* Moves the files of `from` that have such names to `folder`, in which it lies
 * and on whose disk they are already, and removes `from` with what else is in
 * it. After a failure all are in `from` again, as far as the system let us. */
PL_MUST_CHECK pl_status pl_publish(const char *folder, const char *from,
                                   pl_error *err);

#endif
