/* live_process.h: `plimsoll live` beside a training, as a process of its own:
 * it can neither slow the run down nor take it along when it dies. It ends with
 * the run, however that ends. */
#ifndef PL_CLI_LIVE_PROCESS_H
#define PL_CLI_LIVE_PROCESS_H

#include "base/status.h"

#include <stddef.h>

typedef struct pl_live_process {
    int pid;  /* 0: there is none */
    int pipe; /* our end of its standard input, which ends with us; -1 */
} pl_live_process;

#define PL_LIVE_NO_PROCESS                                                     \
    {                                                                          \
        .pid = 0, .pipe = -1                                                   \
    }

/* Starts it for the run in `out_dir`, which needn't be there yet. `port` is a
 * number as text, or NULL. It prints its own address, or why it has none.
 * PL_E_USAGE for what is no port. */
PL_MUST_CHECK pl_status pl_live_process_start(pl_live_process *live,
                                              const char *out_dir,
                                              const char *port, pl_error *err);
/* What it may hold, of the run's budget; 0 without one. */
size_t pl_live_process_bytes(const pl_live_process *live);
void pl_live_process_end(pl_live_process *live);

#endif
