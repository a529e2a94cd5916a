/* expect.c: see expect.h. */
#include "advise/expect.h"
#include "base/exact.h"

#include <math.h>

/* The law, and how far from it runs may end: other text, other settings. */
static const double FLOOR = 0.75, OF_PARAMETERS = 3.7, PARAMETER_POWER = 0.2,
                    OF_BYTES = 60.0, BYTE_POWER = 0.3;
static const pl_expectation spread[] = {
    [PL_OPTIMIZER_ADAMW] = { 0.95, 1.55 },
    [PL_OPTIMIZER_MUON] = { 0.90, 1.20 },
};

/* How often a text can be seen again until that teaches nothing more:
 * arXiv 2305.16264. */
static const double REPEATS = 15.4;

double pl_expect_bytes_per_token(size_t vocab_size)
{
    static const struct {
        double bits, bytes;
    } known[] = { { 8.0, 1.0 },  { 10.0, 2.7 }, { 12.0, 3.55 },
                  { 13.0, 3.9 }, { 15.0, 4.5 }, { 17.0, 4.7 } };
    enum { COUNT = sizeof known / sizeof known[0] };
    const double bits = pl_exact_log2((double)(vocab_size ? vocab_size : 1));
    if (bits <= known[0].bits)
        return known[0].bytes;
    for (size_t i = 1; i < COUNT; i++)
        if (bits <= known[i].bits)
            return known[i - 1].bytes + (known[i].bytes - known[i - 1].bytes) *
                                            (bits - known[i - 1].bits) /
                                            (known[i].bits - known[i - 1].bits);
    return known[COUNT - 1].bytes;
}

/* Bytes of new text that would teach as much. */
static double worth(double bytes, double unique)
{
    if (!(unique > 0.0) || bytes <= unique)
        return bytes;
    const double again = bytes / unique - 1.0;
    return unique + unique * REPEATS * (1.0 - pl_exact_exp(-again / REPEATS));
}

pl_expectation pl_expect_bits(double parameters, double tokens,
                              pl_optimizer_choice optimizer,
                              const pl_expect_text *text)
{
    const pl_expectation times = spread[optimizer];
    const double bytes = worth(tokens * text->bytes_per_token,
                               text->unique_bytes);
    if (!(parameters >= 1.0) || !(bytes >= 1.0))
        return (pl_expectation){ 0.0, 8.0 };
    const double bits = FLOOR +
                        OF_PARAMETERS *
                            pl_exact_pow(parameters, -PARAMETER_POWER) +
                        OF_BYTES * pl_exact_pow(bytes, -BYTE_POWER);
    return (pl_expectation){ .low = times.low * bits,
                             .high = fmin(times.high * bits, 8.0) };
}
