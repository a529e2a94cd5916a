/* explain_view.c: tables, a verdict, and the same for scripts. */
#include "cli/explain_view.h"
#include "cli/term.h"
#include "format/jsontext.h"
#include "model/shape.h"

#include <stdio.h>
#include <string.h>

const char *const pl_explain_columns[PL_EXPLAIN_COLUMNS] = { "training",
                                                             "eval, step 0",
                                                             "eval, later" };

const pl_tape_peak *pl_explain_column(const pl_nanogpt_result *result,
                                      int column)
{
    if (column == 0)
        return pl_nanogpt_train_peak(result);
    return &result
                ->peaks[column == 1 ? PL_TAPE_EVAL_FIRST : PL_TAPE_EVAL_LATER];
}

size_t pl_explain_column_bytes(const size_t bytes[PL_TAPE_COUNT], int column)
{
    size_t first = bytes[PL_TAPE_UPDATE_FIRST], later = bytes[PL_TAPE_UPDATE];
    if (column == 0)
        return first > later ? first : later;
    return bytes[column == 1 ? PL_TAPE_EVAL_FIRST : PL_TAPE_EVAL_LATER];
}

static int on_cuda(const pl_explain *e)
{
    return e->job.device == PL_TORCH_CUDA;
}

/* ---- header ---- */

/* What is in the model and nanoGPT doesn't compute. */
static void print_unknown(const pl_config *c)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        const pl_shape_info *row = pl_shape_row((pl_shape_field)i);
        pl_value asked = pl_config_get(c, row->key), theirs;
        char has[PL_VALUE_BRIEF_BYTES], knows[PL_VALUE_BRIEF_BYTES];
        pl_shape shape = { 0 };
        const int derived = row->nanogpt == PL_SHAPE_DERIVED;
        if (row->nanogpt == PL_SHAPE_ANY)
            continue;
        pl_shape_set(&shape, (pl_shape_field)i, derived ? 0.0 : row->nanogpt);
        theirs = derived ? pl_value_none()
                         : pl_shape_value(&shape, (pl_shape_field)i);
        pl_value_brief(&asked, has);
        pl_value_brief(&theirs, knows);
        if (strcmp(has, knows) != 0)
            printf("%snanoGPT has no %s = %s: its figures are for %s.%s\n",
                   pl_term_out(PL_TERM_YELLOW), pl_key_row(row->key)->name, has,
                   knows, pl_term_out_end());
    }
}

static void print_asserts(const pl_explain *e)
{
    const pl_config *c = e->config;
    print_unknown(c);
    if (e->heads != e->job.H)
        printf("%snanoGPT stops at an assertion: n_embd %zu isn't divisible by "
               "n_head %zu.%s\nThe figures are for %zu heads.\n",
               pl_term_out(PL_TERM_YELLOW), e->job.C, e->heads,
               pl_term_out_end(), e->job.H);
    if (c->eval_batch_size != PL_NONE || c->eval_block_size != PL_NONE ||
        c->grad_checkpoint.kind != PL_CHECKPOINTING_OFF)
        printf("%snanoGPT has no eval_batch_size, eval_block_size or "
               "grad_checkpoint:%s it would stop\nat an unknown key. The "
               "figures are without them; the last table is with them.\n",
               pl_term_out(PL_TERM_YELLOW), pl_term_out_end());
}

