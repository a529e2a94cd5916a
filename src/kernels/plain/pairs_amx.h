/* pairs_amx.h: products by Intel's AMX, on words of two bfloat16s (pairs.h).
 *
 * TDPBF16PS multiplies a tile of 16 rows of A, 16 words each, with one of 16
 * rows of B, and adds the result to a tile of 16 x 16 sums: one group of 32 k
 * for each sum, in the arithmetic that tensor.h calls amx. Four tiles of sums
 * share two of A and two of B:
 *
 *                     b_row words
 *                   +------+------+
 *                   |  B0  |  B1  |   16 pairs of k, of 16 columns each
 *                   +------+------+
 *      +------+     +------+------+
 *      |  A0  |     | C00  | C01  |   16 rows each
 *      +------+     +------+------+
 *      |  A1  |     | C10  | C11  |
 *      +------+     +------+------+
 *      16 pairs of k
 *
 * Instructions are written out, since the intrinsics of some compilers don't
 * say that they read and write memory. A thread has its tiles from the first
 * product of an op to the last (base/amx.h). */
#ifndef PL_KERNELS_PLAIN_PAIRS_AMX_H
#define PL_KERNELS_PLAIN_PAIRS_AMX_H

#include "base/amx.h"
#include "kernels/plain/pairs.h"

#if defined(PL_PAIRS_AMX)

enum { AMX_SIDE = PL_AMX_SIDE };

#define AMX_LOAD(tile, from, row)                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                        \
                     :                                                         \
                     : "r"((const void *)(from)), "r"((row) * sizeof(float))   \
                     : "memory")
#define AMX_STORE(tile, to, row)                                               \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                    \
                     :                                                         \
                     : "r"((void *)(to)), "r"((row) * sizeof(float))           \
                     : "memory")
#define AMX_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : : : "memory")
#define AMX_ADD(c, a, b)                                                       \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c            \
                     :                                                         \
                     :                                                         \
                     : "memory")

/* A block of one or two by one or two tiles of C; strides are in words. */
typedef struct amx_job {
    size_t groups; /* of 16 pairs */
    const uint32_t *a;
    size_t a_row;
    const uint32_t *b;
    size_t b_row;
    const float *from; /* initial values of the chains; NULL: +0 */
    size_t from_row;   /* 0: all rows begin alike */
    float *c;
    size_t c_row;
} amx_job;

/* tall and wide are constants where this is inlined. */
PL_INLINE void amx_block(const int tall, const int wide, const amx_job *t)
{
    const uint32_t *a = t->a, *b = t->b;
    const size_t a_next = AMX_SIDE * t->a_row, c_next = AMX_SIDE * t->c_row,
                 from_next = AMX_SIDE * t->from_row;
    if (t->from) {
        AMX_LOAD(0, t->from, t->from_row);
        if (wide > 1)
            AMX_LOAD(1, t->from + AMX_SIDE, t->from_row);
        if (tall > 1)
            AMX_LOAD(2, t->from + from_next, t->from_row);
        if (tall > 1 && wide > 1)
            AMX_LOAD(3, t->from + from_next + AMX_SIDE, t->from_row);
    } else {
        AMX_ZERO(0);
        AMX_ZERO(1);
        AMX_ZERO(2);
        AMX_ZERO(3);
    }
    for (size_t g = t->groups; g; g--) {
        AMX_LOAD(6, b, t->b_row);
        AMX_LOAD(4, a, t->a_row);
        AMX_ADD(0, 4, 6);
        if (wide > 1) {
            AMX_LOAD(7, b + AMX_SIDE, t->b_row);
            AMX_ADD(1, 4, 7);
        }
        if (tall > 1) {
            AMX_LOAD(5, a + a_next, t->a_row);
            AMX_ADD(2, 5, 6);
        }
        if (tall > 1 && wide > 1)
            AMX_ADD(3, 5, 7);
        a += AMX_SIDE;
        b += AMX_SIDE * t->b_row;
    }
    AMX_STORE(0, t->c, t->c_row);
    if (wide > 1)
        AMX_STORE(1, t->c + AMX_SIDE, t->c_row);
    if (tall > 1)
        AMX_STORE(2, t->c + c_next, t->c_row);
    if (tall > 1 && wide > 1)
        AMX_STORE(3, t->c + c_next + AMX_SIDE, t->c_row);
}

static inline void amx_run(const amx_job *t, int tall, int wide)
{
    if (tall > 1 && wide > 1)
        amx_block(2, 2, t);
    else if (tall > 1)
        amx_block(2, 1, t);
    else if (wide > 1)
        amx_block(1, 2, t);
    else
        amx_block(1, 1, t);
}

#endif
#endif
