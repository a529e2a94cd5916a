/* layernorm.c: rows on their own; the parameters' gradients by columns. */
#include "kernels/plain/convert.h"
#include "kernels/plain/lanes.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

/* Elements of one row, from the first that each pointer points to. */
static void normalise(float *restrict y, const float *restrict x,
                      const float *restrict weight, const float *restrict bias,
                      size_t count, float mean, float rstd)
{
    if (bias)
        for (size_t c = 0; c < count; c++)
            y[c] = fma1((x[c] - mean) * rstd, weight[c], bias[c]);
    else
        for (size_t c = 0; c < count; c++)
            y[c] = (x[c] - mean) * rstd * weight[c];
}

void PL_K(layernorm)(const pl_layernorm *args, int ith, int nth)
{
    const size_t C = args->C;
    const float *weight = args->weight, *bias = args->bias;
    float piece[STACK_FLOATS];
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *x = args->x + r * C;
        void *y = pl_storage_at(args->y, r * C, args->y_storage);
        const float mean = lanes_sum(x, C) / (float)C;
        const float var = lanes_squares(x, C, mean) / (float)C;
        const float rstd = 1.0f / sqrtf(var + args->eps);
        if (args->y_storage == PL_STORE_F32)
            normalise(y, x, weight, bias, C, mean, rstd);
        else
            for (size_t c = 0; c < C; c += STACK_FLOATS) {
                const size_t count = stack_count(c, C);
                normalise(piece, x + c, weight + c, bias ? bias + c : NULL,
                          count, mean, rstd);
                narrow(pl_storage_at(y, c, args->y_storage), piece, count,
                       args->y_storage);
            }
        args->stats[2 * r] = mean;
        args->stats[2 * r + 1] = rstd;
    }
}

/* What a row's gradient is made of: x, dy and the weights from some element on,
 * and the row's statistics. */
typedef struct row_part {
    const float *restrict x, *restrict dy, *restrict weight;
    size_t count;
    float mean, rstd;
} row_part;

/* Elements from c on of row r, dy as float32 in `room` or in place. */
static row_part part_of(const pl_layernorm_bwd *args, size_t r, size_t c,
                        float room[STACK_FLOATS])
{
    const size_t count = stack_count(c, args->C), at = r * args->C + c;
    return (
        row_part){ .x = args->x + at,
                   .dy = as_floats(room, args->dy, at, count, args->dy_storage),
                   .weight = args->weight + c,
                   .count = count,
                   .mean = args->stats[2 * r],
                   .rstd = args->stats[2 * r + 1] };
}

/* Sums of g and g * h over elements [j, j + 16) or, at the end, fewer. */
PL_INLINE void sums_step(lanes x, lanes dy, lanes w, float mean, float rstd,
                         lanes *sum_g, lanes *sum_gh)
{
    PL_UNROLL
    for (int i = 0; i < LANE_VECTORS; i++) {
        const vf h = (x.at[i] - mean) * rstd;
        const vf g = dy.at[i] * w.at[i];
        sum_g->at[i] += g;
        sum_gh->at[i] = v_fma(g, h, sum_gh->at[i]);
    }
}

static void sums_on(const row_part *p, lanes *sum_g, lanes *sum_gh)
{
    const size_t C = p->count;
    size_t j = 0;
    for (; j + LANES <= C; j += LANES)
        sums_step(lanes_load(p->x + j), lanes_load(p->dy + j),
                  lanes_load(p->weight + j), p->mean, p->rstd, sum_g, sum_gh);
    if (j < C)
        sums_step(lanes_load_part(p->x + j, C - j, p->mean),
                  lanes_load_part(p->dy + j, C - j, 0),
                  lanes_load_part(p->weight + j, C - j, 0), p->mean, p->rstd,
                  sum_g, sum_gh);
}

static void dx_part(float *restrict dx, const row_part *p, float mean_g,
                    float mean_gh, int accumulate)
{
    const row_part q = *p;
    if (accumulate)
        for (size_t c = 0; c < q.count; c++) {
            const float h = (q.x[c] - q.mean) * q.rstd;
            dx[c] += fma1(h, -mean_gh, q.dy[c] * q.weight[c] - mean_g) * q.rstd;
        }
    else
        for (size_t c = 0; c < q.count; c++) {
            const float h = (q.x[c] - q.mean) * q.rstd;
            dx[c] = fma1(h, -mean_gh, q.dy[c] * q.weight[c] - mean_g) * q.rstd;
        }
}

static void dx_row(const pl_layernorm_bwd *args, size_t r)
{
    const size_t C = args->C;
    float room[STACK_FLOATS];
    lanes sum_g = lanes_all(0), sum_gh = lanes_all(0);
    for (size_t c = 0; c < C; c += STACK_FLOATS) {
        const row_part p = part_of(args, r, c, room);
        sums_on(&p, &sum_g, &sum_gh);
    }
    const float mean_g = lanes_total(sum_g) / (float)C,
                mean_gh = lanes_total(sum_gh) / (float)C;
    for (size_t c = 0; c < C; c += STACK_FLOATS) {
        const row_part p = part_of(args, r, c, room);
        dx_part(args->dx + r * C + c, &p, mean_g, mean_gh, args->accumulate);
    }
}

/* Columns begin .. end - 1, a few hundred. */
static void parameters_row(const pl_layernorm_bwd *args, size_t r, size_t begin,
                           size_t end)
{
    float room[STACK_FLOATS];
    const size_t count = end - begin, at = r * args->C + begin;
    const float *restrict x = args->x + at, *restrict dy = as_floats(
                                                room, args->dy, at, count,
                                                args->dy_storage);
    float *restrict dweight = args->dweight, *restrict dbias = args->dbias;
    const float mean = args->stats[2 * r], rstd = args->stats[2 * r + 1];
    if (dweight)
        for (size_t c = 0; c < count; c++)
            dweight[begin + c] = fma1(dy[c], (x[c] - mean) * rstd,
                                      dweight[begin + c]);
    if (dbias)
        for (size_t c = 0; c < count; c++)
            dbias[begin + c] += dy[c];
}

void PL_K(layernorm_bwd)(const pl_layernorm_bwd *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        dx_row(args, r);
    share_elements(args->C, ith, nth, &begin, &end);
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = begin; c < end; c += STACK_FLOATS)
            parameters_row(args, r, c, c + stack_count(c, end));
}
