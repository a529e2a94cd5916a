/* block.c: one transformer block, forward and back: which tensors it takes,
 * which autograd saves, which die when a Python variable is bound again. */
#include "explain/nanogpt_replay.h"

#include "base/check.h"

pl_taken pl_replay_take(const pl_replay_pass *p, pl_item item, const char *name,
                        size_t bytes)
{
    return pl_tape_take(&p->r->tape, item, name, bytes);
}

void pl_replay_release(const pl_replay_pass *p, pl_taken *held)
{
    pl_tape_release(&p->r->tape, held);
}

static pl_item kind(const pl_replay_pass *p)
{
    return p->saves ? PL_ITEM_SAVED : PL_ITEM_TEMPORARY;
}

static size_t rows(const pl_replay_pass *p)
{
    return p->B * p->T;
}

/* Bytes of `channels` x C of activations, in what products compute with. */
static size_t act(const pl_replay_pass *p, size_t channels)
{
    return rows(p) * p->r->job->C * channels * pl_replay_s(p->r->job);
}

/* Of the residual stream, which is always fp32. */
static size_t residual(const pl_replay_pass *p)
{
    return rows(p) * p->r->job->C * 4;
}

size_t pl_replay_weight(const pl_nanogpt_job *job, int index)
{
    size_t C = job->C, bias = job->biases == PL_TORCH_BIASES;
    switch (index) {
    case PL_REPLAY_QKV:
        return 3 * C * C + bias * 3 * C;
    case PL_REPLAY_ATT:
        return C * C + bias * C;
    case PL_REPLAY_FC:
        return 4 * C * C + bias * 4 * C;
    case PL_REPLAY_MLP:
        return 4 * C * C + bias * C;
    default:
        return 2 * C + bias * 2 * C;
    }
}

void pl_replay_note(const pl_replay_pass *p, const char *name,
                    const char *used_by, pl_taken held)
{
    pl_nanogpt_result *result = p->r->result;
    if (!p->notes || !p->saves || held == 0)
        return;
    PL_CHECK(result->saved_count < PL_NANOGPT_SAVED_ROWS);
    result->saved[result->saved_count++] =
        (pl_nanogpt_saved){ name, used_by, p->r->tape.slots[held].bytes };
}

/* ---- forward ---- */

/* Autocast makes a copy of a weight at its first use in a pass; autograd, or
 * the cache until the context ends, keeps it. */
static void use_weight(const pl_replay_pass *p, pl_replay_layer *a, int index)
{
    if (pl_replay_autocast(p->r->job) && a->copy[index] == 0)
        a->copy[index] = pl_replay_take(p, PL_ITEM_COPIES, "16-bit weight",
                                        pl_replay_weight(p->r->job, index) * 2);
}

/* A layernorm. Returns what the next product reads; *out is the result as
 * Python holds it while the sublayer is called, if that is something else. */
static pl_taken norm(const pl_replay_pass *p, const char *name, pl_taken *stats,
                     pl_taken *out)
{
    const pl_nanogpt_job *job = p->r->job;
    int casts = pl_replay_autocast(job) && !pl_replay_fused(job);
    *out = 0;
    if (pl_replay_fused(job)) {
        *stats = pl_replay_take(p, kind(p), "mean, rstd", 8 * rows(p));
        if (!p->saves)
            pl_replay_release(p, stats);
        return pl_replay_take(p, PL_ITEM_TEMPORARY, name, act(p, 1));
    }
    if (casts)
        *out = pl_replay_take(p, PL_ITEM_TEMPORARY, "layernorm in fp32",
                              residual(p));
    pl_taken ln = casts ? 0 : pl_replay_take(p, kind(p), name, residual(p));
    *stats = pl_replay_take(p, kind(p), "mean, rstd", 8 * rows(p));
    if (!p->saves)
        pl_replay_release(p, stats);
    if (casts)
        ln = pl_replay_take(p, kind(p), name, act(p, 1));
    return ln;
}

/* After the product: what it read is saved, or dies once Python lets go. */
static void done_with(const pl_replay_pass *p, pl_taken *input)
{
    if (!p->saves || pl_replay_fused(p->r->job))
        pl_replay_release(p, input);
}

static pl_taken drop(const pl_replay_pass *p, pl_taken *x, pl_taken *mask)
{
    if (!pl_replay_drops(p))
        return *x;
    /* CUDA keeps a byte per element, the CPU what it multiplied by. */
    size_t bytes = p->r->job->device == PL_TORCH_CUDA ? rows(p) * p->r->job->C
                                                      : act(p, 1);
    *mask = pl_replay_take(p, kind(p), "dropout mask", bytes);
    pl_taken y = pl_replay_take(p, PL_ITEM_TEMPORARY, "dropout", act(p, 1));
    if (!p->saves)
        pl_replay_release(p, mask);
    pl_replay_release(p, x);
    return y;
}

