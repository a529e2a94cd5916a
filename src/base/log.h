/* log.h: the library's voice. It never prints: what it has to say goes to a
 * sink that the caller gave. NULL sink: silence. */
#ifndef PL_BASE_LOG_H
#define PL_BASE_LOG_H

#include "base/status.h"

typedef enum pl_log_level {
    PL_LOG_INFO,
    PL_LOG_NOTE,
    PL_LOG_WARN
} pl_log_level;

typedef struct pl_log {
    void (*sink)(void *context, pl_log_level level, const char *text);
    void *context;
} pl_log;

/* One message, without a newline at its end, cut at 1023 bytes. INFO: a fact
 * that scripts may read; NOTE: something the user should know once; WARN:
 * something is off. */
PL_PRINTF(3, 4)
void pl_log_say(const pl_log *log, pl_log_level level, const char *fmt, ...);

#endif
