/* nanogpt.c: nanoGPT's loop: evaluation, micro-steps, AdamW. */
#include "explain/nanogpt.h"

#include "base/check.h"
#include "base/units.h"
#include "explain/nanogpt_replay.h"

#include <string.h>

/* nanoGPT's own lines, of train.py and model.py. */
static const char line_build[] = "model = GPT(gptconf)";
static const char line_blocks[] = "for block in self.transformer.h: "
                                  "x = block(x)";
static const char line_head[] = "logits = self.lm_head(x)";
static const char line_loss[] =
    "loss = F.cross_entropy(logits.view(-1, logits.size(-1)), "
    "targets.view(-1), ignore_index=-1)";
static const char line_backward[] = "scaler.scale(loss).backward()";
static const char line_step[] = "scaler.step(optimizer)";

/* The allocator's model looks through its free blocks one by one. */
enum { MOST_LAYERS_RESERVED = 96 };

static size_t rows(const pl_replay_pass *p)
{
    return p->B * p->T;
}

static size_t residual(const pl_replay_pass *p)
{
    return rows(p) * p->r->job->C * 4;
}

static size_t vocabulary(const pl_replay_pass *p, size_t s)
{
    return rows(p) * p->r->job->V * s;
}

static size_t norm_f(const pl_nanogpt_job *job)
{
    return job->C * (job->biases == PL_TORCH_BIASES ? 2 : 1);
}

static size_t parameters(const pl_nanogpt_job *job)
{
    size_t layer = 0;
    for (int i = 0; i < PL_REPLAY_WEIGHTS; i++)
        layer += pl_replay_weight(job, i);
    return (job->V + job->T) * job->C + job->L * layer + norm_f(job);
}

/* ---- forward ---- */

static pl_item kind(const pl_replay_pass *p)
{
    return p->saves ? PL_ITEM_SAVED : PL_ITEM_TEMPORARY;
}

/* The blocks, over *x. With checkpointing a block runs as if autograd were
 * off, but for its input. */
static void run_blocks(const pl_replay_pass *p, pl_taken *x)
{
    pl_replay *r = p->r;
    int inputs = p->saves && r->job->checkpoint == PL_TORCH_SAVE_INPUTS ? 1 : 0;
    pl_replay_pass inner = *p;
    if (inputs)
        inner.saves = 0;
    for (size_t l = 0; l < r->job->L; l++) {
        inner.notes = p->notes && l == 0;
        pl_taken out = pl_replay_block(&inner, &r->layers[l], *x);
        if (inputs)
            pl_tape_relabel(&r->tape, *x, PL_ITEM_SAVED);
        else if (!p->saves)
            pl_replay_release(p, &r->layers[l].x);
        *x = out;
    }
}

static void drop_copies(const pl_replay_pass *p)
{
    for (size_t l = 0; l < p->r->job->L; l++)
        for (int i = 0; i < PL_REPLAY_MATRICES; i++)
            pl_replay_release(p, &p->r->layers[l].copy[i]);
}

static pl_taken embed(const pl_replay_pass *p, pl_taken parts[2])
{
    const pl_nanogpt_job *job = p->r->job;
    parts[0] = parts[1] = 0;
    if (!pl_replay_fused(job)) {
        parts[0] = pl_replay_take(p, PL_ITEM_TEMPORARY, "token embedding",
                                  residual(p));
        parts[1] = pl_replay_take(p, PL_ITEM_TEMPORARY, "position embedding",
                                  p->T * job->C * 4);
    }
    pl_taken x = pl_replay_take(p, PL_ITEM_TEMPORARY, "residual stream",
                                residual(p));
    if (!pl_replay_drops(p))
        return x;
    p->r->head.drop = pl_replay_take(
        p, kind(p), "dropout mask",
        residual(p) / (job->device == PL_TORCH_CUDA ? 4 : 1));
    pl_taken y = pl_replay_take(p, PL_ITEM_TEMPORARY, "dropout", residual(p));
    pl_replay_release(p, &x);
    if (!p->saves)
        pl_replay_release(p, &p->r->head.drop);
    return y;
}

