/* attention_cases.h: what the tests of attention share: shapes, storages, and
 * the arguments of training's form. */
#ifndef PL_TESTS_OPS_ATTENTION_CASES_H
#define PL_TESTS_OPS_ATTENTION_CASES_H

#include "attention_oracle.h"

typedef struct shape {
    size_t B, T, H, KV, D;
    int dropped;
    pl_storage kept, out; /* of qkv, and of the output */
    pl_storage dout, dqkv;
    pl_products products;
} shape;

static inline pl_dropout make_dropout(int dropped)
{
    const double p = 0.3;
    return (pl_dropout){
        .threshold = dropped ? (uint32_t)(p * 4294967296.0 + 0.5) : 0,
        .scale = (float)(1 / (1 - p)),
        .seed = 1337,
        .step = 5,
        .site = PL_DROP_ATTENTION,
        .layer = 3,
        .sequence = 11,
    };
}

/* Elements of a row of qkv. */
static inline size_t row_of(const shape *s)
{
    return (s->H + 2 * s->KV) * s->D;
}

/* An input. In tensor arithmetic its numbers are of sizes down to 2^-20 of the
 * others': sums of numbers that are alike are exact in every arithmetic. */
static inline const void *make_input(const shape *s, size_t n, uint32_t seed,
                                     pl_storage storage)
{
    float *x = fenced_random(n, seed, 1);
    for (size_t i = 0; i < n && s->products; i++)
        x[i] = ldexpf(x[i], -(int)(i * i % 21));
    return stored_input(x, n, storage);
}

/* Training's form: one buffer. */
static inline pl_attention make_forward(const shape *s, int nth)
{
    const size_t C = s->H * s->D, row = row_of(s), n = s->B * s->T * row;
    const void *qkv = make_input(s, n, 1, s->kept);
    return (pl_attention){
        .out = stored_blank(s->B * s->T * C, s->out),
        .lse = fenced_blank(s->B * s->H * s->T),
        .q = qkv,
        .k = pl_storage_at(qkv, C, s->kept),
        .v = pl_storage_at(qkv, C + s->KV * s->D, s->kept),
        .q_row = row,
        .kv_row = row,
        .B = s->B,
        .queries = s->T,
        .keys = s->T,
        .H = s->H,
        .KV = s->KV,
        .D = s->D,
        .dropout = make_dropout(s->dropped),
        .scratch = fenced_blank((size_t)nth * pl_attention_scratch(s->T, s->D)),
        .qkv_storage = s->kept,
        .out_storage = s->out,
        .products = s->products,
    };
}

static inline pl_attention_bwd make_backward(const shape *s, int nth)
{
    const pl_attention f = make_forward(s, 1);
    const size_t n = s->B * s->T * s->H * s->D;
    pl_kernels_ref().attention(&f, 0, 1);
    return (pl_attention_bwd){
        .dqkv = stored_blank(s->B * s->T * row_of(s), s->dqkv),
        .dout = make_input(s, n, 2, s->dout),
        .qkv = f.q,
        .out = f.out,
        .lse = f.lse,
        .B = s->B,
        .T = s->T,
        .H = s->H,
        .KV = s->KV,
        .D = s->D,
        .dropout = f.dropout,
        .scratch = fenced_blank((size_t)nth *
                                pl_attention_bwd_scratch(s->T, s->D, s->dqkv)),
        .qkv_storage = s->kept,
        .out_storage = s->out,
        .dout_storage = s->dout,
        .dqkv_storage = s->dqkv,
        .products = s->products,
    };
}

/* Sets of storages: qkv's, out's, dout's and dqkv's. */
static const pl_storage forms[][4] = {
    { PL_STORE_F32, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_BF16, PL_STORE_BF16, PL_STORE_BF16, PL_STORE_BF16 },
    { PL_STORE_F16, PL_STORE_F16, PL_STORE_F16, PL_STORE_F16 },
    { PL_STORE_BF16, PL_STORE_BF16, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_BF16, PL_STORE_F32, PL_STORE_BF16, PL_STORE_F32 },
    { PL_STORE_F16, PL_STORE_BF16, PL_STORE_F32, PL_STORE_BF16 },
    { PL_STORE_F32, PL_STORE_BF16, PL_STORE_F16, PL_STORE_F16 },
};
enum { FORMS = sizeof forms / sizeof *forms };

static inline shape make_shape(const size_t n[5], const pl_storage form[4],
                               int dropped)
{
    return (shape){ .B = n[0],
                    .T = n[1],
                    .H = n[2],
                    .KV = n[3],
                    .D = n[4],
                    .dropped = dropped,
                    .kept = form[0],
                    .out = form[1],
                    .dout = form[2],
                    .dqkv = form[3] };
}

#endif
