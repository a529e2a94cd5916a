/* from_config.c: from config keys to a shape, with every size checked. */
#include "model/from_config.h"
#include "model/params.h"

#include <stdio.h>

/* The nearest even width; nanoGPT stops here instead. At least 2. */
static size_t nearest_even(size_t C, size_t H)
{
    size_t half = (C + H) / (2 * H); /* round(C / H / 2) */
    return half ? 2 * half : 2;
}

/* The most heads, at most H, that divide C into even widths; 0: none. */
static size_t dividing_heads(size_t C, size_t H)
{
    for (size_t heads = H; heads > 0; heads--)
        if (C % heads == 0 && C / heads % 2 == 0)
            return heads;
    return 0;
}

static void say_own_width(const pl_shape *shape, const pl_log *log)
{
    size_t heads = dividing_heads(shape->C, shape->H);
    pl_shape other = *shape;
    char advice[256] = "";

    if (heads) {
        other.H = heads;
        other.D = shape->C / heads;
        other.KV = heads; /* n_kv_head needn't divide it */
        other.A = shape->C;
        snprintf(advice, sizeof advice,
                 " n_head = %zu divides %zu (head_dim %zu): %zu parameters, "
                 "and loads anywhere.",
                 heads, shape->C, other.D, pl_param_count(&other));
    }
    if (shape->family != PL_FAMILY_GPT2) {
        /* their files say how wide heads are */
        pl_log_say(log, PL_LOG_NOTE,
                   "n_embd %zu / n_head %zu is not whole: heads are %zu wide, "
                   "attention is %zu wide, %zu parameters",
                   shape->C, shape->H, shape->D, shape->A,
                   pl_param_count(shape));
        return;
    }
    pl_log_say(log, PL_LOG_NOTE,
               "n_embd %zu / n_head %zu is not whole (nanoGPT stops here): "
               "heads are %zu wide, attention is %zu wide, %zu parameters. "
               "Programs that load GPT-2 checkpoints assume n_embd / n_head "
               "and will refuse this model.%s",
               shape->C, shape->H, shape->D, shape->A, pl_param_count(shape),
               advice);
}

/* What only Plimsoll computes is said: nothing else would load it. */
static void say_alone(const pl_shape *shape, const pl_log *log)
{
    char all[PL_SHAPE_STRANGERS_BYTES];
    const pl_shape_field first = pl_shape_stranger(shape);
    if (first == PL_SHAPE_FIELDS)
        return;
    if (first == PL_SHAPE_D && shape->family == PL_FAMILY_GPT2)
        return; /* it was asked for, or say_own_width has said it */
    const pl_value family = pl_shape_value(shape, PL_SHAPE_family);
    pl_shape_strangers_text(shape, all);
    pl_log_say(log, PL_LOG_NOTE,
               "a model of the family %s has no %s: only Plimsoll loads this "
               "one",
               family.text, all);
}

/* A rotation turns pairs of channels. */
static pl_status check_rotation(const pl_shape *shape, pl_error *err)
{
    if (shape->position != PL_POSITION_ROTARY || shape->D % 2 == 0)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "position = 'rope' rotates pairs of channels, and heads are "
                   "%zu wide (n_embd %zu / n_head %zu, or head_dim): set "
                   "head_dim to an even number, or another n_head",
                   shape->D, shape->C, shape->H);
}

static pl_status check_vocab(const pl_config *config, size_t vocab_size,
                             pl_error *err)
{
    if (config->vocab_size != PL_NONE &&
        (size_t)config->vocab_size < vocab_size)
        return pl_fail(err, PL_E_CONFIG,
                       "vocab_size = %lld is less than the tokenizer's %zu: "
                       "set it to %zu or more, or leave it out",
                       (long long)config->vocab_size, vocab_size, vocab_size);
    return PL_OK;
}

pl_status pl_shape_make(pl_shape *shape, const pl_config *config,
                        size_t vocab_size, const pl_log *log, pl_error *err)
{
    size_t C = (size_t)config->n_embd, H = (size_t)config->n_head;
    int whole = C % H == 0;
    size_t D = config->head_dim != PL_NONE ? (size_t)config->head_dim
               : whole                     ? C / H
                                           : nearest_even(C, H);

    pl_status status = check_vocab(config, vocab_size, err);
    if (status)
        return status;
    *shape = (pl_shape){ .D = D, .V = vocab_size };
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        pl_value value = pl_config_get(config, pl_shape_row(field)->key);
        if (value.kind != PL_VALUE_NONE)
            pl_shape_assign(shape, field, &value);
    }
    pl_shape_complete(shape);
    status = check_rotation(shape, err);
    if (status)
        return status;
    if (D * H > (size_t)1 << 28)
        return pl_fail(err, PL_E_CONFIG,
                       "n_head %zu x head_dim %zu is more than this program "
                       "counts on: use less of either",
                       H, D);
    if (!whole && config->head_dim == PL_NONE)
        say_own_width(shape, log);
    say_alone(shape, log);
    return PL_OK;
}
