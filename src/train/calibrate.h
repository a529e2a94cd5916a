/* calibrate.h: measures the rates of the ops on this machine in about a second,
 * two where the machine is busy, so that the first plan of a run is no guess.
 */
#ifndef PL_TRAIN_CALIBRATE_H
#define PL_TRAIN_CALIBRATE_H

#include "advise/machine.h"

/* Trains one layer of the config's width, on short sequences and a small
 * vocabulary, in less memory than the config itself will need; the rates go to
 * `machine` and to its cache. Where that isn't possible `machine` stays as it
 * is: what is wrong with the config is said by those who need it. */
void pl_calibrate(pl_machine *machine, const pl_config *config,
                  size_t vocab_size);

#endif