/* The last layernorm and the logits, which are returned. */
static pl_taken run_head(const pl_replay_pass *p, pl_taken x, pl_taken *ln32)
{
    const pl_nanogpt_job *job = p->r->job;
    pl_replay_head *h = &p->r->head;
    int autocast = pl_replay_autocast(job);
    size_t s = pl_replay_s(job);

    p->r->tape.line = line_head;
    *ln32 = 0;
    pl_taken ln = pl_replay_take(
        p, autocast ? PL_ITEM_TEMPORARY : kind(p), "last layernorm",
        pl_replay_fused(job) ? residual(p) / 4 * s : residual(p));
    h->stats = pl_replay_take(p, kind(p), "mean, rstd", 8 * rows(p));
    if (p->saves)
        h->x = x;
    else
        pl_replay_release(p, &x);
    pl_tape_relabel(&p->r->tape, h->x, PL_ITEM_SAVED);
    if (autocast) {
        *ln32 = ln;
        ln = pl_replay_take(p, kind(p), "last layernorm in 16 bits",
                            residual(p) / 2);
        h->copy = pl_replay_take(p, PL_ITEM_COPIES, "16-bit lm_head",
                                 job->V * job->C * 2);
    }
    h->ln = ln;
    pl_taken logits = pl_replay_take(p, PL_ITEM_LOGITS, "logits",
                                     vocabulary(p, s));
    if (!p->saves && autocast)
        pl_replay_release(p, &h->ln);
    return logits;
}

static void run_loss(const pl_replay_pass *p)
{
    const pl_nanogpt_job *job = p->r->job;
    pl_replay_head *h = &p->r->head;
    if (pl_replay_fused(job))
        return;
    p->r->tape.line = line_loss;
    h->logprobs = pl_replay_take(p, PL_ITEM_LOGPROBS, "log_softmax",
                                 vocabulary(p, pl_replay_s(job)));
    if (pl_replay_autocast(job))
        h->logprobs32 = pl_replay_take(
            p, PL_ITEM_LOGPROBS32, "fp32 copy for nll_loss", vocabulary(p, 4));
    if (p->saves)
        return;
    pl_replay_release(p, &h->logprobs32);
    pl_replay_release(p, &h->logprobs);
}

/* logits, loss = model(X, Y) */
static pl_taken run_model(const pl_replay_pass *p)
{
    pl_replay_head *h = &p->r->head;
    pl_taken parts[2], ln32;
    p->r->tape.line = line_blocks;
    pl_taken at = pl_replay_take(p, PL_ITEM_TOKENS, "positions", 8 * p->T);
    pl_taken x = embed(p, parts);
    run_blocks(p, &x);
    pl_taken logits = run_head(p, x, &ln32);
    run_loss(p);
    for (int i = 0; i < 2; i++)
        pl_replay_release(p, &parts[i]);
    pl_replay_release(p, &ln32);
    pl_replay_release(p, &at);
    if (!p->saves) {
        pl_replay_release(p, &h->ln);
        pl_replay_release(p, &h->stats);
        pl_replay_release(p, &h->copy);
    }
    if (!p->saves || p->r->job->checkpoint == PL_TORCH_SAVE_INPUTS)
        drop_copies(p);
    return logits;
}

/* ---- backward ---- */

