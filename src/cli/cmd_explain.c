/* cmd_explain.c: why nanoGPT runs out of memory on a config, and what would
 * help it. */
#include "advise/runplan.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/dial.h"
#include "cli/explain_view.h"
#include "cli/page_out.h"
#include "cli/term.h"
#include "config/special.h"
#include "explain/peers.h"

#include <inttypes.h>
#include <stdio.h>

enum { FLAG_JSON = 1, FLAG_STEPS = 2, FLAG_HTML = 4, FLAG_SVG = 8 };
enum { HTML_VALUE = 2, SVG_VALUE = 3 }; /* in the list of flags */

/* Gone before the first tensor: the driver's context, kernels, cuBLAS; on the
 * CPU the interpreter and PyTorch's libraries. Estimates. */
enum { CUDA_CONTEXT_BYTES = 450000000, CPU_CONTEXT_BYTES = 300000000 };

/* ---- the job ---- */

static pl_torch_dtype find_dtype(const pl_config *config)
{
    if (config->origin[PL_KEY_dtype].source == PL_FROM_DEFAULT)
        return PL_TORCH_BFLOAT16; /* nanoGPT's default, where supported */
    return pl_torch_dtype_of(config->dtype);
}

static pl_nanogpt_job make_job(const pl_config *config, size_t vocab_size)
{
    if (config->device.kind == PL_DEVICE_WISH_CPU)
        return pl_nanogpt_job_make(config, vocab_size, PL_TORCH_CPU,
                                   PL_TORCH_FLOAT32);
    return pl_nanogpt_job_make(config, vocab_size, PL_TORCH_CUDA,
                               find_dtype(config));
}

/* What there is: a card by name, or bytes. */
static pl_status find_memory(pl_explain *e, pl_error *err)
{
    const pl_config *config = e->config;
    e->context_bytes = e->job.device == PL_TORCH_CUDA ? CUDA_CONTEXT_BYTES
                                                      : CPU_CONTEXT_BYTES;
    pl_status status = PL_OK;
    if (config->gpu[0] != '\0') {
        status = pl_card_find(config->gpu, &e->card, err);
        if (!status)
            e->memory_bytes = (size_t)(e->card->shown_gib * 1024.0 * 1024.0 *
                                       1024.0);
    }
    if (!status && pl_config_states_memory(config))
        status = pl_memory_parse(config->memory, &e->memory_bytes, err);
    if (status || !e->memory_bytes)
        return status;
    e->job.limit_bytes = e->memory_bytes > e->context_bytes
                             ? e->memory_bytes - e->context_bytes
                             : 1;
    return PL_OK;
}

/* ---- the replays ---- */

static pl_status add_way(pl_explain *e, const char *name,
                         const pl_nanogpt_job *job, pl_error *err)
{
    pl_explain_way *way = &e->ways[e->way_count++];
    way->name = name;
    way->job = *job;
    way->estimated = job->mode == PL_TORCH_COMPILED;
    return pl_nanogpt_replay(job, &way->result, NULL, NULL, err);
}

static pl_status make_ways(pl_explain *e, pl_error *err)
{
    static const char *const dtypes[] = { "float32, flash, eager",
                                          "bfloat16, flash, eager",
                                          "float16, flash, eager" };
    pl_nanogpt_job job = e->job;
    pl_status status = add_way(e, "as above: flash, eager", &job, err);
    if (!status) {
        job.attention = PL_TORCH_SCORES;
        status = add_way(e, "without flash (PyTorch before 2.0)", &job, err);
    }
    if (!status) {
        job = e->job;
        job.mode = PL_TORCH_COMPILED;
        status = add_way(e, "compile = True, an estimate", &job, err);
    }
    for (int i = 0; i < 3 && !status && e->job.device == PL_TORCH_CUDA; i++) {
        job = e->job;
        job.dtype = (pl_torch_dtype)i;
        if (job.dtype != e->job.dtype)
            status = add_way(e, dtypes[i], &job, err);
    }
    return status;
}

static pl_status make_explanation(pl_explain *e, pl_error *err)
{
    pl_nanogpt_job free = e->job;
    pl_nanogpt_result result;
    free.limit_bytes = 0;
    pl_status status = pl_nanogpt_replay(&free, &result, NULL, NULL, err);
    if (!status)
        status = pl_nanogpt_need(&free, &result, e->need_bytes, err);
    if (!status) {
        free.allocator = PL_CACHE_EXPANDABLE;
        status = pl_nanogpt_replay(&free, &result, NULL, NULL, err);
    }
    if (!status)
        status = pl_nanogpt_need(&free, &result, e->expandable_bytes, err);
    if (!status)
        status = pl_nanogpt_replay(&e->job, &e->result, NULL, NULL, err);
    if (!status)
        status = make_ways(e, err);
    if (!status)
        status = pl_advice_make(&e->advice, &e->job, e->heads,
                                (size_t)e->config->eval_iters, err);
    return status;
}

/* ---- the list ---- */

