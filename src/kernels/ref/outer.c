/* outer.c: DiLoCo's outer step. Every operation is rounded once: float is the
 * definition. */
#include "kernels/ref/ref.h"

void pl_ref_outer(const pl_outer *args, int ith, int nth)
{
    (void)nth;
    for (size_t i = 0; i < args->count && ith == 0; i++) {
        const float mean = args->g[i] * args->share,
                    pulled = args->anchor[i] - mean,
                    kept = args->b[i] * args->momentum, b = kept + pulled,
                    ahead = args->momentum * b,
                    step = args->rate * (pulled + ahead),
                    w = args->anchor[i] - step;
        args->b[i] = b;
        args->w[i] = args->anchor[i] = w;
        args->g[i] = 0.0f;
        if (args->copy)
            pl_storage_put(args->copy, i, w, args->copy_storage);
    }
}
