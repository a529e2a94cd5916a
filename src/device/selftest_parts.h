/* selftest_parts.h: the operands of selftest_cases.c and its like. Private to
 * them. */
#ifndef PL_DEVICE_SELFTEST_PARTS_H
#define PL_DEVICE_SELFTEST_PARTS_H

#include "device/selftest_cases.h"

#include <math.h>

typedef pl_selftest_side side;

/* What an operand holds before. */
typedef enum kind {
    ANY,      /* numbers of every size, zeros of both signs, denormals */
    MILD,     /* about 1 */
    POSITIVE, /* about 1, above 0 */
    TOKENS,   /* below VOCABULARY */
    ZERO,
} kind;

enum { VOCABULARY = 50 };

static inline uint32_t draw(side *t)
{
    t->seed = t->seed * 1664525u + 1013904223u;
    return t->seed >> 8;
}

static inline float draw_float(side *t, kind what)
{
    const float part = (float)(draw(t) & 0xffff) / 65536.0f;
    const uint32_t sort = draw(t) % 16;
    if (what == ZERO)
        return 0.0f;
    if (what == POSITIVE)
        return 0.25f + part;
    if (what == ANY && sort == 0)
        return draw(t) % 2 ? 0.0f : -0.0f;
    if (what == ANY && sort < 4)
        return ldexpf(1.0f + part, (int)(draw(t) % 160) - 140);
    return 4.0f * part - 2.0f;
}

static inline void *take(side *t, size_t count, pl_storage storage, kind what)
{
    unsigned char *at = t->base + t->used;
    const size_t bytes = count * pl_storage_bytes(storage);
    for (size_t i = 0; i < count && t->fills; i++)
        if (what == TOKENS)
            ((int32_t *)(void *)at)[i] = (int32_t)(draw(t) % VOCABULARY);
        else
            pl_storage_put(at, i, draw_float(t, what), storage);
    t->used += (bytes + PL_SELFTEST_ALIGN - 1) / PL_SELFTEST_ALIGN *
               PL_SELFTEST_ALIGN;
    return at;
}

static inline float *floats(side *t, size_t count, kind what)
{
    return take(t, count, PL_STORE_F32, what);
}

static inline int32_t *tokens(side *t, size_t count)
{
    return take(t, count, PL_STORE_F32, TOKENS);
}

/* What an op may use as it likes. */
static inline float *scratch(side *t, size_t count)
{
    t->scratch_first = t->used;
    float *at = floats(t, count, ZERO);
    t->scratch_end = t->used;
    return at;
}

static inline pl_dropout dropout(uint32_t site)
{
    return (pl_dropout){ .threshold = 1u << 30,
                         .scale = 4.0f / 3.0f,
                         .seed = 7,
                         .step = 3,
                         .site = site,
                         .layer = 1,
                         .sequence = 2 };
}

#endif
