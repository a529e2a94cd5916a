/* plan_ranks.c: see plan_ranks.h. */
#include "cli/plan_ranks.h"
#include "cli/rank_table.h"
#include "cli/term.h"
#include "comm/comm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what was asked for ---- */

/* 0: it is no number from 1 to PL_MAX_RANKS. */
static size_t read_count(const char *text)
{
    size_t count = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9')
            return 0;
        count = 10 * count + (size_t)(*c - '0');
        if (count > PL_MAX_RANKS)
            return 0;
    }
    return count;
}

pl_status pl_plan_ranks_read(pl_plan_ranks *ranks, const pl_cli_args *args,
                             unsigned flag, pl_error *err)
{
    const unsigned has_ranks = args->flags & 1u << flag,
                   has_network = args->flags & 2u << flag;
    const char *count = args->flag_values[flag] ? args->flag_values[flag] : "",
               *network = args->flag_values[flag + 1];
    *ranks = (pl_plan_ranks){ .network = { .bytes_per_second = INFINITY } };
    if (has_network && !has_ranks)
        return pl_fail(err, PL_E_USAGE,
                       "--network is between several machines: say how many "
                       "with --ranks=4, or another power of two");
    if (!has_ranks)
        return PL_OK;
    ranks->ranks = read_count(count);
    if (ranks->ranks == 0)
        return pl_fail(err, PL_E_USAGE,
                       "--ranks=%.60s: a number of processes is expected, a "
                       "power of two up to %d such as --ranks=4",
                       count, PL_MAX_RANKS);
    ranks->has_network = has_network != 0;
    if (!has_network)
        return PL_OK;
    return pl_network_parse(&ranks->network, network ? network : "", err);
}

pl_status pl_plan_ranks_machine(const pl_plan_ranks *ranks, pl_machine *machine,
                                pl_error *err)
{
    machine->ranks = ranks->ranks;
    if (ranks->ranks < 2)
        return PL_OK;
    machine->engine_bytes = pl_comm_usual_bytes(ranks->ranks);
    return pl_machine_take_off(machine, machine->engine_bytes, "MPI", err);
}

/* By the algorithm that the config doesn't have. */
static pl_status make_other(pl_plan_ranks *r, const pl_config *config,
                            const pl_machine *machine, size_t vocab_size,
                            pl_heap *heap, pl_error *err)
{
    pl_config shared = *config;
    if (!r->has_network)
        return PL_OK;
    if (r->plans.interval == 1) {
        r->other = pl_network_diloco(&r->network, &r->plans.work,
                                     PL_PLAN_SYNC_INTERVAL);
        return PL_OK;
    }
    shared.sync_interval = 1;
    pl_status status = pl_rank_plans_make(&r->shared, &shared, machine,
                                          vocab_size, heap, err);
    if (!status)
        r->other = pl_rank_plans_times(&r->shared, &r->network);
    return status;
}

pl_status pl_plan_ranks_make(pl_plan_ranks *ranks, const pl_config *config,
                             pl_machine *machine, size_t vocab_size,
                             pl_heap *heap, pl_error *err)
{
    if (ranks->ranks == 0)
        return PL_OK;
    machine->rank = 0;
    pl_status status = pl_rank_plans_make(&ranks->plans, config, machine,
                                          vocab_size, heap, err);
    if (!status)
        status = make_other(ranks, config, machine, vocab_size, heap, err);
    if (status)
        return status;
    machine->rank = ranks->plans.range.largest;
    ranks->times = pl_rank_plans_times(&ranks->plans, &ranks->network);
    ranks->tokens = (double)pl_config_update_tokens(config);
    return PL_OK;
}

/* ---- for people ---- */

static double efficiency(const pl_plan_ranks *r)
{
    return pl_network_efficiency(&r->times, r->ranks, r->plans.one_seconds);
}

static double waiting_percent(const pl_network_times *t)
{
    return 100.0 * t->waiting / t->update;
}