static void print_header(const pl_explain *e)
{
    const pl_nanogpt_job *j = &e->job;
    const char *bold = pl_term_out(PL_TERM_BOLD), *end = pl_term_out_end();
    printf("%snanoGPT on PyTorch%s\n", bold, end);
    printf("%smodel%s    %zu layers, %zu heads, %zu channels, context %zu, "
           "vocabulary %zu:\n         %s parameters (%s)\n",
           bold, end, j->L, e->heads, j->C, j->T, j->V,
           pl_units_count(e->result.parameters).text, e->vocab_from);
    printf("%srun%s      %zu x %zu sequences of %zu tokens per update, %s, "
           "%s\n",
           bold, end, j->B, j->accumulation, j->T, on_cuda(e) ? "CUDA" : "CPU",
           !on_cuda(e)                    ? "float32 (no autocast there)"
           : j->dtype == PL_TORCH_FLOAT32 ? "float32"
           : j->dtype == PL_TORCH_FLOAT16 ? "float16 autocast"
                                          : "bfloat16 autocast");
    if (e->card)
        printf("%scard%s     %s: sold with %g GiB, of which CUDA shows %.2f "
               "GiB\n",
               bold, end, e->card->name, e->card->sold_gib, e->card->shown_gib);
    if (e->memory_bytes)
        printf("%sline%s     %s\n", bold, end,
               pl_units_bytes(e->memory_bytes).text);
    print_asserts(e);
}

/* ---- the items ---- */

static void print_bytes_row(const char *name,
                            const size_t bytes[PL_EXPLAIN_COLUMNS],
                            const char *style)
{
    printf("%s%-28s", style, name);
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        printf(" %13s", bytes[i] ? pl_units_bytes(bytes[i]).text : "-");
    printf("%s\n", *style ? pl_term_out_end() : "");
}

static void print_items(const pl_explain *e)
{
    size_t bytes[PL_EXPLAIN_COLUMNS], total[PL_EXPLAIN_COLUMNS];
    printf("\n%s%-28s", pl_term_out(PL_TERM_BOLD), "at the peak, eager");
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        printf(" %13s", pl_explain_columns[i]);
    printf("%s\n", pl_term_out_end());
    for (int item = 0; item < PL_ITEM_COUNT; item++) {
        size_t sum = 0;
        for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
            sum += bytes[i] = pl_explain_column(&e->result, i)->items[item];
        if (sum)
            print_bytes_row(pl_item_name((pl_item)item), bytes, "");
    }
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        bytes[i] = total[i] = pl_explain_column(&e->result, i)->live_bytes;
    print_bytes_row("live tensors", bytes, pl_term_out(PL_TERM_BOLD));
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++) {
        size_t need = pl_explain_column_bytes(e->need_bytes, i);
        bytes[i] = need > total[i] ? need - total[i] : 0;
        total[i] += bytes[i];
    }
    if (on_cuda(e) && e->result.reserved_known)
        print_bytes_row("allocator's slack, estimated", bytes, "");
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        total[i] += bytes[i] = e->context_bytes;
    print_bytes_row(on_cuda(e) ? "CUDA context, estimated"
                               : "Python, PyTorch, estimated",
                    bytes, "");
    int over = 0;
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        over |= e->memory_bytes && total[i] > e->memory_bytes;
    print_bytes_row("needed", total,
                    pl_term_out(over ? PL_TERM_RED : PL_TERM_BOLD));
}

static void print_saved(const pl_explain *e)
{
    size_t sum = 0;
    printf("\n%s%-28s %13s   for%s\n", pl_term_out(PL_TERM_BOLD),
           "autograd saves of each layer", "bytes", pl_term_out_end());
    for (size_t i = 0; i < e->result.saved_count; i++) {
        const pl_nanogpt_saved *row = &e->result.saved[i];
        printf("%-28s %13s   %s\n", row->name, pl_units_bytes(row->bytes).text,
               row->used_by);
        sum += row->bytes;
    }
    printf("%s%zu layers x %-16s %13s%s\n", pl_term_out(PL_TERM_BOLD), e->job.L,
           pl_units_bytes(sum).text, pl_units_bytes(sum * e->job.L).text,
           pl_term_out_end());
}

/* ---- verdict ---- */

const char *pl_explain_phase(pl_tape_phase phase)
{
    static const char *const texts[PL_TAPE_COUNT] = {
        [PL_TAPE_BUILD] = "before it has a model",
        [PL_TAPE_EVAL_FIRST] = "in estimate_loss() before the first update",
        [PL_TAPE_UPDATE_FIRST] = "in the first update",
        [PL_TAPE_UPDATE] = "in the second update, beside AdamW's moments",
        [PL_TAPE_EVAL_LATER] = "in estimate_loss() after the first updates",
    };
    return texts[phase];
}

