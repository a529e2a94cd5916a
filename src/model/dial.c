/* dial.c: see dial.h. */
#include "model/dial.h"
#include "base/check.h"
#include "base/exact.h"
#include "base/path.h"
#include "model/from_config.h"
#include "model/params.h"

#include <inttypes.h>
#include <math.h>

/* The model that others have tuned, 12 blocks of 768 channels with 32768
 * tokens, and what they found for it. */
enum {
    CHANNELS_PER_BLOCK = 64,
    HEAD_CHANNELS = 64,
    REFERENCE_CHANNELS = 768,
    REFERENCE_PARAMETERS = 12 * 12 * 768 * 768 + 32768 * 768,
    REFERENCE_BATCH = 524288, /* tokens */
    MOST_AT_ONCE = 16,        /* sequences of a batch; an update has several */
    LEAST_UPDATES = 1000,     /* of a run, as far as sequences allow it */
    MOST_WARMUP = 40,         /* updates */
    MOST_EVAL_ITERS = 200,
};
static const double BATCH_POWER = 0.383, RATE_POWER = 0.125, MUON_RATE = 0.02,
                    TABLE_RATE = 0.008, /* AdamW's, where matrices are Muon's */
    ADAMW_RATE = 0.0006,                /* AdamW's of everything */
    RMS_OF_UPDATES = 0.2,               /* muon_scale = 'rms' */
    LAST_RATE = 0.05, EVALUATED_SHARE = 0.003;

/* ---- keys that nobody has set ---- */

static pl_status propose(pl_config *config, pl_key key, pl_value value,
                         pl_config_source from, pl_error *err)
{
    if (pl_config_was_set(config, key))
        return PL_OK;
    return pl_config_set(config, key, &value,
                         (pl_config_origin){ .source = from }, NULL, err);
}

/* Those that dial.h derives, for a run that goes on. */
static const pl_key derived[] = {
    PL_KEY_architecture,   PL_KEY_n_layer,
    PL_KEY_n_embd,         PL_KEY_n_head,
    PL_KEY_optimizer,      PL_KEY_schedule,
    PL_KEY_batch_size,     PL_KEY_gradient_accumulation_steps,
    PL_KEY_learning_rate,  PL_KEY_muon_learning_rate,
    PL_KEY_min_lr,         PL_KEY_max_iters,
    PL_KEY_lr_decay_iters, PL_KEY_warmup_iters,
    PL_KEY_eval_interval,  PL_KEY_eval_iters,
};

/* ---- the model ---- */

/* Heads of about HEAD_CHANNELS that divide the width into even ones. */
static int64_t heads_of(int64_t channels)
{
    int64_t heads = channels / HEAD_CHANNELS;
    while (heads > 1 && (channels % heads || channels / heads % 2))
        heads--;
    return heads > 1 ? heads : 1;
}

pl_status pl_dial_set_model(pl_config *config, pl_error *err)
{
    const pl_config_source from = PL_FROM_DEPTH;
    if (config->depth == PL_NONE)
        return PL_OK;
    pl_status status = propose(config, PL_KEY_architecture,
                               pl_value_text("qwen3"), from, err);
    if (!status)
        status = propose(config, PL_KEY_n_layer, pl_value_int(config->depth),
                         from, err);
    if (!status)
        status = propose(config, PL_KEY_n_embd,
                         pl_value_int(config->depth * CHANNELS_PER_BLOCK), from,
                         err);
    if (!status)
        status = propose(config, PL_KEY_n_head,
                         pl_value_int(heads_of(config->n_embd)), from, err);
    if (!status)
        status = propose(config, PL_KEY_optimizer, pl_value_text("muon"), from,
                         err);
    if (!status)
        status = propose(config, PL_KEY_schedule, pl_value_text("wsd"), from,
                         err);
    return status;
}

