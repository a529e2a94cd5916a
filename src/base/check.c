/* check.c: the only abort(). Uses write(2), since stdio may be what broke. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void pl_check_failed(const char *file, int line, const char *condition)
{
    char text[512];
    int used = snprintf(text, sizeof text,
                        "plimsoll: internal error at %s:%d: %s does not "
                        "hold. This is a bug in plimsoll, please report it.\n",
                        file, line, condition);
    if (used > 0) {
        size_t bytes = (size_t)used < sizeof text ? (size_t)used : strlen(text);
        ssize_t ignored = write(STDERR_FILENO, text, bytes);
        (void)ignored;
    }
    abort();
}
