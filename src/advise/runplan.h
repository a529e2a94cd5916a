/* runplan.h: the plan of a run: step lists, layout, bytes and time, from a
 * config and what the machine offers. Touches no tensor, opens no device. */
#ifndef PL_ADVISE_RUNPLAN_H
#define PL_ADVISE_RUNPLAN_H

#include "advise/machine.h"
#include "base/log.h"
#include "base/units.h"
#include "model/fit.h"

/* So small that fixed scratch would be compared. */
enum { PL_RUN_PLAN_FREE_BYTES = 16000000 };

typedef struct pl_run_plan {
    pl_gpt gpt;
    pl_fit fit;
    size_t reserve_bytes;
    size_t tables_bytes;    /* set-up tables that the reserve counts with */
    pl_machine_files files; /* in memory; 0 bytes: none are */
    size_t total_bytes;     /* arena, reserve and files in memory; where the
                             * device has memory of its own, the arena alone */
    size_t host_bytes;      /* there: the rest, which is the host's; else 0 */
    int fits;               /* both are within their budgets */
    double update_seconds;  /* predicted */
    const char *capped_by;  /* memory = 'auto': who would take less than the
                             * fastest plan, or NULL; cap_bytes: how much */
    size_t cap_bytes;
} pl_run_plan;

/* Where nothing fits the plan is the smallest one, and fits is 0. A stated
 * budget is used as far as it buys time; under memory = 'auto' the arena is
 * also held to what nanoGPT and llm.c take for the same job, if that is
 * possible and over PL_RUN_PLAN_FREE_BYTES. `vocab_size` as for pl_shape_make.
 */
PL_MUST_CHECK pl_status pl_run_plan_make(pl_run_plan *plan,
                                         const pl_config *config,
                                         const pl_machine *machine,
                                         size_t vocab_size, const pl_log *log,
                                         pl_heap *heap, pl_error *err);

/* The literal layout of a config for this process, one of those that share the
 * run: what a search begins with. */
PL_MUST_CHECK pl_status pl_run_plan_base(pl_gpt_layout *base,
                                         const pl_shape *shape,
                                         const pl_config *config,
                                         const pl_machine *machine,
                                         pl_heap *heap, pl_error *err);

/* What the search may choose for a config, without a budget. */
pl_fit_wish pl_run_plan_wish(const pl_config *config);

/* PL_E_MEMORY with the numbers, if it doesn't fit. */
PL_MUST_CHECK pl_status pl_run_plan_check(const pl_run_plan *plan,
                                          const pl_machine *machine,
                                          pl_error *err);

/* Bytes that a run may take of the host's memory besides its arena there, which
 * has `arena_bytes`: program, C library, stacks, page tables, and set-up
 * tables, which were `tables_bytes` when the plan was made. Measured, and
 * tested against the real thing. */
size_t pl_run_plan_reserve(const pl_shape *shape, const pl_gpt_layout *layout,
                           size_t arena_bytes, size_t tables_bytes);

/* What the budget has to hold for an arena of so many bytes and files of
 * `files_bytes` in memory: total_bytes. */
size_t pl_run_plan_total(const pl_shape *shape, const pl_gpt_layout *layout,
                         size_t arena_bytes, size_t tables_bytes,
                         uint64_t files_bytes);

/* The files that a run of such a model keeps in memory. */
PL_MUST_CHECK pl_status pl_run_plan_files(
    pl_machine_files *files, const pl_machine *machine, const pl_config *config,
    const pl_shape *shape, const pl_gpt_layout *layout, pl_error *err);

/* Whether the device has memory of its own, besides the host's. */
int pl_run_plan_is_apart(const pl_gpt_layout *layout);
/* The arena in the host's memory: all of it, or what is in its own space. */
size_t pl_run_plan_host_arena(const pl_gpt *gpt);

/* How large the set-up tables of such a model can be. */
PL_MUST_CHECK pl_status pl_run_plan_tables(const pl_shape *shape,
                                           const pl_gpt_layout *base,
                                           pl_heap *heap, size_t *bytes,
                                           pl_error *err);

/* What a tokenizer adds to these tables. */
size_t pl_run_plan_tokenizer_tables(const pl_machine *machine);

/* "arena 4,096 bytes + reserve 512 bytes + files 64 bytes", or where that is:
 * what total_bytes is made of. Without files they aren't named. */
typedef struct pl_run_plan_sum {
    char text[3 * PL_UNITS_TEXT_BYTES + 48];
} pl_run_plan_sum;
pl_run_plan_sum pl_run_plan_sum_text(const pl_gpt_layout *layout,
                                     size_t arena_bytes, size_t reserve_bytes,
                                     uint64_t files_bytes);

/* What a process keeps in the host's memory, elements of it: the loss of each
 * sequence of an update, where several share it; and what is found of the
 * sequences of a round of an evaluation, or where several share it, of all. */
enum { PL_RUN_PLAN_EVALUATED_BYTES = 24 };
size_t pl_run_plan_losses(const pl_gpt_layout *layout);
size_t pl_run_plan_evaluated(const pl_gpt_layout *layout);

/* The sequences of one evaluation of one split, and its seconds. */
size_t pl_run_plan_eval_sequences(const pl_config *config);
double pl_run_plan_eval_seconds(const pl_gpt *gpt, const pl_rates *rates,
                                size_t sequences);

/* "1 x 512 sequences, 12 layers at level 0": what was chosen, for people. */
void pl_run_plan_layout_text(const pl_gpt_layout *layout, size_t L, char *out,
                             size_t capacity);

#endif
