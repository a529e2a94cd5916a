/* attention.c: causal attention in blocks of queries against all keys up to
 * the block's last one. A head's keys and values are packed once for all its
 * blocks. Blocks are a matter of speed: every sum is a chain over keys (or
 * queries) or LANES over keys, and masked weights are +0. */
#include "kernels/plain/lanes.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"
#include "kernels/plain/tile.h"
#include "kernels/plain/vmath.h"

/* Queries of a block: forward few, so that their scores stay near; backward,
 * where more is read for each block, few only of a short sequence, since half
 * of what a block computes on its diagonal is masked. */
enum { BLOCK = PL_ATTENTION_BLOCK, SHORT_BLOCK = 24, LONG_FROM = 512 };
enum { FEW_QUERIES = 4 };

static size_t block_of(size_t keys)
{
    return keys >= LONG_FROM ? BLOCK : SHORT_BLOCK;
}

static size_t round_up(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

/* Floats of a row of scores, and of `D` channels in whole panels. */
static size_t wide_of(size_t keys)
{
    return round_up(keys, 32);
}

static uint32_t mask_high(size_t head)
{
    return (uint32_t)head << 20;
}

/* s[j] = exp(s[j] * scale - shift) for the first `count`, +0 up to `end` and to
 * whole lanes; returns their sum. */
static float exponentials(float *s, size_t count, size_t end, float scale,
                          float shift)
{
    lanes l = lanes_all(0);
    size_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        for (size_t i = j; i < j + LANES; i++)
            s[i] = exp_down1(s[i] * scale - shift);
        l = lanes_add(l, lanes_load(s + j));
    }
    if (j < count) {
        for (size_t i = j; i < j + LANES; i++)
            s[i] = i < count ? exp_down1(s[i] * scale - shift) : 0.0f;
        l = lanes_add(l, lanes_load(s + j));
        j += LANES;
    }
    for (; j < end; j++)
        s[j] = 0.0f;
    return lanes_total(l);
}

/* ---- packed matrices of a head ---- */

/* Rows of a head: `count` of D numbers, `row` numbers apart. */
typedef struct rows_of {
    const void *x;
    size_t row, count, D;
    pl_storage kept;
} rows_of;

/* As columns of a product, KC channels at a time: panels of so many rows and NR
 * columns each. `wide` columns have their place. */
static void pack_turned(float *to, size_t wide, const rows_of *r, float *room)
{
    const pl_gemm g = { .b_col = r->row, .b_storage = r->kept };
    const size_t last = r->count / NR * NR;
    for (size_t d = 0; d < r->D; d += KC) {
        const size_t D = r->D - d < KC ? r->D - d : KC, panel = D * NR;
        float *panels = to + d * wide;
        if (r->count % NR)
            memset(panels + last * D, 0, panel * sizeof *to);
        for (size_t n = 0; n < r->count; n += NR)
            tile_pack_turned(panels + n * D, room, &g,
                             pl_storage_at(r->x, n * r->row + d, r->kept), D,
                             r->count - n < NR ? r->count - n : NR);
    }
}

/* As rows of a product: panels of `count` rows and NR channels each. */
static void pack_rows(float *to, const rows_of *r)
{
    const size_t panel = r->count * NR;
    if (r->D % NR)
        memset(to + r->D / NR * panel, 0, panel * sizeof *to);
    for (size_t d = 0; d < r->D; d += NR)
        widen_rows(to + d / NR * panel, NR, pl_storage_at(r->x, d, r->kept),
                   r->row, r->count, r->D - d < NR ? r->D - d : NR, r->kept);
}

/* c = (or +=) a * packed: by pack_turned, of `wide` columns. `room` holds
 * MA_FEW * KC floats. */
static void times_turned(const float *packed, size_t wide, float *room,
                         const pl_gemm *g)
{
    const tile_part p = {
        .rows = g->M, .columns = g->N, .c = g->c, .c_row = g->c_row
    };
    for (size_t k = 0; k < g->K; k += KC) {
        const size_t K = g->K - k < KC ? g->K - k : KC;
        const tile_room with = { .panels = (float *)(uintptr_t)packed +
                                           k * wide,
                                 .panel = K * NR,
                                 .a = room,
                                 .a_rows = MA_FEW };
        tile_block(&with, g, &p, k, K, NULL);
    }
}

