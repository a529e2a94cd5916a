/* attention.c: causal attention, a block of queries at a time.
 *
 *             keys ->                  One (sequence, head): a block of queries
 *            +------------+            against the keys up to its last query.
 *   block 0  |#..         |
 *            |##.         |   #  a score that counts
 *            |###         |   .  computed with the block, then masked to +0
 *   block 1  |####..      |   blank: not used
 *            |#####.      |
 *            |######      |
 *
 * Forward, for each block: S = Q K^T by the tiles of tile.h; P = softmax(S) row
 * by row; out = P V, divided by the row's sum. Whole rows of scores are held
 * (up to PL_ATTENTION_BLOCK of them), so that the softmax is the plain one, not
 * the online one of FlashAttention; a T x T matrix never exists. K and V of a
 * head are packed once for all its blocks.
 *
 * Backward, for each block: P again, from the stored log-sum-exp; dP = dO V^T;
 * dS = P (dP - delta) / sqrt(D), where delta is the row's sum of dO * O; then
 * dQ = dS K, dK += dS^T Q, dV += P^T dO.
 *
 * The size of a block doesn't change a bit: every sum has the canonical order
 * of kernels.h (a chain over keys or queries, or 16 lanes over keys), and
 * masked weights add +0 to it. */
#include "kernels/plain/lanes.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"
#include "kernels/plain/tile.h"
#include "kernels/plain/vmath.h"

/* Queries of a block. Forward: few, so that their scores stay in the cache.
 * Backward, where more is read for each block: few only in a short sequence,
 * since half of what a block computes on its diagonal is masked. */
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

/* The leading dimension of the scores: a row of `keys`, padded to 32 floats. */
static size_t ld_of(size_t keys)
{
    return round_up(keys, 32);
}

static uint32_t mask_high(size_t head)
{
    return (uint32_t)head << 20;
}

/* s[j] = exp(s[j] * scale - shift) for the first `count`, +0 from there up to
 * `end` and to the end of a group of lanes; returns their sum. */
