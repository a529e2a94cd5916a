/* choose.h: which device a config's keys `device`, `threads` and `gpu` mean. */
#ifndef PL_DEVICE_CHOOSE_H
#define PL_DEVICE_CHOOSE_H

#include "config/config.h"
#include "device/gpu.h"

/* All kinds of cards, in the order in which 'auto' takes them: CUDA first, so
 * that a card that both list is CUDA's. */
enum { PL_DEVICE_CARD_KINDS = 2 };
extern const pl_gpu_kind *const pl_device_cards[PL_DEVICE_CARD_KINDS];

/* Who a config's `device` leaves the choice to. */
typedef enum pl_device_asked {
    PL_DEVICE_ASKS_HOST, /* the processor, or a card that isn't here */
    PL_DEVICE_ASKS_CARD, /* this card */
    /* 'auto'; or 'cuda' that nobody typed: nanoGPT's files say it on every
     * machine */
    PL_DEVICE_ASKS_ANY,
} pl_device_asked;

pl_device_asked pl_device_asks(const pl_config *config);

/* The kind of card that a value of `device` names, and its number, or
 * PL_GPU_BEST; NULL: none. */
const pl_gpu_kind *pl_device_named(const pl_device_wish *device, int *number);

/* The device that the config asks for, or the card that isn't here, of the key
 * `gpu`, for which a plan is made, with the arithmetic that its `products` ask
 * for (products.h). Where that is any, it is the one that
 * pl_device_choose_auto was told. Opens nothing. */
PL_MUST_CHECK pl_status pl_device_choose(pl_device_info *info,
                                         const pl_config *config,
                                         pl_error *err);

/* From now on that is this card, or, with NULL and at first, the processor. */
void pl_device_choose_auto(const pl_gpu_kind *kind, int number);

/* What the host works with itself, whatever computes: the processor. */
PL_MUST_CHECK pl_status pl_device_choose_host(pl_device_info *info,
                                              const pl_config *config,
                                              pl_error *err);

/* Whether `info`, which was chosen, is another device than the one that
 * `device` names. */
int pl_device_is_another(const pl_config *config, const pl_device_info *info);

/* For tests: from now on every config asks for this kind; NULL: no longer. */
void pl_device_choose_only(const pl_device_kind *kind);

#endif