/* The same: by pack_rows, of `count` rows, of which the first g->K are used. A
 * is float32, and K at most KC if its columns are rows. */
static void times_rows(const float *packed, size_t count, float *room,
                       const pl_gemm *g)
{
    const tile_part p = {
        .rows = g->M, .columns = g->N, .c = g->c, .c_row = g->c_row
    };
    const tile_room with = { .panels = (float *)(uintptr_t)packed,
                             .panel = count * NR,
                             .a = room,
                             .a_rows = MA_FEW };
    tile_block(&with, g, &p, 0, g->K, NULL);
}

/* ---- forward ---- */

/* One (sequence, head), packed. */
typedef struct head {
    const pl_attention *args;
    size_t b, h;
    float *scores; /* [BLOCK, wide] */
    float *mixed;  /* [BLOCK, D in whole panels] */
    float *keys, *values;
    size_t packed; /* that are packed */
} head;

static rows_of rows_at(const pl_attention *args, const void *x, size_t b,
                       size_t h, size_t count)
{
    return (rows_of){ .x = pl_storage_at(
                          x, b * args->keys * args->kv_row + h * args->D,
                          args->qkv_storage),
                      .row = args->kv_row,
                      .count = count,
                      .D = args->D,
                      .kept = args->qkv_storage };
}

/* The keys that queries up to `last` see. */
static void pack_head(head *a, size_t last, float *scratch, float *room)
{
    const size_t wide = wide_of(a->args->keys), deep = round_up(a->args->D, 32),
                 count = a->args->first + last;
    const rows_of k = rows_at(a->args, a->args->k, a->b, a->h, count),
                  v = rows_at(a->args, a->args->v, a->b, a->h, count);
    a->scores = scratch;
    a->mixed = scratch + 2 * BLOCK * wide;
    a->keys = a->mixed + 2 * BLOCK * deep;
    a->values = a->keys + wide * deep;
    a->packed = count;
    pack_turned(a->keys, wide, &k, room);
    pack_rows(a->values, &v);
}

/* The scores of a row become P, unscaled; returns 1 / its sum. */
static float weigh_row(const head *a, size_t i, size_t r, size_t keys)
{
    const pl_attention *args = a->args;
    const size_t position = args->first + i + r, count = position + 1;
    const float scale = (float)(1.0 / sqrt((double)args->D));
    float *s = a->scores + r * wide_of(args->keys);
    const float max = lanes_max(s, count) * scale;
    const float sum = exponentials(s, count, keys, scale, max);
    if (args->lse)
        args->lse[(a->b * args->H + a->h) * args->queries + i + r] =
            (float)((double)max + log((double)sum));
    if (args->dropout.threshold)
        mask_apply(&args->dropout, mask_high(a->h), (uint32_t)position,
                   args->dropout.sequence + (uint32_t)a->b, 0, count, s, s);
    return 1.0f / sum;
}

/* One block of queries: scores, P, and P times the values. */
static void forward_block(const head *a, size_t i, size_t rows, float *room)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, C = args->H * D, keys = args->first + i + rows,
                 wide = wide_of(args->keys), deep = round_up(D, 32),
                 query = a->b * args->queries + i;
    float inverse[BLOCK];
    const pl_gemm scores = { .M = rows,
                             .N = round_up(keys, NR),
                             .K = D,
                             .a = pl_storage_at(args->q,
                                                query * args->q_row + a->h * D,
                                                args->qkv_storage),
                             .a_row = args->q_row,
                             .a_col = 1,
                             .a_storage = args->qkv_storage,
                             .c = a->scores,
                             .c_row = wide };
    const pl_gemm mix = { .M = rows,
                          .N = D,
                          .K = keys,
                          .a = a->scores,
                          .a_row = wide,
                          .a_col = 1,
                          .c = a->mixed,
                          .c_row = deep };
    times_turned(a->keys, wide, room, &scores);
    for (size_t r = 0; r < rows; r++)
        inverse[r] = weigh_row(a, i, r, keys);
    times_rows(a->values, a->packed, room, &mix);
    /* Appended zeros turn a sum of -0 into +0; adding 0 always does. */
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < D; c++)
            a->mixed[r * deep + c] = a->mixed[r * deep + c] * inverse[r] + 0.0f;
    narrow_rows(
        pl_storage_at(args->out, query * C + a->h * D, args->out_storage), C,
        a->mixed, deep, rows, D, args->out_storage);
}

