/* workers.h: how a run begins whose processes are workers (DiLoCo; diloco.h has
 * what they do then). */
#ifndef PL_TRAIN_WORKERS_H
#define PL_TRAIN_WORKERS_H

#include "advise/machine.h"
#include "store/run.h"

/* PL_E_CONFIG where a process is alone, and its config is for several. */
PL_MUST_CHECK pl_status pl_workers_check(const pl_config *config,
                                         const pl_machine *machine,
                                         pl_error *err);

/* All have the same weights, and these are where they met last. */
PL_MUST_CHECK pl_status pl_workers_begin(pl_run *run, pl_error *err);

#endif