static pl_taken attention_half(const pl_replay_pass *p, pl_replay_layer *a)
{
    pl_taken ln32, scores = 0;
    a->ln1 = norm(p, "layernorm 1", &a->stats1, &ln32);
    use_weight(p, a, PL_REPLAY_QKV);
    a->qkv = pl_replay_take(p, kind(p), "q, k, v", act(p, 3));
    if (ln32 || pl_replay_fused(p->r->job))
        done_with(p, &a->ln1);
    a->att = pl_replay_attention(p, a, &scores);
    use_weight(p, a, PL_REPLAY_ATT);
    pl_taken y = pl_replay_take(p, PL_ITEM_TEMPORARY, "attention's projection",
                                act(p, 1));
    if (!p->saves)
        pl_replay_release(p, &a->att);
    y = drop(p, &y, &a->drop1);
    if (!p->saves || a->v)
        pl_replay_release(p, &a->qkv);
    pl_replay_release(p, &scores);
    pl_replay_release(p, &ln32);
    done_with(p, &a->ln1);
    return y;
}

static pl_taken mlp_half(const pl_replay_pass *p, pl_replay_layer *a)
{
    pl_taken ln32;
    a->ln2 = norm(p, "layernorm 2", &a->stats2, &ln32);
    use_weight(p, a, PL_REPLAY_FC);
    a->fc = pl_replay_take(p, kind(p), "MLP hidden", act(p, 4));
    if (ln32 || pl_replay_fused(p->r->job))
        done_with(p, &a->ln2);
    a->gelu = pl_replay_take(
        p, pl_replay_fused(p->r->job) ? PL_ITEM_TEMPORARY : kind(p), "GELU",
        act(p, 4));
    if (!p->saves)
        pl_replay_release(p, &a->fc);
    use_weight(p, a, PL_REPLAY_MLP);
    pl_taken y = pl_replay_take(p, PL_ITEM_TEMPORARY, "MLP's projection",
                                act(p, 1));
    done_with(p, &a->gelu);
    y = drop(p, &y, &a->drop2);
    pl_replay_release(p, &ln32);
    done_with(p, &a->ln2);
    return y;
}

static void note_saved(const pl_replay_pass *p, const pl_replay_layer *a)
{
    pl_replay_note(p, "x", "layernorm 1", a->x);
    pl_replay_note(p, "layernorm 1", "product c_attn", a->ln1);
    pl_replay_note(p, "q, k, v", "attention", a->qkv);
    pl_replay_note(p, "q, copied", "product q k", a->q);
    pl_replay_note(p, "k, copied", "product q k", a->k);
    pl_replay_note(p, "v, copied", "product of scores and v", a->v);
    pl_replay_note(p, "mask", "masked_fill", a->mask);
    pl_replay_note(p, "softmax", "softmax", a->softmax);
    pl_replay_note(p, "dropout of scores", "dropout", a->noise);
    pl_replay_note(p, "scores after dropout", "product of scores and v",
                   a->dropped);
    pl_replay_note(p, "scores, 16 bits", "product of scores and v",
                   a->scores16);
    pl_replay_note(p, "log-sum-exp", "attention", a->lse);
    pl_replay_note(p, "attention", "attention, product c_proj", a->att);
    pl_replay_note(p, "dropout 1", "dropout", a->drop1);
    pl_replay_note(p, "x + attention", "layernorm 2", a->mid);
    pl_replay_note(p, "layernorm 2", "product c_fc", a->ln2);
    pl_replay_note(p, "MLP hidden", "GELU", a->fc);
    pl_replay_note(p, "GELU", "product c_proj", a->gelu);
    pl_replay_note(p, "dropout 2", "dropout", a->drop2);
    pl_replay_note(p, "means, deviations 1", "layernorm 1", a->stats1);
    pl_replay_note(p, "means, deviations 2", "layernorm 2", a->stats2);
}

pl_taken pl_replay_block(const pl_replay_pass *p, pl_replay_layer *a,
                         pl_taken x)
{
    a->x = x;
    if (p->saves)
        pl_tape_relabel(&p->r->tape, x, PL_ITEM_SAVED);
    pl_taken y = attention_half(p, a);
    a->mid = pl_replay_take(p, kind(p), "x + attention", residual(p));
    pl_replay_release(p, &y);
    y = mlp_half(p, a);
    pl_taken out = pl_replay_take(p, PL_ITEM_TEMPORARY, "residual stream",
                                  residual(p));
    pl_replay_release(p, &y);
    note_saved(p, a);
    if (!p->saves)
        pl_replay_release(p, &a->mid);
    return out;
}

/* ---- backward ---- */

