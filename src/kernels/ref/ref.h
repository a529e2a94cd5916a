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

/* MMA(c, group) of tensor.h; a and b are a group each, kept in `storage`. */
float pl_ref_mma(pl_products products, pl_storage storage, float c,
                 const float *a, const float *b);

/* A sum of products: in double, or TENSOR of operands that are kept in
 * `storage`, from `start` on. The total ends the last group. */
typedef struct ref_sum {
    pl_products products;
    pl_storage storage;
    double exact;
    float c, a[PL_LARGEST_GROUP], b[PL_LARGEST_GROUP];
    int count; /* of the group that has begun */
} ref_sum;

ref_sum pl_ref_sum_begin(pl_products products, pl_storage storage, float start);
void pl_ref_sum_end_group(ref_sum *sum);
double pl_ref_sum_total(ref_sum *sum);

static inline void pl_ref_sum_add(ref_sum *sum, double a, double b)
{
    if (sum->products == PL_PRODUCTS_EXACT) {
        sum->exact += a * b;
        return;
    }
    sum->a[sum->count] = (float)a;
    sum->b[sum->count] = (float)b;
    if (++sum->count == pl_products_group(sum->products))
        pl_ref_sum_end_group(sum);
}

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
