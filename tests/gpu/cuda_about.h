/* cuda_about.h: what the emulated driver says of its card, and its primary
 * context, which is current on the threads that pushed it. PL_CARD
 * (card_words.h) knows these words besides:
 *
 *   cc=N         its compute capability, 89 unless told
 *   screen       it has one
 *   prohibited   its compute mode
 *   gives=N      less than it says is free
 *   old          its driver is older than PTX of today */
#ifndef PL_TESTS_GPU_CUDA_ABOUT_H
#define PL_TESTS_GPU_CUDA_ABOUT_H

#include <stddef.h>

enum {
    INVALID_VALUE = 1,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    CUDA_DEVICE = 7, /* not its number: nobody promised that */
};

extern int cuda_is_ready; /* cuInit was called */

struct CUctx_st {
    int retained;
    size_t taken, most; /* bytes of the card's memory */
};

extern struct CUctx_st cuda_context;
int cuda_has_context(void);

/* cuda_driver.c's: a context begins, and with it a card that isn't lost. */
void cuda_begin(void);

#endif
