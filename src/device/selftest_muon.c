/* selftest_muon.c: see selftest_muon.h. */
#include "device/selftest_muon.h"
#include "device/selftest_parts.h"

void pl_selftest_sumsq_part(side *t)
{
    const pl_sumsq a = { .partial = take(t, 2 * 2, PL_STORE_F32, ZERO),
                         .x = floats(t, 300 * 150, ANY),
                         .count = 300 * 70,
                         .cols = 70,
                         .row = 150 };
    t->calls->sumsq(t->worker, &a);
}

static pl_muon_moment moment_args(side *t, size_t count)
{
    return (pl_muon_moment){ .g = floats(t, count, MILD),
                             .count = count,
                             .momentum = 0.95f,
                             .momentum_rest = 0.05f,
                             .clip = floats(t, 1, POSITIVE),
                             .skipped = take(t, 1, PL_STORE_F32, ZERO),
                             .seed = 5,
                             .step = 9,
                             .tensor = 2 };
}

void pl_selftest_muon_moment(side *t)
{
    pl_muon_moment a = moment_args(t, 1000);
    a.m = floats(t, 1000, MILD);
    t->calls->muon_moment(t->worker, &a);
}

void pl_selftest_muon_moment_small(side *t)
{
    pl_muon_moment a = moment_args(t, 1000);
    a.m_codes = take(t, 500, PL_STORE_BF16, MILD);
    a.m_scales = floats(t, 4, POSITIVE);
    t->calls->muon_moment(t->worker, &a);
}

void pl_selftest_muon_norm(side *t)
{
    const pl_muon_norm a = { floats(t, 1, ZERO),
                             take(t, 2 * 300, PL_STORE_F32, POSITIVE), 300 };
    t->calls->muon_norm(t->worker, &a);
}

/* A part of a matrix, transposed, and back. */
void pl_selftest_muon_part(side *t)
{
    pl_muon_part a = { .y = take(t, 37 * 70, t->storage, ZERO),
                       .x = floats(t, 70 * 90, ANY),
                       .rows = 37,
                       .cols = 70,
                       .y_row = 70,
                       .x_row = 1,
                       .x_col = 90,
                       .scale = 1.0f,
                       .factor = floats(t, 1, POSITIVE),
                       .y_storage = t->storage };
    t->calls->muon_part(t->worker, &a);
    a = (pl_muon_part){ .y = floats(t, 37 * 90, ZERO),
                        .x = a.y,
                        .rows = 37,
                        .cols = 70,
                        .y_row = 90,
                        .x_row = 70,
                        .x_col = 1,
                        .scale = 0.7f,
                        .x_storage = t->storage };
    t->calls->muon_part(t->worker, &a);
}

void pl_selftest_muon_poly(side *t)
{
    const pl_muon_poly a = { .b = take(t, 70 * 70, t->storage, MILD),
                             .a = take(t, 70 * 70, t->storage, MILD),
                             .n = 70,
                             .unit = 3.4445f,
                             .linear = -4.775f,
                             .square = 2.0315f,
                             .storage = t->storage };
    t->calls->muon_poly(t->worker, &a);
}

static pl_muon_apply apply_args(side *t, size_t count)
{
    return (pl_muon_apply){ .g = floats(t, count, MILD),
                            .count = count,
                            .keep = 0.999f,
                            .rate = 1e-2f,
                            .skipped = take(t, 1, PL_STORE_F32, ZERO),
                            .copy_storage = PL_STORE_F16,
                            .seed = 5,
                            .step = 9,
                            .tensor = 2 };
}

void pl_selftest_muon_apply(side *t)
{
    pl_muon_apply a = apply_args(t, 1000);
    a.w = floats(t, 1000, MILD);
    a.copy = take(t, 1000, PL_STORE_F16, ZERO);
    t->calls->muon_apply(t->worker, &a);
}

void pl_selftest_muon_apply_small(side *t)
{
    pl_muon_apply a = apply_args(t, 1000);
    a.w_bf16 = take(t, 1000, PL_STORE_BF16, MILD);
    t->calls->muon_apply(t->worker, &a);
}
