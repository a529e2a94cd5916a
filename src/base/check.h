/* check.h: a broken invariant of ours. Never for input, files or memory:
 * those are pl_status's (status.h). On in every build: a wrong result costs
 * more than a branch. */
#ifndef PL_BASE_CHECK_H
#define PL_BASE_CHECK_H

#define PL_CHECK(condition)                                                    \
    ((condition) ? (void)0 : pl_check_failed(__FILE__, __LINE__, #condition))

/* Writes one line to standard error and aborts: the project's only abort. */
_Noreturn void pl_check_failed(const char *file, int line,
                               const char *condition);

#endif
