/* cards.h: common graphics cards, their memory and rates. */
#ifndef PL_DEVICE_CARDS_H
#define PL_DEVICE_CARDS_H

#include "base/status.h"

#include <stddef.h>

/* 0 in `gflops`, `gbytes` and `units`, always in all three: not known. */
typedef struct pl_card {
    const char *name;
    double sold_gib;    /* on the box */
    double shown_gib;   /* what the driver reports as its total on Linux */
    double gflops;      /* float32 peak at boost clock, in GFLOP/s */
    double half_gflops; /* dense 16-bit matrix peak, float32 sums; 0: none */
    double gbytes;      /* memory bandwidth, in GB/s (1e9 bytes) */
    int units;          /* streaming multiprocessors or compute units */
    int capability;     /* 89: compute capability 8.9; 0: not NVIDIA's */
} pl_card;

size_t pl_card_count(void);
const pl_card *pl_card_at(size_t index);

/* The card that `text` means. Case, blanks, hyphens and the maker's words
 * (NVIDIA, GeForce, Radeon, Tesla, ...) don't matter, and "4070" is an RTX
 * 4070. PL_E_CONFIG names the nearest ones. */
PL_MUST_CHECK pl_status pl_card_find(const char *text, const pl_card **card,
                                     pl_error *err);

#endif
