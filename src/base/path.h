/* path.h: names of files as text. Touches no file. */
#ifndef PL_BASE_PATH_H
#define PL_BASE_PATH_H

#include "base/status.h"

enum { PL_PATH_BYTES = 4096 }; /* with the terminating zero */

/* folder + "/" + name. An absolute name wins, an empty folder adds nothing,
 * as in Python's os.path.join. PL_E_USAGE if it doesn't fit. */
PL_MUST_CHECK pl_status pl_path_join(char out[PL_PATH_BYTES],
                                     const char *folder, const char *name,
                                     pl_error *err);
/* path with `suffix` at its end: "ckpt" + ".tmp". */
PL_MUST_CHECK pl_status pl_path_add(char out[PL_PATH_BYTES], const char *path,
                                    const char *suffix, pl_error *err);

/* Makes a path its folder's, in place: "." and "/" where nothing else is
 * left. `path` has room for two bytes. */
void pl_path_cut_to_parent(char *path);

/* A path, or any word, as it can be pasted into a shell: in single quotes where
 * it has blanks or other signs that mean something there; "./-x" for "-x",
 * which would be taken for an option. What is too long for a message is only
 * shown: its end. */
enum { PL_PATH_WORD_BYTES = 640 };
typedef struct pl_path_word {
    char text[PL_PATH_WORD_BYTES];
} pl_path_word;
pl_path_word pl_path_quoted(const char *path);

/* The end of a long path, for messages: it tells files apart and leaves room
 * for the rest of the message. */
const char *pl_path_shown(const char *path);

#endif