pl_status pl_dial_parameters(double *count, const pl_config *config,
                             size_t vocab_size, pl_error *err)
{
    pl_shape shape;
    const pl_log quiet = { 0 };
    *count = 0.0;
    pl_status status = pl_shape_make(&shape, config, vocab_size, &quiet, err);
    if (status)
        return status;
    *count = (double)pl_param_count_nanogpt(&shape);
    if (shape.head == PL_HEAD_OWN)
        *count -= (double)shape.V * (double)shape.C;
    return PL_OK;
}

/* ---- the run ---- */

/* The power of two nearest to x, as a ratio; at least 1. */
static int64_t power_of_two(double x)
{
    int64_t power = 1;
    while ((double)power * 2.0 <= x && power < (int64_t)1 << 30)
        power *= 2;
    return x * x > 2.0 * (double)power * (double)power ? 2 * power : power;
}

static int64_t nearest(double x, int64_t least)
{
    const double whole = floor(x + 0.5);
    if (whole >= PL_MAX_STEPS)
        return (int64_t)PL_MAX_STEPS;
    return whole > (double)least ? (int64_t)whole : least;
}

/* Sequences of an update, as batches. What is set stays, and the other factor
 * makes the best of it. */
static pl_status set_batch(pl_config *config, int64_t sequences,
                           pl_config_source from, pl_error *err)
{
    const bool has_steps = pl_config_was_set(
        config, PL_KEY_gradient_accumulation_steps);
    const int64_t own = sequences < MOST_AT_ONCE ? sequences : MOST_AT_ONCE,
                  rest = nearest(
                      (double)sequences /
                          (double)config->gradient_accumulation_steps,
                      1);
    pl_status status = propose(config, PL_KEY_batch_size,
                               pl_value_int(has_steps ? rest : own), from, err);
    if (!status)
        status = propose(
            config, PL_KEY_gradient_accumulation_steps,
            pl_value_int(
                nearest((double)sequences / (double)config->batch_size, 1)),
            from, err);
    return status;
}

/* Rates grow slowly with the batch. AdamW's fall with the root of the width
 * where it has the table and the norms, and with the width itself where it has
 * the matrices, too. Muon's is for the spectral norm of an update: a square
 * matrix of C columns then has elements of C^-1/2, under 'rms' of 0.2. */
static pl_status set_rates(pl_config *config, pl_config_source from,
                           pl_error *err)
{
    const double more = pl_exact_pow((double)pl_config_update_tokens(config) /
                                         REFERENCE_BATCH,
                                     RATE_POWER),
                 width = (double)REFERENCE_CHANNELS / (double)config->n_embd,
                 adamw = config->optimizer == PL_OPTIMIZER_MUON
                             ? TABLE_RATE * sqrt(width)
                             : ADAMW_RATE * width,
                 muon = config->muon_scale == PL_MUON_SCALE_RMS
                            ? MUON_RATE / (RMS_OF_UPDATES *
                                           sqrt((double)config->n_embd))
                            : MUON_RATE;
    pl_status status = propose(config, PL_KEY_learning_rate,
                               pl_value_float(adamw * more), from, err);
    if (!status)
        status = propose(config, PL_KEY_min_lr,
                         pl_value_float(LAST_RATE * config->learning_rate),
                         from, err);
    if (!status)
        status = propose(config, PL_KEY_muon_learning_rate,
                         pl_value_float(muon * more), from, err);
    return status;
}

/* Whole rounds of workers, of which each is an update where there are none. */
static int64_t in_rounds(const pl_config *config, int64_t updates)
{
    const int64_t round = config->sync_interval;
    return updates > round ? updates - updates % round : round;
}

static int64_t between_evaluations(const pl_config *config, int64_t updates)
{
    return in_rounds(config, updates / (PL_DIAL_EVALUATIONS - 1));
}

