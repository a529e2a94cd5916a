/* choose.h: which device a config's keys `device`, `threads` and `gpu` mean. */
#ifndef PL_DEVICE_CHOOSE_H
#define PL_DEVICE_CHOOSE_H

#include "config/config.h"
#include "device/device.h"

/* Who a config's `device` leaves the choice to. */
typedef enum pl_device_asked {
    PL_DEVICE_ASKS_HOST, /* the processor, or a card that isn't here */
    PL_DEVICE_ASKS_CARD, /* this card */
    PL_DEVICE_ASKS_ANY,  /* 'auto', or 'cuda' where there is no CUDA */
} pl_device_asked;

pl_device_asked pl_device_asks(const pl_config *config);

/* The device that the config asks for, or the card that isn't here, of the key
 * `gpu`, for which a plan is made. Where that is any, it is the one that
 * pl_device_choose_auto was told. Opens nothing. */
PL_MUST_CHECK pl_status pl_device_choose(pl_device_info *info,
                                         const pl_config *config,
                                         pl_error *err);

/* From now on that is the card with this number, or, below 0 and at first, the
 * processor. */
void pl_device_choose_auto(int number);

/* What the host works with itself, whatever computes: the processor. */
PL_MUST_CHECK pl_status pl_device_choose_host(pl_device_info *info,
                                              const pl_config *config,
                                              pl_error *err);

/* Whether this version has what `device`, the key's value, names. */
int pl_device_is_here(const pl_device_wish *device);

/* For tests: from now on every config asks for this kind; NULL: no longer. */
void pl_device_choose_only(const pl_device_kind *kind);

#endif
