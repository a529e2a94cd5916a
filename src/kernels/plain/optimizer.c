/* optimizer.c: the gradient's norm by blocks, and AdamW. */
#include "kernels/plain/rounding.h"

/* A square of floats is exact in double, so fusing would change nothing. */
static void sumsq_add(double lane[8], const float *x, size_t count)
{
    size_t j = 0;
    for (; j + 8 <= count; j += 8)
        for (size_t i = 0; i < 8; i++)
            lane[i] += (double)x[j + i] * (double)x[j + i];
    for (size_t i = 0; j + i < count; i++)
        lane[i] += (double)x[j + i] * (double)x[j + i];
}

/* Elements `first` .. first + count - 1 of a part of a matrix, in a row. */
static void gather(float *to, const pl_sumsq *args, size_t first, size_t count)
{
    size_t r = first / args->cols, c = first % args->cols;
    for (size_t at = 0; at < count; r++, c = 0) {
        const size_t left = args->cols - c,
                     some = left < count - at ? left : count - at;
        memcpy(to + at, args->x + r * args->row + c, some * sizeof *to);
        at += some;
    }
}

static double sumsq_block(const pl_sumsq *args, size_t first, size_t count)
{
    double lane[8] = { 0 };
    if (!args->cols)
        sumsq_add(lane, args->x + first, count);
    for (size_t i = 0; args->cols && i < count; i += STACK_FLOATS) {
        float x[STACK_FLOATS];
        const size_t some = stack_count(i, count);
        gather(x, args, first + i, some);
        sumsq_add(lane, x, some);
    }
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
            args, first, rest < PL_SUMSQ_BLOCK ? rest : PL_SUMSQ_BLOCK);
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

static chances chances_of(const pl_adamw *a)
{
    return (chances){ a->seed, a->step, a->tensor };
}

static void read_codes(const pl_adamw *a, size_t first, size_t count,
                       float *restrict m, float *restrict v)
{
    const uint8_t *restrict vc = a->v_codes + first;
    const float unit = a->v_scales[first / BLOCK] / 65025.0f;
    mean_of_codes(m, a->m_codes + first, a->m_scales[first / BLOCK], count);
    for (size_t i = 0; i < count; i++) {
        const int r = vc[i];
        const float root = (float)(r * r) * unit;
        v[i] = root * root;
    }
}

/* m and v are 0 beyond `count`. */
static void write_codes(const pl_adamw *a, size_t first, size_t count,
                        const float *restrict m, const float *restrict v)
{
    uint8_t *restrict vc = a->v_codes + first;
    float root[BLOCK];
    int32_t code[BLOCK];
    uint32_t words[BLOCK];
    random_words(chances_of(a), PL_ROUNDED_MEAN, a->first + first, words);
    a->m_scales[first / BLOCK] = codes_of_mean(a->m_codes + first, m, count,
                                               words);
    for (int i = 0; i < BLOCK; i++)
        root[i] = sqrtf(v[i]);
    const float scale = largest(root);
    random_words(chances_of(a), PL_ROUNDED_SQUARE, a->first + first, words);
    codes_of(code, root, scale, 255, words);
    const int32_t least = scale > 0.0f ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t floor = v[i] > 0.0f ? least : 0;
        vc[i] = (uint8_t)(code[i] > floor ? code[i] : floor);
    }
    a->v_scales[first / BLOCK] = scale;
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
        random_words(chances_of(a), PL_ROUNDED_WEIGHT, a->first + first, words);
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
