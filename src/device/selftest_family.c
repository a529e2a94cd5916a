/* selftest_family.c: see selftest_family.h. */
#include "device/selftest_family.h"
#include "device/selftest_parts.h"

/* ---- embedding without a table of positions ---- */

void pl_selftest_embed(side *t)
{
    const pl_embed a = { .x = floats(t, 24 * 66, ZERO),
                         .tokens = tokens(t, 3 * 9),
                         .token_stride = 9,
                         .rows = 24,
                         .T = 8,
                         .C = 66,
                         .wte = floats(t, VOCABULARY * 66, ANY) };
    t->calls->embed(t->worker, &a);
}

void pl_selftest_embed_bwd(side *t)
{
    const pl_embed_bwd a = { .dwte = floats(t, VOCABULARY * 66, MILD),
                             .dx = floats(t, 72 * 66, ANY),
                             .tokens = tokens(t, 9 * 9),
                             .token_stride = 9,
                             .rows = 72,
                             .T = 8,
                             .C = 66 };
    t->calls->embed_bwd(t->worker, &a);
}

/* ---- queries and keys ---- */

/* What is done to heads of D channels, and where. */
typedef struct form {
    size_t D;
    int is_normed, is_rotated;
    enum { HERE, THERE, APART } where; /* in place, not, or each its position */
} form;

enum { ROWS = 42, T = 14, H = 4, KV = 2, WIDE = H + 2 * KV };

static void change(side *t, form f)
{
    const size_t all = ROWS * WIDE * f.D;
    pl_qk a = { .y = take(t, all, t->storage, f.where == HERE ? ANY : ZERO),
                .rows = ROWS,
                .T = T,
                .H = H,
                .KV = KV,
                .D = f.D,
                .position = 3,
                .eps = 1e-6f,
                .storage = t->storage };
    a.x = a.y;
    if (f.where != HERE)
        a.x = take(t, all, t->storage, f.is_normed ? MILD : ANY);
    if (f.is_normed) {
        a.rstd = floats(t, ROWS * (H + KV), ZERO);
        a.q_weight = floats(t, f.D, MILD);
        a.k_weight = floats(t, f.D, MILD);
    }
    if (f.is_rotated)
        a.table = floats(t, (VOCABULARY + T) * f.D, MILD);
    if (f.where == APART)
        a.positions = tokens(t, ROWS / T);
    t->calls->qk(t->worker, &a);
}

void pl_selftest_rotated(side *t)
{
    change(t, (form){ 40, 0, 1, HERE });
}

void pl_selftest_rotated_apart(side *t)
{
    change(t, (form){ 34, 0, 1, APART });
}

void pl_selftest_normed(side *t)
{
    change(t, (form){ 33, 1, 0, THERE });
}

void pl_selftest_both(side *t)
{
    change(t, (form){ 136, 1, 1, THERE });
}

void pl_selftest_both_odd(side *t)
{
    change(t, (form){ 90, 1, 1, APART });
}

static void change_back(side *t, form f)
{
    const size_t all = ROWS * WIDE * f.D;
    pl_qk_bwd a = { .d = take(t, all, t->storage, MILD),
                    .rows = ROWS,
                    .T = T,
                    .H = H,
                    .KV = KV,
                    .D = f.D,
                    .d_storage = t->storage,
                    .x_storage = t->storage };
    if (f.is_rotated)
        a.table = floats(t, T * f.D, MILD);
    if (f.is_normed) {
        a.x = take(t, all, t->storage, MILD);
        a.rstd = floats(t, ROWS * (H + KV), POSITIVE);
        a.q_weight = floats(t, f.D, MILD);
        a.k_weight = floats(t, f.D, MILD);
        const pl_qk_dw w = { .dq_weight = floats(t, f.D, MILD),
                             .dk_weight = floats(t, f.D, MILD),
                             .d = a.d,
                             .x = a.x,
                             .rstd = a.rstd,
                             .table = a.table,
                             .rows = ROWS,
                             .T = T,
                             .H = H,
                             .KV = KV,
                             .D = f.D,
                             .d_storage = t->storage,
                             .x_storage = t->storage };
        t->calls->qk_dw(t->worker, &w);
    }
    t->calls->qk_bwd(t->worker, &a);
}

void pl_selftest_rotated_bwd(side *t)
{
    change_back(t, (form){ 40, 0, 1, HERE });
}

void pl_selftest_normed_bwd(side *t)
{
    change_back(t, (form){ 33, 1, 0, HERE });
}

void pl_selftest_both_bwd(side *t)
{
    change_back(t, (form){ 136, 1, 1, HERE });
}

void pl_selftest_odd_bwd(side *t)
{
    change_back(t, (form){ 90, 1, 1, HERE });
}

/* ---- SwiGLU ---- */

static void gate(side *t, size_t rows, size_t F)
{
    const pl_glu a = { .y = take(t, rows * F, t->storage, ZERO),
                       .x = take(t, 2 * rows * F, t->storage, ANY),
                       .rows = rows,
                       .F = F,
                       .y_storage = t->storage,
                       .x_storage = t->storage };
    const pl_glu_bwd b = { .x = take(t, 2 * rows * F, t->storage, ANY),
                           .dy = take(t, rows * F, t->storage, MILD),
                           .rows = rows,
                           .F = F,
                           .x_storage = t->storage,
                           .dy_storage = t->storage };
    t->calls->glu(t->worker, &a);
    t->calls->glu_bwd(t->worker, &b);
}

void pl_selftest_glu(side *t)
{
    gate(t, 2, 1100);
}

void pl_selftest_glu_odd(side *t)
{
    gate(t, 19, 67);
}

/* ---- capped logits ---- */

void pl_selftest_capped(side *t)
{
    const size_t V = VOCABULARY;
    const pl_cross_entropy a = { .logits = take(t, 18 * V, t->storage, MILD),
                                 .loss = floats(t, 18, ZERO),
                                 .tokens = tokens(t, 3 * 9),
                                 .token_stride = 9,
                                 .rows = 18,
                                 .T = 8,
                                 .V = V,
                                 .scale = 0.125f,
                                 .cap = 1.5f,
                                 .storage = t->storage };
    t->calls->cross_entropy(t->worker, &a);
}

void pl_selftest_softcap(side *t)
{
    const pl_softcap a = { .x = floats(t, 777, ANY), .count = 777, .cap = 30 };
    t->calls->softcap(t->worker, &a);
}
