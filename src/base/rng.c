/* rng.c: from random words to numbers. The words are rng.h's. */
#include "base/rng.h"
#include "base/exact.h"

#include <math.h>

uint64_t pl_rng_below(const uint32_t words[4], uint64_t bound)
{
    uint64_t word = (uint64_t)words[0] << 32 | words[1];
    return (uint64_t)(((unsigned __int128)word * bound) >> 64);
}

double pl_rng_unit(const uint32_t words[4])
{
    uint64_t word = (uint64_t)words[0] << 32 | words[1];
    return (double)(word >> 11) * 0x1p-53;
}

void pl_rng_normals(const uint32_t words[4], double out[4])
{
    for (int pair = 0; pair < 2; pair++) {
        /* (w + 1/2) / 2^32 lies strictly inside (0, 1): the log is finite */
        double u = ((double)words[2 * pair] + 0.5) * 0x1p-32;
        double half_turns = ((double)words[2 * pair + 1] + 0.5) * 0x1p-31;
        double radius = sqrt(-2.0 * pl_exact_quick_log(u)), cosine, sine;
        pl_exact_quick_turn(half_turns, &cosine, &sine);
        out[2 * pair] = radius * cosine;
        out[2 * pair + 1] = radius * sine;
    }
}
