/* scratch.h: a folder of a test's own, and the few things tests do with
 * files. Fails the test itself (cmocka) when the system doesn't play along. */
#ifndef PL_TESTS_SUPPORT_SCRATCH_H
#define PL_TESTS_SUPPORT_SCRATCH_H

#include "base/file.h"

#include <stddef.h>

enum { SCRATCH_PATH_BYTES = 512 };

typedef struct scratch {
    char folder[SCRATCH_PATH_BYTES];
    int open_files; /* when it was opened */
} scratch;

/* Makes a folder under $PLIMSOLL_TMP or /tmp; closing removes it with all
 * that is in it, and fails if a file was left open in between. */
void scratch_open(scratch *s);
/* From now on under /dev/shm, where that is a folder that can be written: for
 * tests that sync thousands of files. Call first thing in main. */
void scratch_in_memory(void);
/* A folder on that medium, for tests to which it matters: the first of
 * $PLIMSOLL_TMP, /tmp, the program's own folder, /var/tmp and /dev/shm that
 * has it and can be written. 0 if none does. */
int scratch_open_on(scratch *s, pl_disk_medium medium);
void scratch_close(scratch *s);
/* A folder with all that is in it; nothing happens if there is none. */
void scratch_remove(const char *folder);

/* folder/name, in a buffer that the next eight calls leave alone. */
const char *scratch_path(const scratch *s, const char *name);

void scratch_write(const char *path, const void *data, size_t bytes);
/* malloc'ed, with a zero behind it; NULL if there is no such file. */
char *scratch_read(const char *path, size_t *bytes);
int scratch_has(const char *path);
/* Entries of a folder, "." and ".." not counted; -1 if there is none. */
int scratch_count(const char *folder);
/* Descriptors that this process has open. */
int scratch_open_files(void);

#endif