/* A meeting of workers is as long as many average updates' shares of it. */
static void print_way(const pl_plan_ranks *r)
{
    const pl_network_times *t = &r->times;
    const double updates = (double)r->plans.interval;
    printf("%son its way%s  ", pl_term_out(PL_TERM_BOLD), pl_term_out_end());
    if (r->plans.interval > 1)
        printf("once in %zu updates, when workers meet: outer gradients %s, "
               "weights %s, partial sums and losses %s\n",
               r->plans.interval, pl_units_moment(updates * t->gradients).text,
               pl_units_moment(updates * t->weights).text,
               pl_units_moment(updates * t->sums).text);
    else
        printf("gradients %s (%s of it during the backward pass), weights %s, "
               "partial sums and losses %s\n",
               pl_units_moment(t->gradients).text,
               pl_units_moment(t->hidden).text,
               pl_units_moment(t->weights).text, pl_units_moment(t->sums).text);
}

static void print_network(const pl_plan_ranks *r)
{
    if (!r->has_network) {
        printf("%snetwork%s     none was stated, and nothing is waited for: "
               "--network=1Gbit says what one costs\n",
               pl_term_out(PL_TERM_BOLD), pl_term_out_end());
        return;
    }
    printf("%snetwork%s     %s/s each way for every rank, latency %s\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(),
           pl_units_bytes((uint64_t)r->network.bytes_per_second).text,
           pl_units_moment(r->network.latency_seconds).text);
    print_way(r);
}

static void print_choice_of_workers(const pl_plan_ranks *r)
{
    const double saved = r->other.update - r->times.update;
    const pl_rank_bytes *largest = &r->shared.each[r->shared.range.largest];
    printf("DiLoCo (sync_interval = %zu): %.1f %% is waiting. Data parallel "
           "would wait %.1f %%",
           r->plans.interval, waiting_percent(&r->times),
           waiting_percent(&r->other));
    if (pl_network_is_worth_it(&r->other))
        printf(", less than %.0f %%, and have the bits of one machine: take "
               "sync_interval off\n",
               100.0 * PL_NETWORK_WORTH_IT);
    else if (!(saved > 0.0))
        printf(", but take no more time and have the bits of one machine: take "
               "sync_interval off\n");
    else
        printf(", so that an update takes %s (%.1f %%) longer; its largest "
               "rank takes %s\n",
               pl_units_moment(saved).text, 100.0 * saved / r->times.update,
               pl_units_bytes(largest->total).text);
}

/* Which of the two algorithms is worth it here. */
static void print_choice(const pl_plan_ranks *r)
{
    const double saved = r->times.update - r->other.update;
    if (!r->has_network || r->ranks < 2)
        return;
    printf("%schoice%s      ", pl_term_out(PL_TERM_BOLD), pl_term_out_end());
    if (r->plans.interval > 1)
        print_choice_of_workers(r);
    else if (pl_network_is_worth_it(&r->times))
        printf("data parallel: %.1f %% is waiting, less than %.0f %%, and the "
               "bits are those of one machine\n",
               waiting_percent(&r->times), 100.0 * PL_NETWORK_WORTH_IT);
    else if (!(saved > 0.0))
        printf("data parallel: %.1f %% is waiting, but sync_interval = %d "
               "(DiLoCo) would take no less time\n",
               waiting_percent(&r->times), PL_PLAN_SYNC_INTERVAL);
    else
        printf("%.1f %% is waiting. sync_interval = %d (DiLoCo) would save %s "
               "(%.1f %%) of every update and take %s on the largest rank: a "
               "different algorithm with its own numbers\n",
               waiting_percent(&r->times), PL_PLAN_SYNC_INTERVAL,
               pl_units_moment(saved).text, 100.0 * saved / r->times.update,
               pl_units_bytes(pl_rank_plans_diloco_bytes(&r->plans)).text);
}

void pl_plan_ranks_print(const pl_plan_ranks *r)
{
    const pl_network_times *t = &r->times;
    if (r->ranks == 0)
        return;
    printf("\n");
    pl_rank_table_print(r->plans.each, r->ranks, &r->plans.one);
    if (r->ranks > 1)
        printf("and MPI, off the budget of each: %s, as Open MPI takes; what "
               "another takes is seen when a run begins\n",
               pl_units_bytes(pl_comm_usual_bytes(r->ranks)).text);
    printf("\n");
    print_network(r);
    printf("%supdate%s      %s on each rank: %s computing, %s waiting (%.1f "
           "%%)%s\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(),
           pl_units_moment(t->update).text, pl_units_moment(t->compute).text,
           pl_units_moment(t->waiting).text, waiting_percent(t),
           r->plans.interval > 1 ? ", on average" : "");
    printf("%sspeed%s       %.0f tokens/s, one machine %.0f: %.2f times as "
           "fast, an efficiency of %.1f %%\n",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), r->tokens / t->update,
           r->tokens / r->plans.one_seconds, (double)r->ranks * efficiency(r),
           100.0 * efficiency(r));
    print_choice(r);
}

