/* outer.c: DiLoCo's outer step. */
#include "kernels/plain/convert.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

static void step(const pl_outer *args, size_t begin, size_t end)
{
    float *restrict w = args->w, *restrict g = args->g,
                    *restrict anchor = args->anchor, *restrict b = args->b;
    const float share = args->share, momentum = args->momentum,
                rate = args->rate;
    for (size_t i = begin; i < end; i++) {
        const float pulled = anchor[i] - g[i] * share;
        b[i] = b[i] * momentum + pulled;
        anchor[i] -= rate * (pulled + momentum * b[i]);
        w[i] = anchor[i];
        g[i] = 0.0f;
    }
}

/* Piece by piece, so that what is copied is still in the cache. */
void PL_K(outer)(const pl_outer *args, int ith, int nth)
{
    enum { PIECE = 4096 };
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    for (size_t i = begin; i < end; i += PIECE) {
        const size_t count = end - i < PIECE ? end - i : PIECE;
        step(args, i, i + count);
        if (args->copy)
            narrow(args->copy + i, args->w + i, count, args->copy_storage);
    }
}
