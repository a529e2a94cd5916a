/* attention.c: from q, k, v to the heads' outputs and back, in the three ways
 * that PyTorch has for nanoGPT: a fused kernel, nanoGPT's own products, and
 * SDPA's plain path, which the CPU takes when there is dropout. */
#include "explain/nanogpt_replay.h"

/* ---- sizes ---- */

static size_t act(const pl_replay_pass *p, size_t channels)
{
    return p->B * p->T * p->r->job->C * channels * pl_replay_s(p->r->job);
}

static size_t scores(const pl_replay_pass *p)
{
    return p->B * p->r->job->H * p->T * p->T;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static pl_taken take_scores(const pl_replay_pass *p, const char *name, size_t s)
{
    return pl_replay_take(p, PL_ITEM_SCORES, name, scores(p) * s);
}

static pl_taken take_act(const pl_replay_pass *p, const char *name)
{
    return pl_replay_take(p, p->saves ? PL_ITEM_SAVED : PL_ITEM_TEMPORARY, name,
                          act(p, 1));
}

/* The tiles of the CPU's kernel, one set per thread. */
static size_t forward_scratch(const pl_replay_pass *p)
{
    const pl_nanogpt_job *job = p->r->job;
    size_t q = p->T >= 768 ? 256 : p->T >= 192 ? 64 : 32;
    q = smaller(q, p->T);
    size_t kv = smaller(512, p->T), D = job->C / job->H;
    if (job->device == PL_TORCH_CUDA)
        return 0;
    return job->threads * (q * kv + 2 * q + q * D) * 4;
}

/* On CUDA the kernel sums the gradient of q in fp32. */
static size_t backward_scratch(const pl_replay_pass *p)
{
    const pl_nanogpt_job *job = p->r->job;
    size_t q = p->T >= 768 ? 256 : p->T >= 192 ? 64 : 32;
    size_t D = round_up(job->C / job->H, 32), T = round_up(p->T, 128);
    if (job->device == PL_TORCH_CUDA)
        return p->B * job->H * T * (D + 1) * 4;
    return job->threads * 2 * smaller(q, p->T) * smaller(512, p->T) * 4;
}

/* ---- forward ---- */

static pl_taken flash(const pl_replay_pass *p, pl_replay_layer *a)
{
    pl_taken y = take_act(p, "attention");
    a->lse = pl_replay_take(p, p->saves ? PL_ITEM_SAVED : PL_ITEM_TEMPORARY,
                            "log-sum-exp", 4 * p->B * p->T * p->r->job->H);
    pl_taken scratch = pl_replay_take(
        p, PL_ITEM_TEMPORARY, "attention's scratch", forward_scratch(p));
    pl_replay_release(p, &scratch);
    if (!p->saves)
        pl_replay_release(p, &a->lse);
    return y;
}

/* The heads' outputs in the order of the channels: a copy unless there is one
 * head. */
static pl_taken gather(const pl_replay_pass *p, pl_taken *y)
{
    if (p->r->job->H == 1 || p->T == 1)
        return *y;
    pl_taken att = take_act(p, "attention");
    pl_replay_release(p, y);
    return att;
}

/* Softmax of *in, which dies, in fp32. */
static void softmax(const pl_replay_pass *p, pl_replay_layer *a, pl_taken *in)
{
    pl_taken wide = 0;
    if (pl_replay_autocast(p->r->job))
        wide = take_scores(p, "scores in fp32", 4);
    a->softmax = take_scores(p, "softmax", 4);
    pl_replay_release(p, &wide);
    pl_replay_release(p, in);
}

/* After softmax: dropout, the product with v. *held is what Python's variable
 * keeps until the function returns. */
static pl_taken weigh(const pl_replay_pass *p, pl_replay_layer *a,
                      pl_taken *held)
{
    const pl_nanogpt_job *job = p->r->job;
    int autocast = pl_replay_autocast(job);
    if (pl_replay_drops(p)) {
        a->noise = take_scores(p, "dropout of scores",
                               job->device == PL_TORCH_CUDA ? 1 : 4);
        a->dropped = take_scores(p, "scores after dropout", 4);
        if (!p->saves) {
            pl_replay_release(p, &a->noise);
            pl_replay_release(p, &a->softmax);
        }
    }
    if (pl_replay_clones(p))
        a->v = take_act(p, "v, copied");
    if (autocast)
        a->scores16 = take_scores(p, "scores in 16 bits", 2);
    pl_taken y = pl_replay_take(p, PL_ITEM_TEMPORARY, "heads", act(p, 1));
    if (!p->saves) {
        pl_replay_release(p, &a->v);
        pl_replay_release(p, &a->scores16);
    }
    /* What autograd saves stays; the rest lives as long as the variable. */
    pl_taken *bound = a->dropped ? &a->dropped : &a->softmax;
    if (!p->saves || (autocast && a->dropped)) {
        *held = *bound;
        *bound = 0;
    }
    return gather(p, &y);
}

static pl_taken own(const pl_replay_pass *p, pl_replay_layer *a, pl_taken *held)
{
    size_t s = pl_replay_s(p->r->job);
    if (pl_replay_clones(p)) {
        a->q = take_act(p, "q, copied");
        a->k = take_act(p, "k, copied");
    }
    pl_taken raw = take_scores(p, "scores", s);
    if (!p->saves) {
        pl_replay_release(p, &a->q);
        pl_replay_release(p, &a->k);
    }
    pl_taken scaled = take_scores(p, "scaled scores", s);
    pl_replay_release(p, &raw);
    a->mask = pl_replay_take(p, PL_ITEM_MASKS, "mask", p->T * p->T);
    pl_taken masked = take_scores(p, "masked scores", s);
    if (!p->saves)
        pl_replay_release(p, &a->mask);
    pl_replay_release(p, &scaled);
    softmax(p, a, &masked);
    return weigh(p, a, held);
}

static pl_taken plain(const pl_replay_pass *p, pl_replay_layer *a,
                      pl_taken *held)
{
    size_t square = p->T * p->T;
    pl_taken q = take_act(p, "q, scaled");
    pl_taken ones = pl_replay_take(p, PL_ITEM_MASKS, "ones", square);
    pl_taken mask = pl_replay_take(p, PL_ITEM_MASKS, "mask", square);
    pl_replay_release(p, &ones);
    pl_taken bias = pl_replay_take(p, PL_ITEM_MASKS, "mask in fp32",
                                   4 * square);
    pl_replay_release(p, &mask);
    pl_taken k = take_act(p, "k, scaled");
    if (pl_replay_clones(p)) {
        a->q = take_act(p, "q, copied");
        a->k = take_act(p, "k, copied");
    }
    pl_taken raw = take_scores(p, "scores", 4);
    if (a->k)
        pl_replay_release(p, &k);
    else
        a->k = k;
    a->softmax = take_scores(p, "softmax", 4);
    pl_taken check = take_scores(p, "rows without a key", 1);
    pl_replay_release(p, &check);
    pl_replay_release(p, &raw);
    pl_taken y = weigh(p, a, held);
    pl_replay_release(p, &bias);
    if (a->q)
        pl_replay_release(p, &q);
    else
        a->q = q;
    if (!p->saves) {
        pl_replay_release(p, &a->q);
        pl_replay_release(p, &a->k);
    }
    return y;
}

pl_taken pl_replay_attention(const pl_replay_pass *p, pl_replay_layer *a,
                             pl_taken *held)
{
    if (p->r->job->attention == PL_TORCH_SCORES)
        return own(p, a, held);
    return pl_replay_math(p) ? plain(p, a, held) : flash(p, a);
}

/* ---- backward ---- */

static pl_taken take_gradient(const pl_replay_pass *p)
{
    return pl_replay_take(p, PL_ITEM_TEMPORARY, "gradient of q, k or v",
                          act(p, 1));
}

/* The next gradient of the scores, of `s` bytes each, for the one before. */
static void step(const pl_replay_pass *p, pl_taken *d, size_t s)
{
    pl_taken next = take_scores(p, "gradient of scores", s);
    pl_replay_release(p, d);
    *d = next;
}

/* A copy in another order: q's or k's gradient. */
static void reorder(const pl_replay_pass *p, pl_taken *d)
{
    pl_taken next = take_gradient(p);
    pl_replay_release(p, d);
    *d = next;
}

static void scores_backward(const pl_replay_pass *p, pl_replay_layer *a,
                            pl_taken *datt, pl_taken d[3])
{
    const pl_nanogpt_job *job = p->r->job;
    size_t s = pl_replay_s(job);
    int autocast = pl_replay_autocast(job), plainly = pl_replay_math(p);

    if (pl_replay_clones(p))
        reorder(p, datt);
    d[2] = take_gradient(p);
    pl_taken ds = take_scores(p, "gradient of scores", s);
    pl_replay_release(p, datt);
    pl_replay_release(p, &a->v);
    pl_replay_release(p, &a->scores16);
    pl_replay_release(p, &a->dropped);
    if (autocast)
        step(p, &ds, 4);
    if (a->noise) {
        step(p, &ds, 4);
        pl_replay_release(p, &a->noise);
    }
    step(p, &ds, 4);
    pl_replay_release(p, &a->softmax);
    if (autocast)
        step(p, &ds, s);
    if (!plainly) {
        step(p, &ds, s); /* masked_fill */
        pl_replay_release(p, &a->mask);
        step(p, &ds, s); /* the scale */
    }
    d[0] = take_gradient(p);
    d[1] = take_gradient(p);
    pl_replay_release(p, &ds);
    pl_replay_release(p, &a->q);
    pl_replay_release(p, &a->k);
    for (int i = 0; i < 2; i++)
        reorder(p, &d[i]);
}

pl_taken pl_replay_attention_backward(const pl_replay_pass *p,
                                      pl_replay_layer *a, pl_taken *datt)
{
    pl_taken d[3];
    if (a->lse) {
        for (int i = 0; i < 3; i++)
            d[i] = take_gradient(p);
        pl_taken scratch = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                          "attention's backward scratch",
                                          backward_scratch(p));
        pl_replay_release(p, &scratch);
        pl_replay_release(p, datt);
        pl_replay_release(p, &a->lse);
        pl_replay_release(p, &a->att);
    } else {
        scores_backward(p, a, datt, d);
    }
    pl_replay_release(p, &a->qkv);
    pl_taken dqkv = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                   "gradients of q, k and v", act(p, 3));
    for (int i = 0; i < 3; i++)
        pl_replay_release(p, &d[i]);
    return dqkv;
}
