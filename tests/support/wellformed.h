/* wellformed.h: whether a text is well-formed XML, as far as our pages use it:
 * elements that are closed in order, attributes in double quotes and each once,
 * the five entities and numbers, no character that XML refuses. Knows no
 * namespaces and no DTD but "<!DOCTYPE html>". For tests. */
#ifndef PL_TESTS_SUPPORT_WELLFORMED_H
#define PL_TESTS_SUPPORT_WELLFORMED_H

#include <stddef.h>

/* NULL if it is, else what is wrong; *at is where. */
const char *wellformed_trouble(const char *text, size_t bytes, size_t *at);

#endif
