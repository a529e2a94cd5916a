/* memory.h: what the machine says about memory. */
#ifndef PL_PLAN_MEMORY_H
#define PL_PLAN_MEMORY_H

#include "base/status.h"

#include <stddef.h>

/* The most that this process has held at once so far, all of it: the kernel's
 * VmHWM. Allocates nothing. */
PL_MUST_CHECK pl_status pl_memory_peak_bytes(size_t *bytes, pl_error *err);

#endif
