/* elementwise.c: GELU, the residual sum, dropout alone, and copies. */
#include "kernels/plain/convert.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"
#include "kernels/plain/vmath.h"

static const float sqrt_half = 0.707106769f, /* 1 / sqrt(2) */
    density = 0.398942292f,                  /* 1 / sqrt(2 pi) */
    sqrt_2_over_pi = 0.797884583f, cubic = 0.044715f;

/* Elements that pass through the stack on their way from or to 16 bits. */
enum { PIECE = 256 };

static void gelu(float *restrict y, const float *restrict x, size_t count,
                 pl_gelu_kind kind)
{
    if (kind == PL_GELU_ERF)
        for (size_t i = 0; i < count; i++)
            y[i] = 0.5f * x[i] * (1.0f + erf1(x[i] * sqrt_half));
    else
        for (size_t i = 0; i < count; i++) {
            const float s = x[i] * x[i];
            const float u = sqrt_2_over_pi * x[i] * fma1(cubic, s, 1.0f);
            y[i] = 0.5f * x[i] * (1.0f + tanh1(u));
        }
}

void PL_K(gelu)(const pl_gelu *args, int ith, int nth)
{
    const pl_storage from = args->x_storage, to = args->y_storage;
    float x[PIECE], y[PIECE];
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    if (from == PL_STORE_F32 && to == PL_STORE_F32) {
        gelu((float *)args->y + begin, (const float *)args->x + begin,
             end - begin, args->kind);
        return;
    }
    for (size_t i = begin; i < end; i += PIECE) {
        const size_t count = end - i < PIECE ? end - i : PIECE;
        widen(x, pl_storage_at(args->x, i, from), count, from);
        gelu(y, x, count, args->kind);
        narrow(pl_storage_at(args->y, i, to), y, count, to);
    }
}

/* Beyond +-16 the slope is 0 or 1 and its terms could overflow. */
PL_INLINE float clamp16(float x)
{
    x = x > 16.0f ? 16.0f : x;
    return x < -16.0f ? -16.0f : x;
}

PL_INLINE float slope_erf(float x)
{
    x = clamp16(x);
    return fma1(x, density * exp1(-0.5f * x * x),
                0.5f * (1.0f + erf1(x * sqrt_half)));
}

PL_INLINE float slope_tanh(float x)
{
    x = clamp16(x);
    const float s = x * x;
    const float t = tanh1(sqrt_2_over_pi * x * fma1(cubic, s, 1.0f));
    const float du = sqrt_2_over_pi * fma1(3.0f * cubic, s, 1.0f);
    return 0.5f * fma1(x * du, fma1(-t, t, 1.0f), 1.0f + t);
}

static void gelu_bwd(float *restrict d, const float *restrict x, size_t count,
                     pl_gelu_kind kind)
{
    if (kind == PL_GELU_ERF)
        for (size_t i = 0; i < count; i++)
            d[i] *= slope_erf(x[i]);
    else
        for (size_t i = 0; i < count; i++)
            d[i] *= slope_tanh(x[i]);
}

void PL_K(gelu_bwd)(const pl_gelu_bwd *args, int ith, int nth)
{
    const pl_storage from = args->x_storage;
    float x[PIECE];
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    if (from == PL_STORE_F32) {
        gelu_bwd(args->d + begin, (const float *)args->x + begin, end - begin,
                 args->kind);
        return;
    }
    for (size_t i = begin; i < end; i += PIECE) {
        const size_t count = end - i < PIECE ? end - i : PIECE;
        widen(x, pl_storage_at(args->x, i, from), count, from);
        gelu_bwd(args->d + i, x, count, args->kind);
    }
}

void PL_K(residual)(const pl_residual *args, int ith, int nth)
{
    const size_t T = args->T, C = args->C;
    const pl_dropout *drop = &args->dropout;
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const size_t row = args->position + r;
        const float *restrict x = args->x + r * C;
        float *restrict y = args->y + r * C;
        if (drop->threshold)
            mask_apply(drop, 0, (uint32_t)(row % T),
                       drop->sequence + (uint32_t)(row / T), 0, C, y, y);
        for (size_t c = 0; c < C; c++)
            y[c] = x[c] + y[c];
    }
}

void PL_K(drop)(const pl_drop *args, int ith, int nth)
{
    const size_t T = args->T, C = args->C;
    const pl_dropout *drop = &args->dropout;
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *x = args->x + r * C;
        float *y = args->y + r * C;
        if (drop->threshold)
            mask_apply(drop, 0, (uint32_t)(r % T),
                       drop->sequence + (uint32_t)(r / T), 0, C, x, y);
        else
            memcpy(y, x, C * sizeof *y);
    }
}

void PL_K(copy)(const pl_copy *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++)
        memcpy(pl_storage_at(args->y, r * args->y_row, args->storage),
               pl_storage_at(args->x, r * args->x_row, args->storage),
               args->C * pl_storage_bytes(args->storage));
}
