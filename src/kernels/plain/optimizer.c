/* optimizer.c: the gradient's norm by blocks, and AdamW. */
#include "base/rng.h"
#include "kernels/plain/convert.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"
#include "kernels/vmath.h"

#include <float.h>
#include <math.h>

/* A square of floats is exact in double, so fusing would change nothing. */
static double sumsq_block(const float *x, size_t count)
{
    double lane[8] = { 0 };
    size_t j = 0;
    for (; j + 8 <= count; j += 8)
        for (size_t i = 0; i < 8; i++)
            lane[i] += (double)x[j + i] * (double)x[j + i];
    for (size_t i = 0; j + i < count; i++)
        lane[i] += (double)x[j + i] * (double)x[j + i];
    for (int w = 4; w; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return lane[0];
}

void PL_K(sumsq)(const pl_sumsq *args, int ith, int nth)
{
    const size_t count = args->count;
    size_t begin, end;
    pl_threads_slice(count / PL_SUMSQ_BLOCK + (count % PL_SUMSQ_BLOCK != 0),
                     ith, nth, &begin, &end);
    for (size_t j = begin; j < end; j++) {
        const size_t first = j * PL_SUMSQ_BLOCK, rest = count - first;
        args->partial[j] = sumsq_block(
            args->x + first, rest < PL_SUMSQ_BLOCK ? rest : PL_SUMSQ_BLOCK);
    }
}

/* A few thousand numbers, one after the other: one thread's. */
void PL_K(clip)(const pl_clip *args, int ith, int nth)
{
    double sum = 0.0, factor = 1.0;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++)
        sum += args->partial[i];
    const double norm = sqrt(sum) / args->loss_scale,
                 ratio = (double)args->grad_clip / (norm + 1e-6);
    if (args->grad_clip > 0.0f && ratio < 1.0)
        factor = ratio;
    *args->grad_norm = (float)norm;
    *args->clip = (float)(factor / args->loss_scale);
    *args->skipped = norm - norm == 0.0 ? 0u : 1u;
}

/* The step in float32, on elements from the first that each points to. */
static void adamw_step(const pl_adamw *args, float *restrict w,
                       float *restrict g, float *restrict m, float *restrict v,
                       size_t count)
{
    const pl_adamw a = *args;
    const float clip = a.clip ? *a.clip : 1.0f;
    for (size_t i = 0; i < count; i++) {
        const float grad = g[i] * clip;
        const float mean = m[i] + (grad - m[i]) * a.beta1_rest;
        const float square = v[i] * a.beta2 + grad * grad * a.beta2_rest;
        const float root = sqrtf(square) / a.root_correction + a.eps;
        w[i] = w[i] * a.keep - a.step_size * mean / root;
        m[i] = mean;
        v[i] = square;
        g[i] = 0.0f;
    }
}

/* ---- what is not kept as float32 alone: a block at a time ---- */

enum { BLOCK = PL_QUANT_BLOCK };

/* words[i]: the random word for the stochastic rounding of the call's element
 * `first` + i; both firsts are multiples of 4. */
static void random_words(const pl_adamw *a, pl_rounded what, size_t first,
                         uint32_t words[BLOCK])
{
    enum { QUADS = BLOCK / 4 };
    const uint32_t key[2] = { a->seed, PL_RNG_ROUND }, step = a->step,
                   tensor = a->tensor;
    uint32_t part[4][QUADS];
    for (uint32_t i = 0; i < QUADS; i++) {
        const uint32_t counter[4] = { (uint32_t)((a->first + first) / 4) + i,
                                      tensor, (uint32_t)what, step };
        uint32_t out[4];
        pl_philox(counter, key, out);
        part[0][i] = out[0];
        part[1][i] = out[1];
        part[2][i] = out[2];
        part[3][i] = out[3];
    }
    for (int i = 0; i < QUADS; i++)
        for (int w = 0; w < 4; w++)
            words[4 * i + w] = part[w][i];
}

static void keep_bf16(uint16_t *restrict to, const float *restrict w,
                      const uint32_t *restrict words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t u = pl_float_bits(w[i]);
        const uint32_t number = u + (words[i] >> 16), nan = u | 0x400000u;
        uint32_t h = w[i] == w[i] ? number : nan;
        h = (h & 0x7fffffffu) < PL_BF16_LEAST ? h & 0x80000000u : h;
        to[i] = (uint16_t)(h >> 16);
    }
}

/* codes[i] of magnitudes x[i]: 0 .. most. */
static void codes_of(int32_t *restrict codes, const float *restrict x,
                     float scale, int32_t most, const uint32_t *restrict words)
{
    const float end = (float)(most * most),
                factor = scale > 0.0f ? end / scale : 0.0f;
    for (int i = 0; i < BLOCK; i++) {
        const float y = x[i] * factor, bounded = y <= end ? y : end;
        const int32_t c = (int32_t)sqrtf(bounded);
        const float part = (bounded - (float)(c * c)) / (float)(2 * c + 1);
        const float chance = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        const int32_t up = chance < part ? 1 : 0;
        codes[i] = c + up < most ? c + up : most;
    }
}

