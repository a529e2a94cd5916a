/* score.c: see score.h. */
#include "train/score.h"
#include "base/check.h"
#include "base/exact.h"

#include <math.h>

/* Puts a token where it belongs among the likeliest so far; logprob is still a
 * logit. Tokens come in ascending order, so that an equal one stays behind. */
static void insert(pl_score *score, size_t top, int32_t token, double logit)
{
    size_t at = score->top_count;
    if (at == top && !(logit > score->top[top - 1].logprob))
        return;
    if (at == top)
        at--;
    else
        score->top_count++;
    for (; at > 0 && logit > score->top[at - 1].logprob; at--)
        score->top[at] = score->top[at - 1];
    score->top[at] = (pl_score_choice){ token, logit };
}

int pl_score_make(pl_score *score, const float *logits, size_t V, int32_t token,
                  size_t top)
{
    float most = -HUGE_VALF;
    double sum = 0.0;
    PL_CHECK(top <= PL_SCORE_MOST_TOP && token >= 0 && (size_t)token < V);
    score->top_count = 0;
    for (size_t i = 0; i < V; i++) {
        if (isnan(logits[i]))
            return 0;
        if (logits[i] > most)
            most = logits[i];
        if (top > 0)
            insert(score, top, (int32_t)i, (double)logits[i]);
    }
    if (!isfinite(most))
        return 0;
    for (size_t i = 0; i < V; i++)
        sum += pl_exact_quick_exp((double)logits[i] - (double)most);
    const double all = (double)most + pl_exact_log(sum);
    score->own = (pl_score_choice){ token, (double)logits[token] - all };
    for (size_t i = 0; i < score->top_count; i++)
        score->top[i].logprob -= all;
    return 1;
}

pl_status pl_score_broken(pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "the model's output is not a number: its weights are broken "
                   "(NaN or infinite)");
}

/* The scores of the tokens behind the last round's. */
static pl_status take_scores(pl_slots *slots, const int32_t *tokens,
                             size_t first, size_t rows, size_t count,
                             size_t top, const pl_score_taker *taker,
                             pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < rows && first + i + 1 < count && !status; i++) {
        const size_t index = first + i + 1;
        pl_score score;
        float *logits;
        status = pl_slots_logits(slots, i, &logits, err);
        if (status)
            return status;
        if (!pl_score_make(&score, logits, slots->V, tokens[index], top))
            return pl_score_broken(err);
        taker->take(taker->context, index, &score);
    }
    return status;
}

pl_status pl_score_text(pl_slots *slots, size_t slot, const int32_t *tokens,
                        size_t count, size_t top, const pl_score_taker *taker,
                        pl_error *err)
{
    pl_status status = PL_OK;
    PL_CHECK(count > 0 && count <= slots->T);
    /* nothing is behind the last token: it needs no row */
    for (size_t at = 0; at + 1 < count && !status;) {
        const size_t left = count - 1 - at,
                     rows = left < slots->logits ? left : slots->logits;
        const int32_t position = (int32_t)at;
        status = pl_slots_run(slots,
                              &(pl_slots_round){ .slot = slot,
                                                 .sequences = 1,
                                                 .queries = rows,
                                                 .logits = rows,
                                                 .tokens = tokens + at,
                                                 .positions = &position },
                              err);
        if (!status)
            status = take_scores(slots, tokens, at, rows, count, top, taker,
                                 err);
        at += rows;
    }
    return status;
}