/* ---- for scripts ---- */

static void put_bytes(pl_json_text *j, const char *key,
                      const pl_rank_bytes *row, const size_t *rank)
{
    pl_json_text_open(j, key, '{');
    if (rank)
        pl_json_text_whole(j, "rank", *rank);
    pl_json_text_whole(j, "weights_bytes", row->weights);
    pl_json_text_whole(j, "gradients_bytes", row->gradients);
    pl_json_text_whole(j, "moments_bytes", row->moments);
    pl_json_text_whole(j, "rest_bytes", row->rest);
    pl_json_text_whole(j, "total_bytes", row->total);
    pl_json_text_close(j, '}');
}

/* Of the algorithm that the config doesn't have. */
static void put_other(pl_json_text *j, const pl_plan_ranks *r)
{
    const pl_network_times *t = &r->other;
    const pl_rank_plans *shared = &r->shared;
    const int of_workers = r->plans.interval > 1;
    pl_json_text_open(j, of_workers ? "data_parallel" : "diloco", '{');
    if (!of_workers)
        pl_json_text_whole(j, "sync_interval", PL_PLAN_SYNC_INTERVAL);
    pl_json_text_real(j, "update_seconds", t->update);
    pl_json_text_real(j, "compute_seconds", t->compute);
    pl_json_text_real(j, "waiting_seconds", t->waiting);
    pl_json_text_whole(j, "largest_total_bytes",
                       of_workers ? shared->each[shared->range.largest].total
                                  : pl_rank_plans_diloco_bytes(&r->plans));
    pl_json_text_close(j, '}');
}

/* What is worth it or isn't is data parallel training, whichever the config
 * has. */
static void put_network(pl_json_text *j, const pl_plan_ranks *r)
{
    const pl_network_times *t = &r->times;
    pl_json_text_open(j, "network", '{');
    pl_json_text_real(j, "bytes_per_second", r->network.bytes_per_second);
    pl_json_text_real(j, "latency_seconds", r->network.latency_seconds);
    pl_json_text_real(j, "gradients_seconds", t->gradients);
    pl_json_text_real(j, "hidden_seconds", t->hidden);
    pl_json_text_real(j, "weights_seconds", t->weights);
    pl_json_text_real(j, "sums_seconds", t->sums);
    if (r->plans.interval > 1)
        t = &r->other;
    pl_json_text_raw(j, "worth_it",
                     pl_network_is_worth_it(t) ? "true" : "false");
    put_other(j, r);
    pl_json_text_close(j, '}');
}

void pl_plan_ranks_put(const pl_plan_ranks *r, pl_json_text *j)
{
    const pl_rank_range *range = &r->plans.range;
    if (r->ranks == 0)
        return;
    pl_json_text_open(j, "ranks", '{');
    pl_json_text_whole(j, "count", r->ranks);
    if (r->plans.interval > 1)
        pl_json_text_whole(j, "sync_interval", r->plans.interval);
    put_bytes(j, "largest", &r->plans.each[range->largest], &range->largest);
    put_bytes(j, "smallest", &r->plans.each[range->smallest], &range->smallest);
    put_bytes(j, "all", &range->all, NULL);
    put_bytes(j, "one_machine", &r->plans.one, NULL);
    if (r->ranks > 1)
        pl_json_text_whole(j, "engine_bytes", pl_comm_usual_bytes(r->ranks));
    pl_json_text_real(j, "update_seconds", r->times.update);
    pl_json_text_real(j, "compute_seconds", r->times.compute);
    pl_json_text_real(j, "waiting_seconds", r->times.waiting);
    pl_json_text_real(j, "tokens_per_second", r->tokens / r->times.update);
    pl_json_text_real(j, "one_machine_tokens_per_second",
                      r->tokens / r->plans.one_seconds);
    pl_json_text_real(j, "efficiency", efficiency(r));
    if (r->has_network)
        put_network(j, r);
    pl_json_text_close(j, '}');
}
