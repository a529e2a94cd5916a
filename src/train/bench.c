/* bench.c: see bench.h. */
#include "train/bench.h"
#include "base/clock.h"
#include "base/rng.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* A part of a round lasts at least so long, if one execution is shorter. */
static const double least_seconds = 0.5;

double pl_bench_train_flops(const pl_shape *shape)
{
    return 3.0 * pl_bench_eval_flops(shape, shape->T);
}

double pl_bench_eval_flops(const pl_shape *shape, size_t T)
{
    const double L = (double)shape->L, A = (double)shape->A;
    double N = 0.0; /* weights that a product reads */
    for (size_t i = 0; i < pl_param_slots(shape); i++) {
        pl_param param = pl_param_at(shape, i);
        if (pl_param_is_factor(shape, &param))
            N += (double)param.rows * (double)param.cols;
    }
    return 2.0 * N + 2.0 * L * A * (double)T;
}

double pl_bench_sample_bytes(const pl_gpt *gpt)
{
    const pl_shape *s = &gpt->shape;
    const double cached = (double)(s->T / 2) * 2.0 * (double)s->A *
                          (double)s->L *
                          (double)pl_dtype_bytes(gpt->layout.dtype);
    double bytes = cached;
    for (size_t i = 0; i < pl_param_slots(s); i++) {
        pl_param param = pl_param_at(s, i);
        pl_buffer_id read = gpt->copies[i] != PL_NO_BUFFER ? gpt->copies[i]
                                                           : gpt->weights[i];
        if (pl_param_is_factor(s, &param))
            bytes += (double)gpt->graph.buffers[read].bytes;
    }
    return bytes;
}

/* ---- running ---- */

/* Tokens below V, the same in every round. */
static void fill_tokens(pl_session *session, pl_buffer_id buffer)
{
    int32_t *tokens = pl_device_host(session->run.device, buffer);
    size_t count = session->run.gpt.graph.buffers[buffer].bytes /
                   sizeof *tokens;
    for (size_t i = 0; i < count; i++) {
        uint32_t words[4];
        pl_rng_words(PL_RNG_INIT, 1, (uint32_t)i, 0, 0, 0, words);
        tokens[i] = (int32_t)(words[0] % session->run.shape.V);
    }
}

static double run(pl_session *session, pl_program_id program, pl_part part)
{
    double began = pl_clock_seconds();
    pl_device_run(session->run.device, program, part);
    return pl_clock_seconds() - began;
}

/* Seconds of one batch: micro-batches are alike, so that a few tell, and some
 * half a second of them is enough. */
static double run_batch(pl_session *session, double *rounds)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t all = layout->batch / layout->micro;
    double seconds = 0.0, rest;
    size_t done = 0;
    fill_tokens(session, session->run.gpt.train_tokens);
    do {
        pl_session_scalars(session)->micro_first = (uint32_t)(done % all *
                                                              layout->micro);
        seconds += run(session, PL_TRAIN, PL_PART_LOOP);
        done++;
    } while (seconds < least_seconds && done < 1000);
    pl_session_scalars(session)->micro_first = 0;
    rest = run(session, PL_TRAIN, PL_PART_REST);
    *rounds = (double)done;
    return seconds / (double)done * (double)all + rest;
}

static double run_eval(pl_session *session)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    double seconds = 0.0;
    int done = 0;
    *pl_session_scalars(session) = PL_SCALARS_NEUTRAL;
    do {
        fill_tokens(session, session->run.gpt.eval_tokens);
        seconds += run(session, PL_EVAL, PL_PART_LOOP);
        done++;
    } while (seconds < least_seconds && done < 1000);
    return (double)done * (double)(layout->eval_micro * layout->eval_T) /
           seconds;
}

/* Tokens from the middle of a window on, one at a time. */
static double run_sample(pl_session *session, double *tokens)
{
    const size_t T = session->run.shape.T, middle = T / 2;
    double seconds = 0.0;
    size_t done = 0;
    *pl_session_scalars(session) = PL_SCALARS_NEUTRAL;
    do {
        fill_tokens(session, session->run.gpt.sample_tokens);
        pl_session_scalars(session)->position = (uint32_t)middle;
        seconds += run(session, PL_SAMPLE, PL_PART_LOOP);
        done++;
    } while (seconds < least_seconds && done < 1000);
    *tokens = (double)done;
    return (double)done / seconds;
}

