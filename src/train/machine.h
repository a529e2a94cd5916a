/* machine.h: what this machine can do, remembered from one run to the next.
 *
 * A small JSON file per instruction set and number of threads, in a folder
 * that the caller names (the user's cache). A missing or strange file is no
 * error: then the built-in rates hold. */
#ifndef PL_TRAIN_MACHINE_H
#define PL_TRAIN_MACHINE_H

#include "model/cost.h"

/* The rates for `threads` threads from `folder` (NULL: none is kept). */
pl_rates pl_machine_recall(const char *folder, size_t threads, pl_heap *heap);

/* Writes them there; the folder is made. Allocates nothing: `text` holds
 * `capacity` bytes for the JSON. */
PL_MUST_CHECK pl_status pl_machine_remember(const pl_rates *rates,
                                            const char *folder, size_t threads,
                                            char *text, size_t capacity,
                                            pl_error *err);

#endif
