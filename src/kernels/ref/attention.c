/* attention.c: causal attention, one score at a time. Weights are computed
 * again wherever they are needed, so no row of them is stored; sums are kept
 * for PART columns at a time. */
#include "kernels/ref/ref.h"

#include <math.h>

enum { PART = 64 };

/* Rows of stored values. */
typedef struct rows {
    const void *at;
    pl_storage storage;
} rows;

static double get(rows x, size_t i)
{
    return (double)pl_storage_get(x.at, i, x.storage);
}

static double rounded(double x, pl_storage storage)
{
    return storage == PL_STORE_F32
               ? x
               : (double)pl_storage_round((float)x, storage);
}

/* Of D elements each, from x[i] and y[j] on. */
static double dot(pl_products products, rows x, size_t i, rows y, size_t j,
                  size_t D)
{
    ref_sum sum = pl_ref_sum_begin(products, x.storage, 0);
    for (size_t d = 0; d < D; d++)
        pl_ref_sum_add(&sum, get(x, i + d), get(y, j + d));
    return pl_ref_sum_total(&sum);
}

/* Sums of PART columns, from 0. */
static void sums_begin(ref_sum sums[PART], pl_products products,
                       pl_storage storage)
{
    for (size_t d = 0; d < PART; d++)
        sums[d] = pl_ref_sum_begin(products, storage, 0);
}

/* One query row against keys 0 .. position. */
static void forward_row(const pl_attention *args, size_t b, size_t i, size_t h)
{
    const size_t first = args->positions ? (size_t)args->positions[b]
                                         : args->first;
    const size_t D = args->D, position = first + i, row = args->kv_row;
    const size_t query = b * args->queries + i, g = h * args->KV / args->H;
    const size_t at_q = query * args->q_row + h * D,
                 at_k = b * args->keys * row + g * D,
                 at_out = query * args->H * D + h * D;
    const rows q = { args->q, args->qkv_storage },
               k = { args->k, args->qkv_storage },
               v = { args->v, args->qkv_storage };
    const pl_products how = pl_products_of(args->products, q.storage,
                                           k.storage);
    const double scale = (double)(float)(1 / sqrt((double)D));
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j <= position; j++)
        max = fmax(max, dot(how, q, at_q, k, at_k + j * row, D) * scale);
    for (size_t j = 0; j <= position; j++)
        sum += exp(dot(how, q, at_q, k, at_k + j * row, D) * scale - max);
    for (size_t begin = 0; begin < D; begin += PART) {
        const size_t width = D - begin < PART ? D - begin : PART;
        ref_sum mix[PART];
        sums_begin(mix, how, v.storage);
        for (size_t j = 0; j <= position; j++) {
            const double s = dot(how, q, at_q, k, at_k + j * row, D) * scale;
            const double weight = rounded(ref_dropped(&args->dropout, h << 20,
                                                      b, position, j,
                                                      exp(s - max)),
                                          args->qkv_storage);
            for (size_t d = 0; d < width; d++)
                pl_ref_sum_add(&mix[d], weight,
                               get(v, at_k + j * row + begin + d));
        }
        for (size_t d = 0; d < width; d++)
            pl_storage_put(args->out, at_out + begin + d,
                           (float)(pl_ref_sum_total(&mix[d]) / sum) + 0.0f,
                           args->out_storage);
    }
    if (args->lse)
        args->lse[(b * args->H + h) * args->queries + i] = (float)(max +
                                                                   log(sum));
}

void pl_ref_attention(const pl_attention *args, int ith, int nth)
{
    (void)nth;
    if (ith || args->D == 0)
        return;
    for (size_t b = 0; b < args->B; b++)
        for (size_t h = 0; h < args->H; h++)
            for (size_t i = 0; i < args->queries; i++)
                forward_row(args, b, i, h);
}

/* Where the elements of one sequence and head begin, and from row to row. */
typedef struct places {
    size_t q, k, v, out, row, out_row;
} places;

static places places_of(const pl_attention_bwd *args, size_t b, size_t h)
{
    const size_t H = args->H, KV = args->KV, D = args->D, g = h * KV / H;
    const size_t row = (H + 2 * KV) * D, first = b * args->T * row;
    return (places){ .q = first + h * D,
                     .k = first + (H + g) * D,
                     .v = first + (H + KV + g) * D,
                     .out = b * args->T * H * D + h * D,
                     .row = row,
                     .out_row = H * D };
}

static pl_products products_of(const pl_attention_bwd *args)
{
    return pl_products_of(args->products, args->qkv_storage,
                          args->dout_storage);
}

