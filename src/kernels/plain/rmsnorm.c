/* rmsnorm.c: rows on their own; the weights' gradients by columns. */
#include "kernels/plain/convert.h"
#include "kernels/plain/lanes.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

/* Elements of one row, from the first that each pointer points to. */
static void normalise(float *restrict y, const float *restrict x,
                      const float *restrict weight, size_t count, float rstd)
{
    for (size_t c = 0; c < count; c++)
        y[c] = x[c] * rstd * weight[c];
}

void PL_K(rmsnorm)(const pl_rmsnorm *args, int ith, int nth)
{
    const size_t C = args->C;
    float piece[STACK_FLOATS];
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *x = args->x + r * C;
        void *y = pl_storage_at(args->y, r * C, args->y_storage);
        const float square = lanes_squares(x, C, 0) / (float)C;
        const float rstd = 1.0f / sqrtf(square + args->eps);
        if (args->y_storage == PL_STORE_F32)
            normalise(y, x, args->weight, C, rstd);
        else
            for (size_t c = 0; c < C; c += STACK_FLOATS) {
                const size_t count = stack_count(c, C);
                normalise(piece, x + c, args->weight + c, count, rstd);
                narrow(pl_storage_at(y, c, args->y_storage), piece, count,
                       args->y_storage);
            }
        args->rstd[r] = rstd;
    }
}

/* The sum of g * h over elements [j, j + 16) or, at the end, fewer. */
PL_INLINE void sum_step(lanes x, lanes dy, lanes w, float rstd, lanes *sum_gh)
{
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++)
        sum_gh->at[i] = v_fma(dy.at[i] * w.at[i], x.at[i] * rstd,
                              sum_gh->at[i]);
}

/* sum_gh + the sums of `count` elements from those that the pointers are at. */
static lanes sum_on(lanes sum_gh, const float *x, const float *dy,
                    const float *weight, size_t count, float rstd)
{
    size_t j = 0;
    for (; j + LANES <= count; j += LANES)
        sum_step(lanes_load(x + j), lanes_load(dy + j), lanes_load(weight + j),
                 rstd, &sum_gh);
    if (j < count)
        sum_step(lanes_load_part(x + j, count - j, 0),
                 lanes_load_part(dy + j, count - j, 0),
                 lanes_load_part(weight + j, count - j, 0), rstd, &sum_gh);
    return sum_gh;
}

static void dx_row(const pl_rmsnorm_bwd *args, size_t r)
{
    const size_t C = args->C;
    const float rstd = args->rstd[r];
    float room[STACK_FLOATS];
    lanes sum_gh = lanes_all(0);
    for (size_t from = 0; from < C; from += STACK_FLOATS) {
        const size_t count = stack_count(from, C), at = r * C + from;
        sum_gh = sum_on(sum_gh, args->x + at,
                        as_floats(room, args->dy, at, count, args->dy_storage),
                        args->weight + from, count, rstd);
    }
    const float mean_gh = lanes_total(sum_gh) / (float)C;
    for (size_t from = 0; from < C; from += STACK_FLOATS) {
        const size_t count = stack_count(from, C), at = r * C + from;
        const float *restrict x = args->x + at,
                              *restrict dy = as_floats(room, args->dy, at,
                                                       count, args->dy_storage),
                              *restrict weight = args->weight + from;
        float *restrict dx = args->dx + at;
        if (args->accumulate)
            for (size_t c = 0; c < count; c++)
                dx[c] += fma1(x[c] * rstd, -mean_gh, dy[c] * weight[c]) * rstd;
        else
            for (size_t c = 0; c < count; c++)
                dx[c] = fma1(x[c] * rstd, -mean_gh, dy[c] * weight[c]) * rstd;
    }
}

/* Columns begin .. end - 1, a few hundred. */
static void dweight_row(const pl_rmsnorm_bwd *args, size_t r, size_t begin,
                        size_t end)
{
    float room[STACK_FLOATS];
    const size_t count = end - begin, at = r * args->C + begin;
    const float *restrict x = args->x + at, *restrict dy = as_floats(
                                                room, args->dy, at, count,
                                                args->dy_storage);
    float *restrict dweight = args->dweight + begin;
    const float rstd = args->rstd[r];
    for (size_t c = 0; c < count; c++)
        dweight[c] = fma1(dy[c], x[c] * rstd, dweight[c]);
}

void PL_K(rmsnorm_bwd)(const pl_rmsnorm_bwd *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        dx_row(args, r);
    share_elements(args->C, ith, nth, &begin, &end);
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = begin; c < end; c += STACK_FLOATS)
            dweight_row(args, r, c, c + stack_count(c, end));
}
