/* embed.c: token and position embeddings. */
#include "kernels/ref/ref.h"

static double place_at(const pl_embed *args, size_t i)
{
    return args->wpe ? (double)pl_storage_get(args->wpe, i, args->wpe_storage)
                     : 0;
}

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
                               place_at(args, row * C + c);
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
            if (args->dwpe)
                args->dwpe[row * C + c] += d;
        }
    }
}