static float largest(const float *x)
{
    float most[SHARE_UNIT] = { 0 }, all = 0.0f;
    for (int i = 0; i < BLOCK; i += SHARE_UNIT)
        for (int j = 0; j < SHARE_UNIT; j++)
            most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
    for (int j = 0; j < SHARE_UNIT; j++)
        all = most[j] > all ? most[j] : all;
    all = all > FLT_MAX ? FLT_MAX : all; /* 0 * infinity would be NaN */
    return all < 1e-30f ? 0.0f : all;
}

static void read_codes(const pl_adamw *a, size_t first, size_t count,
                       float *restrict m, float *restrict v)
{
    const int8_t *restrict mc = a->m_codes + first;
    const uint8_t *restrict vc = a->v_codes + first;
    const float m_unit = a->m_scales[first / BLOCK] / 16129.0f,
                v_unit = a->v_scales[first / BLOCK] / 65025.0f;
    for (size_t i = 0; i < count; i++) {
        const int c = mc[i], r = vc[i];
        const float size = (float)(c * c) * m_unit;
        const float root = (float)(r * r) * v_unit;
        m[i] = c < 0 ? -size : size;
        v[i] = root * root;
    }
}

/* m and v are 0 beyond `count`. */
static void write_codes(const pl_adamw *a, size_t first, size_t count,
                        const float *restrict m, const float *restrict v)
{
    int8_t *restrict mc = a->m_codes + first;
    uint8_t *restrict vc = a->v_codes + first;
    float size[BLOCK], root[BLOCK];
    int32_t code[BLOCK];
    uint32_t words[BLOCK];
    for (int i = 0; i < BLOCK; i++) {
        size[i] = abs1(m[i]);
        root[i] = sqrtf(v[i]);
    }
    const float m_scale = largest(size), v_scale = largest(root);
    random_words(a, PL_ROUNDED_MEAN, first, words);
    codes_of(code, size, m_scale, 127, words);
    for (size_t i = 0; i < count; i++)
        mc[i] = (int8_t)(m[i] < 0.0f ? -code[i] : code[i]);
    random_words(a, PL_ROUNDED_SQUARE, first, words);
    codes_of(code, root, v_scale, 255, words);
    const int32_t least = v_scale > 0.0f ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t floor = v[i] > 0.0f ? least : 0;
        vc[i] = (uint8_t)(code[i] > floor ? code[i] : floor);
    }
    a->m_scales[first / BLOCK] = m_scale;
    a->v_scales[first / BLOCK] = v_scale;
}

static void adamw_block(const pl_adamw *a, size_t first, size_t count)
{
    float w[BLOCK], m[BLOCK], v[BLOCK];
    uint32_t words[BLOCK];
    float *w_at = a->w_bf16 ? w : a->w + first,
          *m_at = a->m_codes ? m : a->m + first,
          *v_at = a->m_codes ? v : a->v + first;
    if (a->w_bf16)
        widen(w, a->w_bf16 + first, count, PL_STORE_BF16);
    if (a->m_codes) {
        memset(m, 0, sizeof m);
        memset(v, 0, sizeof v);
        read_codes(a, first, count, m, v);
    }
    adamw_step(a, w_at, a->g + first, m_at, v_at, count);
    if (a->w_bf16) {
        random_words(a, PL_ROUNDED_WEIGHT, first, words);
        keep_bf16(a->w_bf16 + first, w, words, count);
    }
    if (a->m_codes)
        write_codes(a, first, count, m, v);
    if (a->copy)
        narrow(a->copy + first, w_at, count, a->copy_storage);
}

void PL_K(adamw)(const pl_adamw *args, int ith, int nth)
{
    const size_t count = args->count;
    size_t begin, end;
    share_elements(count, ith, nth, &begin, &end);
    if (args->skipped && *args->skipped) {
        memset(args->g + begin, 0, (end - begin) * sizeof *args->g);
        return;
    }
    if (!args->w_bf16 && !args->m_codes && !args->copy) {
        adamw_step(args, args->w + begin, args->g + begin, args->m + begin,
                   args->v + begin, end - begin);
        return;
    }
    pl_threads_slice(count / BLOCK + (count % BLOCK != 0), ith, nth, &begin,
                     &end);
    for (size_t j = begin; j < end; j++) {
        const size_t first = j * BLOCK, rest = count - first;
        adamw_block(args, first, rest < BLOCK ? rest : BLOCK);
    }
}