static pl_taken loss_backward(const pl_replay_pass *p)
{
    const pl_nanogpt_job *job = p->r->job;
    pl_replay_head *h = &p->r->head;
    size_t s = pl_replay_s(job);
    if (pl_replay_fused(job))
        return pl_replay_take(p, PL_ITEM_DLOGITS, "gradient of logits",
                              vocabulary(p, s));
    pl_taken d = pl_replay_take(p, PL_ITEM_DLOGPROBS,
                                "gradient of log-probabilities",
                                vocabulary(p, 4));
    pl_replay_release(p, &h->logprobs32);
    if (pl_replay_autocast(job)) {
        pl_taken narrow = pl_replay_take(
            p, PL_ITEM_DLOGPROBS, "the same in 16 bits", vocabulary(p, 2));
        pl_replay_release(p, &d);
        d = narrow;
    }
    pl_taken dlogits = pl_replay_take(p, PL_ITEM_DLOGITS, "gradient of logits",
                                      vocabulary(p, s));
    pl_replay_release(p, &d);
    pl_replay_release(p, &h->logprobs);
    return dlogits;
}

/* Returns the gradient of the residual stream; *dwte waits for the input's
 * part of the tied embedding's gradient. */
static pl_taken head_backward(const pl_replay_pass *p, pl_taken *dlogits,
                              pl_taken *dwte)
{
    const pl_nanogpt_job *job = p->r->job;
    pl_replay_head *h = &p->r->head;
    size_t weight = job->V * job->C, s = pl_replay_s(job);

    *dwte = pl_replay_take(p, PL_ITEM_DWEIGHTS, "gradient of lm_head",
                           weight * s);
    pl_taken dln = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                  "gradient of a product's input",
                                  residual(p) / 4 * s);
    pl_replay_release(p, dlogits);
    pl_replay_release(p, &h->ln);
    pl_replay_release(p, &h->copy);
    if (pl_replay_autocast(job)) {
        pl_taken wide = pl_replay_take(
            p, PL_ITEM_DWEIGHTS, "gradient of lm_head in fp32", weight * 4);
        pl_replay_release(p, dwte);
        *dwte = wide;
    }
    pl_taken dx = pl_replay_take(
        p, PL_ITEM_TEMPORARY, "gradient of the residual stream", residual(p));
    if (p->r->grad_f == 0)
        p->r->grad_f = pl_replay_take(p, PL_ITEM_GRADIENTS,
                                      "gradient of the last layernorm",
                                      norm_f(job) * 4);
    pl_replay_release(p, &dln);
    pl_replay_release(p, &h->x);
    pl_replay_release(p, &h->stats);
    return dx;
}

static void embed_backward(const pl_replay_pass *p, pl_taken *dx,
                           pl_taken *dwte)
{
    const pl_nanogpt_job *job = p->r->job;
    size_t table = job->T * job->C * 4, weight = job->V * job->C * 4;
    if (p->r->head.drop) {
        pl_taken d = pl_replay_take(p, PL_ITEM_TEMPORARY,
                                    "gradient after dropout", residual(p));
        pl_replay_release(p, dx);
        pl_replay_release(p, &p->r->head.drop);
        *dx = d;
    }
    pl_taken dposition = pl_replay_take(
        p, PL_ITEM_TEMPORARY, "sum over sequences", p->T * job->C * 4);
    pl_taken dwpe = pl_replay_take(p, PL_ITEM_DWEIGHTS, "gradient of positions",
                                   table);
    pl_replay_release(p, &dposition);
    pl_replay_accumulate(p, &p->r->grad_wpe, dwpe);
    pl_taken part = pl_replay_take(p, PL_ITEM_DWEIGHTS,
                                   "gradient of the embedding", weight);
    pl_replay_release(p, dx);
    pl_taken sum = pl_replay_take(p, PL_ITEM_DWEIGHTS,
                                  "sum of the tied gradients", weight);
    pl_replay_release(p, &part);
    pl_replay_release(p, dwte);
    pl_replay_accumulate(p, &p->r->grad_wte, sum);
}

