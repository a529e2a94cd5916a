/* runplan.c: see runplan.h. */
#include "advise/runplan.h"
#include "base/threads.h"
#include "config/special.h"
#include "explain/peers.h"
#include "kernels/kernels.h"
#include "model/from_config.h"

#include <inttypes.h>
#include <stdio.h>

/* Program and C library; reading the header of a checkpoint, per layer; and the
 * tables, which a search builds anew for every layout it tries, so that two are
 * there at once and a third may wait in the C library to be used again.
 * docs/memory.md has the measurement. */
enum {
    RESERVE_FIXED_BYTES = 12 * 1024 * 1024,
    RESERVE_LAYER_BYTES = 96 * 1024,
    RESERVE_TABLES = 3,
};

/* Of tables that are only looked at. */
static const size_t HEAP_BYTES = (size_t)1 << 30;

size_t pl_run_plan_losses(const pl_gpt_layout *layout)
{
    return pl_gpt_ranks(layout) * layout->batch * layout->batches;
}

/* All of them lie beside each other: each has as many, the last ones fewer. */
size_t pl_run_plan_evaluated(const pl_gpt_layout *layout)
{
    const size_t ranks = pl_gpt_ranks(layout);
    if (ranks < 2)
        return layout->eval_micro;
    return (layout->eval_sequences + ranks - 1) / ranks * ranks;
}

/* Of processes that share a run: messages on their way (train/ranks.h), the
 * thread that moves them, a loss of each sequence of an update, and what is
 * found of each sequence of an evaluation. */
static size_t ranks_bytes(const pl_gpt_layout *layout)
{
    enum { MESSAGES_BYTES = 4 * 1024 * 1024 + PL_THREAD_STACK_BYTES };
    if (pl_gpt_ranks(layout) < 2)
        return 0;
    return MESSAGES_BYTES + pl_run_plan_losses(layout) * sizeof(double) +
           pl_run_plan_evaluated(layout) * PL_RUN_PLAN_EVALUATED_BYTES;
}

size_t pl_run_plan_reserve(const pl_shape *shape, const pl_gpt_layout *layout,
                           size_t arena_bytes, size_t tables_bytes)
{
    /* 1/512: an 8-byte page-table entry per 4 KiB page */
    return RESERVE_FIXED_BYTES + shape->L * RESERVE_LAYER_BYTES +
           RESERVE_TABLES * tables_bytes + layout->device.host_bytes +
           ranks_bytes(layout) + arena_bytes / 512;
}

int pl_run_plan_is_apart(const pl_gpt_layout *layout)
{
    return layout->device.memory.spaces == PL_SPACES_APART;
}

size_t pl_run_plan_total(const pl_shape *shape, const pl_gpt_layout *layout,
                         size_t arena_bytes, size_t tables_bytes,
                         uint64_t files_bytes)
{
    if (pl_run_plan_is_apart(layout))
        return arena_bytes;
    return arena_bytes +
           pl_run_plan_reserve(shape, layout, arena_bytes, tables_bytes) +
           files_bytes;
}

size_t pl_run_plan_host_arena(const pl_gpt *gpt)
{
    return pl_run_plan_is_apart(&gpt->layout) ? gpt->placement.host_bytes
                                              : gpt->placement.arena_bytes;
}

/* The largest arena whose reserve and files still fit beside it. */
static size_t arena_budget(size_t budget_bytes, const pl_shape *shape,
                           const pl_gpt_layout *layout, size_t tables_bytes,
                           uint64_t files_bytes)
{
    size_t fixed = pl_run_plan_reserve(shape, layout, 0, tables_bytes) +
                   files_bytes;
    if (budget_bytes == SIZE_MAX || pl_run_plan_is_apart(layout))
        return budget_bytes;
    if (budget_bytes <= fixed)
        return 0;
    return (budget_bytes - fixed) / 513 * 512;
}

size_t pl_run_plan_tokenizer_tables(const pl_machine *machine)
{
    return machine->tokenizer_bytes / RESERVE_TABLES;
}

/* Those of the longest lists that a search tries. */
pl_status pl_run_plan_tables(const pl_shape *shape, const pl_gpt_layout *base,
                             pl_heap *heap, size_t *bytes, pl_error *err)
{
    pl_gpt_layout layouts[2];
    pl_gpt trial_gpt;
    pl_status status = PL_OK;
    pl_fit_longest(layouts, shape, base);
    *bytes = 0;
    for (int i = 0; i < 2 && !status; i++) {
        pl_heap trial = pl_heap_make(heap->limit_bytes);
        status = pl_gpt_make_training(&trial_gpt, shape, &layouts[i], &trial,
                                      err);
        if (trial.taken_bytes > *bytes)
            *bytes = trial.taken_bytes;
        pl_heap_close(&trial);
    }
    return status;
}

