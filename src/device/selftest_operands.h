/* selftest_operands.h: what the cases of selftest.c compute with. Private to
 * them. */
#ifndef PL_DEVICE_SELFTEST_OPERANDS_H
#define PL_DEVICE_SELFTEST_OPERANDS_H

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

/* ---- selftest_muon.c ---- */

void pl_selftest_sumsq_part(side *t);
void pl_selftest_muon_moment(side *t);
void pl_selftest_muon_moment_small(side *t);
void pl_selftest_muon_norm(side *t);
void pl_selftest_muon_part(side *t);
void pl_selftest_muon_poly(side *t);
void pl_selftest_muon_apply(side *t);
void pl_selftest_muon_apply_small(side *t);

#endif
