/* muon.c: what Muon computes beside its products. Defined to the bit, in the
 * contract's own order, so this is float where the contract says float. */
#include "kernels/ref/rounding.h"

/* ---- the moment ---- */

static float moment_at(const pl_muon_moment *args, size_t i)
{
    if (!args->m_codes)
        return args->m[i];
    return ref_mean_of(args->m_codes[i], args->m_scales[i / PL_QUANT_BLOCK]);
}

/* One element; its moment is the result. */
static float blend_one(const pl_muon_moment *args, size_t i)
{
    const float grad = args->g[i] * (args->clip ? *args->clip : 1.0f);
    float m = moment_at(args, i);
    m += (grad - m) * args->momentum_rest;
    args->g[i] = grad + (m - grad) * args->momentum;
    return m;
}

/* The moments of elements first .. first + count - 1, one block, as codes. */
static void keep_codes(const pl_muon_moment *args, size_t first, size_t count,
                       const float *m)
{
    float most = 0.0f;
    for (size_t i = 0; i < count; i++)
        most = fabsf(m[i]) > most ? fabsf(m[i]) : most;
    const float scale = ref_scale_of(most);
    const ref_chances of = { args->seed, args->step, args->tensor };
    for (size_t i = 0; i < count; i++) {
        const int c = ref_stochastic_code(
            fabsf(m[i]), scale, 127,
            ref_chance(of, PL_ROUNDED_MEAN, first + i));
        args->m_codes[first + i] = (int8_t)(m[i] < 0 ? -c : c);
    }
    args->m_scales[first / PL_QUANT_BLOCK] = scale;
}

void pl_ref_muon_moment(const pl_muon_moment *args, int ith, int nth)
{
    const int skipped = args->skipped && *args->skipped;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count && skipped; i++)
        args->g[i] = 0.0f;
    if (skipped)
        return;
    for (size_t first = 0; first < args->count; first += PL_QUANT_BLOCK) {
        const size_t rest = args->count - first,
                     count = rest < PL_QUANT_BLOCK ? rest : PL_QUANT_BLOCK;
        float m[PL_QUANT_BLOCK];
        for (size_t i = 0; i < count; i++)
            m[i] = blend_one(args, first + i);
        if (args->m_codes)
            keep_codes(args, first, count, m);
        else
            memcpy(args->m + first, m, count * sizeof *m);
    }
}

/* ---- around the products ---- */

void pl_ref_muon_norm(const pl_muon_norm *args, int ith, int nth)
{
    double sum = 0.0;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++)
        sum += args->partial[i];
    *args->factor = (float)(1.0 / (sqrt(sum) + 1e-7));
}

void pl_ref_muon_part(const pl_muon_part *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = 0; c < args->cols; c++) {
            float x = pl_storage_get(args->x, r * args->x_row + c * args->x_col,
                                     args->x_storage) *
                      args->scale;
            if (args->factor)
                x *= *args->factor;
            pl_storage_put(args->y, r * args->y_row + c, x, args->y_storage);
        }
}

void pl_ref_muon_poly(const pl_muon_poly *args, int ith, int nth)
{
    const size_t n = args->n;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < n * n; i++) {
        const float a = pl_storage_get(args->a, i, args->storage),
                    b = pl_storage_get(args->b, i, args->storage);
        float sum = args->linear * a + args->square * b;
        if (i / n == i % n)
            sum += args->unit;
        pl_storage_put(args->b, i, sum, args->storage);
    }
}

/* ---- the weights ---- */

void pl_ref_muon_apply(const pl_muon_apply *args, int ith, int nth)
{
    const int skipped = args->skipped && *args->skipped;
    const ref_chances of = { args->seed, args->step, args->tensor };
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++) {
        const float g = args->g[i];
        args->g[i] = 0.0f;
        if (skipped)
            continue;
        float w = args->w_bf16 ? pl_bf16_value(args->w_bf16[i]) : args->w[i];
        w = w * args->keep - args->rate * g;
        if (args->w_bf16)
            args->w_bf16[i] = ref_stochastic_bf16(
                w, ref_chance(of, PL_ROUNDED_WEIGHT, i));
        else
            args->w[i] = w;
        if (args->copy)
            pl_storage_put(args->copy, i, w, args->copy_storage);
    }
}
