/* tensor_tile.h: the micro-kernel of a product in tensor arithmetic, which is
 * stated in kernels/tensor.h. It takes the place of tile.h's multiply-adds; the
 * packing around it is the same.
 *
 * One sum of a group (c and 8 or 16 products), for a vector of columns:
 *   - E, the largest exponent, as the power 2^E: a product's is the product of
 *     its factors' powers, and the maximum of floats is that of exponents.
 *   - Every term times 2^(bits - E), which is exact, converted to an integer,
 *     which cuts toward zero. Eight products and c fit into 32 bits, sixteen
 *     don't: the sum has two halves.
 *   - The halves added in double, cut to 24 bits, and scaled back.
 * That holds while no power leaves float32's range: while E is at most HIGH;
 * and at least `low`, below which a cut to a multiple of 2^-126 stands for a
 * finer one, unless there is a c that it could cut. Wherever that isn't so,
 * and where something is infinite or NaN, tensor_sum1 takes over, in double.
 */
#ifndef PL_KERNELS_PLAIN_TENSOR_TILE_H
#define PL_KERNELS_PLAIN_TENSOR_TILE_H

#include "kernels/plain/job.h"

/* Rows of a tile: as many as fit the registers, and a divisor of MR, since a
 * packed A has groups of MR rows. Products of half a sum. */
enum { TENSOR_ROWS = MR % 4 ? 3 : 4, TENSOR_HALF = 8 };

/* Exponents, where a float has them. */
enum { EXPONENT = 0x7f800000, EXPONENT_ONE = 0x00800000 };

/* ---- one element ---- */

static inline double tensor_power(int exponent)
{
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline int tensor_exponent(float x, int least)
{
    const int e = (int)(pl_float_bits(x) >> 23 & 255u) - 127;
    return x == 0.0f ? -126 : e > least ? e : least;
}

/* To float32, toward zero; exact in double below 2^1023. */
static inline float tensor_round1(double sum)
{
    const double size = fabs(sum);
    uint64_t bits;
    if (size >= 0x1p128)
        return sum < 0 ? -INFINITY : INFINITY;
    if (size < 0x1p-126)
        return (float)(trunc(sum * 0x1p149) * 0x1p-149) + 0.0f;
    memcpy(&bits, &sum, sizeof bits);
    bits &= ~(uint64_t)0x1fffffff;
    memcpy(&sum, &bits, sizeof sum);
    return (float)sum;
}

/* One sum of c and `count` products a[k * a_col] * b[k * b_row]. */
static __attribute__((noinline)) float tensor_sum1(float c, const float *a,
                                                   size_t a_col, const float *b,
                                                   size_t b_row, size_t count,
                                                   int bits, int least)
{
    int most = tensor_exponent(c, -126);
    double all = (double)c;
    for (size_t k = 0; k < count; k++) {
        const float x = a[k * a_col], y = b[k * b_row];
        const int e = tensor_exponent(x, least) + tensor_exponent(y, least);
        most = e > most ? e : most;
        all += (double)x * (double)y;
    }
    if (!isfinite(all))
        return (float)all;
    const double up = tensor_power(bits - most);
    int64_t sum = (int64_t)((double)c * up);
    for (size_t k = 0; k < count; k++)
        sum += (int64_t)((double)a[k * a_col] * (double)b[k * b_row] * up);
    return tensor_round1((double)sum * tensor_power(most - bits));
}

/* ---- a tile ---- */

/* How a tile's sums are made: `count` products each. */
typedef struct tensor_rule {
    int bits, least;
    size_t count;
} tensor_rule;

/* A tile that is being computed: its sums, and where its next products are. */
typedef struct tensor_tile {
    vf c[TENSOR_ROWS][NV];
    const float *a, *b;
    size_t a_row, a_col, b_row;
} tensor_tile;

/* 2^e(x), where `least` is -14 or -126. */
PL_INLINE vf tensor_powers(vf x, int least)
{
    const vf power = (vf)((vi)x & EXPONENT), smallest = v_all(0x1p-126f);
    if (least == -126)
        return v_max(power, smallest);
    return v_select(x == v_all(0), smallest, v_max(power, v_all(0x1p-14f)));
}

/* The same of `count` elements of A, for each row. */
PL_INLINE void tensor_powers_a(float powers[TENSOR_ROWS][PL_TENSOR_GROUP],
                               const tensor_tile *t, const int rows,
                               size_t a_row, size_t a_col, size_t count,
                               const int least)
{
    const int whole = a_col == 1 && count % VL == 0;
    float some[PL_TENSOR_GROUP] = { 0 };
    for (int i = 0; i < rows; i++) {
        const float *x = whole ? t->a + (size_t)i * a_row : some;
        for (size_t k = 0; k < count && !whole; k++)
            some[k] = t->a[(size_t)i * a_row + k * a_col];
        for (size_t k = 0; k < count; k += VL)
            v_store(powers[i] + k, tensor_powers(v_load(x + k), least));
    }
}

/* The integers low + high, toward zero to float32. */
PL_INLINE vf tensor_round(vi low, vi high)
{
    vf sum;
    for (int i = 0; i < VL; i++) {
        double exact = (double)low[i] + (double)high[i];
        uint64_t bits;
        memcpy(&bits, &exact, sizeof bits);
        bits &= ~(uint64_t)0x1fffffff;
        memcpy(&exact, &bits, sizeof exact);
        sum[i] = (float)exact;
    }
    return sum;
}

/* tensor_add, element by element. */
static __attribute__((noinline)) void tensor_add_slowly(tensor_tile *t,
                                                        int rows, int vectors,
                                                        size_t count,
                                                        const tensor_rule *rule)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            for (int l = 0; l < VL; l++)
                t->c[i][j][l] = tensor_sum1(
                    t->c[i][j][l], t->a + (size_t)i * t->a_row, t->a_col,
                    t->b + j * VL + l, t->b_row, count, rule->bits,
                    rule->least);
}