/* Bytes of the peak that are logits, in all their copies. */
static size_t logit_bytes(const pl_tape_peak *peak)
{
    static const pl_item items[] = { PL_ITEM_LOGITS,    PL_ITEM_KEPT,
                                     PL_ITEM_LOGPROBS,  PL_ITEM_LOGPROBS32,
                                     PL_ITEM_DLOGPROBS, PL_ITEM_DLOGITS };
    size_t sum = 0;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        sum += peak->items[items[i]];
    return sum;
}

static void print_why(const pl_explain *e)
{
    const pl_tape_peak *train = pl_explain_column(&e->result, 0);
    const pl_tape_peak *eval = pl_explain_column(&e->result, 2);
    printf("Logits and their copies are %.0f %% of training's peak and %.0f %% "
           "of evaluation's.\n",
           100.0 * (double)logit_bytes(train) / (double)train->live_bytes,
           100.0 * (double)logit_bytes(eval) / (double)eval->live_bytes);
}

static void print_failure(const pl_explain *e, const pl_tape_failure *f)
{
    printf("%sIt runs out of memory %s%s, at\n    %s\n"
           "asking for %s (%s) beside %s of live tensors.\n",
           pl_term_out(PL_TERM_RED), pl_explain_phase(f->phase),
           pl_term_out_end(), f->line, pl_units_bytes(f->wanted_bytes).text,
           f->name, pl_units_bytes(f->live_bytes).text);
    if (f->phase != PL_TAPE_EVAL_FIRST)
        return;
    printf("nanoGPT evaluates before its first update, so this is simply the "
           "first thing to fail:\n");
    if (pl_explain_column(&e->result, 0)->live_bytes >
        pl_explain_column(&e->result, 1)->live_bytes)
        printf("training needs more, and a smaller evaluation only moves the "
               "crash to it.\n");
    else
        printf("training needs less.\n");
}

/* Within a sixth of the line others may hold what is missing. */
static void print_tight(const pl_explain *e)
{
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++) {
        size_t total = pl_explain_column_bytes(e->need_bytes, i) +
                       e->context_bytes;
        if (total <= e->memory_bytes &&
            e->memory_bytes - total < e->memory_bytes / 6)
            printf("%s%s has only %s to spare%s: a desktop or another program "
                   "may hold that much.\n",
                   pl_term_out(PL_TERM_YELLOW),
                   i ? (i == 1 ? "Evaluation at step 0" : "Later evaluation")
                     : "Training",
                   pl_units_bytes(e->memory_bytes - total).text,
                   pl_term_out_end());
    }
}

static void print_compiled(const pl_explain *e)
{
    for (size_t w = 0; w < e->way_count; w++) {
        const pl_explain_way *way = &e->ways[w];
        if (!way->estimated)
            continue;
        const pl_tape_failure *f = pl_nanogpt_failure(&way->result);
        printf("With compile = True, nanoGPT's default, it %s%s (an "
               "estimate).\n",
               f ? "runs out " : "fits", f ? pl_explain_phase(f->phase) : "");
    }
}

static void print_verdict(const pl_explain *e)
{
    const pl_tape_failure *failure = pl_nanogpt_failure(&e->result);
    printf("\n");
    if (!e->memory_bytes)
        printf("--memory=12GB or --gpu='RTX 4070' says whether it fits, and "
               "where it stops.\n");
    else if (failure)
        print_failure(e, failure);
    else
        printf("%sIt fits%s: training and evaluation, in eager mode.\n",
               pl_term_out(PL_TERM_GREEN), pl_term_out_end());
    if (e->memory_bytes && on_cuda(e))
        print_tight(e);
    if (e->memory_bytes)
        print_compiled(e);
    print_why(e);
    printf("Plimsoll trains and evaluates the same model, float32 and exact "
           "AdamW, in %s%s%s;\nat the least in %s, for %.0f %% more time.\n",
           pl_term_out(PL_TERM_BOLD), pl_units_bytes(e->own_bytes).text,
           pl_term_out_end(), pl_units_bytes(e->own_least).text,
           100.0 * (e->least_seconds / e->own_seconds - 1.0));
}