static void profile(pl_bench *bench, int on)
{
    static const pl_program_id programs[] = { PL_TRAIN, PL_UPDATE_WEIGHTS,
                                              PL_SAMPLE };
    pl_session *session = bench->session;
    for (int i = 0; i < 3; i++)
        pl_device_profile(session->run.device, programs[i],
                          on ? session->step_seconds[programs[i]] : NULL);
}

/* What the last round adds to all that was seen: a look. */
static void look_at_round(pl_bench *bench, const pl_load *from)
{
    const pl_session *session = bench->session;
    const pl_load to = pl_machine_load(&session->machine);
    const double runs = (double)bench->count;
    pl_observed all = { .least_seconds = 0.0 };
    pl_cost_observe(&all, &session->run.gpt, PL_TRAIN,
                    session->step_seconds[PL_TRAIN], bench->loops, runs);
    pl_cost_observe(&all, &session->run.gpt, PL_UPDATE_WEIGHTS,
                    session->step_seconds[PL_UPDATE_WEIGHTS], runs, runs);
    pl_observed last = all;
    for (int op = 0; op < PL_OP_COUNT; op++) {
        last.seconds[op] -= bench->seen.seconds[op];
        last.units[op] -= bench->seen.units[op];
        last.steps[op] -= bench->seen.steps[op];
    }
    pl_looks_add(&bench->looks, &last, pl_load_quiet(from, &to));
    bench->seen = all;
}

void pl_bench_begin(pl_bench *bench, pl_session *session)
{
    const size_t batches =
        (size_t)session->run.config->gradient_accumulation_steps;
    *bench = (pl_bench){ .session = session, .count = -1 };
    bench->prior_source = session->machine.rates.source;
    bench->predicted_seconds = pl_cost_update(&session->run.gpt,
                                              &session->machine.rates, batches);
}

void pl_bench_run_round(pl_bench *bench)
{
    pl_session *session = bench->session;
    const double batches =
                     (double)session->run.config->gradient_accumulation_steps,
                 tokens = batches * (double)session->run.gpt.layout.batch *
                          (double)session->run.shape.T;
    const int kept = bench->count >= 0 && bench->count < PL_BENCH_MAX_ROUNDS;
    pl_bench_round round = { 0 };
    double loops, decoded;

    const pl_load from = pl_machine_load(&session->machine);
    const double peak = pl_device_peak_flops(session->run.device);
    *pl_session_scalars(session) = PL_SCALARS_NEUTRAL;
    profile(bench, kept);
    double batch = run_batch(session, &loops);
    double update = run(session, PL_UPDATE_WEIGHTS, PL_PART_REST);
    round.update_seconds = batches * batch + update;
    round.train_tokens = tokens / round.update_seconds;
    const double then = pl_device_peak_flops(session->run.device);
    round.eval_tokens = run_eval(session);
    const double last = pl_device_peak_flops(session->run.device),
                 read = pl_device_read_bytes(session->run.device);
    round.sample_tokens = run_sample(session, &decoded);
    profile(bench, 0);
    round.peak_flops = (peak + then + last) / 3.0;
    round.read_bytes = fmax(read, pl_device_read_bytes(session->run.device));
    round.train_share = round.train_tokens *
                        pl_bench_train_flops(&session->run.shape) /
                        (0.5 * (peak + then));
    round.eval_share = round.eval_tokens *
                       pl_bench_eval_flops(&session->run.shape,
                                           session->run.gpt.layout.eval_T) /
                       (0.5 * (then + last));
    round.sample_share = round.sample_tokens *
                         pl_bench_sample_bytes(&session->run.gpt) /
                         round.read_bytes;
    if (kept) {
        bench->loops += loops;
        bench->tokens += decoded;
        bench->rounds[bench->count] = round;
    }
    if (kept || bench->count < 0)
        bench->count++;
    if (kept)
        look_at_round(bench, &from);
}

