/* job.h: the sizes of tiles, and what one tile of a product has to do:
 * tile.h does it by fused multiply-adds, tensor_tile.h and amx_fma.h in tensor
 * arithmetic. */
#ifndef PL_KERNELS_PLAIN_JOB_H
#define PL_KERNELS_PLAIN_JOB_H

#include "kernels/kernels.h"
#include "kernels/plain/vec.h"

/* MR * NV accumulators, NV vectors of B and one of A fill the registers. */
#if (defined(__AVX512F__) && defined(__FMA__)) || defined(PL_NEON)
enum { MR = 12 };
#elif defined(__FMA__)
enum { MR = 6 };
#else
enum { MR = 4 };
#endif
enum { NV = 2, NR = NV * VL, KC = PL_GEMM_DEPTH, PACK_FROM_ROWS = 16 };
/* MC, the rows of A that are copied together: on the stack, or in the product's
 * scratch. Both are whole tiles in every instruction set. */
enum { MC_STACK = 24, MC_SCRATCH = 96 };
/* The stride from one panel to the next: a vector more than a panel, so that
 * the panels don't all begin in the same set of the L1 cache. */
enum { PANEL = KC * NR + VL };

/* Rows of A times a panel of B (packed, or in place) into a tile of C. */
typedef struct tile_job {
    size_t K;
    const float *a;
    size_t a_row, a_col;
    const float *b; /* K rows of NR, b_row apart */
    size_t b_row;
    const float *from; /* initial values of the chains; NULL: +0 */
    size_t from_row;
    float *c;
    size_t c_row;
    const float *prefetch; /* the tile of C that is needed next */
    pl_products products;
    pl_storage operands; /* what A and B were rounded to; not for exact */
} tile_job;

#endif