static float exp_and_sum(float *s, size_t count, size_t end, float scale,
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

/* A view of a head's rows: `count` of D elements, `stride` elements apart. */
typedef struct strided {
    const void *x;
    size_t stride, count, D;
    pl_storage storage;
} strided;

/* Packs the transpose, as a product's B: the rows become columns, KC channels
 * at a time, in panels of NR columns. There is room for `ld` columns. */
static void pack_transposed(float *to, size_t ld, const strided *r, float *work)
{
    const pl_gemm g = { .b_col = r->stride, .b_storage = r->storage };
    const size_t last = r->count / NR * NR;
    for (size_t d = 0; d < r->D; d += KC) {
        const size_t D = r->D - d < KC ? r->D - d : KC, panel = D * NR;
        float *panels = to + d * ld;
        if (r->count % NR)
            memset(panels + last * D, 0, panel * sizeof *to);
        for (size_t n = 0; n < r->count; n += NR)
            tile_pack_b_transposed(
                panels + n * D, work, &g,
                pl_storage_at(r->x, n * r->stride + d, r->storage), D,
                r->count - n < NR ? r->count - n : NR);
    }
}

/* Packs the matrix as a product's B: panels of `count` rows and NR channels. */
static void pack_rows(float *to, const strided *r)
{
    const size_t panel = r->count * NR;
    if (r->D % NR)
        memset(to + r->D / NR * panel, 0, panel * sizeof *to);
    for (size_t d = 0; d < r->D; d += NR)
        widen_rows(to + d / NR * panel, NR, pl_storage_at(r->x, d, r->storage),
                   r->stride, r->count, r->D - d < NR ? r->D - d : NR,
                   r->storage);
}

/* c = (or +=) a * B, packed by pack_transposed with `ld` columns. `work` holds
 * MC_STACK * KC floats. */
static void times_transposed(const float *packed, size_t ld, float *work,
                             const pl_gemm *g)
{
    const tile_part p = {
        .rows = g->M, .columns = g->N, .c = g->c, .c_row = g->c_row
    };
    for (size_t k = 0; k < g->K; k += KC) {
        const size_t K = g->K - k < KC ? g->K - k : KC;
        const tile_work with = { .panels = (float *)(uintptr_t)packed + k * ld,
                                 .panel = K * NR,
                                 .a = work,
                                 .a_rows = MC_STACK };
        tile_block(&with, g, &p, k, K, NULL);
    }
}

/* The same for a B packed by pack_rows with `count` rows, of which the first
 * g->K are used. A is float32, and K is at most KC if A is transposed. */
static void times_rows(const float *packed, size_t count, float *work,
                       const pl_gemm *g)
{
    const tile_part p = {
        .rows = g->M, .columns = g->N, .c = g->c, .c_row = g->c_row
    };
    const tile_work with = { .panels = (float *)(uintptr_t)packed,
                             .panel = count * NR,
                             .a = work,
                             .a_rows = MC_STACK };
    tile_block(&with, g, &p, 0, g->K, NULL);
}

/* ---- forward ---- */

/* One (sequence, head), packed. */
typedef struct head {
    const pl_attention *args;
    size_t b, h;
    float *scores; /* [BLOCK, ld]: S, then P */
    float *pv;     /* [BLOCK, padded D]: P V */
    float *keys, *values;
    size_t packed; /* how many of them */
} head;

static strided rows_at(const pl_attention *args, const void *x, size_t b,
                       size_t h, size_t count)
{
    return (strided){ .x = pl_storage_at(
                          x, b * args->keys * args->kv_row + h * args->D,
                          args->qkv_storage),
                      .stride = args->kv_row,
                      .count = count,
                      .D = args->D,
                      .storage = args->qkv_storage };
}

/* Packs the keys and values that queries up to `last` see. */
static void pack_head(head *a, size_t last, float *scratch, float *work)
{
    const size_t ld = ld_of(a->args->keys), padded_D = round_up(a->args->D, 32),
                 count = a->args->first + last;
    const strided k = rows_at(a->args, a->args->k, a->b, a->h, count),
                  v = rows_at(a->args, a->args->v, a->b, a->h, count);
    a->scores = scratch;
    a->pv = scratch + 2 * BLOCK * ld;
    a->keys = a->pv + 2 * BLOCK * padded_D;
    a->values = a->keys + ld * padded_D;
    a->packed = count;
    pack_transposed(a->keys, ld, &k, work);
    pack_rows(a->values, &v);
}

/* The softmax of a row of scores, not yet divided by its sum; returns 1 / sum.
 */
static float softmax_row(const head *a, size_t i, size_t r, size_t keys)
{
    const pl_attention *args = a->args;
    const size_t position = args->first + i + r, count = position + 1;
    const float scale = (float)(1.0 / sqrt((double)args->D));
    float *s = a->scores + r * ld_of(args->keys);
    const float max = lanes_max(s, count) * scale;
    const float sum = exp_and_sum(s, count, keys, scale, max);
    if (args->lse)
        args->lse[(a->b * args->H + a->h) * args->queries + i + r] = log_sum1(
            max, sum, 0.0f);
    if (args->dropout.threshold)
        mask_apply(&args->dropout, mask_high(a->h), (uint32_t)position,
                   args->dropout.sequence + (uint32_t)a->b, 0, count, s, s);
    return 1.0f / sum;
}

/* One block of queries: S, P, and P V. */
static void forward_block(const head *a, size_t i, size_t rows, float *work)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, C = args->H * D, keys = args->first + i + rows,
                 ld = ld_of(args->keys), padded_D = round_up(D, 32),
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
                             .c_row = ld };
    const pl_gemm product = { .M = rows,
                              .N = D,
                              .K = keys,
                              .a = a->scores,
                              .a_row = ld,
                              .a_col = 1,
                              .c = a->pv,
                              .c_row = padded_D };
    times_transposed(a->keys, ld, work, &scores);
    for (size_t r = 0; r < rows; r++)
        inverse[r] = softmax_row(a, i, r, keys);
    times_rows(a->values, a->packed, work, &product);
    /* Appended zeros turn a sum of -0 into +0; adding 0 always does. */
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < D; c++)
            a->pv[r * padded_D + c] = a->pv[r * padded_D + c] * inverse[r] +
                                      0.0f;
    narrow_rows(
        pl_storage_at(args->out, query * C + a->h * D, args->out_storage), C,
        a->pv, padded_D, rows, D, args->out_storage);
}

/* A single query, as in decoding: nothing is packed, keys and values are read
 * in place. */
