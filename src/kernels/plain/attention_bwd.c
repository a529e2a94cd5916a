/* attention_bwd.c: the gradients of causal attention, a block of queries at a
 * time, as in attention.c. For each block: P again, from the stored
 * log-sum-exp; dP = dO V^T; dS = P (dP - delta) / sqrt(D), where delta is the
 * row's sum of dO * O; then dQ = dS K, dK += dS^T Q, dV += P^T dO.
 *
 * One thread has one head of keys and values with all query heads that share
 * it, since dK and dV are sums over all of their queries. */
#include "kernels/plain/attention_bf16.h"

/* Queries of a block: few only in a short sequence, since half of what a block
 * computes on its diagonal is masked; more is read for each block than in the
 * forward pass. */
enum { SHORT_BLOCK = 24, LONG_FROM = 512 };

/* In tensor arithmetic whole groups, since dk and dv are carried on from block
 * to block; groups of 16 and of 32 have these in common. */
enum { TENSOR_BLOCK = PL_LARGEST_GROUP };

/* One sequence's head of keys and values, and one of the query heads that share
 * it. q, k, v and their gradients have rows of `row`, out and dout rows of
 * `out_row`; sums of dk and dv rows of `sum_row`. */
typedef struct pair {
    const pl_attention_bwd *args;
    const void *q, *k, *v, *out, *dout;
    void *dq, *dk, *dv; /* in dqkv */
    const float *lse;
    float *p, *ds;                   /* [BLOCK, ld] */
    float *keys_t, *values_t, *keys; /* packed */
    float *queries;                  /* of a block, packed; then its douts */
    float *dq_sums;                  /* of a block, [BLOCK, padded D] */
    uint32_t *woven;                 /* dS in pairs of queries */
    float *sum_k, *sum_v;            /* dk and dv until they are whole */
    float *work;                     /* MC_STACK * KC */
    size_t row, out_row, sum_row, D, T, ld, b, head;
    float scale;
    pl_products products;
    int by_words; /* products are attention_bf16.h's */
} pair;

static size_t block_of(const pair *a)
{
    if (a->products != PL_PRODUCTS_EXACT)
        return TENSOR_BLOCK; /* at most a group of AMX's: add_turned */
    return a->T >= LONG_FROM ? BLOCK : SHORT_BLOCK;
}

enum { PART = 64 };

/* LANES(d) dout_d * out_d. */
static float delta_of(const pair *a, size_t position)
{
    const pl_storage kept = a->args->out_storage, given = a->args->dout_storage;
    const size_t at = position * a->out_row;
    lanes l = lanes_all(0);
    float out[PART], dout[PART];
    for (size_t d = 0; d < a->D; d += PART) {
        const size_t count = a->D - d < PART ? a->D - d : PART;
        widen(out, pl_storage_at(a->out, at + d, kept), count, kept);
        widen(dout, pl_storage_at(a->dout, at + d, given), count, given);
        l = lanes_dot_on(l, dout, out, count);
    }
    return lanes_total(l);
}

static void drop_row(const pair *a, size_t position, float *x)
{
    const pl_dropout *drop = &a->args->dropout;
    if (drop->threshold)
        mask_apply(drop, mask_high(a->head), (uint32_t)position,
                   drop->sequence + (uint32_t)a->b, 0, position + 1, x, x);
}

/* Row r of the block at i: scores become P, dp becomes ds; both are rounded,
 * unless they will be words. */
static void backward_row(const pair *a, size_t i, size_t r, size_t keys)
{
    const size_t position = i + r, count = position + 1;
    float *restrict p = a->p + r * a->ld;
    float *restrict ds = a->ds + r * a->ld;
    const float delta = delta_of(a, position);
    const float scale = a->scale;
    exp_and_sum(p, count, keys, scale, a->lse[position]);
    drop_row(a, position, ds);
    for (size_t j = 0; j < count; j++)
        ds[j] = p[j] * (ds[j] - delta) * scale;
    for (size_t j = count; j < keys; j++)
        ds[j] = 0.0f;
    drop_row(a, position, p);
    if (a->by_words)
        return;
    round_weights(p, count, a->args->qkv_storage);
    round_weights(ds, count, a->args->qkv_storage);
}

static strided block_rows(const pair *a, const void *x, size_t row, size_t i,
                          size_t rows, pl_storage storage)
{
    return (strided){ .x = pl_storage_at(x, i * row, storage),
                      .stride = row,
                      .count = rows,
                      .D = a->D,
                      .storage = storage };
}