pl_status pl_dial_set_length(pl_config *config, int64_t updates,
                             pl_config_source from, pl_error *err)
{
    if (!pl_config_was_set(config, PL_KEY_eval_interval)) /* also at the end */
        updates -= updates % between_evaluations(config, updates);
    pl_status status = propose(config, PL_KEY_max_iters,
                               pl_value_int(in_rounds(config, updates)), from,
                               err);
    const int64_t length = config->max_iters > 0 ? config->max_iters : 1,
                  warmup = length / 10 < MOST_WARMUP ? length / 10
                                                     : MOST_WARMUP;
    if (!status)
        status = propose(config, PL_KEY_lr_decay_iters, pl_value_int(length),
                         from, err);
    if (!status)
        status = propose(config, PL_KEY_warmup_iters, pl_value_int(warmup),
                         from, err);
    if (!status)
        status = propose(config, PL_KEY_eval_interval,
                         pl_value_int(between_evaluations(config, length)),
                         from, err);
    return status;
}

/* Enough of them to see a difference, in a small share of the run's time. */
static pl_status set_evaluation(pl_config *config, double tokens,
                                pl_config_source from, pl_error *err)
{
    const double batch = (double)(config->eval_batch_size != PL_NONE
                                      ? config->eval_batch_size
                                      : config->batch_size) *
                         (double)config->block_size;
    int64_t iters = nearest(EVALUATED_SHARE * tokens / batch, 1);
    if (iters > MOST_EVAL_ITERS)
        iters = MOST_EVAL_ITERS;
    return propose(config, PL_KEY_eval_iters, pl_value_int(iters), from, err);
}

pl_status pl_dial_set_run(pl_config *config, size_t vocab_size, double tokens,
                          pl_config_source from, pl_error *err)
{
    double parameters;
    if (config->depth == PL_NONE)
        return PL_OK;
    pl_status status = pl_dial_parameters(&parameters, config, vocab_size, err);
    if (status)
        return status;
    if (!(tokens > 0.0))
        tokens = PL_DIAL_RATIO * parameters;
    const double reference = (double)PL_DIAL_RATIO * REFERENCE_PARAMETERS,
                 best = REFERENCE_BATCH *
                        pl_exact_pow(tokens / reference, BATCH_POWER),
                 batch = fmin(best, tokens / LEAST_UPDATES);
    status = set_batch(config, power_of_two(batch / (double)config->block_size),
                       from, err);
    if (!status)
        status = set_rates(config, from, err);
    if (!status)
        status = pl_dial_set_length(
            config,
            nearest(tokens / (double)pl_config_update_tokens(config), 1), from,
            err);
    if (!status)
        status = set_evaluation(config, tokens, from, err);
    return status;
}

/* ---- a run that goes on ---- */

static pl_status compare(const pl_config *config, const pl_config *kept,
                         pl_key key, const char *folder, pl_error *err)
{
    char has[PL_VALUE_BRIEF_BYTES], asked[PL_VALUE_BRIEF_BYTES];
    const pl_value had = pl_config_get(kept, key),
                   now = pl_config_get(config, key);
    if (!pl_config_was_set(config, key) ||
        pl_config_same_value(config, kept, key))
        return PL_OK;
    pl_value_brief(&had, has);
    pl_value_brief(&now, asked);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: %s was %s when the run began, and %s is asked for: "
                   "what follows from it was settled then (max_iters = %" PRId64
                   "). Leave it as it was; --max_iters says how far to go on. "
                   "Another one needs a new run in another out_dir",
                   pl_path_shown(folder), pl_key_row(key)->name, has, asked,
                   kept->max_iters);
}

pl_status pl_dial_keep(pl_config *config, const pl_config *kept,
                       const char *folder, pl_error *err)
{
    pl_status status = PL_OK;
    if (config->depth == PL_NONE && !(config->max_minutes > 0.0))
        return PL_OK;
    status = compare(config, kept, PL_KEY_depth, folder, err);
    if (!status && !pl_config_was_set(config, PL_KEY_max_iters))
        status = compare(config, kept, PL_KEY_max_minutes, folder, err);
    for (size_t i = 0; i < sizeof derived / sizeof derived[0] && !status; i++) {
        const pl_value value = pl_config_get(kept, derived[i]);
        if (!pl_config_was_set(kept, derived[i]))
            status = propose(config, derived[i], value,
                             config->depth != PL_NONE ? PL_FROM_DEPTH
                                                      : PL_FROM_MINUTES,
                             err);
    }
    return status;
}
