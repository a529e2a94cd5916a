/* qk.c: RMSNorm and rotation of the heads of queries and keys. Rows are on
 * their own; the weights' gradients go by columns. */
#include "kernels/plain/convert.h"
#include "kernels/plain/lanes.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

/* Elements of x that stand side by side, and those half a head further on: what
 * a rotation mixes. */
typedef struct halves {
    float low[STACK_FLOATS], high[STACK_FLOATS];
} halves;

/* x = x * rstd * weight. */
static void scale_by(float *restrict x, const float *restrict weight,
                     size_t count, float rstd)
{
    for (size_t i = 0; i < count; i++)
        x[i] = x[i] * rstd * weight[i];
}

/* By the angles whose cosines and sines are given. */
static void rotate(halves *x, const float *restrict cosine,
                   const float *restrict sine, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float a = x->low[i], b = x->high[i], c = cosine[i], s = sine[i];
        x->low[i] = fma1(a, c, -(b * s));
        x->high[i] = fma1(b, c, a * s);
    }
}

/* And back. */
static void rotate_back(halves *x, const float *restrict cosine,
                        const float *restrict sine, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float a = x->low[i], b = x->high[i], c = cosine[i], s = sine[i];
        x->low[i] = fma1(a, c, b * s);
        x->high[i] = fma1(b, c, -(a * s));
    }
}

/* Of D elements of x from `at` on. */
static float rstd_of(const void *x, size_t at, size_t D, pl_storage storage,
                     float eps)
{
    float room[STACK_FLOATS];
    lanes sum = lanes_all(0);
    for (size_t c = 0; c < D; c += STACK_FLOATS) {
        const size_t count = stack_count(c, D);
        const float *part = as_floats(room, x, at + c, count, storage);
        sum = lanes_dot_on(sum, part, part, count);
    }
    return 1.0f / sqrtf(lanes_total(sum) / (float)D + eps);
}

/* ---- forward ---- */

/* One head, at element `at` of x and y; `angles` is its row of the table. */
static void head(const pl_qk *args, size_t at, const float *weight, float rstd,
                 const float *angles)
{
    const pl_storage kept = args->storage;
    const size_t half = angles ? args->D / 2 : args->D;
    halves x;
    for (size_t i = 0; i < half; i += STACK_FLOATS) {
        const size_t count = stack_count(i, half), j = i + half;
        widen(x.low, pl_storage_at(args->x, at + i, kept), count, kept);
        if (weight)
            scale_by(x.low, weight + i, count, rstd);
        if (angles) {
            widen(x.high, pl_storage_at(args->x, at + j, kept), count, kept);
            if (weight)
                scale_by(x.high, weight + j, count, rstd);
            rotate(&x, angles + i, angles + j, count);
            narrow(pl_storage_at(args->y, at + j, kept), x.high, count, kept);
        }
        narrow(pl_storage_at(args->y, at + i, kept), x.low, count, kept);
    }
}

/* The table's row for row r, or NULL. */
static const float *angles_of(const pl_qk *args, size_t r)
{
    const size_t first = args->positions ? (size_t)args->positions[r / args->T]
                                         : args->position;
    return args->table ? args->table + (first + r % args->T) * args->D : NULL;
}

void PL_K(qk)(const pl_qk *args, int ith, int nth)
{
    const size_t D = args->D, heads = args->H + args->KV,
                 row = (heads + args->KV) * D;
    const pl_storage kept = args->storage;
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *angles = angles_of(args, r);
        for (size_t h = 0; h < heads; h++) {
            const size_t at = r * row + h * D;
            const float *weight = h < args->H ? args->q_weight : args->k_weight;
            float rstd = 1.0f;
            if (weight)
                args->rstd[r * heads + h] = rstd = rstd_of(args->x, at, D, kept,
                                                           args->eps);
            head(args, at, weight, rstd, angles);
        }
        if (args->y != args->x)
            memcpy(pl_storage_at(args->y, r * row + heads * D, kept),
                   pl_storage_at(args->x, r * row + heads * D, kept),
                   args->KV * D * pl_storage_bytes(kept));
    }
}

/* ---- backward ---- */

/* Elements i .. i + count - 1 of a head's dn and, with angles, those half a
 * head further on. */
static void dn_of(halves *dn, const void *d, size_t at, size_t i, size_t count,
                  size_t half, const float *angles, pl_storage storage)
{
    widen(dn->low, pl_storage_at(d, at + i, storage), count, storage);
    if (!angles)
        return;
    widen(dn->high, pl_storage_at(d, at + i + half, storage), count, storage);
    rotate_back(dn, angles + i, angles + i + half, count);
}

/* d = dn of a head, without weights. */
static void turn_back(const pl_qk_bwd *args, size_t at, const float *angles)
{
    const pl_storage kept = args->d_storage;
    const size_t half = args->D / 2;
    halves dn;
    for (size_t i = 0; i < half; i += STACK_FLOATS) {
        const size_t count = stack_count(i, half);
        dn_of(&dn, args->d, at, i, count, half, angles, kept);
        narrow(pl_storage_at(args->d, at + i, kept), dn.low, count, kept);
        narrow(pl_storage_at(args->d, at + i + half, kept), dn.high, count,
               kept);
    }
}

/* The elements [c, c + count) of a head's dn alone. They don't cross its
 * middle, if there are angles. */
