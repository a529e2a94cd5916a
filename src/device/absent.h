/* absent.h: a card that isn't here, as the table of cards describes it: for
 * plans alone. */
#ifndef PL_DEVICE_ABSENT_H
#define PL_DEVICE_ABSENT_H

#include "device/device.h"

/* The device that the card of this name would be; PL_E_CONFIG names the nearest
 * ones where there is none. It can't be opened. */
PL_MUST_CHECK pl_status pl_absent_describe(pl_device_info *info,
                                           const char *name, pl_error *err);

#endif