/* The largest powers of the products and of c. */
PL_INLINE void tensor_most(vf most[TENSOR_ROWS][NV], const tensor_tile *t,
                           const int rows, const int vectors, size_t a_row,
                           size_t a_col, size_t count, const tensor_rule *rule)
{
    float powers[TENSOR_ROWS][PL_TENSOR_GROUP];
    tensor_powers_a(powers, t, rows, a_row, a_col, count, rule->least);
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            most[i][j] = tensor_powers(t->c[i][j], -126);
    }
    for (size_t k = 0; k < count; k++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++) {
            const vf power = tensor_powers(v_load(t->b + k * t->b_row + j * VL),
                                           rule->least);
            PL_UNROLL
            for (int i = 0; i < rows; i++)
                most[i][j] = v_max(power * powers[i][k], most[i][j]);
        }
    }
}

/* sums += products k .. end - 1 times `up`, cut. */
PL_INLINE void tensor_cut(vi sums[TENSOR_ROWS][NV], const tensor_tile *t,
                          vf up[TENSOR_ROWS][NV], const int rows,
                          const int vectors, size_t a_row, size_t a_col,
                          size_t k, size_t end)
{
    for (; k < end; k++) {
        vf b[NV];
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            b[j] = v_load(t->b + k * t->b_row + j * VL);
        PL_UNROLL
        for (int i = 0; i < rows; i++) {
            const vf a = v_all(t->a[(size_t)i * a_row + k * a_col]);
            PL_UNROLL
            for (int j = 0; j < vectors; j++)
                sums[i][j] += v_cut(a * b[j] * up[i][j]);
        }
    }
}

/* Adds one sum of `count` products to each c. All but t is constant where this
 * is inlined, as is one of a_row and a_col; count is, but for the last. */
