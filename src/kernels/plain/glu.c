/* glu.c: SwiGLU, forward and, in place, backward: rows on their own. */
#include "kernels/plain/convert.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"
#include "kernels/swiglu.h"

void PL_K(glu)(const pl_glu *args, int ith, int nth)
{
    const size_t F = args->F;
    const pl_storage from = args->x_storage, to = args->y_storage;
    float gates[STACK_FLOATS], ups[STACK_FLOATS], y[STACK_FLOATS];
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        for (size_t c = 0; c < F; c += STACK_FLOATS) {
            const size_t count = stack_count(c, F), at = 2 * r * F + c;
            const float *gate = as_floats(gates, args->x, at, count, from),
                        *up = as_floats(ups, args->x, at + F, count, from);
            for (size_t i = 0; i < count; i++)
                y[i] = swiglu1(gate[i], up[i]);
            narrow(pl_storage_at(args->y, r * F + c, to), y, count, to);
        }
}

void PL_K(glu_bwd)(const pl_glu_bwd *args, int ith, int nth)
{
    const size_t F = args->F;
    const pl_storage kept = args->x_storage;
    float gate[STACK_FLOATS], up[STACK_FLOATS], dys[STACK_FLOATS];
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        for (size_t c = 0; c < F; c += STACK_FLOATS) {
            const size_t count = stack_count(c, F);
            void *gates = pl_storage_at(args->x, 2 * r * F + c, kept),
                 *ups = pl_storage_at(args->x, 2 * r * F + F + c, kept);
            const float *dy = as_floats(dys, args->dy, r * F + c, count,
                                        args->dy_storage);
            widen(gate, gates, count, kept);
            widen(up, ups, count, kept);
            for (size_t i = 0; i < count; i++) {
                float dup;
                gate[i] = swiglu_slopes1(gate[i], up[i], dy[i], &dup);
                up[i] = dup;
            }
            narrow(gates, gate, count, kept);
            narrow(ups, up, count, kept);
        }
}
