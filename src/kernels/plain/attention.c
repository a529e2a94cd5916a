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
 * For each block: S = Q K^T by the tiles of tile.h; P = softmax(S) row by row;
 * out = P V, divided by the row's sum. Whole rows of scores are held (up to
 * PL_ATTENTION_BLOCK of them), so that the softmax is the plain one, not the
 * online one of FlashAttention; a T x T matrix never exists. K and V of a head
 * are packed once for all its blocks, and for all query heads that share them.
 * attention_bwd.c has the gradients.
 *
 * The size of a block doesn't change a bit: every sum has the canonical order
 * of kernels.h (a chain over keys or queries, or 16 lanes over keys), and
 * masked weights add +0 to it. */
#include "kernels/plain/attention_bf16.h"
#include "kernels/plain/share.h"

/* Queries of a block: few, so that their scores stay in the cache. */
enum { SHORT_BLOCK = 24, FEW_QUERIES = 4 };
#if defined(PL_PAIRS_AMX)
enum { WORD_BLOCK = 2 * AMX_SIDE };
#else
enum { WORD_BLOCK = SHORT_BLOCK };
#endif

static size_t first_of(const pl_attention *args, size_t b)
{
    return args->positions ? (size_t)args->positions[b] : args->first;
}

/* One (sequence, head), packed. */
typedef struct head {
    const pl_attention *args;
    size_t b, h;
    size_t group;  /* the head of keys and values */
    size_t first;  /* position of the first query */
    float *scores; /* [BLOCK, ld]: S, then P */
    float *pv;     /* [BLOCK, padded D]: P V */
    float *keys, *values;
    size_t packed; /* how many of them; 0: none so far */
    pl_products products;
    int by_words; /* products are attention_bf16.h's */
} head;

static pl_products products_of(const pl_attention *args)
{
    return pl_products_of(args->products, args->qkv_storage, args->qkv_storage);
}

/* Lays out the scratch; there is no head yet. */
static head head_make(const pl_attention *args, float *scratch)
{
    const size_t ld = ld_of(args->keys), padded_D = round_up(args->D, 32);
    head a = { .args = args,
               .scores = scratch,
               .pv = scratch + 2 * BLOCK * ld,
               .products = products_of(args),
               .by_words = by_words(args->qkv_storage, args->D,
                                    products_of(args)) };
    a.keys = a.pv + 2 * BLOCK * padded_D;
    a.values = a.keys + ld * padded_D;
    return a;
}

/* Takes on head h of sequence b; what is packed stays if it is of the same
 * group. */
static void begin_head(head *a, size_t b, size_t h)
{
    const size_t group = h / (a->args->H / a->args->KV);
    if (a->b != b || a->group != group)
        a->packed = 0;
    a->b = b;
    a->h = h;
    a->group = group;
    a->first = first_of(a->args, b);
}

/* The first `count` rows of its keys or values. */
static strided rows_at(const head *a, const void *x, size_t count)
{
    const pl_attention *args = a->args;
    return (strided){ .x = pl_storage_at(x,
                                         a->b * args->keys * args->kv_row +
                                             a->group * args->D,
                                         args->qkv_storage),
                      .stride = args->kv_row,
                      .count = count,
                      .D = args->D,
                      .storage = args->qkv_storage };
}

/* Packs the keys and values that queries up to `last` see. */
static void pack_head(head *a, size_t last, float *work)
{
    const size_t count = a->first + last;
    const strided k = rows_at(a, a->args->k, count),
                  v = rows_at(a, a->args->v, count);
    if (a->packed >= count)
        return;
    a->packed = count;
#if defined(PL_PAIRS)
    if (a->by_words) {
        words_turned((uint32_t *)(void *)a->keys, &k);
        words_woven((uint32_t *)(void *)a->values, &v, word_vectors(k.D));
        return;
    }
#endif
    pack_transposed(a->keys, ld_of(a->args->keys), &k, work);
    pack_rows(a->values, &v);
}

/* The softmax of a row of scores, not yet divided by its sum, nor rounded;
 * returns 1 / sum. */
static float softmax_row(const head *a, size_t i, size_t r, size_t keys)
{
    const pl_attention *args = a->args;
    const size_t position = a->first + i + r, count = position + 1;
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

/* S of queries i .. i + rows - 1. */
static void block_scores(const head *a, size_t i, size_t rows, float *work)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, keys = a->first + i + rows,
                 ld = ld_of(args->keys),
                 at = (a->b * args->queries + i) * args->q_row + a->h * D;
    const void *q = pl_storage_at(args->q, at, args->qkv_storage);
#if defined(PL_PAIRS)
    if (a->by_words) {
        word_scores(a->scores, ld, keys,
                    &(strided){ q, args->q_row, rows, D, PL_STORE_BF16 },
                    (const uint32_t *)(const void *)a->keys,
                    (uint32_t *)(void *)work);
        return;
    }
#endif
    const pl_gemm scores = { .M = rows,
                             .N = round_up(keys, NR),
                             .K = D,
                             .a = q,
                             .a_row = args->q_row,
                             .a_col = 1,
                             .a_storage = args->qkv_storage,
                             .b_storage = args->qkv_storage,
                             .products = a->products,
                             .c = a->scores,
                             .c_row = ld };
    times_transposed(a->keys, ld, work, &scores);
}

/* P V, where P is still to be rounded. */
static void block_mix(const head *a, size_t i, size_t rows, float *work)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, keys = a->first + i + rows,
                 ld = ld_of(args->keys), padded_D = round_up(D, 32);