/* c = the block's rows times a head's packed columns. */
static void scores_of(const pair *a, float *c, const strided *r, size_t keys,
                      const float *packed)
{
#if defined(PL_PAIRS)
    if (a->by_words) {
        word_scores(c, a->ld, keys, r, (const uint32_t *)(const void *)packed,
                    (uint32_t *)(void *)a->work);
        return;
    }
#endif
    const pl_gemm scores = { .M = r->count,
                             .N = round_up(keys, NR),
                             .K = a->D,
                             .a = r->x,
                             .a_row = r->stride,
                             .a_col = 1,
                             .a_storage = r->storage,
                             .b_storage = r->storage,
                             .products = a->products,
                             .c = c,
                             .c_row = a->ld };
    times_transposed(packed, a->ld, a->work, &scores);
}

/* to = from + 0, rounded to dqkv's storage: the end of a chain. */
static void finish_rows(const pair *a, void *to, float *from, size_t from_row,
                        size_t rows)
{
    const pl_storage storage = a->args->dqkv_storage;
    for (size_t r = 0; r < rows; r++)
        for (size_t d = 0; d < a->D; d++)
            from[r * from_row + d] += 0.0f;
    if (to != from)
        narrow_rows(to, a->row, from, from_row, rows, a->D, storage);
}

#if defined(PL_PAIRS)
/* block_gradients by words. dS is needed in pairs of keys and in pairs of
 * queries, P in the latter only; each is written where floats were that aren't
 * needed any more, but for one. */
static void word_gradients(const pair *a, const strided *q, const strided *dout,
                           size_t keys)
{
    const size_t rows = q->count, ld = a->ld, wide = woven_row(ld);
    const int vectors = word_vectors(a->D);
    uint32_t *p = (uint32_t *)(void *)a->p, *ds = (uint32_t *)(void *)a->ds,
             *queries = (uint32_t *)(void *)a->queries, *woven = a->woven;
    for (size_t r = 0; r < rows; r += 2) {
        const float *even = a->ds + r * ld,
                    *odd = r + 1 < rows ? even + ld : NULL;
        words_of_two_rows(woven + r / 2 * wide, even, odd, keys);
        words_of_weights(ds + r * weight_row(ld), even, keys);
        if (odd)
            words_of_weights(ds + (r + 1) * weight_row(ld), odd, keys);
        even = a->p + r * ld;
        words_of_two_rows(p + r / 2 * wide, even, odd ? even + ld : NULL, keys);
    }
    const word_job dq = { .pairs = pairs_count(keys),
                          .a = ds,
                          .a_row = weight_row(ld),
                          .a_col = 1,
                          .b = (const uint32_t *)(void *)a->keys,
                          .c = a->dq_sums,
                          .c_row = round_up(a->D, 32) };
    word_product(&dq, rows, a->D, vectors, pairs_count(a->T));
#if defined(PL_PAIRS_AMX)
    /* Pairs that a short block lacks; what stood there may be no number. */
    for (size_t r = (rows + 1) / 2; r < PAIRS_UNIT; r++) {
        memset(woven + r * wide, 0, round_up(keys, NR) * sizeof *woven);
        memset(p + r * wide, 0, round_up(keys, NR) * sizeof *p);
    }
    words_of_channels(queries, q);
    add_turned(a->sum_k, a->sum_row, queries, a->D, woven, wide, keys);
    words_of_channels(queries, dout);
    add_turned(a->sum_v, a->sum_row, queries, a->D, p, wide, keys);
#else
    word_job dk = { .pairs = (rows + 1) / 2,
                    .a = woven,
                    .a_row = 1,
                    .a_col = wide,
                    .b = queries,
                    .c = a->sum_k,
                    .c_row = a->sum_row,
                    .keep = 1 };
    words_woven(queries, q, vectors);
    word_product(&dk, keys, a->D, vectors, dk.pairs);
    words_woven(queries, dout, vectors);
    dk.a = p;
    dk.c = a->sum_v;
    word_product(&dk, keys, a->D, vectors, dk.pairs);
#endif
}
#endif

/* A block's part of all three gradients, from its P and dS: queries q and their
 * douts, and the keys up to its last query. */