/* The model's tensors say how large its files are; no step does. */
pl_status pl_run_plan_files(pl_machine_files *files, const pl_machine *machine,
                            const pl_config *config, const pl_shape *shape,
                            const pl_gpt_layout *layout, pl_error *err)
{
    pl_gpt gpt;
    *files = (pl_machine_files){ 0 };
    if (!machine->files)
        return PL_OK;
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_status status = pl_gpt_make_training(&gpt, shape, layout, &heap, err);
    if (!status)
        *files = machine->files(machine->files_context, config, &gpt);
    pl_heap_close(&heap);
    return status;
}

/* The fields of kernels.h's dropout key. */
static pl_status check_dropout(const pl_config *config, const pl_shape *s,
                               pl_error *err)
{
    if (config->dropout > 0.0 &&
        (s->T > PL_DROP_MAX_T || s->H > PL_DROP_MAX_HEADS ||
         s->L > PL_DROP_MAX_LAYERS))
        return pl_fail(err, PL_E_CONFIG,
                       "dropout needs block_size <= %d, n_head <= %d and "
                       "n_layer <= %d",
                       PL_DROP_MAX_T, PL_DROP_MAX_HEADS, PL_DROP_MAX_LAYERS);
    return PL_OK;
}

/* grad_checkpoint, where it was set, is a wish about levels; False leaves the
 * choice between keeping all and recomputing what costs next to nothing. */
pl_fit_wish pl_run_plan_wish(const pl_config *config)
{
    const int set = config->origin[PL_KEY_grad_checkpoint].source !=
                    PL_FROM_DEFAULT;
    const int off = config->grad_checkpoint.kind == PL_CHECKPOINTING_OFF;
    return (pl_fit_wish){
        .budget_bytes = SIZE_MAX,
        .literal = config->fit == PL_FIT_EXACT,
        .keep_levels = set && !off,
        .no_products = set && off,
    };
}

/* The largest arena under memory = 'auto': what the least of the peers takes.
 */
static pl_status find_ceiling(pl_run_plan *plan, const pl_config *config,
                              const pl_shape *shape, size_t *ceiling,
                              pl_error *err)
{
    double bytes = 0;
    const pl_nanogpt_job job = pl_nanogpt_job_make(
        config, shape->V, PL_TORCH_CUDA, pl_torch_dtype_of(config->dtype));
    pl_status status = pl_peers_least(&job, &bytes, &plan->capped_by, err);
    if (status)
        return status;
    if (shape->head == PL_HEAD_OWN) /* theirs is tied: 16 bytes per weight */
        bytes += 16.0 * (double)shape->V * (double)shape->C;
    plan->cap_bytes = bytes < PL_RUN_PLAN_FREE_BYTES   ? PL_RUN_PLAN_FREE_BYTES
                      : bytes < (double)(SIZE_MAX / 2) ? (size_t)bytes
                                                       : SIZE_MAX / 2;
    *ceiling = plan->cap_bytes;
    return PL_OK;
}

/* Whether nanoGPT and llm.c compute models of these sizes at all. */
static int has_peers(const pl_shape *shape)
{
    return shape->position == PL_POSITION_TABLE && shape->mlp == PL_MLP_GELU &&
           shape->qk_norm == PL_QK_NORM_NONE &&
           pl_shape_is_derived(shape, PL_SHAPE_KV) &&
           pl_shape_is_derived(shape, PL_SHAPE_F);
}

/* The fastest within the budget; where nothing was said of it, also within
 * what others need. */
static pl_status search(pl_run_plan *plan, const pl_config *config,
                        const pl_machine *machine, const pl_shape *shape,
                        const pl_gpt_layout *base, pl_fit_wish *wish,
                        pl_heap *heap, pl_error *err)
{
    const pl_rates *rates = pl_machine_rates_in(machine, base->dtype);
    size_t ceiling = SIZE_MAX;
    pl_status status = pl_fit_search(&plan->fit, shape, base, wish, rates, heap,
                                     err);
    if (status || wish->literal || pl_config_states_memory(config) ||
        !has_peers(shape))
        return status;
    status = find_ceiling(plan, config, shape, &ceiling, err);
    if (status)
        return status;
    if (plan->fit.chosen.arena_bytes <= ceiling || !plan->fit.fits ||
        plan->fit.smallest.arena_bytes > ceiling) {
        plan->capped_by = NULL;
        return PL_OK;
    }
    wish->budget_bytes = ceiling;
    return pl_fit_search(&plan->fit, shape, base, wish, rates, heap, err);
}