PL_INLINE void tensor_add(tensor_tile *t, const int rows, const int vectors,
                          size_t a_row, size_t a_col, size_t count,
                          const tensor_rule *rule)
{
    const vf high = v_all(0x1p120f),
             low = (vf)((vi){ 0 } + (rule->bits + 1) * EXPONENT_ONE);
    const size_t middle = count < TENSOR_HALF ? count : TENSOR_HALF;
    vf most[TENSOR_ROWS][NV], up[TENSOR_ROWS][NV];
    vi strange = { 0 }, sums[2][TENSOR_ROWS][NV];
    tensor_most(most, t, rows, vectors, a_row, a_col, count, rule);
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++) {
            const vf c = t->c[i][j];
            strange |= ~(most[i][j] <= high) |
                       ((most[i][j] < low) & (c != v_all(0)));
            most[i][j] = v_max(most[i][j], low);
            up[i][j] = (vf)((uint32_t)(254 + rule->bits) * EXPONENT_ONE -
                            (vu)most[i][j]);
        }
    }
    if (v_any(strange)) {
        tensor_add_slowly(t, rows, vectors, count, rule);
        return;
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++) {
            sums[0][i][j] = v_cut(t->c[i][j] * up[i][j]);
            sums[1][i][j] = (vi){ 0 };
        }
    }
    tensor_cut(sums[0], t, up, rows, vectors, a_row, a_col, 0, middle);
    if (rule->count > TENSOR_HALF)
        tensor_cut(sums[1], t, up, rows, vectors, a_row, a_col, middle, count);
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            t->c[i][j] = tensor_round(sums[0][i][j], sums[1][i][j]) *
                         (vf)((vi)most[i][j] - rule->bits * EXPONENT_ONE);
    }
}

/* rows, vectors, rule, a_row or a_col are constants where this is inlined. */
PL_INLINE void tensor_run(const int rows, const int vectors,
                          const tile_job *job, size_t a_row, size_t a_col,
                          const tensor_rule rule)
{
    tensor_tile t = { .a = job->a,
                      .b = job->b,
                      .a_row = a_row,
                      .a_col = a_col,
                      .b_row = job->b_row };
    size_t k = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            t.c[i][j] = job->from ? v_load(job->from +
                                           (size_t)i * job->from_row + j * VL)
                                  : v_all(0);
    for (; k + rule.count <= job->K; k += rule.count) {
        tensor_add(&t, rows, vectors, a_row, a_col, rule.count, &rule);
        t.a += rule.count * a_col;
        t.b += rule.count * job->b_row;
    }
    if (k < job->K)
        tensor_add(&t, rows, vectors, a_row, a_col, job->K - k, &rule);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            v_store(job->c + (size_t)i * job->c_row + j * VL, t.c[i][j]);
}

static const tensor_rule tensor24_bf16 = { 24, -126, 8 },
                         tensor24_f16 = { 24, -14, 8 },
                         tensor25_bf16 = { 25, -126, 16 },
                         tensor25_f16 = { 25, -14, 16 };

#define TENSOR_TILE(rows, rule)                                                \
    static void tensor_tile_##rows##_##rule(const tile_job *t)                 \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            tensor_run(rows, NV, t, t->a_row, 1, rule);                        \
        else                                                                   \
            tensor_run(rows, NV, t, 1, t->a_col, rule);                        \
    }
#define TENSOR_TILES(rule)                                                     \
    TENSOR_TILE(TENSOR_ROWS, rule)                                             \
    TENSOR_TILE(1, rule)
TENSOR_TILES(tensor24_bf16)
TENSOR_TILES(tensor24_f16)
TENSOR_TILES(tensor25_bf16)
TENSOR_TILES(tensor25_f16)
#undef TENSOR_TILES
#undef TENSOR_TILE

/* Runs the tallest tile that `rows` rows fill, NR columns wide; returns its
 * number of rows. */
static size_t tensor_step(const tile_job *t, size_t rows)
{
    typedef void tile_fn(const tile_job *);
    static tile_fn *const tiles[2][2][2] = {
        { { tensor_tile_1_tensor24_bf16,
            tensor_tile_TENSOR_ROWS_tensor24_bf16 },
          { tensor_tile_1_tensor24_f16,
            tensor_tile_TENSOR_ROWS_tensor24_f16 } },
        { { tensor_tile_1_tensor25_bf16,
            tensor_tile_TENSOR_ROWS_tensor25_bf16 },
          { tensor_tile_1_tensor25_f16,
            tensor_tile_TENSOR_ROWS_tensor25_f16 } },
    };
    const int tall = rows >= TENSOR_ROWS;
    tiles[t->products == PL_PRODUCTS_TENSOR25][t->operands == PL_STORE_F16]
         [tall](t);
    return tall ? TENSOR_ROWS : 1;
}

#endif