static void print_event(void *context, const pl_tape *tape, int sign,
                        const char *name, size_t bytes)
{
    static const char *const phases[PL_TAPE_COUNT] = { "build", "eval 0",
                                                       "update 0", "update 1",
                                                       "eval later" };
    (void)context;
    printf("%-10s %c%16s %18s  %s\n", phases[tape->phase], sign > 0 ? '+' : '-',
           pl_units_count(bytes).text, pl_units_count(tape->live_bytes).text,
           name);
}

static pl_status print_steps(const pl_explain *e, pl_error *err)
{
    pl_nanogpt_result result;
    printf("\n%-10s %17s %18s\n", "", "bytes", "live");
    return pl_nanogpt_replay(&e->job, &result, print_event, NULL, err);
}

/* The same config here: the fastest layout, and the smallest. On the processor
 * the fastest is also a small one, so no budget is needed to say it. */
static pl_status plan_own(pl_explain *e, size_t vocab_size, pl_heap *heap,
                          pl_error *err)
{
    pl_config *config;
    pl_machine machine;
    pl_run_plan *plan;
    pl_status status = pl_heap_take(heap, &config, 1, sizeof *config, err);
    if (!status)
        status = pl_heap_take(heap, &plan, 1, sizeof *plan, err);
    if (status)
        return status;
    *config = *e->config;
    config->dtype = PL_DTYPE_FLOAT32;
    config->init_from = "scratch";
    config->memory = "auto";
    config->device = (pl_device_wish){ .kind = PL_DEVICE_WISH_CPU,
                                       .text = "cpu" };
    config->gpu = "";
    status = pl_cli_machine(&machine, PL_MACHINE_PLAN, config, heap, err);
    if (status)
        return status;
    for (int least = 0; least < 2 && !status; least++) {
        machine.budget_bytes = least ? 1 : SIZE_MAX;
        status = pl_run_plan_make(plan, config, &machine, vocab_size, NULL,
                                  heap, err);
        *(least ? &e->own_least : &e->own_bytes) = plan->total_bytes;
        *(least ? &e->least_seconds : &e->own_seconds) = plan->update_seconds;
    }
    return status;
}

static pl_status write_page(const pl_explain *e, const char *path, int as_svg,
                            pl_error *err)
{
    pl_page_out out;
    pl_status status = pl_page_out_open(&out, path, err);
    if (status)
        return status;
    pl_html h = pl_html_begin(pl_page_out_take, &out);
    if (as_svg)
        pl_explain_write_picture(&h, e);
    else
        pl_explain_write_page(&h, e);
    pl_html_end(&h);
    return pl_page_out_close(&out, err);
}

static pl_status run_explain(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_explain *e;
    size_t vocab_size;
    const char *from;
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (!status)
        status = pl_heap_take(heap, &e, 1, sizeof *e, err);
    if (!status)
        status = pl_cli_dial(&args->config, heap, err);
    if (!status)
        status = pl_cli_vocabulary(&args->config, heap, &vocab_size, NULL,
                                   &from, err);
    if (status)
        return status;
    e->config = &args->config;
    e->vocab_from = from;
    e->heads = (size_t)e->config->n_head;
    e->job = make_job(e->config, vocab_size);
    status = find_memory(e, err);
    if (!status)
        status = make_explanation(e, err);
    if (!status)
        status = plan_own(e, vocab_size, heap, err);
    if (status)
        return status;
    if (args->flags & FLAG_JSON)
        return pl_explain_print_json(e, heap, err);
    if (args->flags & FLAG_HTML)
        status = write_page(e, args->flag_values[HTML_VALUE], 0, err);
    if (!status && args->flags & FLAG_SVG)
        status = write_page(e, args->flag_values[SVG_VALUE], 1, err);
    if (args->flags & (FLAG_HTML | FLAG_SVG))
        return status;
    pl_explain_print(e);
    return args->flags & FLAG_STEPS ? print_steps(e, err) : PL_OK;
}

static const char *const flags[] = { "--json", "--steps", "--html=FILE",
                                     "--svg=FILE", NULL };

const pl_command pl_command_explain = {
    .name = "explain",
    .arguments = "[CONFIG.py ...] [--key=value ...] [--json] [--steps] "
                 "[--html[=FILE]] [--svg[=FILE]]",
    .summary = "what nanoGPT on PyTorch would need, and where it stops",
    .text = "Replays nanoGPT's evaluation and training with every tensor that "
            "PyTorch takes\nand releases: what is needed, item by item, which "
            "line runs out first under\n--memory=12GB or on --gpu='RTX 4070', "
            "and what the usual advice buys, in bytes.\nNeeds neither PyTorch "
            "nor a card.\n\n"
            "  --json    the numbers, for scripts\n"
            "  --steps   the list of tensors that the numbers come from\n"
            "  --html    a page with a picture of it, in FILE or on standard "
            "output\n"
            "  --svg     the picture alone\n",
    .keys = PL_FOR_TRAIN | PL_FOR_EXPLAIN,
    .model = PL_MODEL_PLANNED,
    .reads_configs = 1,
    .flags = flags,
    .run = run_explain,
};