static void run_backward(const pl_replay_pass *p)
{
    pl_replay *r = p->r;
    pl_taken dwte;
    r->tape.line = line_backward;
    pl_taken dlogits = loss_backward(p);
    pl_taken dx = head_backward(p, &dlogits, &dwte);
    for (size_t l = r->job->L; l-- > 0;) {
        pl_replay_layer *a = &r->layers[l];
        if (r->job->checkpoint == PL_TORCH_SAVE_INPUTS) {
            pl_replay_pass again = *p;
            again.notes = 0;
            pl_taken out = pl_replay_block(&again, a, a->x);
            pl_replay_release(p, &out);
        }
        pl_replay_block_backward(p, a, &dx);
    }
    embed_backward(p, &dx, &dwte);
}

/* ---- the loop ---- */

static void evaluate(pl_replay *r, pl_tape_phase phase)
{
    const pl_nanogpt_job *job = r->job;
    pl_replay_pass p = { .r = r, .B = job->eval_B, .T = job->eval_T };
    pl_taken logits = 0;
    pl_tape_relabel(&r->tape, r->kept, PL_ITEM_KEPT);
    pl_tape_begin(&r->tape, phase);
    pl_taken tokens = pl_replay_take(&p, PL_ITEM_TOKENS, "X, Y", 16 * rows(&p));
    for (int i = 0; i < 2; i++) { /* the second has the first's logits too */
        pl_tape_relabel(&r->tape, logits, PL_ITEM_KEPT);
        pl_taken next = run_model(&p);
        pl_replay_release(&p, &logits);
        logits = next;
        if (job->logits != PL_TORCH_KEEP_LOGITS)
            pl_replay_release(&p, &logits);
    }
    pl_replay_release(&p, &logits);
    pl_replay_release(&p, &tokens);
}

static void micro_step(pl_replay *r, int notes)
{
    const pl_nanogpt_job *job = r->job;
    pl_replay_pass p = { .r = r,
                         .B = job->B,
                         .T = job->T,
                         .training = 1,
                         .saves = 1,
                         .notes = notes };
    pl_tape_relabel(&r->tape, r->kept, PL_ITEM_KEPT);
    pl_taken logits = run_model(&p);
    pl_replay_release(&p, &r->kept);
    r->kept = logits;
    if (job->logits == PL_TORCH_DEL_ALL_LOGITS)
        pl_replay_release(&p, &r->kept);
    pl_taken tokens = pl_replay_take(&p, PL_ITEM_TOKENS, "next X, Y",
                                     16 * rows(&p));
    run_backward(&p);
    pl_replay_release(&p, &tokens);
}

/* One weight of AdamW's loop on the CPU: the square root and the quotient,
 * beside the quotient of the weight before. CUDA has a fused kernel. */
static void adam(const pl_replay_pass *p, size_t elements, pl_taken *before)
{
    if (p->r->job->device == PL_TORCH_CUDA)
        return;
    pl_taken root = pl_replay_take(p, PL_ITEM_OPTIMIZER, "square root",
                                   elements * 4);
    pl_taken quotient = pl_replay_take(p, PL_ITEM_OPTIMIZER, "quotient",
                                       elements * 4);
    pl_replay_release(p, &root);
    pl_replay_release(p, before);
    *before = quotient;
}

static void take_moment_pair(const pl_replay_pass *p, size_t elements)
{
    for (int i = 0; i < 2; i++) /* held for good */
        (void)pl_replay_take(p, PL_ITEM_MOMENTS, "AdamW moment", elements * 4);
}

static void take_moments(const pl_replay_pass *p)
{
    const pl_nanogpt_job *job = p->r->job;
    take_moment_pair(p, job->V * job->C);
    take_moment_pair(p, job->T * job->C);
    for (size_t l = 0; l < job->L; l++)
        for (int i = 0; i < PL_REPLAY_WEIGHTS; i++)
            take_moment_pair(p, pl_replay_weight(job, i));
    take_moment_pair(p, norm_f(job));
}

