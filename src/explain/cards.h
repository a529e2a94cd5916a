/* cards.h: common graphics cards and their memory. */
#ifndef PL_EXPLAIN_CARDS_H
#define PL_EXPLAIN_CARDS_H

#include "base/status.h"

#include <stddef.h>

typedef struct pl_card {
    const char *name;
    double sold_gib;  /* on the box */
    double shown_gib; /* what the driver reports as its total on Linux */
} pl_card;

size_t pl_card_count(void);
const pl_card *pl_card_at(size_t index);

/* The card that `text` means. Case, blanks, hyphens and the maker's words
 * (NVIDIA, GeForce, Radeon, Tesla, ...) don't matter, and "4070" is an RTX
 * 4070. PL_E_CONFIG names the nearest ones. */
PL_MUST_CHECK pl_status pl_card_find(const char *text, const pl_card **card,
                                     pl_error *err);

#endif
