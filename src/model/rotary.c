/* rotary.c: see rotary.h. */
#include "model/rotary.h"
#include "base/exact.h"

void pl_rotary_fill(const pl_shape *shape, size_t first, size_t count,
                    float *out)
{
    static const double pi = 3.14159265358979323846;
    const size_t D = shape->D, half = D / 2, end = first + count;
    for (size_t k = 0; k < half && count > 0; k++) {
        const double turns =
            pl_exact_pow(shape->rope_theta, -2.0 * (double)k / (double)D) / pi;
        for (size_t p = first / D; p <= (end - 1) / D; p++) {
            const size_t i = p * D + k, j = i + half;
            double cosine, sine;
            pl_exact_quick_turn((double)p * turns, &cosine, &sine);
            if (i >= first && i < end)
                out[i - first] = (float)cosine;
            if (j >= first && j < end)
                out[j - first] = (float)sine;
        }
    }
}
