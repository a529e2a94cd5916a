/* add.c: sums of groups. */
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

#include <string.h>

void PL_K(add)(const pl_add *args, int ith, int nth)
{
    float *restrict y = args->y;
    const float *restrict x = args->x;
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    for (size_t i = begin; i < end; i++)
        y[i] = x[i] + y[i];
}

/* Piece by piece, so that what is cleared is still in the cache. */
void PL_K(move)(const pl_move *args, int ith, int nth)
{
    enum { PIECE = 4096 };
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    for (size_t i = begin; i < end; i += PIECE) {
        const size_t count = end - i < PIECE ? end - i : PIECE;
        memcpy(args->y + i, args->x + i, count * sizeof *args->y);
        memset(args->x + i, 0, count * sizeof *args->x);
    }
}
