/* loss.c: cross entropy, its gradient, and sums of losses. */
#include "kernels/ref/ref.h"

#include <math.h>

static double logit(const void *x, size_t c, pl_storage storage)
{
    return (double)pl_storage_get(x, c, storage);
}

static float cross_entropy_row(void *x, pl_storage storage, size_t V,
                               size_t target, double scale, double cap)
{
    double max = -INFINITY, sum = 0;
    for (size_t c = 0; c < V && cap != 0; c++)
        pl_storage_put(x, c, (float)(cap * tanh(logit(x, c, storage) / cap)),
                       storage);
    for (size_t c = 0; c < V; c++)
        max = logit(x, c, storage) <= max ? max : logit(x, c, storage);
    for (size_t c = 0; c < V; c++)
        sum += exp(logit(x, c, storage) - max);
    const float loss = (float)(max + log(sum) - logit(x, target, storage));
    for (size_t c = 0; c < V && scale != 0; c++) {
        const double p = exp(logit(x, c, storage) - max) / sum;
        const double t = cap != 0 ? logit(x, c, storage) / cap : 0;
        pl_storage_put(x, c, (float)((p - (c == target)) * scale * (1 - t * t)),
                       storage);
    }
    return loss;
}

void pl_ref_cross_entropy(const pl_cross_entropy *args, int ith, int nth)
{
    const size_t T = args->T, V = args->V;
    (void)nth;
    if (ith || V == 0)
        return;
    for (size_t i = 0; i < args->rows; i++) {
        const size_t r = args->first + i;
        const size_t target =
            (size_t)args->tokens[r / T * args->token_stride + r % T + 1];
        args->loss[r] = cross_entropy_row(
            pl_storage_at(args->logits, i * V, args->storage), args->storage, V,
            target, (double)args->scale, (double)args->cap);
    }
}

void pl_ref_softcap(const pl_softcap *args, int ith, int nth)
{
    const double cap = (double)args->cap;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++)
        args->x[i] = (float)(cap * tanh((double)args->x[i] / cap));
}

void pl_ref_loss_sum(const pl_loss_sum *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t s = 0; s < args->sequences; s++) {
        double sum = 0;
        for (size_t t = 0; t < args->T; t++)
            sum += (double)args->loss[s * args->T + t];
        args->sums[s] = sum;
    }
}
