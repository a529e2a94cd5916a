/* peak.c: independent multiply-adds and nothing else, or reads and nothing
 * else, to know what the processor could do at best. Contracts:
 * pl_kernels.peak, .peak_bf16 and .read. */
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

#if defined(__AVX512BF16__)
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