/* P and ds of query i and key j of (b, h), rounded; +0 where j is hidden. */
static void weight_and_gradient(const pl_attention_bwd *args, size_t b,
                                size_t h, size_t i, size_t j, double *weight,
                                double *dscore)
{
    const places at = places_of(args, b, h);
    const size_t D = args->D, out_i = at.out + i * at.out_row;
    *weight = *dscore = 0;
    if (j > i)
        return;
    const rows qkv = { args->qkv, args->qkv_storage },
               out = { args->out, args->out_storage },
               dout = { args->dout, args->dout_storage };
    const double scale = (double)(float)(1 / sqrt((double)D));
    const double lse = (double)args->lse[(b * args->H + h) * args->T + i];
    const pl_products how = products_of(args);
    const double s = dot(how, qkv, at.q + i * at.row, qkv, at.k + j * at.row,
                         D);
    const double p = exp(s * scale - lse);
    const double dp = ref_dropped(
        &args->dropout, h << 20, b, i, j,
        dot(how, dout, out_i, qkv, at.v + j * at.row, D));
    const double delta = dot(PL_PRODUCTS_EXACT, dout, out_i, out, out_i, D);
    *weight = rounded(ref_dropped(&args->dropout, h << 20, b, i, j, p),
                      args->qkv_storage);
    *dscore = rounded(p * (dp - delta) * scale, args->qkv_storage);
}

static void put(const pl_attention_bwd *args, size_t at, ref_sum *sum,
                size_t count)
{
    for (size_t d = 0; d < count; d++)
        pl_storage_put(args->dqkv, at + d,
                       (float)pl_ref_sum_total(&sum[d]) + 0.0f,
                       args->dqkv_storage);
}

/* Row t of dq, over keys up to t. */
static void backward_query(const pl_attention_bwd *args, size_t b, size_t h,
                           size_t t)
{
    const places at = places_of(args, b, h);
    const rows qkv = { args->qkv, args->qkv_storage };
    double weight, dscore;
    for (size_t begin = 0; begin < args->D; begin += PART) {
        const size_t rest = args->D - begin, width = rest < PART ? rest : PART;
        ref_sum sum[PART];
        sums_begin(sum, products_of(args), args->qkv_storage);
        for (size_t j = 0; j <= t; j++) {
            weight_and_gradient(args, b, h, t, j, &weight, &dscore);
            for (size_t d = 0; d < width; d++)
                pl_ref_sum_add(&sum[d], dscore,
                               get(qkv, at.k + j * at.row + begin + d));
        }
        put(args, at.q + t * at.row + begin, sum, width);
    }
}

/* Row t of dk and dv, over the heads of group g and queries from t on; groups
 * of TENSOR begin with query 0. */
static void backward_key(const pl_attention_bwd *args, size_t b, size_t g,
                         size_t t)
{
    const size_t heads = args->H / args->KV, first = g * heads;
    const rows qkv = { args->qkv, args->qkv_storage },
               dout = { args->dout, args->dout_storage };
    const pl_products how = products_of(args);
    double weight, dscore;
    for (size_t begin = 0; begin < args->D; begin += PART) {
        const size_t rest = args->D - begin, width = rest < PART ? rest : PART;
        ref_sum sum_k[PART], sum_v[PART];
        sums_begin(sum_k, how, args->qkv_storage);
        sums_begin(sum_v, how, args->qkv_storage);
        for (size_t h = first; h < first + heads; h++) {
            const places at = places_of(args, b, h);
            for (size_t i = how == PL_PRODUCTS_EXACT ? t : 0; i < args->T;
                 i++) {
                weight_and_gradient(args, b, h, i, t, &weight, &dscore);
                const size_t q = at.q + i * at.row + begin,
                             o = at.out + i * at.out_row + begin;
                for (size_t d = 0; d < width; d++) {
                    pl_ref_sum_add(&sum_k[d], dscore, get(qkv, q + d));
                    pl_ref_sum_add(&sum_v[d], weight, get(dout, o + d));
                }
            }
            for (size_t d = 0; d < width; d++) {
                pl_ref_sum_end_group(&sum_k[d]);
                pl_ref_sum_end_group(&sum_v[d]);
            }
        }
        const places at = places_of(args, b, first);
        put(args, at.k + t * at.row + begin, sum_k, width);
        put(args, at.v + t * at.row + begin, sum_v, width);
    }
}

void pl_ref_attention_bwd(const pl_attention_bwd *args, int ith, int nth)
{
    (void)nth;
    if (ith || args->D == 0 || args->H == 0)
        return;
    for (size_t b = 0; b < args->B; b++)
        for (size_t t = 0; t < args->T; t++) {
            for (size_t h = 0; h < args->H; h++)
                backward_query(args, b, h, t);
            for (size_t g = 0; g < args->KV; g++)
                backward_key(args, b, g, t);
        }
}
