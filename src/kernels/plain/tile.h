/* tile.h: the serial matrix product that gemm.c and attention.c share.
 *
 * C is cut into tiles of MR x NR whose accumulators live in registers. K is
 * cut into blocks; a block of NR columns of B is packed on the stack, A is read
 * where it lies. Each element of C is one chain in ascending k wherever the
 * tiles begin: rows left over use smaller tiles, columns left over run on
 * zeros in a scratch tile, and a cut chain is carried on from C. */
#ifndef PL_KERNELS_PLAIN_TILE_H
#define PL_KERNELS_PLAIN_TILE_H

#include "kernels/plain/plain.h"
#include "kernels/plain/vec.h"

/* MR * NV accumulators, NV vectors of B and one of A fill the registers. */
#if defined(__AVX512F__) && defined(__FMA__)
enum { MR = 12 };
#elif defined(__FMA__)
enum { MR = 6 };
#else
enum { MR = 4 };
#endif
enum { NV = 2, NR = NV * VL, KC = 256, PACK_FROM_ROWS = 16 };

/* Rows of A beside a packed (or plain) panel of B into a tile of C. */
typedef struct tile_job {
    size_t K;
    const float *a;
    size_t a_row, a_col;
    const float *b; /* K rows of NR, b_row apart */
    size_t b_row;
    const float *from; /* what the chains start from; NULL: +0 */
    size_t from_row;
    float *c;
    size_t c_row;
} tile_job;

/* rows, a_row or a_col are constants where this is inlined. */
PL_INLINE void tile_run(const int rows, const tile_job *t, size_t a_row,
                        size_t a_col)
{
    const float *a = t->a, *b = t->b;
    const size_t b_row = t->b_row;
    vf acc[MR][NV];
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            acc[i][j] = t->from ? v_load(t->from + (size_t)i * t->from_row +
                                         (size_t)(j * VL))
                                : v_all(0);
    }
    for (size_t k = t->K; k; k--) {
        vf bv[NV];
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            bv[j] = v_load(b + j * VL);
        PL_UNROLL
        for (int i = 0; i < rows; i++) {
            vf av = v_all(a[(size_t)i * a_row]);
            PL_UNROLL
            for (int j = 0; j < NV; j++)
                acc[i][j] = v_fma(av, bv[j], acc[i][j]);
        }
        a += a_col;
        b += b_row;
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            v_store(t->c + (size_t)i * t->c_row + (size_t)(j * VL), acc[i][j]);
    }
}

#define TILE(rows)                                                             \
    static void tile_##rows(const tile_job *t)                                 \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            tile_run(rows, t, t->a_row, 1);                                    \
        else                                                                   \
            tile_run(rows, t, 1, t->a_col);                                    \
    }
TILE(MR)
#if defined(__FMA__)
TILE(4)
#endif
TILE(2)
TILE(1)
#undef TILE

/* The tallest tile that `rows` rows fill; returns how many it took. */
static size_t tile_step(const tile_job *t, size_t rows)
{
    if (rows >= MR) {
        tile_MR(t);
        return MR;
    }
#if defined(__FMA__)
    if (rows >= 4) {
        tile_4(t);
        return 4;
    }
#endif
    if (rows >= 2) {
        tile_2(t);
        return 2;
    }
    tile_1(t);
    return 1;
}

/* A tile of fewer than NR columns, through a scratch tile padded with 0. */
static size_t tile_step_narrow(const tile_job *t, size_t rows, size_t columns)
{
    float scratch[MR * NR] = { 0 };
    const size_t most = rows < MR ? rows : MR;
    tile_job u = *t;
    for (size_t i = 0; t->from && i < most; i++)
        memcpy(scratch + i * NR, t->from + i * t->from_row,
               columns * sizeof(float));
    u.from = u.c = scratch;
    u.from_row = u.c_row = NR;
    const size_t done = tile_step(&u, rows);
    for (size_t i = 0; i < done; i++)
        memcpy(t->c + i * t->c_row, scratch + i * NR, columns * sizeof(float));
    return done;
}

/* panel[k * NR + n] = b(k, n), columns beyond `columns` zero. */
static void tile_pack(float *panel, const float *b, size_t b_row, size_t b_col,
                      size_t K, size_t columns)
{
    typedef float quad __attribute__((vector_size(16)));
    size_t n = 0;
    if (columns < NR)
        memset(panel, 0, K * NR * sizeof(float));
    if (b_col == 1) {
        for (size_t k = 0; k < K; k++)
            memcpy(panel + k * NR, b + k * b_row, columns * sizeof(float));
        return;
    }
    for (; n + 4 <= columns; n += 4) {
        const float *s = b + n * b_col;
        size_t k = 0;
        for (; k + 4 <= K; k += 4) {
            quad q[4], r[4];
            for (size_t i = 0; i < 4; i++)
                memcpy(&q[i], s + i * b_col + k, sizeof q[i]);
            r[0] = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
            r[1] = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
            r[2] = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
            r[3] = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
            q[0] = __builtin_shufflevector(r[0], r[1], 0, 1, 4, 5);
            q[1] = __builtin_shufflevector(r[0], r[1], 2, 3, 6, 7);
            q[2] = __builtin_shufflevector(r[2], r[3], 0, 1, 4, 5);
            q[3] = __builtin_shufflevector(r[2], r[3], 2, 3, 6, 7);
            for (size_t i = 0; i < 4; i++)
                memcpy(panel + (k + i) * NR + n, &q[i], sizeof q[i]);
        }
        for (; k < K; k++)
            for (size_t i = 0; i < 4; i++)
                panel[k * NR + n + i] = s[i * b_col + k];
    }
    for (; n < columns; n++)
        for (size_t k = 0; k < K; k++)
            panel[k * NR + n] = b[n * b_col + k];
}

/* All of g on this thread. */
static void tile_gemm(const pl_gemm *g)
{
    float panel[KC * NR];
    for (size_t n = 0; n < g->N; n += NR) {
        const size_t columns = g->N - n < NR ? g->N - n : NR;
        size_t k = 0;
        do {
            const size_t K = g->K - k < KC ? g->K - k : KC;
            const float *b = g->b + k * g->b_row + n * g->b_col;
            const int packed = g->b_col != 1 || columns < NR ||
                               g->M >= PACK_FROM_ROWS;
            if (packed)
                tile_pack(panel, b, g->b_row, g->b_col, K, columns);
            tile_job t = { .K = K,
                           .a_row = g->a_row,
                           .a_col = g->a_col,
                           .b = packed ? panel : b,
                           .b_row = packed ? NR : g->b_row,
                           .c_row = g->c_row };
            for (size_t m = 0, done; m < g->M; m += done) {
                t.a = g->a + m * g->a_row + k * g->a_col;
                t.c = g->c + m * g->c_row + n;
                if (k || g->start == PL_GEMM_KEEP) {
                    t.from = t.c;
                    t.from_row = t.c_row;
                } else if (g->start == PL_GEMM_BIAS) {
                    t.from = g->bias + n;
                }
                done = columns == NR ? tile_step(&t, g->M - m)
                                     : tile_step_narrow(&t, g->M - m, columns);
            }
            k += K;
        } while (k < g->K);
    }
}

#endif
