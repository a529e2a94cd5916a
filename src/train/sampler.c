/* sampler.c: see sampler.h. */
#include "train/sampler.h"
#include "base/check.h"
#include "base/exact.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

pl_status pl_sampler_open(pl_sampler *sampler, pl_session *session,
                          const pl_sampling *sampling, size_t capacity,
                          pl_error *err)
{
    *sampler = (pl_sampler){ .session = session,
                             .sampling = *sampling,
                             .capacity = capacity };
    return pl_heap_take(session->run.heap, &sampler->tokens, capacity,
                        sizeof *sampler->tokens, err);
}

void pl_sampler_start(pl_sampler *sampler, uint32_t sample,
                      const int32_t *prompt, size_t count)
{
    PL_CHECK(count > 0 && count <= sampler->capacity);
    memcpy(sampler->tokens, prompt, count * sizeof *prompt);
    sampler->count = count;
    sampler->cached = 0;
    sampler->sample = sample;
}

/* Decodes `rows` tokens that stand at `position` of the window. */
static pl_status decode(pl_sampler *sampler, const int32_t *tokens, size_t rows,
                        size_t position, pl_error *err)
{
    pl_session *session = sampler->session;
    pl_status status = pl_device_write(session->run.device,
                                       session->run.gpt.sample_tokens, 0,
                                       tokens, rows * sizeof *tokens, err);
    session->controls.rows = (uint32_t)rows;
    session->controls.position = (uint32_t)position;
    session->controls.micro_first = 0;
    pl_run_end end = PL_RUN_DONE;
    if (!status)
        status = pl_session_run_watched(session, PL_SAMPLE, PL_PART_LOOP,
                                        sampler->watch, &end, err);
    if (!status && end == PL_RUN_STOPPED)
        status = pl_fail(err, PL_E_STOPPED, "stopped while sampling");
    return status;
}

pl_status pl_sampler_logits(pl_sampler *sampler, float **logits, pl_error *err)
{
    pl_session *session = sampler->session;
    const pl_gpt *gpt = &session->run.gpt;
    size_t T = session->run.shape.T, prefill = gpt->layout.prefill;
    size_t window = sampler->count < T ? sampler->count : T;
    const int32_t *first = sampler->tokens + (sampler->count - window);

    /* A window that slid has other positions: nothing of the cache holds. And
     * if all is cached, the last row is needed once more for its logits. */
    if (sampler->count > T || gpt->layout.cache == PL_CACHE_NONE)
        sampler->cached = 0;
    else if (sampler->cached == window)
        sampler->cached--;
    while (sampler->cached < window) {
        size_t rows = window - sampler->cached;
        if (rows > prefill)
            rows = prefill;
        pl_status status = decode(sampler, first + sampler->cached, rows,
                                  sampler->cached, err);
        if (status)
            return status;
        sampler->cached += rows;
    }
    *logits = pl_device_host(session->run.device, gpt->sample_work);
    return pl_device_read(session->run.device, gpt->sample_logits, 0, *logits,
                          session->run.shape.V * sizeof **logits, err);
}

/* A number that is larger for a larger float; what is none comes last. */
static uint32_t order_of(float x)
{
    uint32_t bits;
    if (isnan(x))
        return 0;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The kth largest of x[n], which stays as it is: its order is found byte by
 * byte, each time counting those that agree with it so far. */
static float kth_largest(const float *x, size_t n, size_t k)
{
    uint32_t found = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        size_t counts[256] = { 0 };
        uint32_t byte = 255;
        for (size_t i = 0; i < n; i++)
            if ((order_of(x[i]) & known) == found)
                counts[order_of(x[i]) >> shift & 255]++;
        while (k > counts[byte])
            k -= counts[byte--];
        found |= byte << shift;
        known |= 0xffu << shift;
    }
    float value;
    found = found & 0x80000000u ? found & 0x7fffffffu : ~found;
    memcpy(&value, &found, sizeof value);
    return value;
}

/* The number from which on x[n], none below 0, adds up to `wanted` > 0, or its
 * smallest where rounding ate that: found byte by byte, like the above. Numbers
 * that agree so far are added in their order. */
static float share_begins(const float *x, size_t n, double wanted)
{
    uint32_t found = 0, known = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        double sums[256] = { 0 };
        uint32_t byte = 255, bits;
        for (size_t i = 0; i < n; i++) {
            memcpy(&bits, &x[i], sizeof bits);
            if ((bits & known) == found)
                sums[bits >> shift & 255] += (double)x[i];
        }
        while (byte > 0 && wanted > sums[byte])
            wanted -= sums[byte--];
        found |= byte << shift;
        known |= 0xffu << shift;
    }
    float value;
    memcpy(&value, &found, sizeof value);
    return value;
}

/* Leaves the likeliest that have the share `top_p` of `sum`; returns theirs. */
static double keep_share(float *likelihoods, size_t V, double top_p, double sum)
{
    const float least = share_begins(likelihoods, V, top_p * sum);
    double kept = 0.0;
    for (size_t i = 0; i < V; i++) {
        if (likelihoods[i] < least)
            likelihoods[i] = 0.0f;
        kept += (double)likelihoods[i];
    }
    return kept;
}

static int32_t likeliest(const float *logits, size_t V)
{
    size_t best = 0;
    for (size_t i = 1; i < V; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

int32_t pl_sampler_choose(float *logits, size_t V, const pl_sampling *sampling,
                          const uint32_t words[4])
{
    int32_t best = likeliest(logits, V);
    if (!isfinite(logits[best]))
        return -1;
    const double most = (double)logits[best];
    float least = -HUGE_VALF;
    double sum = 0.0;

    if (sampling->temperature <= 0.0)
        return best;
    if (sampling->top_k > 0 && sampling->top_k < V)
        least = kth_largest(logits, V, sampling->top_k);
    for (size_t i = 0; i < V; i++) { /* from here on they are likelihoods */
        double above = ((double)logits[i] - most) / sampling->temperature;
        logits[i] = logits[i] >= least ? (float)pl_exact_quick_exp(above)
                                       : 0.0f;
        sum += (double)logits[i];
    }
    if (sampling->top_p > 0.0 && sampling->top_p < 1.0)
        sum = keep_share(logits, V, sampling->top_p, sum);
    double rest = pl_rng_unit(words) * sum;
    for (size_t i = 0; i < V; i++) {
        rest -= (double)logits[i];
        if (rest < 0.0)
            return (int32_t)i;
    }
    return best; /* rounding ate the last crumb */
}

pl_status pl_sampler_next(pl_sampler *sampler, int32_t *token, pl_error *err)
{
    pl_session *session = sampler->session;
    uint32_t words[4];
    float *logits;

    PL_CHECK(sampler->count < sampler->capacity);
    pl_status status = pl_sampler_logits(sampler, &logits, err);
    if (status)
        return status;
    pl_rng_words(PL_RNG_SAMPLE, sampler->sampling.seed,
                 (uint32_t)sampler->count, sampler->sample, 0, 0, words);
    *token = pl_sampler_choose(logits, session->run.shape.V, &sampler->sampling,
                               words);
    if (*token >= 0)
        sampler->tokens[sampler->count++] = *token;
    return PL_OK;
}
