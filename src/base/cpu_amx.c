/* cpu_amx.c: see cpu_amx.h. Functions for one processor among functions for
 * any: each says itself what it is compiled for. */
#include "base/cpu_amx.h"

#if PL_HAVE_AMX
#include "base/amx.h"

#include <cpuid.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIDE = PL_AMX_SIDE, DEEP = 2 * SIDE };

/* The state of tiles is large, so that Linux gives it only to those who ask. */
static int may_use_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

int pl_cpu_has_amx(void)
{
    const unsigned bf16 = 1u << 22, tiles = 1u << 24, saves = 1u << 27;
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & bf16) ||
        !(d & tiles) || !__get_cpuid(1, &a, &b, &c, &d) || !(c & saves))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3u) == 3u && may_use_tiles();
}

/* c += a b, one group of 32. */
static void multiply(float c[SIDE][SIDE], uint16_t a[SIDE][DEEP],
                     uint16_t b[SIDE][DEEP])
{
    const long row = 64;
    pl_amx_begin();
    __asm__ volatile("tileloadd (%0,%3,1), %%tmm0\n\t"
                     "tileloadd (%1,%3,1), %%tmm1\n\t"
                     "tileloadd (%2,%3,1), %%tmm2\n\t"
                     "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n\t"
                     "tilestored %%tmm0, (%0,%3,1)"
                     :
                     : "r"((void *)c), "r"((void *)a), "r"((void *)b), "r"(row)
                     : "memory");
    pl_amx_end();
}

/* A bfloat16 between 2^-4 and 2^4, of any sign. */
static uint16_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    const uint32_t exponent = 123u + (*seed >> 10) % 8u;
    return (uint16_t)((*seed >> 16 & 0x8000u) | exponent << 7 |
                      (*seed >> 20 & 0x7fu));
}

static float widened(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* By the rule: column n of b has its pair i at [i][2 n]. */
static float expected(float c, const uint16_t a[DEEP], uint16_t b[SIDE][DEEP],
                      int n)
{
    float sums[2] = { 0.0f, 0.0f };
    for (int k = 0; k < DEEP; k++)
        sums[k % 2] = fmaf(widened(a[k]), widened(b[k / 2][2 * n + k % 2]),
                           sums[k % 2]);
    return c + (sums[0] + sums[1]);
}

int pl_cpu_amx_rounds(void)
{
    uint16_t a[SIDE][DEEP], b[SIDE][DEEP];
    float c[SIDE][SIDE], right[SIDE][SIDE];
    uint32_t seed = 1;
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < DEEP; k++) {
            a[i][k] = draw(&seed);
            b[i][k] = draw(&seed);
        }
    for (int i = 0; i < SIDE; i++)
        for (int n = 0; n < SIDE; n++) {
            c[i][n] = widened(draw(&seed)) * 1.0001f;
            right[i][n] = expected(c[i][n], a[i], b, n);
        }
    multiply(c, a, b);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (c[i / SIDE][i % SIDE] != right[i / SIDE][i % SIDE])
            return 0;
    return 1;
}

#else

int pl_cpu_has_amx(void)
{
    return 0;
}

int pl_cpu_amx_rounds(void)
{
    return 0;
}

#endif
