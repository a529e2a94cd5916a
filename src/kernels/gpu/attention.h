/* attention.h: what the kernels of attention share. A group has a tile of 64
 * rows and goes through tiles of 64 columns; T x T numbers never exist:
 *
 *   scores   the products of the tile's rows with the columns, 4 x 4 of them in
 *            each item's registers, over 32 channels at a time
 *   weights  what becomes of them, 64 columns x 64 rows in local memory
 *   mix      the rows' sums over the columns, weights times channels of the
 *            columns, in registers again
 *
 * In the forward pass and for dq, rows are queries and columns are keys; for dk
 * and dv it is the other way round. Item (x, y) has rows 4y .. 4y + 3 and
 * columns x, x + 16, x + 32, x + 48, so that x is a lane, and in a mix channels
 * 4x .. 4x + 3 (and so on, 64 further, where a tile has 128). */
#ifndef PL_KERNELS_GPU_ATTENTION_H
#define PL_KERNELS_GPU_ATTENTION_H

#include "kernels/gpu/lanes.h"
#include "kernels/vmath.h"

enum {
    ATT_TILE = 64,
    ATT_DEPTH = 32, /* channels of a chunk of scores */
    ATT_CHUNK = 2 * ATT_TILE * ATT_DEPTH,
};

/* Rows of one head: `count` of them from `first` on are there. */
typedef struct att_rows {
    GLOBAL const uint8_t *p;
    uint64_t at;  /* of row 0's first channel, in elements */
    uint32_t row; /* elements from row to row */
    uint32_t storage, vector;
} att_rows;

/* Four channels of a row, or `pad` where there are none. plain: float32, heads
 * of a multiple of 4 channels, all aligned. */
PL_INLINE void att_get4(float v[4], const att_rows *r, uint64_t at,
                        uint32_t left, float pad, const int plain)
{
    if (plain) {
        float4 f = MAKE4(pad, pad, pad, pad);
        if (left)
            f = READ((GLOBAL const float4 *)((GLOBAL const float *)r->p + at));
        v[0] = f.x;
        v[1] = f.y;
        v[2] = f.z;
        v[3] = f.w;
    } else {
        get4(v, r->p, at, left, r->storage, r->vector, pad);
    }
}

PL_INLINE uint32_t att_swizzle(uint32_t d, const uint32_t tall)
{
    return (d >> 2 & 7u) * 4u & (tall - 1);
}

/* Rows first .. first + tall - 1, channels d0 .. d0 + 31, transposed. With
 * `spread`, row 16c + x comes to place 4x + c; else each to its own. */
PL_INLINE void att_load_turned(LOCAL_PTR float *room, const att_rows *r,
                               uint32_t first, uint32_t count, uint32_t d0,
                               uint32_t D, const uint32_t tall,
                               const int spread, float pad, const int plain)
{
    UNROLL
    for (uint32_t at = ITEM; at < tall * 8; at += 256) {
        const uint32_t line = spread ? at / 8 % 4 * 16 + at / 32 : at / 8,
                       place = spread ? line % 16 * 4 + line / 16 : line,
                       d = at % 8 * 4;
        const uint32_t left = line < count && d0 + d < D ? D - d0 - d : 0u;
        float v[4];
        att_get4(v, r, r->at + (uint64_t)(first + line) * r->row + d0 + d, left,
                 pad, plain);
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            PUT(room + (d + i) * tall + (place ^ att_swizzle(d, tall)), v[i]);
    }
}

/* s[i][c] = the product of row 4y + i and column x + 16c of the tiles that
 * begin at rows r0 and columns c0; `tall` is 4 * rows * 4. */
PL_INLINE void att_scores(float s[4][4], LOCAL_PTR float *chunk,
                          const att_rows *rows, uint32_t r0, uint32_t n_rows,
                          const att_rows *columns, uint32_t c0,
                          uint32_t n_columns, uint32_t D, const int each,
                          const int plain)
{
    const uint32_t tall = 16u * (uint32_t)each, x = ITEM % 16, y = ITEM / 16;
    LOCAL_PTR float *turned = chunk + ATT_TILE * ATT_DEPTH;
    UNROLL
    for (int i = 0; i < each; i++) {
        UNROLL
        for (int c = 0; c < 4; c++)
            s[i][c] = 0.0f;
    }
    for (uint32_t d0 = 0; d0 < D; d0 += ATT_DEPTH) {
        BARRIER();
        att_load_turned(chunk, rows, r0, n_rows, d0, D, tall, 0, -0.0f,
                        plain);
        att_load_turned(turned, columns, c0, n_columns, d0, D, ATT_TILE, 1,
                        0.0f, plain);
        BARRIER();
        UNROLL
        for (uint32_t d = 0; d < ATT_DEPTH; d++) {
            float a[4], b[4];
            LOCAL_PTR const float *from = chunk + d * tall;
            if (each == 4)
                take4(a, from + (4 * y ^ att_swizzle(d, tall)));
            else
                a[0] = TAKE(from + (y ^ att_swizzle(d, tall)));
            take4(b, turned + d * ATT_TILE + (4 * x ^ att_swizzle(d, ATT_TILE)));
            UNROLL
            for (int i = 0; i < each; i++) {
                UNROLL
                for (int c = 0; c < 4; c++)
                    s[i][c] = fma1(a[i], b[c], s[i][c]);
            }
        }
    }
}