static void block_gradients(const pair *a, const strided *q,
                            const strided *dout, size_t keys)
{
#if defined(PL_PAIRS)
    if (a->by_words) {
        word_gradients(a, q, dout, keys);
        return;
    }
#endif
    const size_t rows = q->count, padded_D = round_up(a->D, 32);
    const pl_gemm dq = { .M = rows,
                         .N = a->D,
                         .K = keys,
                         .a = a->ds,
                         .a_row = a->ld,
                         .a_col = 1,
                         .b_storage = q->storage,
                         .products = a->products,
                         .c = a->dq_sums,
                         .c_row = padded_D };
    pl_gemm dk = { .M = keys,
                   .N = a->D,
                   .K = rows,
                   .a = a->ds,
                   .a_row = 1,
                   .a_col = a->ld,
                   .b_storage = q->storage,
                   .products = a->products,
                   .c = a->sum_k,
                   .c_row = a->sum_row,
                   .start = PL_GEMM_KEEP };
    times_rows(a->keys, a->T, a->work, &dq);
    pack_rows(a->queries, q);
    times_rows(a->queries, rows, a->work, &dk);
    pack_rows(a->queries, dout);
    dk.a = a->p;
    dk.c = a->sum_v;
    times_rows(a->queries, rows, a->work, &dk);
}

/* Queries i .. i + rows - 1 against keys 0 .. i + rows - 1. */
static void backward_block(const pair *a, size_t i, size_t rows)
{
    const pl_attention_bwd *args = a->args;
    const size_t keys = i + rows;
    const strided q = block_rows(a, a->q, a->row, i, rows, args->qkv_storage),
                  dout = block_rows(a, a->dout, a->out_row, i, rows,
                                    args->dout_storage);
    scores_of(a, a->p, &q, keys, a->keys_t);
    scores_of(a, a->ds, &dout, keys, a->values_t);
    for (size_t r = 0; r < rows; r++)
        backward_row(a, i, r, round_up(keys, 32));
    block_gradients(a, &q, &dout, keys);
    finish_rows(a, pl_storage_at(a->dq, i * a->row, args->dqkv_storage),
                a->dq_sums, round_up(a->D, 32), rows);
}

/* Lays out the scratch. */
static void place_pair(pair *a, float *scratch)
{
    const size_t padded_D = round_up(a->D, 32), packed = a->ld * padded_D;
    a->p = scratch;
    a->ds = a->p + BLOCK * a->ld;
    a->queries = a->ds + BLOCK * a->ld;
    a->dq_sums = a->queries + BLOCK * padded_D;
    a->keys_t = a->dq_sums + BLOCK * padded_D;
    a->values_t = a->keys_t + packed;
    a->keys = a->values_t + packed;
    a->sum_k = a->keys + packed;
    a->sum_v = a->sum_k + packed;
    a->sum_row = padded_D;
    /* Packed words take half of the room. */
    if (a->by_words) {
        a->values_t = a->keys_t + packed / 2;
        a->keys = a->values_t + packed / 2;
        a->woven = (uint32_t *)(void *)(a->keys + packed / 2);
#if defined(PL_PAIRS_AMX)
        a->sum_row = turned_row(a->ld);
        a->sum_k = a->keys + packed / 2 + PAIRS_UNIT * woven_row(a->ld);
        a->sum_v = a->sum_k + round_up(a->D, AMX_SIDE) * a->sum_row;
#endif
    }
    if (a->args->dqkv_storage == PL_STORE_F32) {
        a->sum_k = a->dk;
        a->sum_v = a->dv;
        a->sum_row = a->row;
    }
}

static void pack_keys(const pair *a, const strided *keys, const strided *values)
{
#if defined(PL_PAIRS)
    if (a->by_words) {
        words_turned((uint32_t *)(void *)a->keys_t, keys);
        words_turned((uint32_t *)(void *)a->values_t, values);
        words_woven((uint32_t *)(void *)a->keys, keys, word_vectors(a->D));
        return;
    }
#endif
    pack_transposed(a->keys_t, a->ld, keys, a->work);
    pack_transposed(a->values_t, a->ld, values, a->work);
    pack_rows(a->keys, keys);
}

/* Whether the sums of dk and dv are kept transposed. */
static int is_turned(const pair *a)
{
#if defined(PL_PAIRS_AMX)
    return a->by_words;
#else
    (void)a;
    return 0;
#endif
}

