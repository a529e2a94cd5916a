/* tensor.c: tensor arithmetic as kernels/tensor.h states it: that of NVIDIA's
 * in double, where every step is exact, that of Intel's by its own sums. */
#include "kernels/ref/ref.h"

#include <math.h>

/* Of the leading bit, but at least `least`; -126 for zero. */
static int exponent(float x, int least)
{
    int e;
    if (x == 0.0f)
        return -126;
    (void)frexp((double)x, &e);
    return e - 1 > least ? e - 1 : least;
}

/* x cut to a multiple of 2^unit. */
static double cut(double x, int unit)
{
    return ldexp(trunc(ldexp(x, -unit)), unit);
}

static float toward_zero(double sum)
{
    int e;
    if (sum == 0)
        return 0.0f;
    (void)frexp(sum, &e);
    if (e > 128)
        return sum < 0 ? -INFINITY : INFINITY;
    return (float)cut(sum, e - 24 > -149 ? e - 24 : -149) + 0.0f;
}

/* c and `count` products, the smallest exponent of whose factors is `least`. */
static float add_up(float c, const float *a, const float *b, int count,
                    int bits, int least)
{
    int largest = exponent(c, -126);
    double all = (double)c;
    for (int i = 0; i < count; i++) {
        const int e = exponent(a[i], least) + exponent(b[i], least);
        all += (double)a[i] * (double)b[i];
        largest = e > largest ? e : largest;
    }
    if (!isfinite(all))
        return (float)all;
    double sum = cut((double)c, largest - bits);
    for (int i = 0; i < count; i++)
        sum += cut((double)a[i] * (double)b[i], largest - bits);
    return toward_zero(sum);
}

static float add_halves(float c, const float *a, const float *b)
{
    float sums[2] = { 0.0f, 0.0f };
    for (int i = 0; i < PL_AMX_GROUP; i++)
        sums[i % 2] = fmaf(a[i], b[i], sums[i % 2]);
    return c + (sums[0] + sums[1]);
}

float pl_ref_mma(pl_products products, pl_storage storage, float c,
                 const float *a, const float *b)
{
    if (products == PL_PRODUCTS_AMX)
        return add_halves(c, a, b);
    const int count = pl_tensor_sum(products), bits = pl_tensor_bits(products);
    const int least = storage == PL_STORE_F16 ? -14 : -126;
    for (int i = 0; i < PL_TENSOR_GROUP; i += count)
        c = add_up(c, a + i, b + i, count, bits, least);
    return c;
}

ref_sum pl_ref_sum_begin(pl_products products, pl_storage storage, float start)
{
    return (ref_sum){ .products = products,
                      .storage = storage,
                      .exact = (double)start,
                      .c = start };
}

void pl_ref_sum_end_group(ref_sum *sum)
{
    if (sum->count == 0)
        return;
    for (; sum->count < pl_products_group(sum->products); sum->count++)
        sum->a[sum->count] = sum->b[sum->count] = 0.0f;
    sum->c = pl_ref_mma(sum->products, sum->storage, sum->c, sum->a, sum->b);
    sum->count = 0;
}

double pl_ref_sum_total(ref_sum *sum)
{
    pl_ref_sum_end_group(sum);
    return sum->products == PL_PRODUCTS_EXACT ? sum->exact : (double)sum->c;
}
