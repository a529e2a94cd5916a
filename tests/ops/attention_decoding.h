/* attention_decoding.h: rows of attention, computed alone or in chunks out of a
 * cache of keys and values, are those of the whole, to the bit. */
#ifndef PL_TESTS_OPS_ATTENTION_DECODING_H
#define PL_TESTS_OPS_ATTENTION_DECODING_H

#include "attention_cases.h"
#include "support/sanitized.h"

static inline size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Queries of sequences at positions of their own, out of a cache of `keys` rows
 * for each, of which those after a sequence's last query are still NaN. */
typedef struct decoding {
    const pl_attention *whole;
    size_t count, keys; /* queries of a sequence, rows of the cache */
    const int32_t *at;  /* [B]: positions of the first */
} decoding;

static inline pl_attention make_decoding(const decoding *c)
{
    const pl_attention *whole = c->whole;
    const size_t C = whole->H * whole->D, A = whole->KV * whole->D, row = A + 5;
    const pl_storage kept = whole->qkv_storage;
    const size_t B = whole->B, T = whole->keys;
    void *q = stored_blank(B * c->count * C, kept);
    void *k = stored_blank(B * c->keys * row, kept);
    void *v = stored_blank(B * c->keys * row, kept);
    for (size_t b = 0; b < B; b++) {
        const size_t first = (size_t)c->at[b];
        for (size_t i = 0; i < c->count; i++)
            memcpy(pl_storage_at(q, (b * c->count + i) * C, kept),
                   pl_storage_at(whole->q, (b * T + first + i) * whole->q_row,
                                 kept),
                   C * pl_storage_bytes(kept));
        for (size_t j = 0; j < first + c->count; j++) {
            const size_t from = (b * T + j) * whole->kv_row,
                         to = (b * c->keys + j) * row;
            memcpy(pl_storage_at(k, to, kept),
                   pl_storage_at(whole->k, from, kept),
                   A * pl_storage_bytes(kept));
            memcpy(pl_storage_at(v, to, kept),
                   pl_storage_at(whole->v, from, kept),
                   A * pl_storage_bytes(kept));
        }
    }
    pl_attention args = *whole;
    args.out = stored_blank(B * c->count * C, whole->out_storage);
    args.lse = NULL;
    args.q = q;
    args.k = k;
    args.v = v;
    args.q_row = C;
    args.kv_row = row;
    args.queries = c->count;
    args.keys = c->keys;
    args.positions = c->at;
    args.scratch = fenced_blank(2 * pl_attention_scratch(c->keys, whole->D));
    return args;
}

/* They are rows of the whole. */
static inline void expect_rows(const pl_kernels *set, const decoding *c)
{
    const pl_attention *whole = c->whole, args = make_decoding(c);
    const size_t C = whole->H * whole->D;
    const pl_storage end = whole->out_storage;
    RUN_OP(set, attention, &args, 2);
    for (size_t b = 0; b < whole->B; b++)
        assert_memory_equal(
            pl_storage_at(args.out, b * c->count * C, end),
            pl_storage_at(whole->out, (b * whole->keys + (size_t)c->at[b]) * C,
                          end),
            c->count * C * pl_storage_bytes(end));
}

static inline void expect_decoding(const pl_kernels *set, const shape *s)
{
    static const int32_t chunks[][2] = { { 0, 67 },  { 0, 10 },  { 10, 20 },
                                         { 30, 37 }, { 31, 33 }, { 66, 1 } };
    for (int32_t n = 0; n < (int32_t)s->T; n += SANITIZED_ADDRESS ? 3 : 1) {
        const pl_attention whole = make_forward(s, 1);
        const int32_t at[] = { n, n };
        set->attention(&whole, 0, 1);
        expect_rows(set, &(decoding){ &whole, 1, most((size_t)n + 1, 67), at });
        expect_rows(set, &(decoding){ &whole, 1, 80, at });
        fenced_release();
    }
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        const pl_attention whole = make_forward(s, 1);
        const int32_t at[] = { chunks[i][0], chunks[i][0] };
        set->attention(&whole, 0, 1);
        expect_rows(set, &(decoding){ &whole, (size_t)chunks[i][1], 80, at });
        fenced_release();
    }
}

#endif
