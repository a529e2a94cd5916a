/* choose.h: which device a config's keys `device` and `threads` mean. */
#ifndef PL_DEVICE_CHOOSE_H
#define PL_DEVICE_CHOOSE_H

#include "config/config.h"
#include "device/device.h"

/* The device that the config asks for, or the processor where this version has
 * no such device. Opens nothing. */
PL_MUST_CHECK pl_status pl_device_choose(pl_device_info *info,
                                         const pl_config *config,
                                         pl_error *err);

/* What the host works with itself, whatever computes: the processor. */
PL_MUST_CHECK pl_status pl_device_choose_host(pl_device_info *info,
                                              const pl_config *config,
                                              pl_error *err);

/* Whether `device`, the key's value, is what pl_device_choose chooses for it.
 */
int pl_device_is_here(const pl_device_wish *device);

/* For tests: from now on every config asks for this kind; NULL: no longer. */
void pl_device_choose_only(const pl_device_kind *kind);

#endif