/* Weights: column j of the tile has its rows at weights + j * pitch. */
PL_INLINE uint32_t att_pitch(const int each)
{
    return 16u * (uint32_t)each + 4u;
}

PL_INLINE void att_put(LOCAL_PTR float *weights, float w[4][4], const int each)
{
    const uint32_t x = ITEM % 16, y = ITEM / 16;
    UNROLL
    for (uint32_t c = 0; c < 4; c++) {
        LOCAL_PTR float *to = weights + (x + 16 * c) * att_pitch(each);
        if (each == 4)
            put4(to + 4 * y, w[0][c], w[1][c], w[2][c], w[3][c]);
        else
            PUT(to + y, w[0][c]);
    }
}

/* acc[i][4g + e] += the sum over the tile's columns, ascending, of their weight
 * with row 4y + i times their channel d0 + 64g + 4x + e. Begins and ends with
 * all items together. */
PL_INLINE void att_mix(float acc[4][8], LOCAL_PTR const float *weights,
                       LOCAL_PTR float *chunk, const att_rows *columns,
                       uint32_t c0, uint32_t n_columns, uint32_t d0, uint32_t D,
                       const int each, const int fours, const int plain)
{
    const uint32_t wide = 64u * (uint32_t)fours, many = ATT_CHUNK / wide,
                   x = ITEM % 16, y = ITEM / 16;
    for (uint32_t j0 = 0; j0 < ATT_TILE; j0 += many) {
        BARRIER();
        UNROLL
        for (uint32_t at = ITEM; at < ATT_CHUNK / 4; at += 256) {
            const uint32_t j = j0 + at / (wide / 4), d = at % (wide / 4) * 4;
            const uint32_t left = j < n_columns && d0 + d < D ? D - d0 - d : 0u;
            float v[4];
            att_get4(v, columns,
                     columns->at + (uint64_t)(c0 + j) * columns->row + d0 + d,
                     left, 0.0f, plain);
            put4(chunk + 4 * at, v[0], v[1], v[2], v[3]);
        }
        BARRIER();
        UNROLL
        for (uint32_t j = 0; j < many; j++) {
            float w[4], v[8];
            LOCAL_PTR const float *from = weights + (j0 + j) * att_pitch(each);
            if (each == 4)
                take4(w, from + 4 * y);
            else
                w[0] = TAKE(from + y);
            take4(v, chunk + j * wide + 4 * x);
            if (fours == 2)
                take4(v + 4, chunk + j * wide + 64 + 4 * x);
            UNROLL
            for (int i = 0; i < each; i++) {
                UNROLL
                for (int e = 0; e < 4 * fours; e++)
                    acc[i][e] = fma1(w[i], v[e], acc[i][e]);
            }
        }
    }
    BARRIER();
}

PL_INLINE void att_clear(float acc[4][8])
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (int e = 0; e < 8; e++)
            acc[i][e] = 0.0f;
    }
}

/* Stores rows 4y .. of sums, each times its factor, + 0. */
PL_INLINE void att_store(float acc[4][8], const float factor[4],
                         GLOBAL uint8_t *p, uint64_t at, uint32_t row,
                         uint32_t count, uint32_t d0, uint32_t D,
                         uint32_t storage, uint32_t vector, const int each,
                         const int fours)
{
    const uint32_t x = ITEM % 16, y = ITEM / 16;
    UNROLL
    for (int i = 0; i < each; i++) {
        const uint32_t r = (uint32_t)each * y + (uint32_t)i;
        UNROLL
        for (int g = 0; g < fours; g++) {
            const uint32_t d = d0 + 64u * (uint32_t)g + 4 * x;
            float v[4];
            UNROLL
            for (int e = 0; e < 4; e++)
                v[e] = acc[i][4 * g + e] * factor[i] + 0.0f;
            if (r < count && d < D)
                set4(p, at + (uint64_t)r * row + d, v, D - d, storage, vector);
        }
    }
}

#endif
