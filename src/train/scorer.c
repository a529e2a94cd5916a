/* scorer.c: see scorer.h. */
#include "train/scorer.h"
#include "base/check.h"

#include <string.h>

pl_scorer pl_scorer_make(pl_session *session, int32_t *tokens,
                         const pl_run_watch *watch)
{
    pl_scorer scorer = {
        .session = session,
        .serves = session->run.gpt.layout.purpose == PL_PURPOSE_SERVING,
        .tokens = tokens,
    };
    if (scorer.serves) {
        scorer.slots = pl_slots_make(session);
        scorer.slots.watch = watch;
    } else {
        scorer.sampler = (pl_sampler){ .session = session, .watch = watch };
    }
    return scorer;
}

/* A text that is being scored. */
typedef struct text {
    const int32_t *tokens;
    size_t count, from;
    pl_scored *scored;
} text;

static pl_status add(const pl_scorer *scorer, const text *t, size_t index,
                     const float *logits, pl_error *err)
{
    pl_score score;
    if (!pl_score_make(&score, logits, scorer->session->run.shape.V,
                       t->tokens[index], 1))
        return pl_score_broken(err);
    t->scored->logprob += score.own.logprob;
    t->scored->greedy &= score.top[0].token == t->tokens[index];
    return PL_OK;
}

/* A round of `rows` tokens from `row` on: the last `wanted` of them have
 * logits, of the tokens behind them. */
static pl_status run_round(pl_scorer *scorer, const text *t, size_t row,
                           size_t rows, size_t wanted, pl_error *err)
{
    const int32_t position = (int32_t)row;
    pl_status status = pl_slots_run(
        &scorer->slots,
        &(pl_slots_round){ .sequences = 1,
                           .queries = rows,
                           .logits = wanted ? wanted : 1,
                           .tokens = t->tokens + row,
                           .positions = &position },
        err);
    for (size_t i = 0; i < wanted && !status; i++) {
        float *logits;
        status = pl_slots_logits(&scorer->slots, i, &logits, err);
        if (!status)
            status = add(scorer, t, row + rows - wanted + i + 1, logits, err);
    }
    return status;
}

static pl_status by_slots(pl_scorer *scorer, const text *t, size_t row,
                          pl_error *err)
{
    const pl_slots *slots = &scorer->slots;
    const size_t last = t->count - 1, first = t->from - 1;
    pl_status status = PL_OK;
    while (row < last && !status) {
        size_t rows = last - row < slots->rows ? last - row : slots->rows;
        size_t wanted = row + rows > first ? row + rows - first : 0;
        if (wanted > rows)
            wanted = rows;
        if (wanted > slots->logits) {
            rows -= wanted - slots->logits;
            wanted = slots->logits;
        }
        status = run_round(scorer, t, row, rows, wanted, err);
        row += rows;
    }
    return status;
}

static pl_status by_sampler(pl_scorer *scorer, const text *t, size_t row,
                            pl_error *err)
{
    pl_sampler *sampler = &scorer->sampler;
    pl_status status = PL_OK;
    /* it writes to none of them */
    sampler->tokens = (int32_t *)(uintptr_t)t->tokens;
    sampler->capacity = t->count;
    sampler->cached = row;
    for (size_t i = t->from; i < t->count && !status; i++) {
        float *logits;
        sampler->count = i;
        status = pl_sampler_logits(sampler, &logits, err);
        if (!status)
            status = add(scorer, t, i, logits, err);
    }
    return status;
}

/* How many tokens the cache has already, but for those whose logits are
 * needed. */
static size_t shared(const pl_scorer *scorer, const text *t)
{
    size_t count = 0;
    while (count < scorer->cached && count < t->from - 1 &&
           scorer->tokens[count] == t->tokens[count])
        count++;
    return count;
}

pl_status pl_scorer_score(pl_scorer *scorer, const int32_t *tokens,
                          size_t count, size_t from, pl_scored *scored,
                          pl_error *err)
{
    const text t = { tokens, count, from, scored };
    const size_t row = shared(scorer, &t);
    PL_CHECK(from > 0 && from < count &&
             count <= scorer->session->run.shape.T + 1);
    *scored = (pl_scored){ .greedy = 1 };
    scorer->cached = 0; /* should it end in the middle */
    pl_status status = scorer->serves ? by_slots(scorer, &t, row, err)
                                      : by_sampler(scorer, &t, row, err);
    if (status)
        return status;
    memcpy(scorer->tokens, tokens, (count - 1) * sizeof *tokens);
    scorer->cached = count - 1;
    return PL_OK;
}
