/* attention_oracle.h: attention as kernels.h states it, to the bit: float32
 * throughout, every chain one fused multiply-add after the other (or in tensor
 * arithmetic one group of 16 after the other, by the reference's MMA), every
 * sum within a row in 16 lanes; no blocks, no padding, no packing. All sets but
 * base must have these bits. The exponential is vmath.h's, which has a test of
 * its own.
 *
 * Beside each value goes its room: by how much it may differ from the
 * reference's because P and ds are rounded to 16 bits. A number that is almost
 * in the middle of two 16-bit neighbours becomes one of them here and the other
 * there: each term of a sum may be off by one unit in its last place. */
#ifndef PL_TESTS_OPS_ATTENTION_ORACLE_H
#define PL_TESTS_OPS_ATTENTION_ORACLE_H

#include "../support/kernel_cases.h"
#include "base/rng.h"
#include "kernels/plain/vec.h"
#include "kernels/ref/ref.h"

static inline float oracle_fma(float a, float b, float c)
{
    return fmaf(a, b, c);
}

#define fma1 oracle_fma
#include "kernels/vmath.h"
#undef fma1

typedef struct oracle {
    outcome values, room;
} oracle;

static inline void oracle_free(oracle *o)
{
    free(o->values.values);
    free(o->room.values);
}

/* Where it is kept, one after the other from element `at` on. */
static inline void oracle_put(oracle *o, size_t at, float value, double room,
                              pl_storage storage)
{
    o->values.values[at] = (double)pl_storage_round(value, storage);
    o->room.values[at] = room;
}

static inline oracle oracle_make(size_t count)
{
    oracle o = { 0 };
    outcome_grow(&o.values, count);
    outcome_grow(&o.room, count);
    o.values.count = o.room.count = count;
    return o;
}

/* One unit in the last place of a number of about 1. */
static inline double oracle_unit(pl_storage storage)
{
    return storage == PL_STORE_F32    ? 0
           : storage == PL_STORE_BF16 ? 0x1p-7
                                      : 0x1p-10;
}