void pl_replay_accumulate(const pl_replay_pass *p, pl_taken *grad, pl_taken dw)
{
    if (*grad) {
        pl_replay_release(p, &dw);
        return;
    }
    pl_tape_relabel(&p->r->tape, dw, PL_ITEM_GRADIENTS);
    *grad = dw;
}

/* Gradients of a product: of its weight, and `bytes` of its input, which is
 * returned. Its own gradient and what it saved are released after it. */
static pl_taken product_backward(const pl_replay_pass *p, pl_replay_layer *a,
                                 int index, size_t bytes, pl_taken *dy,
                                 pl_taken *input)
{
    const pl_nanogpt_job *job = p->r->job;
    size_t weight = pl_replay_weight(job, index);
    pl_taken dw = pl_replay_take(p, PL_ITEM_DWEIGHTS, "gradient of a weight",
                                 weight * pl_replay_s(job));
    pl_taken dx = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                 "gradient of a product's input", bytes);
    if (dy)
        pl_replay_release(p, dy);
    pl_replay_release(p, input);
    if (pl_replay_autocast(job)) {
        pl_replay_release(p, &a->copy[index]);
        pl_taken wide = pl_replay_take(
            p, PL_ITEM_DWEIGHTS, "gradient of a weight in fp32", weight * 4);
        pl_replay_release(p, &dw);
        dw = wide;
    }
    pl_replay_accumulate(p, &a->grad[index], dw);
    return dx;
}

/* What enters a sublayer's last product: the residual stream's gradient
 * itself, or a copy in 16 bits, or after dropout. Returns 0 for itself. */
static pl_taken enter(const pl_replay_pass *p, pl_taken *mask)
{
    pl_taken d = 0;
    if (pl_replay_autocast(p->r->job))
        d = pl_replay_take(p, PL_ITEM_TEMPORARY, "gradient in 16 bits",
                           act(p, 1));
    if (pl_replay_drops(p)) {
        pl_taken y = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                    "gradient after dropout", act(p, 1));
        pl_replay_release(p, &d);
        pl_replay_release(p, mask);
        d = y;
    }
    return d;
}

/* From the gradient of a layernorm's output to that of the residual stream,
 * to which it is added in place. */
static void norm_backward(const pl_replay_pass *p, pl_taken *dln, pl_taken *x,
                          pl_taken *stats)
{
    if (pl_replay_autocast(p->r->job) && !pl_replay_fused(p->r->job)) {
        pl_taken wide = pl_replay_take(p, PL_ITEM_TEMPORARY, "gradient in fp32",
                                       residual(p));
        pl_replay_release(p, dln);
        *dln = wide;
    }
    pl_taken d = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                "gradient of a layernorm's input", residual(p));
    pl_replay_release(p, dln);
    pl_replay_release(p, &d);
    pl_replay_release(p, stats);
    pl_replay_release(p, x);
}

/* A compiled backward pass computes layernorms and GELU again. */
static void again(const pl_replay_pass *p, pl_taken *held, size_t channels)
{
    if (pl_replay_fused(p->r->job))
        *held = pl_replay_take(p, PL_ITEM_TEMPORARY, "computed again",
                               act(p, channels));
}

void pl_replay_block_backward(const pl_replay_pass *p, pl_replay_layer *a,
                              pl_taken *dx)
{
    pl_taken d = enter(p, &a->drop2);
    again(p, &a->gelu, 4);
    pl_taken dgelu = product_backward(p, a, PL_REPLAY_MLP, act(p, 4), &d,
                                      &a->gelu);
    pl_taken dfc = pl_replay_take(p, PL_ITEM_TEMPORARY, "gradient of GELU",
                                  act(p, 4));
    pl_replay_release(p, &dgelu);
    pl_replay_release(p, &a->fc);
    again(p, &a->ln2, 1);
    d = product_backward(p, a, PL_REPLAY_FC, act(p, 1), &dfc, &a->ln2);
    norm_backward(p, &d, &a->mid, &a->stats2);

    d = enter(p, &a->drop1);
    /* SDPA saves its output too, so the projection alone can't free it. */
    pl_taken shared = a->lse ? 0 : a->att;
    if (shared)
        a->att = 0;
    pl_taken datt = product_backward(p, a, PL_REPLAY_ATT, act(p, 1), &d,
                                     &shared);
    pl_taken dqkv = pl_replay_attention_backward(p, a, &datt);
    again(p, &a->ln1, 1);
    d = product_backward(p, a, PL_REPLAY_QKV, act(p, 1), &dqkv, &a->ln1);
    norm_backward(p, &d, &a->x, &a->stats1);
    if (a->grad[PL_REPLAY_NORMS] == 0)
        a->grad[PL_REPLAY_NORMS] = pl_replay_take(
            p, PL_ITEM_GRADIENTS, "gradients of layernorms",
            pl_replay_weight(p->r->job, PL_REPLAY_NORMS) * 4);
    PL_CHECK(*dx != 0);
}
