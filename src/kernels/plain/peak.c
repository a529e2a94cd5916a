/* peak.c: independent multiply-adds and nothing else, or reads and nothing
 * else, to know what the processor could do at best. Contracts:
 * pl_kernels.peak, .peak_bf16, .peak_matrices and .read. */
#include "kernels/plain/pairs_amx.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/vec.h"

enum { CHAINS = 12 }; /* more than latency x units of any processor so far */

double PL_K(peak)(size_t rounds, float *sink)
{
    vf chains[CHAINS], factor = v_all(0.999f), term = v_all(0.001f);
    for (int i = 0; i < CHAINS; i++)
        chains[i] = v_all((float)i);
    for (size_t round = 0; round < rounds; round++) {
        PL_UNROLL
        for (int i = 0; i < CHAINS; i++)
            chains[i] = v_fma(chains[i], factor, term);
    }
    vf sum = chains[0];
    for (int i = 1; i < CHAINS; i++)
        sum += chains[i];
    *sink = sum[0];
    return 2.0 * VL * CHAINS * (double)rounds;
}

#if defined(PL_PAIRS_CHAIN)
double PL_K(peak_bf16)(size_t rounds, float *sink)
{
    __m512 chains[CHAINS];
    const __m512bh factor = (__m512bh)_mm512_set1_epi16(0x3f7f),
                   term = (__m512bh)_mm512_set1_epi16(0x3a83);
    for (int i = 0; i < CHAINS; i++)
        chains[i] = _mm512_set1_ps((float)i);
    for (size_t round = 0; round < rounds; round++) {
        PL_UNROLL
        for (int i = 0; i < CHAINS; i++)
            chains[i] = _mm512_dpbf16_ps(chains[i], factor, term);
    }
    __m512 sum = chains[0];
    for (int i = 1; i < CHAINS; i++)
        sum = _mm512_add_ps(sum, chains[i]);
    *sink = _mm512_cvtss_f32(sum);
    return 4.0 * VL * CHAINS * (double)rounds;
}
#endif

#if defined(PL_PAIRS_AMX)
double PL_K(peak_matrices)(size_t rounds, float *sink)
{
    enum { PER_TILE = 8 }; /* a product takes as long as so many rounds */
    const size_t times = rounds / PER_TILE;
    float sums[AMX_SIDE * AMX_SIDE] = { 0 };
    pl_amx_begin();
    AMX_LOAD(4, sums, AMX_SIDE);
    AMX_LOAD(5, sums, AMX_SIDE);
    AMX_LOAD(6, sums, AMX_SIDE);
    AMX_LOAD(7, sums, AMX_SIDE);
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    for (size_t i = 0; i < times; i++) {
        AMX_ADD(0, 4, 6);
        AMX_ADD(1, 4, 7);
        AMX_ADD(2, 5, 6);
        AMX_ADD(3, 5, 7);
    }
    AMX_STORE(0, sums, AMX_SIDE);
    pl_amx_end();
    *sink = sums[0];
    return 4.0 * 2.0 * AMX_SIDE * AMX_SIDE * PL_AMX_GROUP * (double)times;
}
#endif

void PL_K(read)(const float *x, size_t count, float *sink)
{
    vf chains[CHAINS] = { { 0 } };
    size_t i = 0;
    for (; i + CHAINS * VL <= count; i += CHAINS * VL) {
        PL_UNROLL
        for (int j = 0; j < CHAINS; j++)
            chains[j] += v_load(x + i + (size_t)(j * VL));
    }
    vf sum = chains[0];
    for (int j = 1; j < CHAINS; j++)
        sum += chains[j];
    *sink += sum[0];
}
