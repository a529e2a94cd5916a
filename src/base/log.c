/* log.c: formats a message and hands it to the sink. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void pl_log_say(const pl_log *log, pl_log_level level, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (!log || !log->sink)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    log->sink(log->context, level, text);
}