/* A single query, as decoding has: nothing is packed, keys and values are read
 * as they lie. */
PL_INLINE void forward_one(const head *a, size_t i, flat_kind kind)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, keys = args->first + i + 1,
                 query = a->b * args->queries + i;
    const rows_of k = rows_at(args, args->k, a->b, a->h, keys),
                  v = rows_at(args, args->v, a->b, a->h, keys);
    float *mixed = a->mixed, *q = mixed + D;
    size_t j = 0;
    widen(q,
          pl_storage_at(args->q, query * args->q_row + a->h * D, kind.storage),
          D, kind.storage);
    memset(a->scores, 0, wide_of(args->keys) * sizeof *a->scores);
    memset(mixed, 0, D * sizeof *mixed);
    for (; j + TOGETHER <= keys; j += TOGETHER)
        add_columns(a->scores + j, q,
                    pl_storage_at(k.x, j * k.row, kind.storage), k.row, D,
                    kind);
    for (; j < keys; j++)
        for (size_t d = 0; d < D; d++)
            a->scores[j] = fma1(q[d], flat_get(k.x, j * k.row + d, kind),
                                a->scores[j]);
    const float inverse = weigh_row(a, i, 0, keys);
    add_rows(mixed, a->scores, v.x, v.row, keys, D, kind);
    for (size_t d = 0; d < D; d++)
        mixed[d] = mixed[d] * inverse + 0.0f;
    narrow_rows(pl_storage_at(args->out, query * args->H * D + a->h * D,
                              args->out_storage),
                0, mixed, 0, 1, D, args->out_storage);
}

/* Few queries: heads in turn. */
static void forward_few(const pl_attention *args, int ith, int nth,
                        float *scratch)
{
    for (size_t u = (size_t)ith; u < args->B * args->H; u += (size_t)nth) {
        const head a = { .args = args,
                         .b = u / args->H,
                         .h = u % args->H,
                         .scores = scratch,
                         .mixed = scratch + 2 * BLOCK * wide_of(args->keys) };
        for (size_t i = 0; i < args->queries; i++)
            switch (args->qkv_storage) {
            case PL_STORE_F32:
                forward_one(&a, i, (flat_kind){ PL_STORE_F32, PL_STORE_F32 });
                break;
            case PL_STORE_BF16:
                forward_one(&a, i, (flat_kind){ PL_STORE_BF16, PL_STORE_BF16 });
                break;
            case PL_STORE_F16:
                forward_one(&a, i, (flat_kind){ PL_STORE_F16, PL_STORE_F16 });
                break;
            }
    }
}

/* How much all blocks before `block` of a head cost: later ones see more keys,
 * and each has a share that is its own. */
static size_t cost_before(size_t first, size_t size, size_t block)
{
    return block * (first + 2 * size) + size * (block * (block + 1) / 2);
}

/* The first unit of (head, block), in order, at which a share of the whole cost
 * begins. Any cut will do; this one is even. */
static size_t unit_at(size_t heads, size_t blocks, size_t first, size_t size,
                      int ith, int nth)
{
    const size_t each = cost_before(first, size, blocks),
                 at = heads * each / (size_t)nth * (size_t)ith;
    size_t block = 0;
    if (ith == nth || each == 0)
        return heads * blocks;
    while (block < blocks && cost_before(first, size, block) < at % each)
        block++;
    return at / each * blocks + block;
}