/* ---- other ways, advice ---- */

static const char *fits_text(const pl_explain *e, int fits)
{
    return !e->memory_bytes ? "" : fits ? "fits" : "does not fit";
}

static void print_ways(const pl_explain *e)
{
    printf("\n%s%-34s", pl_term_out(PL_TERM_BOLD), "live tensors, if run");
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        printf(" %12s", pl_explain_columns[i]);
    printf("%s\n", pl_term_out_end());
    for (size_t w = 0; w < e->way_count; w++) {
        const pl_explain_way *way = &e->ways[w];
        printf("%-34s", way->name);
        for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
            printf(" %12s", pl_units_bytes(
                                pl_explain_column(&way->result, i)->live_bytes)
                                .text);
        printf("  %s\n",
               fits_text(e, pl_nanogpt_failure(&way->result) == NULL));
    }
}

static void print_llmc(const pl_explain *e)
{
    printf("llm.c, from its sources: %s on the CPU",
           pl_units_bytes((size_t)pl_llmc_cpu_bytes(&e->job)).text);
    for (int r = 0; r < PL_LLMC_RECOMPUTATIONS; r++)
        printf("%s %s", r ? "," : "; on CUDA with -r 0, 1, 2:",
               pl_units_bytes((size_t)pl_llmc_cuda_bytes(&e->job, r)).text);
    printf("\n");
}

/* "-6.17 GB  -70 %", or "0". */
static void print_change(size_t before, size_t after)
{
    size_t change = before > after ? before - after : after - before;
    const char *sign = before > after ? "-" : "+";
    char text[PL_UNITS_TEXT_BYTES + 16] = "0", share[16] = "";
    if (change) {
        snprintf(text, sizeof text, "%s%s", sign, pl_units_bytes(change).text);
        snprintf(share, sizeof share, "%s%.0f %%", sign,
                 100.0 * (double)change / (double)before);
    }
    printf(" %9s %6s", text, share);
}

static void print_advice(const pl_explain *e)
{
    size_t train = pl_explain_column(&e->result, 0)->live_bytes;
    size_t eval = pl_explain_column(&e->result, 1)->live_bytes;
    printf("\n%s%-34s %16s %16s%s\n", pl_term_out(PL_TERM_BOLD),
           "what the usual advice buys", "training", "eval, step 0",
           pl_term_out_end());
    for (size_t i = 0; i < e->advice.count; i++) {
        const pl_advice *row = &e->advice.rows[i];
        printf("%-34s", row->name);
        print_change(train, row->train_bytes);
        print_change(eval, row->eval_first_bytes);
        printf("  %s\n", fits_text(e, row->fits));
        printf("%s    %s%s\n", pl_term_out(PL_TERM_DIM), row->note,
               pl_term_out_end());
    }
    if (!on_cuda(e) || !e->result.reserved_known)
        return;
    printf("slack with expandable_segments:");
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++) {
        size_t live = pl_explain_column(&e->result, i)->live_bytes;
        size_t old = pl_explain_column_bytes(e->need_bytes, i) - live;
        size_t new = pl_explain_column_bytes(e->expandable_bytes, i) - live;
        printf(" %s %s -> %s%s", pl_explain_columns[i],
               pl_units_bytes(old).text, pl_units_bytes(new).text,
               i + 1 < PL_EXPLAIN_COLUMNS ? ";" : "\n");
    }
}

void pl_explain_print(const pl_explain *e)
{
    print_header(e);
    print_items(e);
    print_verdict(e);
    print_saved(e);
    print_ways(e);
    print_llmc(e);
    print_advice(e);
}
