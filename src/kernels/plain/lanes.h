/* lanes.h: LANES(j) of the canonical order: sums and maxima within one row as
 * 16 partial results. The number is the same in every set, so the shape of the
 * sum is too. */
#ifndef PL_KERNELS_PLAIN_LANES_H
#define PL_KERNELS_PLAIN_LANES_H

#include "kernels/plain/vec.h"

#include <math.h>
#include <stddef.h>

enum { LANES = 16, LANE_VECTORS = LANES / VL };

typedef struct lanes {
    vf at[LANE_VECTORS];
} lanes;

PL_INLINE lanes lanes_all(float x)
{
    lanes l;
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++)
        l.at[i] = v_all(x);
    return l;
}

PL_INLINE lanes lanes_load(const float *x)
{
    lanes l;
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++)
        l.at[i] = v_load(x + i * VL);
    return l;
}

/* The last `count` < 16 elements of a row; `missing` stands for the rest. */
PL_INLINE lanes lanes_load_part(const float *x, size_t count, float missing)
{
    float part[LANES];
    for (size_t i = 0; i < LANES; i++)
        part[i] = i < count ? x[i] : missing;
    return lanes_load(part);
}

PL_INLINE lanes lanes_add(lanes l, lanes x)
{
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++)
        l.at[i] += x.at[i];
    return l;
}

PL_INLINE lanes lanes_fma(lanes a, lanes b, lanes l)
{
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++)
        l.at[i] = v_fma(a.at[i], b.at[i], l.at[i]);
    return l;
}

/* Lanes i and i+8, i+4, i+2, i+1. */
PL_INLINE float lanes_total(lanes l)
{
    float x[LANES];
    memcpy(x, &l, sizeof x);
    for (int w = LANES / 2; w; w /= 2)
        for (int i = 0; i < w; i++)
            x[i] += x[i + w];
    return x[0];
}

/* l + the elements x[0 .. count), x[0] being lane 0's. */
PL_INLINE lanes lanes_sum_on(lanes l, const float *x, size_t count)
{
    size_t j = 0;
    for (; j + LANES <= count; j += LANES)
        l = lanes_add(l, lanes_load(x + j));
    if (j < count)
        l = lanes_add(l, lanes_load_part(x + j, count - j, 0));
    return l;
}

PL_INLINE float lanes_sum(const float *x, size_t count)
{
    return lanes_total(lanes_sum_on(lanes_all(0), x, count));
}

/* l + the products x[j] * y[j], j = 0 being lane 0's. */
PL_INLINE lanes lanes_dot_on(lanes l, const float *x, const float *y,
                             size_t count)
{
    size_t j = 0;
    for (; j + LANES <= count; j += LANES)
        l = lanes_fma(lanes_load(x + j), lanes_load(y + j), l);
    if (j < count)
        l = lanes_fma(lanes_load_part(x + j, count - j, 0),
                      lanes_load_part(y + j, count - j, 0), l);
    return l;
}

/* The sum of (x - mean)^2. */
PL_INLINE float lanes_squares(const float *x, size_t count, float mean)
{
    const lanes minus = lanes_all(-mean);
    lanes l = lanes_all(0);
    size_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        lanes d = lanes_add(lanes_load(x + j), minus);
        l = lanes_fma(d, d, l);
    }
    if (j < count) {
        lanes d = lanes_add(lanes_load_part(x + j, count - j, mean), minus);
        l = lanes_fma(d, d, l);
    }
    return lanes_total(l);
}

PL_INLINE lanes lanes_larger(lanes l, lanes x)
{
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++)
        l.at[i] = v_max(l.at[i], x.at[i]);
    return l;
}

/* The largest element. It is the same in any order, so that four groups of
 * lanes run in parallel. NaN or some element where one is NaN. */
PL_INLINE float lanes_max(const float *x, size_t count)
{
    enum { UNROLL = 4 };
    lanes l[UNROLL];
    float each[LANES], most = -INFINITY;
    size_t j = 0;
    PL_UNROLL
    for (int i = 0; i < UNROLL; i++)
        l[i] = lanes_all(-INFINITY);
    for (; j + UNROLL * LANES <= count; j += UNROLL * LANES) {
        PL_UNROLL
        for (int i = 0; i < UNROLL; i++)
            l[i] = lanes_larger(l[i], lanes_load(x + j + i * LANES));
    }
    for (; j + LANES <= count; j += LANES)
        l[0] = lanes_larger(l[0], lanes_load(x + j));
    if (j < count)
        l[0] = lanes_larger(l[0], lanes_load_part(x + j, count - j, -INFINITY));
    PL_UNROLL
    for (int i = 1; i < UNROLL; i++)
        l[0] = lanes_larger(l[0], l[i]);
    memcpy(each, &l[0], sizeof each);
    for (int i = 0; i < LANES; i++)
        most = each[i] <= most ? most : each[i];
    return most;
}

#endif
