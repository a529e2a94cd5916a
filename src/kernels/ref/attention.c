/* attention.c: causal attention, one score at a time. Weights are computed
 * again wherever they are needed, so no row of them is stored; sums are kept
 * for PART columns at a time. */
#include "kernels/ref/ref.h"

#include <math.h>

enum { PART = 64 };

static double dot(const float *x, const float *y, size_t D)
{
    double sum = 0;
    for (size_t d = 0; d < D; d++)
        sum += (double)x[d] * (double)y[d];
    return sum;
}

/* One query row against keys 0 .. position; k and v are one head's. */
static void forward_row(const pl_attention *args, size_t b, size_t i, size_t h)
{
    const size_t D = args->D, position = args->first + i, row = args->kv_row;
    const size_t query = b * args->queries + i, key = b * args->keys;
    const float *q = args->q + query * args->q_row + h * D;
    const float *k = args->k + key * row + h * D;
    const float *v = args->v + key * row + h * D;
    float *out = args->out + query * args->H * D + h * D;
    const double scale = (double)(float)(1 / sqrt((double)D));
    double max = -INFINITY, sum = 0;
    for (size_t j = 0; j <= position; j++)
        max = fmax(max, dot(q, k + j * row, D) * scale);
    for (size_t j = 0; j <= position; j++)
        sum += exp(dot(q, k + j * row, D) * scale - max);
    for (size_t begin = 0; begin < D; begin += PART) {
        const size_t width = D - begin < PART ? D - begin : PART;
        double mix[PART] = { 0 };
        for (size_t j = 0; j <= position; j++) {
            const double p = exp(dot(q, k + j * row, D) * scale - max);
            const double weight = ref_dropped(&args->dropout, h << 20, b,
                                              position, j, p);
            for (size_t d = 0; d < width; d++)
                mix[d] += weight * (double)v[j * row + begin + d];
        }
        for (size_t d = 0; d < width; d++)
            out[begin + d] = (float)(mix[d] / sum);
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
static void weight_and_slope(const pl_attention_bwd *args, size_t b, size_t h,
                             size_t i, size_t j, double *weight, double *slope)
{
    const size_t D = args->D, C = args->H * D;
    const float *qi = args->qkv + (b * args->T + i) * 3 * C + h * D;
    const float *kj = args->qkv + (b * args->T + j) * 3 * C + C + h * D;
    const float *dout = args->dout + (b * args->T + i) * C + h * D;
    const float *out = args->out + (b * args->T + i) * C + h * D;
    const double scale = (double)(float)(1 / sqrt((double)D));
    const double lse = (double)args->lse[(b * args->H + h) * args->T + i];
    const double p = exp(dot(qi, kj, D) * scale - lse);
    const double dp = ref_dropped(&args->dropout, h << 20, b, i, j,
                                  dot(dout, kj + C, D));
    *weight = ref_dropped(&args->dropout, h << 20, b, i, j, p);
    *slope = p * (dp - dot(dout, out, D)) * scale;
}

/* Row t of dq (over keys up to t), dk and dv (over queries from t on). */
static void backward_row(const pl_attention_bwd *args, size_t b, size_t h,
                         size_t t)
{
    const size_t T = args->T, D = args->D, C = args->H * D;
    const float *q = args->qkv + b * T * 3 * C + h * D, *k = q + C;
    const float *dout = args->dout + b * T * C + h * D;
    float *dq = args->dqkv + (b * T + t) * 3 * C + h * D;
    float *dk = dq + C, *dv = dk + C;
    double weight, slope;
    for (size_t begin = 0; begin < D; begin += PART) {
        const size_t width = D - begin < PART ? D - begin : PART;
        double sum_q[PART] = { 0 }, sum_k[PART] = { 0 }, sum_v[PART] = { 0 };
        for (size_t j = 0; j <= t; j++) {
            weight_and_slope(args, b, h, t, j, &weight, &slope);
            for (size_t d = 0; d < width; d++)
                sum_q[d] += slope * (double)k[j * 3 * C + begin + d];
        }
        for (size_t i = t; i < T; i++) {
            weight_and_slope(args, b, h, i, t, &weight, &slope);
            for (size_t d = 0; d < width; d++) {
                sum_k[d] += slope * (double)q[i * 3 * C + begin + d];
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
