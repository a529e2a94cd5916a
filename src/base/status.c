/* status.c: see status.h. Owns the text of codes; allocates nothing. */
#include "base/status.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_code;
    const char *meaning;
} rows[] = {
#define PL_STATUS_ROW(code, text, exit_value, means)                           \
    [code] = { text, exit_value, means },
    PL_STATUS_TABLE(PL_STATUS_ROW)
#undef PL_STATUS_ROW
};

/* A text that was cut ends with a whole character: it stays UTF-8. */
static void end_whole(pl_error *err)
{
    err->text[pl_utf8_whole_bytes(err->text, strlen(err->text))] = '\0';
}

pl_status pl_fail(pl_error *err, pl_status status, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        err->status = status;
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        end_whole(err);
    }
    return status;
}

pl_status pl_fail_in(pl_error *err, pl_status status, const char *fmt, ...)
{
    if (err) {
        char inner[PL_ERROR_TEXT_BYTES];
        va_list args;
        memcpy(inner, err->text, sizeof inner);
        inner[sizeof inner - 1] = '\0';
        va_start(args, fmt);
        int used = vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        if (used >= 0 && (size_t)used < sizeof err->text)
            snprintf(err->text + used, sizeof err->text - (size_t)used, "%s",
                     inner);
        end_whole(err);
        err->status = status;
    }
    return status;
}

const char *pl_status_name(pl_status status)
{
    return rows[status].name;
}

const char *pl_status_meaning(pl_status status)
{
    return rows[status].meaning;
}

int pl_status_exit_code(pl_status status)
{
    return rows[status].exit_code;
}
