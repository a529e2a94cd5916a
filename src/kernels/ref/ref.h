/* ref.h: the reference kernels, the definition of every op: naive, readable,
 * sums in double, all on thread 0. */
#ifndef PL_KERNELS_REF_REF_H
#define PL_KERNELS_REF_REF_H

#include "base/rng.h"
#include "kernels/kernels.h"

#define PL_REF_DECLARE(op)                                                     \
    void pl_ref_##op(const pl_##op *args, int ith, int nth);
PL_KERNEL_TABLE(PL_REF_DECLARE)
#undef PL_REF_DECLARE

/* Element (m, n) of C from its sum: args->epilogue and C's storage. */
void pl_ref_finish(const pl_gemm *args, size_t m, size_t n, float sum);

/* drop(x) for element (row, column) of a sequence; `high` is head << 20 in
 * attention and 0 elsewhere. */
static inline double ref_dropped(const pl_dropout *drop, size_t high,
                                 size_t sequence, size_t row, size_t column,
                                 double x)
{
    const uint32_t counter[4] = { (uint32_t)(high | column / 4), (uint32_t)row,
                                  drop->sequence + (uint32_t)sequence,
                                  drop->step };
    const uint32_t key[2] = { drop->seed, (uint32_t)PL_RNG_DROPOUT |
                                              drop->site << 8 |
                                              drop->layer << 16 };
    uint32_t word[4];
    if (drop->threshold == 0)
        return x;
    pl_philox(counter, key, word);
    return word[column % 4] >= drop->threshold ? x * (double)drop->scale : 0.0;
}

#endif