#if defined(PL_PAIRS)
    if (a->by_words) {
        uint32_t *words = (uint32_t *)(void *)a->scores;
        const word_job mix = { .pairs = pairs_count(keys),
                               .a = words,
                               .a_row = weight_row(ld),
                               .a_col = 1,
                               .b = (const uint32_t *)(void *)a->values,
                               .c = a->pv,
                               .c_row = padded_D };
        for (size_t r = 0; r < rows; r++)
            words_of_weights(words + r * mix.a_row, a->scores + r * ld, keys);
        word_product(&mix, rows, D, word_vectors(D), pairs_count(a->packed));
        return;
    }
#endif
    const pl_gemm product = { .M = rows,
                              .N = D,
                              .K = keys,
                              .a = a->scores,
                              .a_row = ld,
                              .a_col = 1,
                              .b_storage = args->qkv_storage,
                              .products = a->products,
                              .c = a->pv,
                              .c_row = padded_D };
    for (size_t r = 0; r < rows; r++)
        round_weights(a->scores + r * ld, a->first + i + r + 1,
                      args->qkv_storage);
    times_rows(a->values, a->packed, work, &product);
}

/* One block of queries: S, P, and P V. */
static void forward_block(const head *a, size_t i, size_t rows, float *work)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, C = args->H * D, padded_D = round_up(D, 32),
                 keys = round_up(a->first + i + rows, 32),
                 query = a->b * args->queries + i;
    float inverse[BLOCK];
    block_scores(a, i, rows, work);
    for (size_t r = 0; r < rows; r++)
        inverse[r] = softmax_row(a, i, r, keys);
    block_mix(a, i, rows, work);
    /* Appended zeros turn a sum of -0 into +0; adding 0 always does. */
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < D; c++)
            a->pv[r * padded_D + c] = a->pv[r * padded_D + c] * inverse[r] +
                                      0.0f;
    narrow_rows(
        pl_storage_at(args->out, query * C + a->h * D, args->out_storage), C,
        a->pv, padded_D, rows, D, args->out_storage);
}

/* A single query, as in decoding, in exact arithmetic or AMX's: nothing is
 * packed, keys and values are read in place. */
PL_INLINE void forward_one(const head *a, size_t i, flat_kind kind)
{
    const pl_attention *args = a->args;
    const size_t D = args->D, keys = a->first + i + 1,
                 query = a->b * args->queries + i;
    const strided k = rows_at(a, args->k, keys), v = rows_at(a, args->v, keys);
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
        axpy_rows(a->scores + j, q,
                  pl_storage_at(k.x, j * k.stride, kind.storage), 1, D, 1,
                  kind);
    const float inverse = softmax_row(a, i, 0, keys);
    round_weights(a->scores, keys, kind.storage);
    axpy_rows(pv, a->scores, v.x, v.stride, keys, D, kind);
    for (size_t d = 0; d < D; d++)
        pv[d] = pv[d] * inverse + 0.0f;
    narrow_rows(pl_storage_at(args->out, query * args->H * D + a->h * D,
                              args->out_storage),
                0, pv, 0, 1, D, args->out_storage);
}

/* The same for each storage. */
static void forward_flat(const head *a, size_t i)
{
    static const flat_kind f32 = { PL_STORE_F32, PL_STORE_F32,
                                   PL_PRODUCTS_EXACT },
                           bf16 = { PL_STORE_BF16, PL_STORE_BF16,
                                    PL_PRODUCTS_EXACT },
                           f16 = { PL_STORE_F16, PL_STORE_F16,
                                   PL_PRODUCTS_EXACT },
                           amx = { PL_STORE_BF16, PL_STORE_BF16,
                                   PL_PRODUCTS_AMX };
    if (a->products == PL_PRODUCTS_AMX)
        forward_one(a, i, amx);
    else if (a->args->qkv_storage == PL_STORE_BF16)
        forward_one(a, i, bf16);
    else if (a->args->qkv_storage == PL_STORE_F16)
        forward_one(a, i, f16);
    else
        forward_one(a, i, f32);
}

/* Few queries: threads take heads in turn. */
static void forward_few(const pl_attention *args, int ith, int nth,
                        float *scratch)
{
    for (size_t u = (size_t)ith; u < args->B * args->H; u += (size_t)nth) {
        head a = head_make(args, scratch);
        begin_head(&a, u / args->H, u % args->H);
        for (size_t i = 0; i < args->queries; i++)
            forward_flat(&a, i);
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
    const size_t size = by_words(args->qkv_storage, args->D, products_of(args))
                            ? WORD_BLOCK
                            : SHORT_BLOCK,
                 blocks = (args->queries + size - 1) / size,
                 heads = args->B * args->H;
    float work[MC_STACK * KC];
    if (args->D == 0 || blocks == 0 || heads == 0)
        return;
    float *scratch = args->scratch +
                     (size_t)ith * pl_attention_scratch(args->keys, args->D);
    if (args->queries <= FEW_QUERIES &&
        (products_of(args) == PL_PRODUCTS_EXACT ||
         products_of(args) == PL_PRODUCTS_AMX)) {
        forward_few(args, ith, nth, scratch);
        return;
    }
    const size_t first = first_of(args, 0),
                 end = unit_at(heads, blocks, first, size, ith + 1, nth);
    size_t unit = unit_at(heads, blocks, first, size, ith, nth);
    head a = head_make(args, scratch);
    begin_words(a.by_words);
    while (unit < end) {
        const size_t pair = unit / blocks, stop = (pair + 1) * blocks,
                     last = stop < end ? stop : end;
        const size_t queries = (last - pair * blocks) * size;
        begin_head(&a, pair / args->H, pair % args->H);
        pack_head(&a, queries < args->queries ? queries : args->queries, work);
        for (; unit < last; unit++) {
            const size_t i = unit % blocks * size, rest = args->queries - i;
            forward_block(&a, i, rest < size ? rest : size, work);
        }
    }
    end_words(a.by_words);
}