/* ---- what it says ---- */

/* The middle of a column of the rounds: of field `at` bytes into each. */
static double median_of(const pl_bench *bench, size_t at)
{
    double sorted[PL_BENCH_MAX_ROUNDS];
    const int n = bench->count;
    for (int i = 0; i < n; i++) {
        double value;
        int slot = i;
        memcpy(&value, (const char *)&bench->rounds[i] + at, sizeof value);
        for (; slot > 0 && sorted[slot - 1] > value; slot--)
            sorted[slot] = sorted[slot - 1];
        sorted[slot] = value;
    }
    return n ? 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]) : 0.0;
}

static void add_product(pl_bench *bench, const pl_step *step, double seconds)
{
    size_t i = 0;
    pl_bench_product *p = bench->products;
    while (i < bench->n_products &&
           (p[i].op != step->op || p[i].rows != step->rows ||
            p[i].cols != step->cols || p[i].inner != step->inner))
        i++;
    if (i == PL_BENCH_MAX_PRODUCTS)
        return;
    if (i == bench->n_products) {
        bench->n_products++;
        p[i] = (pl_bench_product){ .op = step->op,
                                   .rows = step->rows,
                                   .cols = step->cols,
                                   .inner = step->inner };
    }
    p[i].count++;
    p[i].seconds += seconds;
}

/* Seconds by op of one update, and by product of one micro-batch. */
static void tabulate(pl_bench *bench)
{
    const pl_session *session = bench->session;
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const double batches =
                     (double)session->run.config->gradient_accumulation_steps,
                 rounds = batches * (double)(layout->batch / layout->micro),
                 runs = (double)bench->count;
    const pl_program *train = &session->run.gpt.graph.programs[PL_TRAIN];
    const pl_program *update =
        &session->run.gpt.graph.programs[PL_UPDATE_WEIGHTS];
    for (size_t i = 0; i < train->n_steps; i++) {
        const pl_step *step = &train->steps[i];
        const int loop = i < train->loop_steps;
        double once = session->step_seconds[PL_TRAIN][i] /
                      (loop ? bench->loops : runs);
        bench->op_seconds[step->op] += once * (loop ? rounds : batches);
        if (step->op == PL_OP_MATMUL || step->op == PL_OP_MATMUL_T ||
            step->op == PL_OP_MATMUL_DW)
            add_product(bench, step, once);
    }
    const pl_program *sample = &session->run.gpt.graph.programs[PL_SAMPLE];
    for (size_t i = 0; i < sample->n_steps; i++)
        bench->token_seconds[sample->steps[i].op] +=
            session->step_seconds[PL_SAMPLE][i] / bench->tokens;
    for (size_t i = 0; i < update->n_steps; i++)
        bench->op_seconds[update->steps[i].op] +=
            session->step_seconds[PL_UPDATE_WEIGHTS][i] / runs;
}

void pl_bench_finish(pl_bench *bench)
{
    pl_session *session = bench->session;
    if (bench->count < 1)
        return;
    bench->median = (pl_bench_round){
        .peak_flops = median_of(bench, offsetof(pl_bench_round, peak_flops)),
        .read_bytes = median_of(bench, offsetof(pl_bench_round, read_bytes)),
        .train_tokens = median_of(bench,
                                  offsetof(pl_bench_round, train_tokens)),
        .eval_tokens = median_of(bench, offsetof(pl_bench_round, eval_tokens)),
        .sample_tokens = median_of(bench,
                                   offsetof(pl_bench_round, sample_tokens)),
        .update_seconds = median_of(bench,
                                    offsetof(pl_bench_round, update_seconds)),
        .train_share = median_of(bench, offsetof(pl_bench_round, train_share)),
        .eval_share = median_of(bench, offsetof(pl_bench_round, eval_share)),
        .sample_share = median_of(bench,
                                  offsetof(pl_bench_round, sample_share)),
    };
    tabulate(bench);
    pl_machine_learn(&session->machine, &bench->looks);
}
