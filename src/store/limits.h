/* limits.h: what the system lets this process write, against what a run will
 * write. */
#ifndef PL_STORE_LIMITS_H
#define PL_STORE_LIMITS_H

#include "store/run.h"

/* PL_E_IO if the limit on the size of a file (ulimit -f) is below a
 * checkpoint's largest, or that on open files (ulimit -n) below what a save
 * needs beside the data. Metrics that would end early are warned of. To be
 * asked once the data and the out_dir are open, before memory is taken. */
PL_MUST_CHECK pl_status pl_limits_check(pl_run *run, pl_error *err);

/* The first of these alone: for a process that writes a part of checkpoints and
 * nothing else. */
PL_MUST_CHECK pl_status pl_limits_check_size(const pl_gpt *gpt, pl_error *err);

#endif
