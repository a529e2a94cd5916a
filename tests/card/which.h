/* which.h: the kind of the emulated card that CARD_API in the environment
 * names. */
#ifndef PL_TESTS_CARD_WHICH_H
#define PL_TESTS_CARD_WHICH_H

#include "device/choose.h"

#include <stdlib.h>
#include <string.h>

static inline const pl_gpu_kind *which_card(void)
{
    const char *api = getenv("CARD_API");
    for (size_t k = 0; api && k < PL_DEVICE_CARD_KINDS; k++)
        if (strcmp(pl_device_cards[k]->api->name, api) == 0)
            return pl_device_cards[k];
    abort(); /* the test was called without it */
}

static inline int is_cuda(void)
{
    return strcmp(which_card()->api->name, "cuda") == 0;
}

#endif
