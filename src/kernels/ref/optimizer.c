/* optimizer.c: sums of squares and AdamW. Both are defined to the bit, in the
 * contract's own order, so this is float where the contract says float. */
#include "kernels/ref/rounding.h"

static double sumsq_block(const pl_sumsq *args, size_t first, size_t count)
{
    double lane[8] = { 0 };
    for (size_t i = 0; i < count; i++) {
        size_t at = first + i;
        if (args->cols)
            at = at / args->cols * args->row + at % args->cols;
        lane[i % 8] += (double)args->x[at] * (double)args->x[at];
    }
    for (int w = 4; w; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return lane[0];
}

void pl_ref_sumsq(const pl_sumsq *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i += PL_SUMSQ_BLOCK) {
        const size_t rest = args->count - i;
        args->partial[i / PL_SUMSQ_BLOCK] = sumsq_block(
            args, i, rest < PL_SUMSQ_BLOCK ? rest : PL_SUMSQ_BLOCK);
    }
}

void pl_ref_clip(const pl_clip *args, int ith, int nth)
{
    double sum = 0.0, factor = 1.0;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++)
        sum += args->partial[i];
    const double norm = sqrt(sum) / args->loss_scale;
    if (args->grad_clip > 0.0f)
        factor = fmin(1.0, (double)args->grad_clip / (norm + 1e-6));
    *args->grad_norm = (float)norm;
    *args->clip = (float)(factor / args->loss_scale);
    *args->skipped = isfinite(norm) ? 0u : 1u;
}

static ref_chances chances_of(const pl_adamw *args)
{
    return (ref_chances){ args->seed, args->step, args->tensor };
}

static float mean_at(const pl_adamw *args, size_t i)
{
    if (!args->m_codes)
        return args->m[i];
    return ref_mean_of(args->m_codes[i], args->m_scales[i / PL_QUANT_BLOCK]);
}

static float square_at(const pl_adamw *args, size_t i)
{
    if (!args->m_codes)
        return args->v[i];
    const int c = args->v_codes[i];
    const float root = (float)(c * c) *
                       (args->v_scales[i / PL_QUANT_BLOCK] / 65025.0f);
    return root * root;
}

/* One element; its moments go to *m and *v. */
static void step_one(const pl_adamw *args, size_t i, float *m, float *v)
{
    const float g = args->g[i] * (args->clip ? *args->clip : 1.0f);
    float w = args->w_bf16 ? pl_bf16_value(args->w_bf16[i]) : args->w[i];
    *m = mean_at(args, i);
    *v = square_at(args, i);
    w *= args->keep;
    *m += (g - *m) * args->beta1_rest;
    *v = *v * args->beta2 + g * g * args->beta2_rest;
    w -= args->step_size * *m / (sqrtf(*v) / args->root_correction + args->eps);
    if (args->w_bf16)
        args->w_bf16[i] = ref_stochastic_bf16(
            w,
            ref_chance(chances_of(args), PL_ROUNDED_WEIGHT, args->first + i));
    else
        args->w[i] = w;
    if (args->copy)
        pl_storage_put(args->copy, i, w, args->copy_storage);
    args->g[i] = 0.0f;
}

/* The moments of elements first .. first + count - 1, one block, as codes. */
static void keep_codes(const pl_adamw *args, size_t first, size_t count,
                       const float *m, const float *v)
{
    float most_m = 0, most_v = 0;
    for (size_t i = 0; i < count; i++) {
        most_m = fabsf(m[i]) > most_m ? fabsf(m[i]) : most_m;
        most_v = sqrtf(v[i]) > most_v ? sqrtf(v[i]) : most_v;
    }
    const float scale_m = ref_scale_of(most_m), scale_v = ref_scale_of(most_v);
    const ref_chances of = chances_of(args);
    for (size_t i = 0; i < count; i++) {
        const size_t at = first + i, element = args->first + at;
        const int cm = ref_stochastic_code(
            fabsf(m[i]), scale_m, 127,
            ref_chance(of, PL_ROUNDED_MEAN, element));
        const int cv = ref_stochastic_code(
            sqrtf(v[i]), scale_v, 255,
            ref_chance(of, PL_ROUNDED_SQUARE, element));
        args->m_codes[at] = (int8_t)(m[i] < 0 ? -cm : cm);
        args->v_codes[at] = (uint8_t)(cv == 0 && scale_v > 0 && v[i] > 0 ? 1
                                                                         : cv);
    }
    args->m_scales[first / PL_QUANT_BLOCK] = scale_m;
    args->v_scales[first / PL_QUANT_BLOCK] = scale_v;
}

void pl_ref_adamw(const pl_adamw *args, int ith, int nth)
{
    const int skipped = args->skipped && *args->skipped;
    (void)nth;
    for (size_t i = 0; i < args->count && ith == 0 && skipped; i++)
        args->g[i] = 0.0f;
    if (skipped)
        return;
    if (ith)
        return;
    for (size_t first = 0; first < args->count; first += PL_QUANT_BLOCK) {
        const size_t rest = args->count - first,
                     count = rest < PL_QUANT_BLOCK ? rest : PL_QUANT_BLOCK;
        float m[PL_QUANT_BLOCK], v[PL_QUANT_BLOCK];
        for (size_t i = 0; i < count; i++)
            step_one(args, first + i, &m[i], &v[i]);
        if (args->m_codes) {
            keep_codes(args, first, count, m, v);
            continue;
        }
        memcpy(args->m + first, m, count * sizeof *m);
        memcpy(args->v + first, v, count * sizeof *v);
    }
}
