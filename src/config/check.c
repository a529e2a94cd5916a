/* check.c: what must hold between keys. Only what could not run: nanoGPT lets
 * every odd choice pass, and so does this. */
#include "config/config.h"

#include <inttypes.h>
#include <stdio.h>

enum { WHERE_BYTES = 256 };

/* "block_size = 64 (config/x.py:3:1)" */
static void describe(const pl_config *cfg, pl_key key, char text[WHERE_BYTES])
{
    char value[PL_VALUE_BRIEF_BYTES], origin[120];
    pl_value held = pl_config_get(cfg, key);
    pl_value_brief(&held, value);
    pl_config_origin_text(cfg, key, origin, sizeof origin);
    snprintf(text, WHERE_BYTES, "%s = %s (%s)", pl_key_row(key)->name, value,
             origin);
}

static pl_status refuse(const pl_config *cfg, pl_key a, pl_key b,
                        const char *between, const char *then, pl_error *err)
{
    char first[WHERE_BYTES], second[WHERE_BYTES];
    describe(cfg, a, first);
    describe(cfg, b, second);
    return pl_fail(err, PL_E_CONFIG, "%s %s %s: %s", first, between, second,
                   then);
}

/* Sequences are numbered with 32 bits in the counters of random numbers;
 * both factors are at most 2^30, so that the product can't overflow. */
static bool too_many(int64_t batch, int64_t times)
{
    return batch * times > INT32_MAX;
}

int64_t pl_config_update_tokens(const pl_config *cfg)
{
    return cfg->batch_size * cfg->gradient_accumulation_steps * cfg->block_size;
}

bool pl_config_is_due(const pl_config *cfg, int64_t interval, uint64_t step)
{
    const uint64_t between = (uint64_t)interval,
                   round = (uint64_t)cfg->sync_interval;
    if (step % round != 0)
        return false;
    return step == 0 || step / between > (step - round) / between;
}

static int64_t lowest_bit(int64_t value)
{
    return value & -value;
}

/* A group of less than a batch is the same part of every batch, so that their
 * number has to be a power of two, too. */
int64_t pl_config_most_groups(const pl_config *cfg)
{
    const int64_t batches = cfg->gradient_accumulation_steps,
                  most = lowest_bit(batches);
    return most == batches ? most * lowest_bit(cfg->batch_size) : most;
}

static pl_status check_groups(const pl_config *cfg, pl_error *err)
{
    const int64_t groups = cfg->gradient_groups,
                  most = pl_config_most_groups(cfg);
    char works[2 * WHERE_BYTES];
    if (groups == lowest_bit(groups) && groups <= most)
        return PL_OK;
    int used = snprintf(works, sizeof works,
                        "gradient_groups is a power of two, and here %" PRId64
                        " at the most: a group is a number of whole batches, "
                        "or an equal part of a batch (batch_size = %" PRId64
                        ")",
                        most, cfg->batch_size);
    if (groups == lowest_bit(groups))
        snprintf(works + used, sizeof works - (size_t)used,
                 ". %" PRId64 " groups need gradient_accumulation_steps = "
                 "%" PRId64 " or a multiple of it",
                 groups, groups);
    return refuse(cfg, PL_KEY_gradient_groups,
                  PL_KEY_gradient_accumulation_steps, "doesn't go with", works,
                  err);
}

/* Whether max_iters is still to be made of another key. */
static bool derives_length(const pl_config *cfg)
{
    return !pl_config_was_set(cfg, PL_KEY_max_iters) &&
           cfg->max_iters == pl_config_make_default().max_iters &&
           (cfg->max_minutes > 0.0 || cfg->depth != PL_NONE);
}

/* DiLoCo: a run ends where its workers meet, since nothing else is its model.
 */
