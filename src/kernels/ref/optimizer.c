/* optimizer.c: sums of squares and AdamW. Both are defined to the bit, in the
 * contract's own order, so this is float where the contract says float. */
#include "kernels/ref/ref.h"

#include <float.h>
#include <math.h>

static double sumsq_block(const float *x, size_t count)
{
    double lane[8] = { 0 };
    for (size_t i = 0; i < count; i++)
        lane[i % 8] += (double)x[i] * (double)x[i];
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
            args->x + i, rest < PL_SUMSQ_BLOCK ? rest : PL_SUMSQ_BLOCK);
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

/* The random word for the stochastic rounding of the call's element i. */
static uint32_t word_of(const pl_adamw *args, pl_rounded what, size_t i)
{
    uint32_t word[4];
    i += args->first;
    pl_rng_words(PL_RNG_ROUND, args->seed, (uint32_t)(i / 4), args->tensor,
                 (uint32_t)what, args->step, word);
    return word[i % 4];
}

static uint16_t stochastic_bf16(float x, uint32_t word)
{
    const uint32_t u = pl_float_bits(x);
    if (x != x)
        return pl_bf16_make(x);
    const uint32_t rounded = u + (word >> 16);
    if ((rounded & 0x7fffffffu) < PL_BF16_LEAST)
        return (uint16_t)((u & 0x80000000u) >> 16);
    return (uint16_t)(rounded >> 16);
}

/* The quantized code of a magnitude, 0 .. most. */
static int stochastic_code(float x, float scale, int most, uint32_t word)
{
    const float end = (float)(most * most);
    float y = x * (scale > 0.0f ? end / scale : 0.0f);
    y = y <= end ? y : end; /* NaN too */
    const int c = (int)sqrtf(y);
    const float part = (y - (float)(c * c)) / (float)(2 * c + 1);
    const int up = (float)(word >> 8) * 0x1p-24f < part;
    return c + up < most ? c + up : most;
}

static float scale_of(float most)
{
    most = most > FLT_MAX ? FLT_MAX : most;
    return most < 1e-30f ? 0.0f : most;
}

static float mean_at(const pl_adamw *args, size_t i)
{
    if (!args->m_codes)
        return args->m[i];
    const int c = args->m_codes[i];
    const float size = (float)(c * c) *
                       (args->m_scales[i / PL_QUANT_BLOCK] / 16129.0f);
    return c < 0 ? -size : size;
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
        args->w_bf16[i] = stochastic_bf16(w,
                                          word_of(args, PL_ROUNDED_WEIGHT, i));
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
    const float scale_m = scale_of(most_m), scale_v = scale_of(most_v);
    for (size_t i = 0; i < count; i++) {
        const size_t at = first + i;
        const int cm = stochastic_code(fabsf(m[i]), scale_m, 127,
                                       word_of(args, PL_ROUNDED_MEAN, at));
        const int cv = stochastic_code(sqrtf(v[i]), scale_v, 255,
                                       word_of(args, PL_ROUNDED_SQUARE, at));
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
