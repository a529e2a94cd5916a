/* muon.c: what Muon computes beside its products. */
#include "kernels/plain/rounding.h"

/* ---- the moment ---- */

/* On elements from the first that each points to. */
static void blend(const pl_muon_moment *args, float *restrict g,
                  float *restrict m, size_t count)
{
    const float clip = args->clip ? *args->clip : 1.0f,
                momentum = args->momentum, rest = args->momentum_rest;
    for (size_t i = 0; i < count; i++) {
        const float grad = g[i] * clip;
        const float mean = m[i] + (grad - m[i]) * rest;
        g[i] = grad + (mean - grad) * momentum;
        m[i] = mean;
    }
}

static void blend_block(const pl_muon_moment *a, size_t first, size_t count)
{
    const chances of = { a->seed, a->step, a->tensor };
    float m[BLOCK] = { 0 };
    uint32_t words[BLOCK];
    mean_of_codes(m, a->m_codes + first, a->m_scales[first / BLOCK], count);
    blend(a, a->g + first, m, count);
    random_words(of, PL_ROUNDED_MEAN, first, words);
    a->m_scales[first / BLOCK] = codes_of_mean(a->m_codes + first, m, count,
                                               words);
}

void PL_K(muon_moment)(const pl_muon_moment *args, int ith, int nth)
{
    const size_t count = args->count;
    size_t begin, end;
    share_elements(count, ith, nth, &begin, &end);
    if (args->skipped && *args->skipped) {
        memset(args->g + begin, 0, (end - begin) * sizeof *args->g);
        return;
    }
    if (!args->m_codes) {
        blend(args, args->g + begin, args->m + begin, end - begin);
        return;
    }
    pl_threads_slice(count / BLOCK + (count % BLOCK != 0), ith, nth, &begin,
                     &end);
    for (size_t j = begin; j < end; j++) {
        const size_t first = j * BLOCK, rest = count - first;
        blend_block(args, first, rest < BLOCK ? rest : BLOCK);
    }
}

/* ---- around the products ---- */

/* A few hundred numbers, one after the other: one thread's. */
void PL_K(muon_norm)(const pl_muon_norm *args, int ith, int nth)
{
    double sum = 0.0;
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++)
        sum += args->partial[i];
    *args->factor = (float)(1.0 / (sqrt(sum) + 1e-7));
}

static void multiply(float *restrict y, const float *restrict x, size_t count,
                     float scale, const float *factor)
{
    if (factor)
        for (size_t i = 0; i < count; i++)
            y[i] = x[i] * scale * *factor;
    else
        for (size_t i = 0; i < count; i++)
            y[i] = x[i] * scale;
}

enum { TILE = 16 }; /* a cache line of floats */

/* room[r][c] of rows `row` .. and columns `col` .. of a transposed x: what lies
 * together is read together. */
static void turn(float room[TILE][STACK_FLOATS], const pl_muon_part *a,
                 size_t row, size_t rows, size_t col, size_t cols)
{
    float line[TILE];
    for (size_t c = 0; c < cols; c++) {
        widen(line,
              pl_storage_at(a->x, row + (col + c) * a->x_col, a->x_storage),
              rows, a->x_storage);
        for (size_t r = 0; r < rows; r++)
            room[r][c] = line[r];
    }
}

/* TILE rows of y at most. */
static void write_rows(const pl_muon_part *a, size_t row, size_t rows)
{
    float room[TILE][STACK_FLOATS], y[STACK_FLOATS];
    for (size_t c = 0; c < a->cols; c += STACK_FLOATS) {
        const size_t count = stack_count(c, a->cols);
        if (a->x_col != 1)
            turn(room, a, row, rows, c, count);
        for (size_t r = 0; r < rows; r++) {
            const float *x = a->x_col != 1 ? room[r]
                                           : as_floats(room[0], a->x,
                                                       (row + r) * a->x_row + c,
                                                       count, a->x_storage);
            multiply(y, x, count, a->scale, a->factor);
            narrow(pl_storage_at(a->y, (row + r) * a->y_row + c, a->y_storage),
                   y, count, a->y_storage);
        }
    }
}

void PL_K(muon_part)(const pl_muon_part *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->rows / TILE + (args->rows % TILE != 0), ith, nth,
                     &begin, &end);
    for (size_t row = begin * TILE; row < end * TILE && row < args->rows;
         row += TILE) {
        const size_t left = args->rows - row;
        write_rows(args, row, left < TILE ? left : TILE);
    }
}

void PL_K(muon_poly)(const pl_muon_poly *args, int ith, int nth)
{
    const size_t n = args->n;
    const pl_storage kept = args->storage;
    float x[STACK_FLOATS], y[STACK_FLOATS], sum[STACK_FLOATS];
    size_t begin, end;
    pl_threads_slice(n, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        for (size_t c = 0; c < n; c += STACK_FLOATS) {
            const size_t count = stack_count(c, n), at = r * n + c;
            const float *a = as_floats(x, args->a, at, count, kept),
                        *b = as_floats(y, args->b, at, count, kept);
            for (size_t i = 0; i < count; i++)
                sum[i] = args->linear * a[i] + args->square * b[i];
            if (r >= c && r < c + count)
                sum[r - c] += args->unit;
            narrow(pl_storage_at(args->b, at, kept), sum, count, kept);
        }
}

/* ---- the weights ---- */

static void apply(const pl_muon_apply *args, float *restrict w,
                  float *restrict g, size_t count)
{
    const float keep = args->keep, rate = args->rate;
    for (size_t i = 0; i < count; i++) {
        w[i] = w[i] * keep - rate * g[i];
        g[i] = 0.0f;
    }
}

static void apply_block(const pl_muon_apply *a, size_t first, size_t count)
{
    const chances of = { a->seed, a->step, a->tensor };
    float w[BLOCK];
    uint32_t words[BLOCK];
    float *w_at = a->w_bf16 ? w : a->w + first;
    if (a->w_bf16)
        widen(w, a->w_bf16 + first, count, PL_STORE_BF16);
    apply(a, w_at, a->g + first, count);
    if (a->w_bf16) {
        random_words(of, PL_ROUNDED_WEIGHT, first, words);
        keep_bf16(a->w_bf16 + first, w, words, count);
    }
    if (a->copy)
        narrow(a->copy + first, w_at, count, a->copy_storage);
}

void PL_K(muon_apply)(const pl_muon_apply *args, int ith, int nth)
{
    const size_t count = args->count;
    size_t begin, end;
    share_elements(count, ith, nth, &begin, &end);
    if (args->skipped && *args->skipped) {
        memset(args->g + begin, 0, (end - begin) * sizeof *args->g);
        return;
    }
    if (!args->w_bf16 && !args->copy) {
        apply(args, args->w + begin, args->g + begin, end - begin);
        return;
    }
    pl_threads_slice(count / BLOCK + (count % BLOCK != 0), ith, nth, &begin,
                     &end);
    for (size_t j = begin; j < end; j++) {
        const size_t first = j * BLOCK, rest = count - first;
        apply_block(args, first, rest < BLOCK ? rest : BLOCK);
    }
}