/* Each of the processes has as many groups of an update; workers (DiLoCo) have
 * one each, and a plan for nobody in particular is one of them's. */
static pl_status share(pl_gpt_layout *base, const pl_machine *machine,
                       pl_error *err)
{
    const int of_workers = base->sync_interval > 1;
    const size_t ranks = machine->ranks ? machine->ranks
                         : of_workers   ? base->groups
                                        : 1;
    if (ranks == 1 && base->groups >= ranks && !of_workers)
        return PL_OK;
    if (of_workers && ranks != base->groups)
        return pl_fail(err, PL_E_CONFIG,
                       "%zu processes were started, sync_interval = %zu and "
                       "gradient_groups = %zu: with a sync_interval above 1 "
                       "each group is that of one process. Start "
                       "as many as there are groups (mpirun -n %zu), or set "
                       "--gradient_groups=%zu for another run",
                       ranks, base->sync_interval, base->groups, base->groups,
                       ranks);
    if (ranks & (ranks - 1))
        return pl_fail(err, PL_E_CONFIG,
                       "%zu processes can't share an update: a power of two of "
                       "them can, 2, 4, 8 and so on",
                       ranks);
    if (base->groups < ranks)
        return pl_fail(
            err, PL_E_CONFIG,
            "%zu processes share the run, and gradient_groups = %zu: "
            "each process needs a group of its own. With "
            "--gradient_groups=%zu the run has the same bits on 1 "
            "to %zu processes (others than with %zu)",
            ranks, base->groups, ranks, ranks, base->groups);
    pl_gpt_layout_share(base, ranks, machine->rank);
    return PL_OK;
}

pl_status pl_run_plan_base(pl_gpt_layout *base, const pl_shape *shape,
                           const pl_config *config, const pl_machine *machine,
                           pl_heap *heap, pl_error *err)
{
    pl_status status = pl_gpt_layout_make(base, shape, config,
                                          PL_PURPOSE_TRAINING, heap, err);
    base->eval_sequences = pl_run_plan_eval_sequences(config);
    return status ? status : share(base, machine, err);
}

pl_status pl_run_plan_make(pl_run_plan *plan, const pl_config *config,
                           const pl_machine *machine, size_t vocab_size,
                           const pl_log *log, pl_heap *heap, pl_error *err)
{
    pl_shape shape;
    pl_gpt_layout base;
    size_t tables = 0;
    *plan = (pl_run_plan){ 0 };
    pl_status status = pl_shape_make(&shape, config, vocab_size, log, err);
    if (!status)
        status = check_dropout(config, &shape, err);
    if (!status)
        status = pl_run_plan_base(&base, &shape, config, machine, heap, err);
    if (!status)
        status = pl_run_plan_tables(&shape, &base, heap, &tables, err);
    if (!status)
        status = pl_run_plan_files(&plan->files, machine, config, &shape, &base,
                                   err);
    if (status)
        return status;
    tables += pl_run_plan_tokenizer_tables(machine);
    pl_fit_wish wish = pl_run_plan_wish(config);
    wish.budget_bytes = arena_budget(machine->budget_bytes, &shape, &base,
                                     tables, plan->files.bytes);
    status = search(plan, config, machine, &shape, &base, &wish, heap, err);
    if (!status)
        status = pl_gpt_make(&plan->gpt, &shape, &plan->fit.chosen.layout, heap,
                             err);
    if (status)
        return status;
    const size_t on_host = pl_run_plan_host_arena(&plan->gpt);
    plan->reserve_bytes = pl_run_plan_reserve(&shape, &base, on_host, tables);
    plan->tables_bytes = tables;
    plan->total_bytes = pl_run_plan_total(&shape, &base,
                                          plan->gpt.placement.arena_bytes,
                                          tables, plan->files.bytes);
    if (pl_run_plan_is_apart(&base))
        plan->host_bytes = on_host + plan->reserve_bytes + plan->files.bytes;
    plan->fits = plan->total_bytes <= machine->budget_bytes &&
                 plan->host_bytes <= machine->host_budget_bytes;
    plan->update_seconds = pl_cost_update(
        &plan->gpt, pl_machine_rates_in(machine, base.dtype));
    return PL_OK;
}

