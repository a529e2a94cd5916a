/* peak.c: independent multiply-adds and nothing else, or reads and nothing
 * else, to know what the processor could do at best. Contracts: pl_kernels.peak
 * and .read. */
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
