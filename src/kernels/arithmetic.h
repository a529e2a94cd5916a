/* arithmetic.h: the numbers of arithmetics, of which a run has one. */
#ifndef PL_KERNELS_ARITHMETIC_H
#define PL_KERNELS_ARITHMETIC_H

#include "kernels/tensor.h"

#include <stdint.h>

/* Which bits a run gets: sets of kernels with one number give the same, for
 * every input, and 16-bit products in tensor arithmetic make another number of
 * it. A checkpoint keeps it (state.json's "arithmetic"), and a run is
 * resumed with it. So whoever changes a bit of any result gives the sets that
 * it concerns numbers that were never used before. */
typedef enum pl_arithmetic {
    PL_ARITHMETIC_UNSAID, /* the reference; checkpoints that kept none */
    /* of the past: lse, loss and initial weights by libm's functions */
    PL_ARITHMETIC_BASE_1,
    PL_ARITHMETIC_FUSED_1,
    PL_ARITHMETIC_BASE,  /* a product and a sum are rounded each */
    PL_ARITHMETIC_FUSED, /* multiply-adds are rounded once: all others */
    /* the same, but for 16-bit products, which are tensor arithmetic */
    PL_ARITHMETIC_TENSOR24,
    PL_ARITHMETIC_TENSOR25,
    PL_ARITHMETIC_AMX,
    PL_ARITHMETIC_COUNT
} pl_arithmetic;

/* "base", "avx2, avx512 ... and neon", or those of an earlier version;
 * "unknown" for a number that isn't ours. */
const char *pl_arithmetic_name(uint64_t arithmetic);

/* A set's arithmetic with products of this kind; PL_ARITHMETIC_UNSAID where
 * there is no such: the base set has exact products only, since no card gives
 * the bits that all else of it has. */
pl_arithmetic pl_arithmetic_with(pl_arithmetic set, pl_products products);

/* The kind of products that it has. */
pl_products pl_arithmetic_products(uint64_t arithmetic);

/* "exact", "tensor24", "tensor25", "amx". */
const char *pl_products_name(pl_products products);

#endif
