/* embed.c: token and position embeddings. */
#include "kernels/ref/ref.h"

void pl_ref_embed(const pl_embed *args, int ith, int nth)
{
    const size_t T = args->T, C = args->C;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        const size_t sequence = r / T,
                     first = args->positions ? (size_t)args->positions[sequence]
                                             : args->position,
                     row = first + r % T;
        const size_t token =
            (size_t)args->tokens[sequence * args->token_stride + r % T];
        for (size_t c = 0; c < C; c++) {
            const double sum = (double)pl_storage_get(args->wte, token * C + c,
                                                      args->wte_storage) +
                               (double)pl_storage_get(args->wpe, row * C + c,
                                                      args->wpe_storage);
            args->x[r * C + c] = (float)ref_dropped(&args->dropout, 0, sequence,
                                                    row, c, sum);
        }
    }
}

void pl_ref_embed_bwd(const pl_embed_bwd *args, int ith, int nth)
{
    const size_t T = args->T, C = args->C;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        const size_t sequence = r / T, row = r % T;
        const size_t token =
            (size_t)args->tokens[sequence * args->token_stride + row];
        for (size_t c = 0; c < C; c++) {
            const float d = (float)ref_dropped(&args->dropout, 0, sequence, row,
                                               c, (double)args->dx[r * C + c]);
            args->dwte[token * C + c] = pl_sum_start(args->dwte[token * C + c] +
                                                     d);
            args->dwpe[row * C + c] += d;
        }
    }
}