/* Packs K^T, V^T and K, and lets dk and dv begin. */
static void begin_pair(const pair *a)
{
    const strided keys = { .x = a->k,
                           .stride = a->row,
                           .count = a->T,
                           .D = a->D,
                           .storage = a->args->qkv_storage };
    strided values = keys;
    values.x = a->v;
    pack_keys(a, &keys, &values);
    const int turned = is_turned(a);
    const size_t rows = turned ? round_up(a->D, 16) : a->T,
                 columns = turned ? a->ld : a->D;
    for (size_t r = 0; r < rows; r++) {
        memset(a->sum_k + r * a->sum_row, 0, columns * sizeof(float));
        memset(a->sum_v + r * a->sum_row, 0, columns * sizeof(float));
    }
}

/* Head g of the keys and values of sequence b. */
static pair pair_of(const pl_attention_bwd *args, size_t b, size_t g)
{
    const size_t H = args->H, KV = args->KV, D = args->D,
                 row = (H + 2 * KV) * D, at = b * args->T * row + (H + g) * D;
    const pl_products products = pl_products_of(
        args->products, args->qkv_storage, args->dout_storage);
    return (pair){
        .args = args,
        .k = pl_storage_at(args->qkv, at, args->qkv_storage),
        .v = pl_storage_at(args->qkv, at + KV * D, args->qkv_storage),
        .dk = pl_storage_at(args->dqkv, at, args->dqkv_storage),
        .dv = pl_storage_at(args->dqkv, at + KV * D, args->dqkv_storage),
        .row = row,
        .out_row = H * D,
        .D = D,
        .T = args->T,
        .ld = ld_of(args->T),
        .b = b,
        .scale = (float)(1.0 / sqrt((double)D)),
        .products = products,
        .by_words = by_words(args->qkv_storage, D, products) &&
                    args->dout_storage == PL_STORE_BF16 &&
                    args->dqkv_storage != PL_STORE_F32,
    };
}

/* Query head h, with its gradient. */
static void backward_head(pair *a, size_t h)
{
    const pl_attention_bwd *args = a->args;
    const size_t T = a->T, size = block_of(a),
                 at = a->b * T * a->row + h * a->D,
                 at_out = a->b * T * a->out_row + h * a->D;
    a->head = h;
    a->q = pl_storage_at(args->qkv, at, args->qkv_storage);
    a->dq = pl_storage_at(args->dqkv, at, args->dqkv_storage);
    a->out = pl_storage_at(args->out, at_out, args->out_storage);
    a->dout = pl_storage_at(args->dout, at_out, args->dout_storage);
    a->lse = args->lse + (a->b * args->H + h) * T;
    for (size_t i = 0; i < T; i += size)
        backward_block(a, i, T - i < size ? T - i : size);
}

/* dk or dv from its sums. */
static void finish_sums(const pair *a, void *to, float *sums)
{
    if (!is_turned(a)) {
        finish_rows(a, to, sums, a->sum_row, a->T);
        return;
    }
#if defined(PL_PAIRS_AMX)
    for (size_t t = 0; t < a->T; t += HALVES) {
        const size_t rows = a->T - t < HALVES ? a->T - t : HALVES,
                     padded_D = round_up(a->D, 32);
        turn_back(a->dq_sums, padded_D, sums, a->sum_row, t, rows, a->D);
        finish_rows(a, pl_storage_at(to, t * a->row, a->args->dqkv_storage),
                    a->dq_sums, padded_D, rows);
    }
#endif
}

void PL_K(attention_bwd)(const pl_attention_bwd *args, int ith, int nth)
{
    float work[MC_STACK * KC];
    if (args->D == 0)
        return;
    float *scratch = args->scratch +
                     (size_t)ith * pl_attention_bwd_scratch(args->T, args->D,
                                                            args->dqkv_storage);
    for (size_t u = (size_t)ith; u < args->B * args->KV; u += (size_t)nth) {
        const size_t g = u % args->KV, heads = args->H / args->KV;
        pair a = pair_of(args, u / args->KV, g);
        a.work = work;
        place_pair(&a, scratch);
        begin_pair(&a);
        begin_words(a.by_words);
        for (size_t h = g * heads; h < (g + 1) * heads; h++)
            backward_head(&a, h);
        finish_sums(&a, a.dk, a.sum_k);
        finish_sums(&a, a.dv, a.sum_v);
        end_words(a.by_words);
    }
}