PL_INLINE void forward_one(const head *a, size_t i, flat_kind kind)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, keys = args->first + i + 1,
                 query = a->b * args->queries + i;
    const strided k = rows_at(args, args->k, a->b, a->h, keys),
                  v = rows_at(args, args->v, a->b, a->h, keys);
    float *pv = a->pv, *q = pv + D;
    size_t j = 0;
    widen(q,
          pl_storage_at(args->q, query * args->q_row + a->h * D, kind.storage),
          D, kind.storage);
    memset(a->scores, 0, ld_of(args->keys) * sizeof *a->scores);
    memset(pv, 0, D * sizeof *pv);
    for (; j + DOT_COLUMNS <= keys; j += DOT_COLUMNS)
        dot_columns(a->scores + j, q,
                    pl_storage_at(k.x, j * k.stride, kind.storage), k.stride, D,
                    kind);
    for (; j < keys; j++)
        for (size_t d = 0; d < D; d++)
            a->scores[j] = fma1(q[d], flat_get(k.x, j * k.stride + d, kind),
                                a->scores[j]);
    const float inverse = softmax_row(a, i, 0, keys);
    axpy_rows(pv, a->scores, v.x, v.stride, keys, D, kind);
    for (size_t d = 0; d < D; d++)
        pv[d] = pv[d] * inverse + 0.0f;
    narrow_rows(pl_storage_at(args->out, query * args->H * D + a->h * D,
                              args->out_storage),
                0, pv, 0, 1, D, args->out_storage);
}