void PL_K(attention)(const pl_attention *args, int ith, int nth)
{
    const size_t size = SHORT_BLOCK, blocks = (args->queries + size - 1) / size,
                 heads = args->B * args->H;
    float room[MA_FEW * KC];
    if (args->D == 0 || blocks == 0)
        return;
    float *scratch = args->scratch +
                     (size_t)ith * pl_attention_scratch(args->keys, args->D);
    if (args->queries <= FEW_QUERIES) {
        forward_few(args, ith, nth, scratch);
        return;
    }
    const size_t end = unit_at(heads, blocks, args->first, size, ith + 1, nth);
    size_t unit = unit_at(heads, blocks, args->first, size, ith, nth);
    while (unit < end) {
        const size_t pair = unit / blocks, stop = (pair + 1) * blocks,
                     last = stop < end ? stop : end;
        const size_t queries = (last - pair * blocks) * size;
        head a = { .args = args, .b = pair / args->H, .h = pair % args->H };
        pack_head(&a, queries < args->queries ? queries : args->queries,
                  scratch, room);
        for (; unit < last; unit++) {
            const size_t i = unit % blocks * size, rest = args->queries - i;
            forward_block(&a, i, rest < size ? rest : size, room);
        }
    }
}

/* ---- backward ---- */

/* One (sequence, head) of the backward pass. All matrices but the scores have
 * rows of 3C or C, as in qkv and out. */
typedef struct pair {
    const void *q, *out;
    const float *dout, *lse;
    float *dq, *dk, *dv;
    float *p, *ds;                             /* [BLOCK, wide] */
    float *turned_keys, *turned_values, *keys; /* packed */
    float *queries, *douts;                    /* of a block, packed */
    float *room;                               /* MA_FEW * KC */
    size_t C, D, T, wide, head;
    uint32_t sequence;
    float scale;
    pl_storage kept, out_kept; /* as what q, k, v and out are kept */
    const pl_dropout *dropout;
} pair;

enum { PART = 64 };

/* LANES(d) dout_d * out_d. */
static float delta_of(const pair *a, size_t position)
{
    const float *dout = a->dout + position * a->C;
    const void *out = pl_storage_at(a->out, position * a->C, a->out_kept);
    lanes l = lanes_all(0);
    float part[PART];
    if (a->out_kept == PL_STORE_F32)
        return lanes_total(lanes_dot_on(l, dout, out, a->D));
    for (size_t d = 0; d < a->D; d += PART) {
        const size_t count = a->D - d < PART ? a->D - d : PART;
        widen(part, pl_storage_at(out, d, a->out_kept), count, a->out_kept);
        l = lanes_dot_on(l, dout + d, part, count);
    }
    return lanes_total(l);
}

/* Row r of the block at i: p[j] becomes drop(p), ds[j] from dp[j]. */
static void backward_row(const pair *a, size_t i, size_t r, size_t keys)
{
    const size_t position = i + r, count = position + 1;
    float *restrict p = a->p + r * a->wide;
    float *restrict ds = a->ds + r * a->wide;
    const float delta = delta_of(a, position);
    const float scale = a->scale;
    exponentials(p, count, keys, scale, a->lse[position]);
    if (a->dropout->threshold)
        mask_apply(a->dropout, mask_high(a->head), (uint32_t)position,
                   a->sequence, 0, count, ds, ds);
    for (size_t j = 0; j < count; j++)
        ds[j] = p[j] * (ds[j] - delta) * scale;
    for (size_t j = count; j < keys; j++)
        ds[j] = 0.0f;
    if (a->dropout->threshold)
        mask_apply(a->dropout, mask_high(a->head), (uint32_t)position,
                   a->sequence, 0, count, p, p);
}

/* P and ds of queries i .. i + rows - 1 against keys 0 .. i + rows - 1. */
static void backward_scores(const pair *a, size_t i, size_t rows)
{
    const size_t C = a->C, keys = i + rows;
    const pl_gemm scores = { .M = rows,
                             .N = round_up(keys, NR),
                             .K = a->D,
                             .a = pl_storage_at(a->q, i * 3 * C, a->kept),
                             .a_row = 3 * C,
                             .a_col = 1,
                             .a_storage = a->kept,
                             .c = a->p,
                             .c_row = a->wide };
    pl_gemm dweights = scores;
    dweights.a = a->dout + i * C;
    dweights.a_row = C;
    dweights.a_storage = PL_STORE_F32;
    dweights.c = a->ds;
    times_turned(a->turned_keys, a->wide, a->room, &scores);
    times_turned(a->turned_values, a->wide, a->room, &dweights);
    for (size_t r = 0; r < rows; r++)
        backward_row(a, i, r, keys);
}

