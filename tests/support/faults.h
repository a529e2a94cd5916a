/* faults.h: every system call of base/file fails once. */
#ifndef PL_TESTS_SUPPORT_FAULTS_H
#define PL_TESTS_SUPPORT_FAULTS_H

#include "base/status.h"

/* Runs `act` with its nth call failing, for every n until none fails, by each
 * of a few errors. After each run no more files are open than before; where it
 * failed, `err`, which `act` fills, says why, and names `where`; and `judge`
 * sees how it ended. Fails if there were fewer than `at_least` calls. */
void faults_in_every_call(pl_status (*act)(void),
                          void (*judge)(pl_status status), long at_least,
                          pl_error *err, const char *where);

#endif
