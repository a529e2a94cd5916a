/* loss.c: cross entropy and its gradient in three passes over a row. */
#include "kernels/plain/lanes.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"
#include "kernels/plain/vmath.h"

/* Exponentials are summed while they are in the first-level cache. */
enum { CHUNK = 64 * LANES };

/* x[c] = exp(x[c] - max); returns their sum. */
static float exp_and_sum(float *x, size_t V, float max)
{
    lanes sum = lanes_all(0);
    for (size_t begin = 0; begin < V; begin += CHUNK) {
        const size_t count = V - begin < CHUNK ? V - begin : CHUNK;
        float *part = x + begin;
        for (size_t c = 0; c < count; c++)
            part[c] = exp_down1(part[c] - max);
        sum = lanes_sum_on(sum, part, count);
    }
    return lanes_total(sum);
}

static float cross_entropy_row(float *x, size_t V, size_t target, float scale)
{
    const float max = lanes_max(x, V), logit = x[target];
    const float sum = exp_and_sum(x, V, max), inverse = 1.0f / sum;
    if (scale != 0.0f) {
        const float at_target = (x[target] * inverse - 1.0f) * scale;
        for (size_t c = 0; c < V; c++)
            x[c] = x[c] * inverse * scale;
        x[target] = at_target;
    }
    return log_sum1(max, sum, logit);
}

void PL_K(cross_entropy)(const pl_cross_entropy *args, int ith, int nth)
{
    const size_t T = args->T, V = args->V;
    size_t begin, end;
    if (V == 0)
        return;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const size_t r = args->first + i;
        const int32_t target =
            args->tokens[r / T * args->token_stride + r % T + 1];
        args->loss[r] = cross_entropy_row(args->logits + i * V, V,
                                          (size_t)target, args->scale);
    }
}

void PL_K(loss_sum)(const pl_loss_sum *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->sequences, ith, nth, &begin, &end);
    for (size_t s = begin; s < end; s++) {
        double sum = 0;
        for (size_t t = 0; t < args->T; t++)
            sum += (double)args->loss[s * args->T + t];
        args->sums[s] = sum;
    }
}
