/* products.h: in which arithmetic a run's 16-bit products are computed: what
 * the key `products` means for a config on a device. */
#ifndef PL_DEVICE_PRODUCTS_H
#define PL_DEVICE_PRODUCTS_H

#include "config/config.h"
#include "device/device.h"

/* Sets info->products, and what follows from it: arithmetic, text and the key
 * of rates. PL_E_CONFIG where the config asks for what it, or the device, can't
 * do. */
PL_MUST_CHECK pl_status pl_products_settle(pl_device_info *info,
                                           const pl_config *config,
                                           pl_error *err);

/* Says once what the words in the config don't: which class 'tensor' is where
 * the device has none of its own, and that 'auto' left tensor cores alone. */
void pl_products_say(const pl_device_info *info, const pl_config *config,
                     const pl_log *log);

#endif
