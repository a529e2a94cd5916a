/* layernorm.c: rows on their own; the parameters' gradients by columns. */
#include "kernels/plain/convert.h"
#include "kernels/plain/lanes.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

static const float eps = 1e-5f;

/* Elements that are converted to 16 bits at a time, on the stack. */
enum { STACK_FLOATS = 256 };

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
        const float rstd = 1.0f / sqrtf(var + eps);
        if (args->y_storage == PL_STORE_F32)
            normalise(y, x, weight, bias, C, mean, rstd);
        else
            for (size_t c = 0; c < C; c += STACK_FLOATS) {
                const size_t count = C - c < STACK_FLOATS ? C - c
                                                          : STACK_FLOATS;
                normalise(piece, x + c, weight + c, bias ? bias + c : NULL,
                          count, mean, rstd);
                narrow(pl_storage_at(y, c, args->y_storage), piece, count,
                       args->y_storage);
            }
        args->stats[2 * r] = mean;
        args->stats[2 * r + 1] = rstd;
    }
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

static void dx_row(const pl_layernorm_bwd *args, size_t r)
{
    const size_t C = args->C;
    const float *restrict x = args->x + r * C, *restrict dy = args->dy + r * C,
                          *restrict weight = args->weight;
    float *restrict dx = args->dx + r * C;
    const float mean = args->stats[2 * r], rstd = args->stats[2 * r + 1];
    lanes sum_g = lanes_all(0), sum_gh = lanes_all(0);
    size_t j = 0;
    for (; j + LANES <= C; j += LANES)
        sums_step(lanes_load(x + j), lanes_load(dy + j), lanes_load(weight + j),
                  mean, rstd, &sum_g, &sum_gh);
    if (j < C)
        sums_step(lanes_load_part(x + j, C - j, mean),
                  lanes_load_part(dy + j, C - j, 0),
                  lanes_load_part(weight + j, C - j, 0), mean, rstd, &sum_g,
                  &sum_gh);
    const float mean_g = lanes_total(sum_g) / (float)C,
                mean_gh = lanes_total(sum_gh) / (float)C;
    if (args->accumulate)
        for (size_t c = 0; c < C; c++) {
            const float h = (x[c] - mean) * rstd;
            dx[c] += fma1(h, -mean_gh, dy[c] * weight[c] - mean_g) * rstd;
        }
    else
        for (size_t c = 0; c < C; c++) {
            const float h = (x[c] - mean) * rstd;
            dx[c] = fma1(h, -mean_gh, dy[c] * weight[c] - mean_g) * rstd;
        }
}

static void parameters_row(const pl_layernorm_bwd *args, size_t r, size_t begin,
                           size_t end)
{
    const float *restrict x = args->x + r * args->C, *restrict dy = args->dy +
                                                                    r * args->C;
    float *restrict dweight = args->dweight, *restrict dbias = args->dbias;
    const float mean = args->stats[2 * r], rstd = args->stats[2 * r + 1];
    if (dweight)
        for (size_t c = begin; c < end; c++)
            dweight[c] = fma1(dy[c], (x[c] - mean) * rstd, dweight[c]);
    if (dbias)
        for (size_t c = begin; c < end; c++)
            dbias[c] += dy[c];
}

void PL_K(layernorm_bwd)(const pl_layernorm_bwd *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        dx_row(args, r);
    share_elements(args->C, ith, nth, &begin, &end);
    for (size_t r = 0; r < args->rows && begin < end; r++)
        parameters_row(args, r, begin, end);
}