/* Few queries: threads take heads in turn. */
static void forward_few(const pl_attention *args, int ith, int nth,
                        float *scratch)
{
    for (size_t u = (size_t)ith; u < args->B * args->H; u += (size_t)nth) {
        const head a = { .args = args,
                         .b = u / args->H,
                         .h = u % args->H,
                         .scores = scratch,
                         .pv = scratch + 2 * BLOCK * ld_of(args->keys) };
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

/* The cost of all blocks before `block` of a head: later ones see more keys,
 * and each has a constant part. */
static size_t cost_before(size_t first, size_t size, size_t block)
{
    return block * (first + 2 * size) + size * (block * (block + 1) / 2);
}

/* Threads split the list of all (head, block) so that each has the same cost:
 * the first of thread ith's. Any other cut would give the same result. */
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
    float work[MC_STACK * KC];
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
                  scratch, work);
        for (; unit < last; unit++) {
            const size_t i = unit % blocks * size, rest = args->queries - i;
            forward_block(&a, i, rest < size ? rest : size, work);
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
    float *p, *ds;                   /* [BLOCK, ld] */
    float *keys_t, *values_t, *keys; /* packed */
    float *queries, *douts;          /* of a block, packed */
    float *work;                     /* MC_STACK * KC */
    size_t C, D, T, ld, head;
    uint32_t sequence;
    float scale;
    pl_storage storage, out_storage; /* of q, k and v; of out */
    const pl_dropout *dropout;
} pair;

enum { PART = 64 };

/* LANES(d) dout_d * out_d. */
static float delta_of(const pair *a, size_t position)
{
    const float *dout = a->dout + position * a->C;
    const void *out = pl_storage_at(a->out, position * a->C, a->out_storage);
    lanes l = lanes_all(0);
    float part[PART];
    if (a->out_storage == PL_STORE_F32)
        return lanes_total(lanes_dot_on(l, dout, out, a->D));
    for (size_t d = 0; d < a->D; d += PART) {
        const size_t count = a->D - d < PART ? a->D - d : PART;
        widen(part, pl_storage_at(out, d, a->out_storage), count,
              a->out_storage);
        l = lanes_dot_on(l, dout + d, part, count);
    }
    return lanes_total(l);
}

/* Row r of the block at i: scores become drop(p), dp becomes ds. */
static void backward_row(const pair *a, size_t i, size_t r, size_t keys)
{
    const size_t position = i + r, count = position + 1;
    float *restrict p = a->p + r * a->ld;
    float *restrict ds = a->ds + r * a->ld;
    const float delta = delta_of(a, position);
    const float scale = a->scale;
    exp_and_sum(p, count, keys, scale, a->lse[position]);
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

/* P and dS of queries i .. i + rows - 1 against keys 0 .. i + rows - 1. */
static void backward_scores(const pair *a, size_t i, size_t rows)
{
    const size_t C = a->C, keys = i + rows;
    const pl_gemm scores = { .M = rows,
                             .N = round_up(keys, NR),
                             .K = a->D,
                             .a = pl_storage_at(a->q, i * 3 * C, a->storage),
                             .a_row = 3 * C,
                             .a_col = 1,
                             .a_storage = a->storage,
                             .c = a->p,
                             .c_row = a->ld };
    pl_gemm dweights = scores;
    dweights.a = a->dout + i * C;
    dweights.a_row = C;
    dweights.a_storage = PL_STORE_F32;
    dweights.c = a->ds;
    times_transposed(a->keys_t, a->ld, a->work, &scores);
    times_transposed(a->values_t, a->ld, a->work, &dweights);
    for (size_t r = 0; r < rows; r++)
        backward_row(a, i, r, keys);
}

/* Such a block's part of all three gradients. */
static void backward_block(const pair *a, size_t i, size_t rows)
{
    const size_t C = a->C, C3 = 3 * C, D = a->D, keys = i + rows;
    const strided q = { .x = pl_storage_at(a->q, i * C3, a->storage),
                        .stride = C3,
                        .count = rows,
                        .D = D,
                        .storage = a->storage };
    const strided dout = { .x = a->dout + i * C,
                           .stride = C,
                           .count = rows,
                           .D = D,
                           .storage = PL_STORE_F32 };
    const pl_gemm dq = { .M = rows,
                         .N = D,
                         .K = keys,
                         .a = a->ds,
                         .a_row = a->ld,
                         .a_col = 1,
                         .c = a->dq + i * C3,
                         .c_row = C3 };
    pl_gemm dk = { .M = keys,
                   .N = D,
                   .K = rows,
                   .a = a->ds,
                   .a_row = 1,
                   .a_col = a->ld,
                   .c = a->dk,
                   .c_row = C3,
                   .start = PL_GEMM_KEEP };
    backward_scores(a, i, rows);
    pack_rows(a->queries, &q);
    pack_rows(a->douts, &dout);
    times_rows(a->keys, a->T, a->work, &dq);
    times_rows(a->queries, rows, a->work, &dk);
    dk.a = a->p;
    dk.c = a->dv;
    times_rows(a->douts, rows, a->work, &dk);
}

/* Lays out the scratch, and packs K^T, V^T and K. */
static void pack_pair(pair *a, const void *k, const void *v, float *scratch)
{
    const size_t ld = a->ld, padded_D = round_up(a->D, 32);
    const strided keys = { .x = k,
                           .stride = 3 * a->C,
                           .count = a->T,
                           .D = a->D,
                           .storage = a->storage };
    strided values = keys;
    values.x = v;
    a->p = scratch;
    a->ds = a->p + BLOCK * ld;
    a->queries = a->ds + BLOCK * ld;
    a->douts = a->queries + BLOCK * padded_D;
    a->keys_t = a->douts + BLOCK * padded_D;
    a->values_t = a->keys_t + ld * padded_D;
    a->keys = a->values_t + ld * padded_D;
    pack_transposed(a->keys_t, ld, &keys, a->work);
    pack_transposed(a->values_t, ld, &values, a->work);
    pack_rows(a->keys, &keys);
}

/* Threads split (sequence, head): dk and dv are sums over all its queries. */
void PL_K(attention_bwd)(const pl_attention_bwd *args, int ith, int nth)
{
    const size_t T = args->T, H = args->H, D = args->D, C = H * D,
                 size = block_of(T);
    const pl_storage storage = args->qkv_storage;
    float work[MC_STACK * KC];
    if (D == 0)
        return;
    float *scratch = args->scratch + (size_t)ith * pl_attention_scratch(T, D);
    for (size_t u = (size_t)ith; u < args->B * H; u += (size_t)nth) {
        const size_t b = u / H, h = u % H, at = b * T * C + h * D,
                     at3 = b * T * 3 * C + h * D;
        pair a = {
            .q = pl_storage_at(args->qkv, at3, storage),
            .out = pl_storage_at(args->out, at, args->out_storage),
            .dout = args->dout + at,
            .lse = args->lse + u * T,
            .dq = args->dqkv + at3,
            .dk = args->dqkv + at3 + C,
            .dv = args->dqkv + at3 + 2 * C,
            .work = work,
            .C = C,
            .D = D,
            .T = T,
            .ld = ld_of(T),
            .head = h,
            .sequence = args->dropout.sequence + (uint32_t)b,
            .scale = (float)(1.0 / sqrt((double)D)),
            .storage = storage,
            .out_storage = args->out_storage,
            .dropout = &args->dropout,
        };
        pack_pair(&a, pl_storage_at(args->qkv, at3 + C, storage),
                  pl_storage_at(args->qkv, at3 + 2 * C, storage), scratch);
        for (size_t t = 0; t < T; t++) {
            memset(a.dk + t * 3 * C, 0, D * sizeof *a.dk);
            memset(a.dv + t * 3 * C, 0, D * sizeof *a.dv);
        }
        for (size_t i = 0; i < T; i += size)
            backward_block(&a, i, T - i < size ? T - i : size);
    }
}