size_t pl_run_plan_eval_sequences(const pl_config *config)
{
    int64_t batch = config->eval_batch_size != PL_NONE ? config->eval_batch_size
                                                       : config->batch_size;
    return (size_t)(batch * config->eval_iters);
}

double pl_run_plan_eval_seconds(const pl_gpt *gpt, const pl_rates *rates,
                                size_t sequences)
{
    size_t micro = gpt->layout.eval_micro;
    return (double)((sequences + micro - 1) / micro) *
           pl_cost_round(gpt, rates, PL_EVAL);
}

pl_run_plan_sum pl_run_plan_sum_text(const pl_gpt_layout *layout,
                                     size_t arena_bytes, size_t reserve_bytes,
                                     uint64_t files_bytes)
{
    pl_run_plan_sum sum = { "the arena, in the device's memory" };
    char files[PL_UNITS_TEXT_BYTES + 16] = "";
    if (files_bytes)
        snprintf(files, sizeof files, " + files %s",
                 pl_units_exact(files_bytes).text);
    if (!pl_run_plan_is_apart(layout))
        snprintf(sum.text, sizeof sum.text, "arena %s + reserve %s%s",
                 pl_units_exact(arena_bytes).text,
                 pl_units_exact(reserve_bytes).text, files);
    return sum;
}

/* Why a run's files count, and what to do about it. */
static void say_files(char *text, size_t capacity,
                      const pl_machine_files *files)
{
    text[0] = '\0';
    if (files->bytes)
        snprintf(text, capacity,
                 "out_dir is in memory (tmpfs): %zu checkpoints of %s count, "
                 "and so do the %s that the metrics can take after max_iters "
                 "updates. Choose an out_dir on a disk, or lower keep. ",
                 files->checkpoints,
                 pl_units_bytes(files->checkpoint_bytes).text,
                 pl_units_bytes(files->metrics_bytes).text);
}

pl_status pl_run_plan_check(const pl_run_plan *plan, const pl_machine *machine,
                            pl_error *err)
{
    char files[384];
    if (plan->fits)
        return PL_OK;
    say_files(files, sizeof files, &plan->files);
    if (plan->total_bytes <= machine->budget_bytes)
        return pl_fail(err, PL_E_MEMORY,
                       "besides the device's memory this run needs %s of the "
                       "host's, where it may have %s. %sEnd what else takes "
                       "memory, or raise host_memory",
                       pl_units_bytes(plan->host_bytes).text,
                       pl_units_bytes(machine->host_budget_bytes).text, files);
    return pl_fail(
        err, PL_E_MEMORY,
        "this run needs %s (%s)%s, the budget is %s (%s): %s are missing. "
        "%s`plimsoll plan` with the same "
        "settings shows what would help",
        pl_units_bytes(plan->total_bytes).text,
        pl_run_plan_sum_text(&plan->gpt.layout, plan->gpt.placement.arena_bytes,
                             plan->reserve_bytes, plan->files.bytes)
            .text,
        plan->fit.smallest.arena_bytes == plan->fit.chosen.arena_bytes
            ? " at the least"
            : "",
        pl_units_bytes(machine->budget_bytes).text, machine->budget_from,
        pl_units_bytes(plan->total_bytes - machine->budget_bytes).text, files);
}

void pl_run_plan_layout_text(const pl_gpt_layout *layout, size_t L, char *out,
                             size_t capacity)
{
    size_t used = 0;
    int n = snprintf(out, capacity, "%zu x %zu sequences", layout->micro,
                     layout->batches * (layout->batch / layout->micro));
    used += n > 0 ? (size_t)n : 0;
    if (layout->groups > 1 && used < capacity) {
        n = snprintf(out + used, capacity - used, " in %zu groups",
                     layout->groups);
        used += n > 0 ? (size_t)n : 0;
    }
    for (int level = 0; level <= PL_MAX_LEVEL; level++) {
        size_t count = 0;
        for (size_t l = 0; l < L; l++)
            count += layout->levels[l] == level;
        if (count == 0 || used >= capacity)
            continue;
        n = snprintf(out + used, capacity - used, ", %zu layer%s at level %d",
                     count, count == 1 ? "" : "s", level);
        used += n > 0 ? (size_t)n : 0;
    }
}
