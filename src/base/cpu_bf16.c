/* cpu_bf16.c: see cpu_bf16.h. Functions for one processor among functions for
 * any: each says itself what it is compiled for. */
#include "base/cpu_bf16.h"
#include "base/clock.h"

#if PL_HAVE_AVX512BF16
#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>

#define PL_TARGET __attribute__((target("avx512f,avx512bf16"), noinline))
#if defined(__clang__)
#define PL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PL_UNROLL _Pragma("GCC unroll 16")
#endif

int pl_cpu_has_bf16(void)
{
    const unsigned bf16 = 1u << 5; /* of leaf 7, subleaf 1 */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bf16);
}

/* A bfloat16 between 2^-4 and 2^4, of any sign, in the upper half. */
static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    const uint32_t exponent = 123u + (*seed >> 10) % 8u;
    return (*seed & 0x80000000u) | exponent << 23 | (*seed >> 4 & 0x7f0000u);
}

/* Whether 16 sums of two products by the instruction are those by
 * multiply-adds.
 */
PL_TARGET static int are_equal(const uint32_t high[2][16],
                               const uint32_t low[2][16],
                               const uint32_t start[16])
{
    const __m512i h0 = _mm512_loadu_si512(high[0]),
                  h1 = _mm512_loadu_si512(high[1]),
                  l0 = _mm512_loadu_si512(low[0]),
                  l1 = _mm512_loadu_si512(low[1]);
    const __m512 c = _mm512_castsi512_ps(_mm512_loadu_si512(start));
    const __m512i a = _mm512_or_si512(h0, _mm512_srli_epi32(l0, 16)),
                  b = _mm512_or_si512(h1, _mm512_srli_epi32(l1, 16));
    const __m512 pairs = _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
    const __m512 chain = _mm512_fmadd_ps(
        _mm512_castsi512_ps(l0), _mm512_castsi512_ps(l1),
        _mm512_fmadd_ps(_mm512_castsi512_ps(h0), _mm512_castsi512_ps(h1), c));
    return !_mm512_cmpneq_epi32_mask(_mm512_castps_si512(pairs),
                                     _mm512_castps_si512(chain));
}

int pl_cpu_bf16_rounds(void)
{
    uint32_t seed = 1, high[2][16], low[2][16], start[16];
    for (int round = 0; round < 64; round++) {
        for (int i = 0; i < 16; i++) {
            for (int j = 0; j < 2; j++) {
                high[j][i] = draw(&seed);
                low[j][i] = draw(&seed);
            }
            start[i] = draw(&seed);
            start[i] |= seed & 0xffffu;
        }
        if (!are_equal(high, low, start))
            return 0;
    }
    return 1;
}

/* So many that what reading the clock takes, a third of a microsecond, is
 * little beside them. */
enum { CHAINS = 12, ROUNDS = 2500, TRIES = 21 };

/* Independent sums, as many as hide the latency: where they begin, and a number
 * that depends on all of them. */
PL_TARGET static void begin(__m512 sums[CHAINS])
{
    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
}

PL_TARGET static float total_of(const __m512 sums[CHAINS])
{
    __m512 total = sums[0];
    for (int i = 1; i < CHAINS; i++)
        total = _mm512_add_ps(total, sums[i]);
    return _mm512_cvtss_f32(total);
}

PL_TARGET static float add_pairs(void)
{
    const __m512bh a = (__m512bh)_mm512_set1_epi32(0x3f7f3f7f),
                   b = (__m512bh)_mm512_set1_epi32(0x3a833a83);
    __m512 sums[CHAINS];
    begin(sums);
    for (int round = 0; round < ROUNDS; round++) {
        PL_UNROLL
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
    }
    return total_of(sums);
}

PL_TARGET static float add_floats(void)
{
    const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    __m512 sums[CHAINS];
    begin(sums);
    for (int round = 0; round < ROUNDS; round++) {
        PL_UNROLL
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], a, b);
    }
    return total_of(sums);
}

static double seconds_of(float (*run)(void))
{
    const double began = pl_clock_thread_seconds();
    volatile float kept = run();
    (void)kept;
    return pl_clock_thread_seconds() - began;
}

/* An instruction of pairs does the work of two. Operands have to be woven into
 * pairs first, so that it must gain more than that costs. Neighbours on the
 * same core come and go: both are timed one right behind the other, and more
 * than half of the tries have to agree. */
int pl_cpu_bf16_is_fast(void)
{
    int fast = 0;
    for (int i = 0; i < TRIES; i++) {
        const double pairs = seconds_of(add_pairs);
        fast += pairs < seconds_of(add_floats) * 2.0 / 1.25;
    }
    return 2 * fast > TRIES;
}

#else

int pl_cpu_has_bf16(void)
{
    return 0;
}

int pl_cpu_bf16_rounds(void)
{
    return 0;
}

int pl_cpu_bf16_is_fast(void)
{
    return 0;
}

#endif