/* Such a block's part of all three gradients. */
static void backward_block(const pair *a, size_t i, size_t rows)
{
    const size_t C = a->C, C3 = 3 * C, D = a->D, keys = i + rows;
    const rows_of q = { .x = pl_storage_at(a->q, i * C3, a->kept),
                        .row = C3,
                        .count = rows,
                        .D = D,
                        .kept = a->kept };
    const rows_of dout = { .x = a->dout + i * C,
                           .row = C,
                           .count = rows,
                           .D = D,
                           .kept = PL_STORE_F32 };
    const pl_gemm dq = { .M = rows,
                         .N = D,
                         .K = keys,
                         .a = a->ds,
                         .a_row = a->wide,
                         .a_col = 1,
                         .c = a->dq + i * C3,
                         .c_row = C3 };
    pl_gemm dk = { .M = keys,
                   .N = D,
                   .K = rows,
                   .a = a->ds,
                   .a_row = 1,
                   .a_col = a->wide,
                   .c = a->dk,
                   .c_row = C3,
                   .start = PL_GEMM_KEEP };
    backward_scores(a, i, rows);
    pack_rows(a->queries, &q);
    pack_rows(a->douts, &dout);
    times_rows(a->keys, a->T, a->room, &dq);
    times_rows(a->queries, rows, a->room, &dk);
    dk.a = a->p;
    dk.c = a->dv;
    times_rows(a->douts, rows, a->room, &dk);
}

/* Where a pair's matrices are packed. */
static void pack_pair(pair *a, const void *k, const void *v, float *scratch)
{
    const size_t wide = a->wide, deep = round_up(a->D, 32);
    const rows_of keys = {
        .x = k, .row = 3 * a->C, .count = a->T, .D = a->D, .kept = a->kept
    };
    rows_of values = keys;
    values.x = v;
    a->p = scratch;
    a->ds = a->p + BLOCK * wide;
    a->queries = a->ds + BLOCK * wide;
    a->douts = a->queries + BLOCK * deep;
    a->turned_keys = a->douts + BLOCK * deep;
    a->turned_values = a->turned_keys + wide * deep;
    a->keys = a->turned_values + wide * deep;
    pack_turned(a->turned_keys, wide, &keys, a->room);
    pack_turned(a->turned_values, wide, &values, a->room);
    pack_rows(a->keys, &keys);
}

/* Threads split (sequence, head): dk and dv are sums over all its queries. */
void PL_K(attention_bwd)(const pl_attention_bwd *args, int ith, int nth)
{
    const size_t T = args->T, H = args->H, D = args->D, C = H * D,
                 size = block_of(T);
    const pl_storage kept = args->qkv_storage;
    float room[MA_FEW * KC];
    if (D == 0)
        return;
    float *scratch = args->scratch + (size_t)ith * pl_attention_scratch(T, D);
    for (size_t u = (size_t)ith; u < args->B * H; u += (size_t)nth) {
        const size_t b = u / H, h = u % H, at = b * T * C + h * D,
                     at3 = b * T * 3 * C + h * D;
        pair a = {
            .q = pl_storage_at(args->qkv, at3, kept),
            .out = pl_storage_at(args->out, at, args->out_storage),
            .dout = args->dout + at,
            .lse = args->lse + u * T,
            .dq = args->dqkv + at3,
            .dk = args->dqkv + at3 + C,
            .dv = args->dqkv + at3 + 2 * C,
            .room = room,
            .C = C,
            .D = D,
            .T = T,
            .wide = wide_of(T),
            .head = h,
            .sequence = args->dropout.sequence + (uint32_t)b,
            .scale = (float)(1.0 / sqrt((double)D)),
            .kept = kept,
            .out_kept = args->out_storage,
            .dropout = &args->dropout,
        };
        pack_pair(&a, pl_storage_at(args->qkv, at3 + C, kept),
                  pl_storage_at(args->qkv, at3 + 2 * C, kept), scratch);
        for (size_t t = 0; t < T; t++) {
            memset(a.dk + t * 3 * C, 0, D * sizeof *a.dk);
            memset(a.dv + t * 3 * C, 0, D * sizeof *a.dv);
        }
        for (size_t i = 0; i < T; i += size)
            backward_block(&a, i, T - i < size ? T - i : size);
    }
}