static pl_status check_sync(const pl_config *cfg, pl_error *err)
{
    const int64_t round = cfg->sync_interval, over = cfg->max_iters % round;
    char works[WHERE_BYTES];
    if (round == 1)
        return PL_OK;
    if (cfg->weights == PL_WEIGHTS_BF16)
        return refuse(cfg, PL_KEY_sync_interval, PL_KEY_weights,
                      "doesn't go with",
                      "what workers have learnt is the difference of weights, "
                      "which 16 bits don't show; set weights = 'float32'",
                      err);
    if (cfg->gradient_groups > PL_CONFIG_MOST_WORKERS) {
        snprintf(works, sizeof works,
                 "each group is a worker's, and there are at most %d",
                 PL_CONFIG_MOST_WORKERS);
        return refuse(cfg, PL_KEY_sync_interval, PL_KEY_gradient_groups,
                      "doesn't go with", works, err);
    }
    if (over == 0 || derives_length(cfg))
        return PL_OK;
    snprintf(works, sizeof works,
             "a run ends where its workers meet; max_iters = %" PRId64
             " is the next that will do",
             cfg->max_iters - over + round);
    return refuse(cfg, PL_KEY_max_iters, PL_KEY_sync_interval,
                  "is no multiple of", works, err);
}

static pl_status check_model(const pl_config *cfg, pl_error *err)
{
    if (cfg->head_dim == PL_NONE && cfg->n_head > cfg->n_embd)
        return refuse(cfg, PL_KEY_n_head, PL_KEY_n_embd, "is larger than",
                      "a head would have no channels; lower n_head or set "
                      "head_dim",
                      err);
    if (cfg->n_kv_head != PL_NONE && cfg->n_head % cfg->n_kv_head != 0)
        return refuse(cfg, PL_KEY_n_kv_head, PL_KEY_n_head, "doesn't divide",
                      "every head of keys and values is shared by as many "
                      "query heads",
                      err);
    if (cfg->norm_eps <= 0.0)
        return refuse(cfg, PL_KEY_norm_eps, PL_KEY_norm, "is too small for",
                      "a row of zeros would be divided by zero; 1e-5 is usual",
                      err);
    return PL_OK;
}

pl_status pl_config_check(const pl_config *cfg, pl_error *err)
{
    const pl_checkpointing *levels = &cfg->grad_checkpoint;
    pl_key eval_batch = cfg->eval_batch_size == PL_NONE
                            ? PL_KEY_batch_size
                            : PL_KEY_eval_batch_size;
    int64_t eval_batch_size = cfg->eval_batch_size == PL_NONE
                                  ? cfg->batch_size
                                  : cfg->eval_batch_size;
    if (cfg->eval_block_size != PL_NONE &&
        cfg->eval_block_size > cfg->block_size)
        return refuse(cfg, PL_KEY_eval_block_size, PL_KEY_block_size,
                      "is larger than",
                      "the model has no positions beyond block_size", err);
    if (levels->kind == PL_CHECKPOINTING_LIST &&
        levels->count != (size_t)cfg->n_layer)
        return refuse(cfg, PL_KEY_grad_checkpoint, PL_KEY_n_layer,
                      "has not as many items as",
                      "a list needs one level per layer", err);
    pl_status model = check_model(cfg, err);
    if (model)
        return model;
    if (too_many(cfg->batch_size, cfg->gradient_accumulation_steps))
        return refuse(cfg, PL_KEY_batch_size,
                      PL_KEY_gradient_accumulation_steps, "times",
                      "an update has at most 2147483647 sequences", err);
    pl_status groups = check_groups(cfg, err);
    if (!groups)
        groups = check_sync(cfg, err);
    if (groups)
        return groups;
    if (too_many(eval_batch_size, cfg->eval_iters))
        return refuse(cfg, eval_batch, PL_KEY_eval_iters, "times",
                      "an evaluation has at most 2147483647 sequences", err);
    if (cfg->decay_lr && cfg->schedule != PL_SCHEDULE_CONSTANT &&
        cfg->warmup_iters == cfg->lr_decay_iters &&
        cfg->max_iters >= cfg->warmup_iters)
        return refuse(cfg, PL_KEY_lr_decay_iters, PL_KEY_warmup_iters, "equals",
                      "the learning rate has no iterations to decay in; set "
                      "them apart, or decay_lr = False",
                      err);
    return PL_OK;
}
