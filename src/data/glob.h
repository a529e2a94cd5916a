/* glob.h: patterns of file names, as shells have them. Touches no file. */
#ifndef PL_DATA_GLOB_H
#define PL_DATA_GLOB_H

#include <stddef.h>

/* Whether `pattern` has one of * ? [ in it. */
int pl_glob_is_pattern(const char *pattern);

/* Whether the first `bytes` bytes of `pattern`, one component of a path, match
 * `name`: * is any text, ? one character, [a-z] and [!a-z] one byte. A name
 * that begins with a dot is matched by a pattern that does only. */
int pl_glob_matches(const char *pattern, size_t bytes, const char *name);

/* Whether one of `patterns`, with commas between them, matches `path`: one
 * without a slash its last component, one with slashes all of it, where ** is
 * any number of folders. */
int pl_glob_any_matches(const char *patterns, const char *path);

#endif
