/* sampler.c: see sampler.h. */
#include "train/sampler.h"
#include "base/check.h"
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
static void decode(pl_sampler *sampler, const int32_t *tokens, size_t rows,
                   size_t position)
{
    pl_session *session = sampler->session;
    pl_scalars *scalars = pl_session_scalars(session);
    int32_t *target = pl_device_host(session->run.device,
                                     session->run.gpt.sample_tokens);
    memcpy(target, tokens, rows * sizeof *tokens);
    scalars->rows = (uint32_t)rows;
    scalars->position = (uint32_t)position;
    scalars->micro_first = 0;
    pl_device_run(session->run.device, PL_SAMPLE, PL_PART_LOOP);
}

const float *pl_sampler_logits(pl_sampler *sampler)
{
    pl_session *session = sampler->session;
    size_t T = session->run.shape.T, prefill = session->run.gpt.layout.prefill;
    size_t window = sampler->count < T ? sampler->count : T;
    const int32_t *first = sampler->tokens + (sampler->count - window);

    /* A window that slid has other positions: nothing of the cache holds. And
     * if all is cached, the last row is needed once more for its logits. */
    if (sampler->count > T || session->run.gpt.layout.cache == PL_CACHE_NONE)
        sampler->cached = 0;
    else if (sampler->cached == window)
        sampler->cached--;
    while (sampler->cached < window) {
        size_t rows = window - sampler->cached;
        if (rows > prefill)
            rows = prefill;
        decode(sampler, first + sampler->cached, rows, sampler->cached);
        sampler->cached += rows;
    }
    return pl_device_host(session->run.device, session->run.gpt.sample_logits);
}

/* The kth largest of x[n], by quickselect in place: no order beyond that is
 * needed, and nothing is allocated. */
static float kth_largest(float *x, size_t n, size_t k)
{
    size_t low = 0, high = n;
    while (high - low > 1) {
        float pivot = x[low + (high - low) / 2];
        size_t above = low, at = low, below = high;
        while (at < below) { /* > pivot | == pivot | < pivot */
            float value = x[at];
            if (value > pivot) {
                x[at++] = x[above];
                x[above++] = value;
            } else if (value < pivot) {
                x[at] = x[--below];
                x[below] = value;
            } else {
                at++;
            }
        }
        if (k <= above)
            high = above;
        else if (k <= below)
            return pivot;
        else
            low = below;
    }
    return x[low];
}

static int32_t likeliest(const float *logits, size_t V)
{
    size_t best = 0;
    for (size_t i = 1; i < V; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

int32_t pl_sampler_choose(const float *logits, float *work, size_t V,
                          const pl_sampling *sampling, const uint32_t words[4])
{
    int32_t best = likeliest(logits, V);
    if (!isfinite(logits[best]))
        return -1;
    float least = -HUGE_VALF;
    double sum = 0.0;

    if (sampling->temperature <= 0.0)
        return best;
    if (sampling->top_k > 0 && sampling->top_k < V) {
        memcpy(work, logits, V * sizeof *work);
        least = kth_largest(work, V, sampling->top_k);
    }
    for (size_t i = 0; i < V; i++) {
        double above = ((double)logits[i] - (double)logits[best]) /
                       sampling->temperature;
        work[i] = logits[i] >= least ? (float)exp(above) : 0.0f;
        sum += (double)work[i];
    }
    double rest = pl_rng_unit(words) * sum;
    for (size_t i = 0; i < V; i++) {
        rest -= (double)work[i];
        if (rest < 0.0)
            return (int32_t)i;
    }
    return best; /* rounding ate the last crumb */
}

int32_t pl_sampler_next(pl_sampler *sampler)
{
    pl_session *session = sampler->session;
    const float *logits = pl_sampler_logits(sampler);
    float *work = pl_device_host(session->run.device,
                                 session->run.gpt.sample_work);
    uint32_t words[4];

    PL_CHECK(sampler->count < sampler->capacity);
    pl_rng_words(PL_RNG_SAMPLE, sampler->sampling.seed,
                 (uint32_t)sampler->count, sampler->sample, 0, 0, words);
    int32_t token = pl_sampler_choose(logits, work, session->run.shape.V,
                                      &sampler->sampling, words);
    if (token >= 0)
        sampler->tokens[sampler->count++] = token;
    return token;
}