static void optimize(pl_replay *r, int first)
{
    const pl_nanogpt_job *job = r->job;
    pl_replay_pass p = { .r = r };
    pl_taken quotient = 0;
    r->tape.line = line_step;
    if (first)
        take_moments(&p);
    adam(&p, job->V * job->C, &quotient);
    adam(&p, job->T * job->C, &quotient);
    for (size_t l = 0; l < job->L; l++)
        for (int i = 0; i < PL_REPLAY_MATRICES; i++)
            adam(&p, pl_replay_weight(job, i), &quotient);
    pl_replay_release(&p, &quotient);
    pl_replay_release(&p, &r->grad_wte);
    pl_replay_release(&p, &r->grad_wpe);
    pl_replay_release(&p, &r->grad_f);
    for (size_t l = 0; l < job->L; l++)
        for (int i = 0; i < PL_REPLAY_WEIGHTS; i++)
            pl_replay_release(&p, &r->layers[l].grad[i]);
}

static void build(pl_replay *r)
{
    const pl_nanogpt_job *job = r->job;
    pl_replay_pass p = { .r = r };
    r->tape.line = line_build;
    /* Held for good, each a tensor of its own as the allocator sees them. */
    (void)pl_replay_take(&p, PL_ITEM_WEIGHTS, "wte", job->V * job->C * 4);
    (void)pl_replay_take(&p, PL_ITEM_WEIGHTS, "wpe", job->T * job->C * 4);
    (void)pl_replay_take(&p, PL_ITEM_WEIGHTS, "ln_f", norm_f(job) * 4);
    for (size_t l = 0; l < job->L; l++) {
        for (int i = 0; i < PL_REPLAY_WEIGHTS; i++)
            (void)pl_replay_take(&p, PL_ITEM_WEIGHTS, "weight",
                                 pl_replay_weight(job, i) * 4);
        if (job->attention == PL_TORCH_SCORES)
            (void)pl_replay_take(&p, PL_ITEM_MASKS, "causal mask",
                                 job->T * job->T * 4);
    }
    (void)pl_replay_take(&p, PL_ITEM_TOKENS, "X, Y", 16 * job->B * job->T);
}

static void run(pl_replay *r)
{
    size_t micro_steps = r->job->accumulation > 1 ? 2 : 1;
    build(r);
    evaluate(r, PL_TAPE_EVAL_FIRST);
    for (int update = 0; update < 2; update++) {
        pl_tape_begin(&r->tape, update ? PL_TAPE_UPDATE : PL_TAPE_UPDATE_FIRST);
        for (size_t i = 0; i < micro_steps; i++)
            micro_step(r, update == 0 && i == 0);
        optimize(r, update == 0);
    }
    evaluate(r, PL_TAPE_EVAL_LATER);
}

/* Every sum of the replay stays far below 2^63. */
static const uint64_t most_bytes = UINT64_C(4000000000000000000);

static pl_status check_sizes(const pl_nanogpt_job *job, pl_error *err)
{
    double n = (double)job->B * (double)job->T, C = (double)job->C;
    double eval_n = (double)job->eval_B * (double)job->eval_T;
    double L = (double)job->L, V = (double)job->V;
    double most = n > eval_n ? n : eval_n;
    double longest = (double)(job->T > job->eval_T ? job->T : job->eval_T);
    double bytes = most * V * 32 +
                   (L + 2) * most * (C * 128 + (double)job->H * longest * 64) +
                   (L + 2) * (C * C * 1024 + longest * longest * 16) +
                   (V + longest) * C * 128;
    PL_CHECK(job->B && job->T && job->C && job->L && job->H && job->V);
    PL_CHECK(job->eval_B && job->eval_T && job->C % job->H == 0);
    if (bytes < (double)most_bytes)
        return PL_OK;
    return pl_fail(
        err, PL_E_MEMORY,
        "such a run would need more than %s: larger than any address space",
        pl_units_bytes(most_bytes).text);
}