static void dn_part(float *restrict dn, const void *d, size_t at, size_t c,
                    size_t count, size_t D, const float *angles,
                    pl_storage storage)
{
    float room[STACK_FLOATS];
    const size_t half = D / 2, i = c < half ? c : c - half;
    widen(dn, pl_storage_at(d, at + c, storage), count, storage);
    if (!angles)
        return;
    const float *restrict cosine = angles + i, *restrict sine = cosine + half,
                          *restrict other = as_floats(
                              room, d, at + (c < half ? c + half : i), count,
                              storage);
    if (c < half)
        for (size_t k = 0; k < count; k++)
            dn[k] = fma1(dn[k], cosine[k], other[k] * sine[k]);
    else
        for (size_t k = 0; k < count; k++)
            dn[k] = fma1(dn[k], cosine[k], -(other[k] * sine[k]));
}

/* How many elements from c on can be had of dn_part. */
static size_t part_count(size_t c, size_t end, size_t D, const float *angles)
{
    const size_t half = D / 2,
                 stop = angles && c < half && half < end ? half : end;
    return stack_count(c, stop);
}

/* LANES(g * h) / D of a head. Its parts of dn may begin anywhere, a lane is an
 * element's own: so they are put together in whole rows of lanes. */
static float mean_of(const pl_qk_bwd *args, size_t at, const float *weight,
                     float rstd, const float *angles)
{
    const size_t D = args->D;
    float g[STACK_FLOATS], h[STACK_FLOATS];
    lanes sum = lanes_all(0);
    for (size_t from = 0; from < D; from += STACK_FLOATS) {
        const size_t all = stack_count(from, D), end = from + all;
        size_t c = from;
        do {
            const size_t count = part_count(c, end, D, angles);
            dn_part(g + (c - from), args->d, at, c, count, D, angles,
                    args->d_storage);
            c += count;
        } while (c < end);
        widen(h, pl_storage_at(args->x, at + from, args->x_storage), all,
              args->x_storage);
        for (size_t i = 0; i < all; i++) {
            g[i] *= weight[from + i];
            h[i] *= rstd;
        }
        sum = lanes_dot_on(sum, g, h, all);
    }
    return lanes_total(sum) / (float)D;
}

/* dn = fma(h, -mean, dn * weight) * rstd, for `count` elements from c on. */
static void through_norm(const pl_qk_bwd *args, float *restrict dn, size_t at,
                         size_t c, size_t count, const float *restrict weight,
                         float rstd, float mean)
{
    float room[STACK_FLOATS];
    const float *restrict x = as_floats(room, args->x, at + c, count,
                                        args->x_storage);
    for (size_t i = 0; i < count; i++)
        dn[i] = fma1(x[i] * rstd, -mean, dn[i] * weight[c + i]) * rstd;
}

static void head_back(const pl_qk_bwd *args, size_t at, const float *weight,
                      float rstd, const float *angles)
{
    const pl_storage kept = args->d_storage;
    const size_t half = angles ? args->D / 2 : args->D;
    const float mean = mean_of(args, at, weight, rstd, angles);
    halves dn;
    for (size_t i = 0; i < half; i += STACK_FLOATS) {
        const size_t count = stack_count(i, half), j = i + half;
        dn_of(&dn, args->d, at, i, count, half, angles, kept);
        through_norm(args, dn.low, at, i, count, weight, rstd, mean);
        narrow(pl_storage_at(args->d, at + i, kept), dn.low, count, kept);
        if (!angles)
            continue;
        through_norm(args, dn.high, at, j, count, weight, rstd, mean);
        narrow(pl_storage_at(args->d, at + j, kept), dn.high, count, kept);
    }
}

void PL_K(qk_bwd)(const pl_qk_bwd *args, int ith, int nth)
{
    const size_t D = args->D, heads = args->H + args->KV;
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *angles = args->table ? args->table + r % args->T * D
                                          : NULL;
        for (size_t h = 0; h < heads; h++) {
            const size_t at = (r * (heads + args->KV) + h) * D;
            const float *weight = h < args->H ? args->q_weight : args->k_weight;
            if (weight)
                head_back(args, at, weight, args->rstd[r * heads + h], angles);
            else if (angles)
                turn_back(args, at, angles);
        }
    }
}

/* ---- the weights' gradients ---- */

/* Columns begin .. end - 1 of one head. */
static void add_head(const pl_qk_dw *args, float *dweight, size_t at,
                     float rstd, const float *angles, size_t begin, size_t end)
{
    float dn[STACK_FLOATS], room[STACK_FLOATS];
    for (size_t c = begin; c < end;) {
        const size_t count = part_count(c, end, args->D, angles);
        const float *restrict x = as_floats(room, args->x, at + c, count,
                                            args->x_storage);
        float *restrict sum = dweight + c;
        dn_part(dn, args->d, at, c, count, args->D, angles, args->d_storage);
        for (size_t i = 0; i < count; i++)
            sum[i] = fma1(dn[i], x[i] * rstd, sum[i]);
        c += count;
    }
}

void PL_K(qk_dw)(const pl_qk_dw *args, int ith, int nth)
{
    const size_t D = args->D, heads = args->H + args->KV;
    size_t begin, end;
    share_elements(D, ith, nth, &begin, &end);
    for (size_t r = 0; r < args->rows && begin < end; r++) {
        const float *angles = args->table ? args->table + r % args->T * D
                                          : NULL;
        for (size_t h = 0; h < heads; h++)
            add_head(args, h < args->H ? args->dq_weight : args->dk_weight,
                     (r * (heads + args->KV) + h) * D,
                     args->rstd[r * heads + h], angles, begin, end);
    }
}
