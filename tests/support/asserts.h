/* asserts.h: what cmocka's own assertions cannot say. */
#ifndef PL_TESTS_SUPPORT_ASSERTS_H
#define PL_TESTS_SUPPORT_ASSERTS_H

/* `text` has `part` in it. */
void assert_contains(const char *text, const char *part);

/* act(context) breaks an invariant: in a process of its own it ends in
 * PL_CHECK's abort, with `part` in what it says. What it changes in memory
 * stays in that process. */
void assert_dies(void (*act)(void *context), void *context, const char *part);

#endif
