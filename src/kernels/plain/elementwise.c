/* elementwise.c: GELU, dropout alone, and copies. */
#include "kernels/plain/convert.h"
#include "kernels/plain/gelu.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"

void PL_K(gelu)(const pl_gelu *args, int ith, int nth)
{
    const pl_storage from = args->x_storage, to = args->y_storage;
    float x[STACK_FLOATS], y[STACK_FLOATS];
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    if (from == PL_STORE_F32 && to == PL_STORE_F32) {
        gelu((float *)args->y + begin, (const float *)args->x + begin,
             end - begin, args->kind);
        return;
    }
    for (size_t i = begin; i < end; i += STACK_FLOATS) {
        const size_t count = stack_count(i, end);
        gelu(y, as_floats(x, args->x, i, count, from), count, args->kind);
        narrow(pl_storage_at(args->y, i, to), y, count, to);
    }
}

void PL_K(drop)(const pl_drop *args, int ith, int nth)
{
    const size_t T = args->T, C = args->C;
    const pl_dropout *drop = &args->dropout;
    float kept[STACK_FLOATS];
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        for (size_t c = 0; c < C; c += STACK_FLOATS) {
            const size_t count = stack_count(c, C);
            const float *x = args->x + r * C + c;
            if (drop->threshold) {
                mask_apply(drop, 0, (uint32_t)(r % T),
                           drop->sequence + (uint32_t)(r / T), c, count, x,
                           kept);
                x = kept;
            }
            narrow(pl_storage_at(args->y, r * C + c, args->y_storage), x, count,
                   args->y_storage);
        }
}

/* Where row r of a copy goes. */
static size_t place_of(const pl_copy *args, size_t r)
{
    if (!args->positions)
        return r;
    const size_t sequence = r / args->queries;
    return sequence * args->keys + (size_t)args->positions[sequence] +
           r % args->queries;
}

void PL_K(copy)(const pl_copy *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        memcpy(pl_storage_at(args->y, place_of(args, r) * args->y_row,
                             args->storage),
               pl_storage_at(args->x, r * args->x_row, args->storage),
               args->C * pl_storage_bytes(args->storage));
}
