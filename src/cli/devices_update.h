/* devices_update.h: how long an update of a known model takes on a card. */
#ifndef PL_CLI_DEVICES_UPDATE_H
#define PL_CLI_DEVICES_UPDATE_H

#include "device/selftest.h"

/* "the 77 M model (524,288 tokens)", or where that would be too large a small
 * one: which model an update is measured of. */
const char *pl_devices_model(const pl_gpu_card *card);

/* Measures an update of that model in float32 and in float16, by some of its
 * micro-batches, and predicts it from the card's data sheet; 0 where the card
 * can't, which is said. `device` is the card's name for the key of that name.
 */
void pl_devices_measure(pl_selftest_result *result, const pl_gpu_card *card,
                        const char *device);

#endif