static inline float oracle_lanes(const float *x, size_t count)
{
    float lane[16] = { 0 };
    for (size_t j = 0; j < count; j++)
        lane[j % 16] += x[j];
    for (size_t half = 8; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lane[i] += lane[i + half];
    return lane[0];
}

static inline float oracle_drop(const pl_dropout *drop, size_t head, size_t b,
                                size_t row, size_t column, float x)
{
    const uint32_t counter[4] = { (uint32_t)(head << 20 | column / 4),
                                  (uint32_t)row, drop->sequence + (uint32_t)b,
                                  drop->step };
    const uint32_t key[2] = { drop->seed, (uint32_t)PL_RNG_DROPOUT |
                                              drop->site << 8 |
                                              drop->layer << 16 };
    uint32_t word[4];
    if (drop->threshold == 0)
        return x;
    pl_philox(counter, key, word);
    return word[column % 4] >= drop->threshold ? x * drop->scale : 0.0f;
}

/* A chain of products: CHAIN, or TENSOR with the group that has begun. */
typedef struct oracle_chain {
    float sum, a[PL_LARGEST_GROUP], b[PL_LARGEST_GROUP];
    double size; /* the sum of the products' sizes */
    int count;
} oracle_chain;

/* What the products of an op have in common. */
typedef struct oracle_rule {
    pl_products products;
    pl_storage storage; /* of both operands, in tensor arithmetic */
} oracle_rule;

static inline void oracle_end_group(oracle_rule rule, oracle_chain *c)
{
    if (c->count == 0)
        return;
    for (; c->count < pl_products_group(rule.products); c->count++)
        c->a[c->count] = c->b[c->count] = 0;
    c->sum = pl_ref_mma(rule.products, rule.storage, c->sum, c->a, c->b);
    c->count = 0;
}

static inline void oracle_add(oracle_rule rule, oracle_chain *c, float x,
                              float y)
{
    c->size += fabs((double)x * (double)y);
    if (rule.products == PL_PRODUCTS_EXACT) {
        c->sum = fmaf(x, y, c->sum);
        return;
    }
    c->a[c->count] = x;
    c->b[c->count] = y;
    if (++c->count == pl_products_group(rule.products))
        oracle_end_group(rule, c);
}

/* The chain of x_d * y_d, from 0. */
static inline float oracle_dot(oracle_rule rule, const void *x, size_t i,
                               pl_storage x_storage, const void *y, size_t j,
                               pl_storage y_storage, size_t D)
{
    oracle_chain c = { 0 };
    for (size_t d = 0; d < D; d++)
        oracle_add(rule, &c, pl_storage_get(x, i + d, x_storage),
                   pl_storage_get(y, j + d, y_storage));
    oracle_end_group(rule, &c);
    return c.sum;
}

enum { ORACLE_KEYS = 2048 };

/* A row of out: query i of (b, h). */
static inline void oracle_forward_row(const pl_attention *a, size_t b, size_t i,
                                      size_t h, oracle *o)
{
    static float p[ORACLE_KEYS], P[ORACLE_KEYS];
    const size_t D = a->D, row = a->kv_row, query = b * a->queries + i,
                 at_k = b * a->keys * row + h / (a->H / a->KV) * D;
    const size_t position =
        (a->positions ? (size_t)a->positions[b] : a->first) + i;
    const pl_storage kept = a->qkv_storage;
    const oracle_rule rule = { pl_products_of(a->products, kept, kept), kept };
    const float scale = (float)(1 / sqrt((double)D));
    float m = -INFINITY;
    assert_true(position < ORACLE_KEYS);
    for (size_t j = 0; j <= position; j++) {
        p[j] = scale * oracle_dot(rule, a->q, query * a->q_row + h * D, kept,
                                  a->k, at_k + j * row, kept, D);
        m = p[j] > m ? p[j] : m;
    }
    for (size_t j = 0; j <= position; j++) {
        p[j] = exp_down1(p[j] - m);
        P[j] = pl_storage_round(
            oracle_drop(&a->dropout, h, b, position, j, p[j]), kept);
    }
    const float l = oracle_lanes(p, position + 1);
    for (size_t d = 0; d < D; d++) {
        oracle_chain c = { 0 };
        for (size_t j = 0; j <= position; j++)
            oracle_add(rule, &c, P[j],
                       pl_storage_get(a->v, at_k + j * row + d, kept));
        oracle_end_group(rule, &c);
        oracle_put(o, (query * a->H + h) * D + d, c.sum * (1 / l) + 0.0f,
                   oracle_unit(kept) * c.size / (double)l, a->out_storage);
    }
}

/* All of out, but not lse. */
static inline oracle oracle_forward(const pl_attention *a)
{
    oracle o = oracle_make(a->B * a->queries * a->H * a->D);
    for (size_t b = 0; b < a->B; b++)
        for (size_t h = 0; h < a->H; h++)
            for (size_t i = 0; i < a->queries; i++)
                oracle_forward_row(a, b, i, h, &o);
    return o;
}

/* Where sequence b, query head h and its keys and values begin. */
typedef struct oracle_places {
    size_t q, k, v, out, row, out_row;
} oracle_places;

static inline oracle_places oracle_places_of(const pl_attention_bwd *a,
                                             size_t b, size_t h)
{
    const size_t D = a->D, C = a->H * D, row = C + 2 * a->KV * D,
                 q = b * a->T * row, k = q + C + h / (a->H / a->KV) * D;
    return (oracle_places){ q + h * D, k, k + a->KV * D, b * a->T * C + h * D,
                            row,       C };
}

static inline oracle_rule oracle_rule_of(const pl_attention_bwd *a)
{
    return (oracle_rule){ pl_products_of(a->products, a->qkv_storage,
                                         a->dout_storage),
                          a->qkv_storage };
}

/* P and ds of query i and the keys that it sees. */
static inline void oracle_weights(const pl_attention_bwd *a, size_t b, size_t h,
                                  size_t i, float *P, float *ds)
{
    const oracle_places at = oracle_places_of(a, b, h);
    const pl_storage kept = a->qkv_storage, given = a->dout_storage;
    const size_t D = a->D, out = at.out + i * at.out_row;
    const oracle_rule rule = oracle_rule_of(a);
    const float scale = (float)(1 / sqrt((double)D)),
                lse = a->lse[(b * a->H + h) * a->T + i];
    float lane[16] = { 0 };
    for (size_t d = 0; d < D; d++)
        lane[d % 16] = fmaf(pl_storage_get(a->dout, out + d, given),
                            pl_storage_get(a->out, out + d, a->out_storage),
                            lane[d % 16]);
    const float delta = oracle_lanes(lane, 16);
    for (size_t j = 0; j <= i; j++) {
        const float s = oracle_dot(rule, a->qkv, at.q + i * at.row, kept,
                                   a->qkv, at.k + j * at.row, kept, D),
                    p = exp_down1(s * scale - lse),
                    dp = oracle_drop(&a->dropout, h, b, i, j,
                                     oracle_dot(rule, a->dout, out, given,
                                                a->qkv, at.v + j * at.row, kept,
                                                D));
        P[j] = pl_storage_round(oracle_drop(&a->dropout, h, b, i, j, p), kept);
        ds[j] = pl_storage_round(p * (dp - delta) * scale, kept);
    }
}

/* What query i of a head adds to all chains, which have the places of dqkv. In
 * tensor arithmetic keys that it doesn't see get zeros. */
static inline void oracle_backward_query(const pl_attention_bwd *a, size_t b,
                                         size_t h, size_t i,
                                         oracle_chain *chains)
{
    static float P[ORACLE_KEYS], ds[ORACLE_KEYS];
    const oracle_places at = oracle_places_of(a, b, h);
    const oracle_rule rule = oracle_rule_of(a);
    const pl_storage kept = a->qkv_storage;
    const size_t q = at.q + i * at.row, out = at.out + i * at.out_row,
                 last = rule.products == PL_PRODUCTS_EXACT ? i : a->T - 1;
    assert_true(a->T <= ORACLE_KEYS);
    memset(P, 0, sizeof P);
    memset(ds, 0, sizeof ds);
    oracle_weights(a, b, h, i, P, ds);
    for (size_t j = 0; j <= last; j++)
        for (size_t d = 0; d < a->D; d++) {
            const size_t k = at.k + j * at.row + d, v = at.v + j * at.row + d;
            if (j <= i)
                oracle_add(rule, &chains[q + d], ds[j],
                           pl_storage_get(a->qkv, k, kept));
            oracle_add(rule, &chains[k], ds[j],
                       pl_storage_get(a->qkv, q + d, kept));
            oracle_add(rule, &chains[v], P[j],
                       pl_storage_get(a->dout, out + d, a->dout_storage));
        }
}

/* All of dqkv. */
static inline oracle oracle_backward(const pl_attention_bwd *a)
{
    const size_t count = a->B * a->T * (a->H + 2 * a->KV) * a->D;
    const oracle_rule rule = oracle_rule_of(a);
    oracle o = oracle_make(count);
    oracle_chain *chains = calloc(count + 1, sizeof *chains);
    assert_non_null(chains);
    for (size_t b = 0; b < a->B; b++)
        for (size_t h = 0; h < a->H; h++) {
            for (size_t i = 0; i < a->T; i++)
                oracle_backward_query(a, b, h, i, chains);
            for (size_t i = 0; i < count; i++)
                oracle_end_group(rule, &chains[i]);
        }
    for (size_t i = 0; i < count; i++)
        oracle_put(&o, i, chains[i].sum + 0.0f,
                   oracle_unit(a->qkv_storage) * chains[i].size,
                   a->dqkv_storage);
    free(chains);
    return o;
}

#endif
