/* log.c: formats a message and hands it to the sink. */
#include "base/log.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pl_log_say(const pl_log *log, pl_log_level level, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    if (!log || !log->sink)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    text[pl_utf8_whole_bytes(text, strlen(text))] = '\0';
    log->sink(log->context, level, text);
}
