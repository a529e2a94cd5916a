/* advice.c: one row per piece of advice: a changed job, replayed. */
#include "explain/advice.h"

#include "base/check.h"

#include <stdarg.h>
#include <stdio.h>

size_t pl_advice_heads(size_t C, size_t H)
{
    for (; H > 1; H--)
        if (C % H == 0)
            return H;
    return 1;
}

/* A new row named by the format; its note is empty. */
PL_PRINTF(2, 3)
static pl_advice *name_row(pl_advice_list *list, const char *fmt, ...)
{
    PL_CHECK(list->count < PL_ADVICE_MAX);
    pl_advice *row = &list->rows[list->count++];
    *row = (pl_advice){ .name = "" };
    va_list args;
    va_start(args, fmt);
    vsnprintf(row->name, sizeof row->name, fmt, args);
    va_end(args);
    return row;
}

static pl_status fill(pl_advice *row, const pl_nanogpt_job *job, pl_error *err)
{
    pl_nanogpt_result result;
    pl_status status = pl_nanogpt_replay(job, &result, NULL, NULL, err);
    if (status)
        return status;
    row->train_bytes = pl_nanogpt_train_peak(&result)->live_bytes;
    row->eval_first_bytes = result.peaks[PL_TAPE_EVAL_FIRST].live_bytes;
    row->eval_later_bytes = result.peaks[PL_TAPE_EVAL_LATER].live_bytes;
    row->fits = pl_nanogpt_failure(&result) == NULL;
    return PL_OK;
}

/* ---- evaluation ---- */

static pl_status advise_eval(pl_advice_list *list, const pl_nanogpt_job *job,
                             size_t eval_iters, pl_error *err)
{
    pl_nanogpt_job less = *job;
    pl_status status = PL_OK;
    if (job->eval_B > 1) {
        less.eval_B = job->eval_B > 4 ? 4 : 1;
        pl_advice *row = name_row(list, "eval_batch_size = %zu", less.eval_B);
        snprintf(row->note, sizeof row->note,
                 "no key of nanoGPT; a noisier loss unless eval_iters grows");
        status = fill(row, &less, err);
    }
    if (!status && job->eval_T > 1) {
        less = *job;
        less.eval_T = job->eval_T / 2;
        pl_advice *row = name_row(list, "eval_block_size = %zu", less.eval_T);
        snprintf(row->note, sizeof row->note,
                 "no key of nanoGPT; another, higher loss: never compare");
        status = fill(row, &less, err);
    }
    if (status)
        return status;
    pl_advice *row = name_row(list, "eval_iters = %zu",
                              eval_iters > 1 ? eval_iters / 2 : 1);
    snprintf(row->note, sizeof row->note,
             "time only; the noise grows with 1/sqrt");
    return fill(row, job, err);
}

static pl_status advise_del(pl_advice_list *list, const pl_nanogpt_job *job,
                            pl_error *err)
{
    pl_nanogpt_job less = *job;
    less.logits = PL_TORCH_DEL_EVAL_LOGITS;
    pl_advice *row = name_row(list, "del logits in estimate_loss()");
    snprintf(row->note, sizeof row->note,
             "lets go of the last batch's logits before the next");
    pl_status status = fill(row, &less, err);
    if (status)
        return status;
    less.logits = PL_TORCH_DEL_ALL_LOGITS;
    row = name_row(list, "and before backward()");
    snprintf(row->note, sizeof row->note,
             "the training loop's too: backward() doesn't need them");
    return fill(row, &less, err);
}

/* ---- the model ---- */

static pl_status advise_width(pl_advice_list *list, const pl_nanogpt_job *job,
                              size_t C, size_t heads, pl_error *err)
{
    pl_nanogpt_job less = *job;
    less.C = C;
    less.H = pl_advice_heads(C, heads);
    pl_advice *row = name_row(list, "n_embd = %zu", C);
    if (less.H != heads)
        snprintf(row->note, sizeof row->note,
                 "%zu heads don't divide it, nanoGPT stops; %zu do: a smaller "
                 "model",
                 heads, less.H);
    else
        snprintf(row->note, sizeof row->note, "a smaller model");
    return fill(row, &less, err);
}

static pl_status advise_model(pl_advice_list *list, const pl_nanogpt_job *job,
                              size_t heads, pl_error *err)
{
    size_t C = (job->C - 1) / 64 * 64;
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && C >= 64 && !status; i++, C -= 64)
        status = advise_width(list, job, C, heads, err);
    if (status || job->L < 3)
        return status;
    pl_nanogpt_job less = *job;
    less.L = job->L * 2 / 3;
    pl_advice *row = name_row(list, "n_layer = %zu", less.L);
    snprintf(row->note, sizeof row->note, "a smaller model");
    return fill(row, &less, err);
}

/* ---- the run ---- */

static pl_status advise_run(pl_advice_list *list, const pl_nanogpt_job *job,
                            pl_error *err)
{
    double again, work = pl_nanogpt_work(job, &again);
    pl_nanogpt_job less = *job;
    less.checkpoint = PL_TORCH_SAVE_INPUTS;
    pl_advice *row = name_row(list, "gradient checkpointing of blocks");
    snprintf(row->note, sizeof row->note,
             "not in nanoGPT; %.0f %% more work; the logits stay",
             100.0 * again / work);
    pl_status status = fill(row, &less, err);
    if (!status && job->B > 1) {
        size_t by = job->B % 4 == 0 ? 4 : job->B;
        less = *job;
        less.B = job->B / by;
        less.eval_B = less.B;
        less.accumulation = job->accumulation * by;
        row = name_row(list, "batch_size = %zu, accumulation %zu", less.B,
                       less.accumulation);
        snprintf(row->note, sizeof row->note,
                 "the same update; evaluates fewer tokens per batch");
        status = fill(row, &less, err);
    }
    return status;
}

static pl_status advise_torch(pl_advice_list *list, const pl_nanogpt_job *job,
                              pl_error *err)
{
    pl_nanogpt_job less = *job;
    if (job->device == PL_TORCH_CPU)
        return PL_OK;
    less.allocator = PL_CACHE_EXPANDABLE;
    pl_advice *row = name_row(list, "expandable_segments:True");
    snprintf(row->note, sizeof row->note,
             "mends fragmentation only: the allocator's slack");
    pl_status status = fill(row, &less, err);
    if (status)
        return status;
    less = *job;
    less.dtype = job->dtype == PL_TORCH_FLOAT16 ? PL_TORCH_BFLOAT16
                                                : PL_TORCH_FLOAT16;
    row = name_row(list, "dtype = '%s'",
                   less.dtype == PL_TORCH_FLOAT16 ? "float16" : "bfloat16");
    snprintf(row->note, sizeof row->note, "%s",
             job->dtype == PL_TORCH_FLOAT32
                 ? "weights, gradients and moments stay fp32"
                 : "both have 16 bits");
    return fill(row, &less, err);
}

pl_status pl_advice_make(pl_advice_list *list, const pl_nanogpt_job *job,
                         size_t heads, size_t eval_iters, pl_error *err)
{
    list->count = 0;
    pl_status status = advise_eval(list, job, eval_iters, err);
    if (!status)
        status = advise_del(list, job, err);
    if (!status)
        status = advise_model(list, job, heads, err);
    if (!status)
        status = advise_run(list, job, err);
    if (!status)
        status = advise_torch(list, job, err);
    return status;
}
