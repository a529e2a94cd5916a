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

/* Of D elements each, from x[i] and y[j] on. */
static double dot(rows x, size_t i, rows y, size_t j, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += get(x, i + d) * get(y, j + d);
    return sum;
}

/* One query row against keys 0 .. position. */
static void forward_row(const pl_attention *args, size_t b, size_t i, size_t h)
{
    const size_t D = args->D, position = args->first + i, row = args->kv_row;
    const size_t query = b * args->queries + i;
    const size_t at_q = query * args->q_row + h * D,
                 at_k = b * args->keys * row + h * D,
                 at_out = query * args->H * D + h * D;
    const rows q = { args->q, args->qkv_storage },
               k = { args->k, args->qkv_storage },
               v = { args->v, args->qkv_storage };
    const double scale = (double)(float)(1 / sqrt((double)D));
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j <= position; j++)
        max = fmax(max, dot(q, at_q, k, at_k + j * row, D) * scale);
    for (size_t j = 0; j <= position; j++)
        sum += exp(dot(q, at_q, k, at_k + j * row, D) * scale - max);
    for (size_t begin = 0; begin < D; begin += PART) {
        const size_t width = D - begin < PART ? D - begin : PART;
        double mix[PART] = { 0 };
        for (size_t j = 0; j <= position; j++) {
            const double s = dot(q, at_q, k, at_k + j * row, D) * scale;
            const double weight = ref_dropped(&args->dropout, h << 20, b,
                                              position, j, exp(s - max));
            for (size_t d = 0; d < width; d++)
                mix[d] += weight * get(v, at_k + j * row + begin + d);
        }
        for (size_t d = 0; d < width; d++)
            pl_storage_put(args->out, at_out + begin + d, (float)(mix[d] / sum),
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

/* drop(p) and ds of query i and key j of (b, h). */
static void weight_and_gradient(const pl_attention_bwd *args, size_t b,
                                size_t h, size_t i, size_t j, double *weight,
                                double *dscore)
{
    const size_t D = args->D, C = args->H * D;
    const rows qkv = { args->qkv, args->qkv_storage },
               out = { args->out, args->out_storage },
               dout = { args->dout, PL_STORE_F32 };
    const size_t qi = (b * args->T + i) * 3 * C + h * D,
                 kj = (b * args->T + j) * 3 * C + C + h * D,
                 at = (b * args->T + i) * C + h * D;
    const double scale = (double)(float)(1 / sqrt((double)D));
    const double lse = (double)args->lse[(b * args->H + h) * args->T + i];
    const double p = exp(dot(qkv, qi, qkv, kj, D) * scale - lse);
    const double dp = ref_dropped(&args->dropout, h << 20, b, i, j,
                                  dot(dout, at, qkv, kj + C, D));
    *weight = ref_dropped(&args->dropout, h << 20, b, i, j, p);
    *dscore = p * (dp - dot(dout, at, out, at, D)) * scale;
}

/* Row t of dq (over keys up to t), dk and dv (over queries from t on). */
static void backward_row(const pl_attention_bwd *args, size_t b, size_t h,
                         size_t t)
{
    const size_t T = args->T, D = args->D, C = args->H * D;
    const rows qkv = { args->qkv, args->qkv_storage };
    const size_t q = b * T * 3 * C + h * D, k = q + C;
    const float *dout = args->dout + b * T * C + h * D;
    float *dq = args->dqkv + (b * T + t) * 3 * C + h * D;
    float *dk = dq + C, *dv = dk + C;
    double weight, dscore;
    for (size_t begin = 0; begin < D; begin += PART) {
        const size_t width = D - begin < PART ? D - begin : PART;
        double sum_q[PART] = { 0 }, sum_k[PART] = { 0 }, sum_v[PART] = { 0 };
        for (size_t j = 0; j <= t; j++) {
            weight_and_gradient(args, b, h, t, j, &weight, &dscore);
            for (size_t d = 0; d < width; d++)
                sum_q[d] += dscore * get(qkv, k + j * 3 * C + begin + d);
        }
        for (size_t i = t; i < T; i++) {
            weight_and_gradient(args, b, h, i, t, &weight, &dscore);
            for (size_t d = 0; d < width; d++) {
                sum_k[d] += dscore * get(qkv, q + i * 3 * C + begin + d);
                sum_v[d] += weight * (double)dout[i * C + begin + d];
            }
        }
        for (size_t d = 0; d < width; d++) {
            dq[begin + d] = (float)sum_q[d];
            dk[begin + d] = (float)sum_k[d];
            dv[begin + d] = (float)sum_v[d];
        }
    }
}

void pl_ref_attention_bwd(const pl_attention_bwd *args, int ith, int nth)
{
    (void)nth;
    if (ith || args->D == 0)
        return;
    for (size_t b = 0; b < args->B; b++)
        for (size_t h = 0; h < args->H; h++)
            for (size_t t = 0; t < args->T; t++)
                backward_row(args, b, h, t);
}