pl_status pl_nanogpt_replay(const pl_nanogpt_job *job,
                            pl_nanogpt_result *result, pl_tape_watch *watch,
                            void *context, pl_error *err)
{
    enum { SCRATCH_BYTES = 1 << 30 };
    pl_replay r = { .job = job, .result = result };
    pl_cache cache, *model = NULL;
    pl_status status = check_sizes(job, err);
    if (status)
        return status;
    pl_heap heap = pl_heap_make(SCRATCH_BYTES);
    *result = (pl_nanogpt_result){ .parameters = parameters(job) };
    result->reserved_known = job->device == PL_TORCH_CPU ||
                             job->L <= MOST_LAYERS_RESERVED;
    if (job->device == PL_TORCH_CUDA && result->reserved_known) {
        /* No pass takes more than some hundreds of tensors per layer. */
        status = pl_cache_open(&cache, job->allocator, job->limit_bytes,
                               job->L * 1024 + 8192, &heap, err);
        model = &cache;
    }
    if (!status)
        status = pl_heap_take(&heap, &r.layers, job->L, sizeof *r.layers, err);
    if (!status)
        status = pl_tape_open(&r.tape, job->L * 64 + 256, job->limit_bytes,
                              model, &heap, err);
    if (!status) {
        r.tape.watch = watch;
        r.tape.context = context;
        run(&r);
        memcpy(result->peaks, r.tape.peaks, sizeof result->peaks);
        memcpy(result->failures, r.tape.failures, sizeof result->failures);
    }
    pl_heap_close(&heap);
    return status;
}

/* The least limit under which `phase` runs, between what is live at its peak
 * and what is reserved when nothing limits it. */
static pl_status search(const pl_nanogpt_job *job, const pl_tape_peak *peak,
                        pl_tape_phase phase, size_t *need_bytes, pl_error *err)
{
    size_t low = peak->live_bytes, high = peak->reserved_bytes;
    pl_nanogpt_job limited = *job;
    pl_nanogpt_result result;
    while (high > low && high - low > high / 256) {
        limited.limit_bytes = low + (high - low) / 2;
        pl_status status = pl_nanogpt_replay(&limited, &result, NULL, NULL,
                                             err);
        if (status)
            return status;
        if (result.failures[phase].happened)
            low = limited.limit_bytes;
        else
            high = limited.limit_bytes;
    }
    *need_bytes = high > peak->live_bytes ? high : peak->live_bytes;
    return PL_OK;
}

pl_status pl_nanogpt_need(const pl_nanogpt_job *job,
                          const pl_nanogpt_result *result,
                          size_t need_bytes[PL_TAPE_COUNT], pl_error *err)
{
    int modelled = job->device == PL_TORCH_CUDA && result->reserved_known;
    pl_status status = PL_OK;
    for (int i = 0; i < PL_TAPE_COUNT && !status; i++) {
        need_bytes[i] = result->peaks[i].live_bytes;
        if (modelled)
            status = search(job, &result->peaks[i], (pl_tape_phase)i,
                            &need_bytes[i], err);
    }
    return status;
}

const pl_tape_failure *pl_nanogpt_failure(const pl_nanogpt_result *result)
{
    for (int i = 0; i < PL_TAPE_COUNT; i++)
        if (result->failures[i].happened)
            return &result->failures[i];
    return NULL;
}

const pl_tape_peak *pl_nanogpt_train_peak(const pl_nanogpt_result *result)
{
    const pl_tape_peak *first = &result->peaks[PL_TAPE_UPDATE_FIRST];
    const pl_tape_peak *later = &result->peaks[PL_TAPE_UPDATE];
    return first->live_bytes > later->live_bytes ? first : later;
}

double pl_nanogpt_work(const pl_nanogpt_job *job, double *again)
{
    double C = (double)job->C, L = (double)job->L;
    double blocks = L * (12 * C * C + (double)job->T * C);
    *again = blocks;
    return 3 * (blocks + (double)job->V * C);
}
