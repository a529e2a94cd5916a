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
    const double cached = (double)(s->T / 2) * 2.0 *
                          (double)pl_dim_size(s, PL_DIM_KV) * (double)s->L *
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
static pl_status fill_tokens(pl_session *session, pl_buffer_id buffer,
                             pl_error *err)
{
    int32_t *tokens = (int32_t *)(void *)session->run.stage;
    const size_t most = PL_RUN_STAGE_BYTES / sizeof *tokens,
                 count = session->run.gpt.graph.buffers[buffer].bytes /
                         sizeof *tokens;
    pl_status status = PL_OK;
    for (size_t at = 0; at < count && !status; at += most) {
        const size_t some = count - at < most ? count - at : most;
        for (size_t i = 0; i < some; i++) {
            uint32_t words[4];
            pl_rng_words(PL_RNG_INIT, 1, (uint32_t)(at + i), 0, 0, 0, words);
            tokens[i] = (int32_t)(words[0] % session->run.shape.V);
        }
        status = pl_device_write(session->run.device, buffer,
                                 at * sizeof *tokens, tokens,
                                 some * sizeof *tokens, err);
    }
    return status;
}

/* Adds its time to *seconds. */
static pl_status run(pl_session *session, pl_program_id program, pl_part part,
                     double *seconds, pl_error *err)
{
    double began = pl_clock_seconds();
    pl_status status = pl_session_run(session, program, part, err);
    *seconds += pl_clock_seconds() - began;
    return status;
}

/* Seconds of one batch: micro-batches are alike, so that a few tell, and some
 * half a second of them is enough. */
static pl_status run_batch(pl_session *session, double *rounds, double *batch,
                           pl_error *err)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t all = layout->batch / layout->micro;
    double seconds = 0.0, rest = 0.0;
    size_t done = 0;
    pl_status status = fill_tokens(session, session->run.gpt.train_tokens, err);
    do {
        session->controls.micro_first = (uint32_t)(done % all * layout->micro);
        if (!status)
            status = run(session, PL_TRAIN, PL_PART_LOOP, &seconds, err);
        done++;
    } while (!status && seconds < least_seconds && done < 1000);
    session->controls.micro_first = 0;
    if (!status)
        status = run(session, PL_TRAIN, PL_PART_REST, &rest, err);
    *rounds = (double)done;
    *batch = seconds / (double)done * (double)all + rest;
    return status;
}

pl_status pl_bench_update(pl_session *session, double *seconds, double *loops,
                          pl_error *err)
{
    double batch = 0.0, carry = 0.0, update = 0.0;
    session->controls = PL_CONTROLS_NEUTRAL;
    pl_status status = run_batch(session, loops, &batch, err);
    if (!status)
        status = run(session, PL_ADD_GROUPS, PL_PART_LOOP, &carry, err);
    if (!status)
        status = run(session, PL_ADD_GROUPS, PL_PART_REST, &carry, err);
    if (!status)
        status = run(session, PL_UPDATE_WEIGHTS, PL_PART_LOOP, &update, err);
    if (!status)
        status = run(session, PL_UPDATE_WEIGHTS, PL_PART_REST, &update, err);
    *seconds = (double)session->run.gpt.layout.batches * batch +
               pl_cost_carries(&session->run.gpt) * carry + update;
    return status;
}

static pl_status run_eval(pl_session *session, double *tokens_per_second,
                          pl_error *err)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    double seconds = 0.0;
    int done = 0;
    pl_status status;
    session->controls = PL_CONTROLS_NEUTRAL;
    do {
        status = fill_tokens(session, session->run.gpt.eval_tokens, err);
        if (!status)
            status = run(session, PL_EVAL, PL_PART_LOOP, &seconds, err);
        done++;
    } while (!status && seconds < least_seconds && done < 1000);
    *tokens_per_second = (double)done *
                         (double)(layout->eval_micro * layout->eval_T) /
                         seconds;
    return status;
}

/* Tokens from the middle of a window on, one at a time. */
static pl_status run_sample(pl_session *session, double *tokens,
                            double *tokens_per_second, pl_error *err)
{
    const size_t T = session->run.shape.T, middle = T / 2;
    double seconds = 0.0;
    size_t done = 0;
    pl_status status;
    session->controls = PL_CONTROLS_NEUTRAL;
    session->controls.position = (uint32_t)middle;
    do {
        status = fill_tokens(session, session->run.gpt.sample_tokens, err);
        if (!status)
            status = run(session, PL_SAMPLE, PL_PART_LOOP, &seconds, err);
        done++;
    } while (!status && seconds < least_seconds && done < 1000);
    *tokens = (double)done;
    *tokens_per_second = (double)done / seconds;
    return status;
}

static void profile(pl_bench *bench, int on)
{
    static const pl_program_id programs[] = { PL_TRAIN, PL_ADD_GROUPS,
                                              PL_UPDATE_WEIGHTS, PL_SAMPLE };
    pl_session *session = bench->session;
    for (int i = 0; i < 4; i++)
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
    pl_cost_observe(&all, &session->run.gpt, PL_ADD_GROUPS,
                    session->step_seconds[PL_ADD_GROUPS], runs, runs);
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
    *bench = (pl_bench){ .session = session, .count = -1 };
    bench->prior_source = pl_machine_rates(&session->machine)->source;
    bench->predicted_seconds = pl_cost_update(
        &session->run.gpt, pl_machine_rates(&session->machine));
}

/* Runs everything once, each between two measurements of the peak. */
static pl_status measure(pl_bench *bench, pl_bench_round *round, double *loops,
                         double *decoded, pl_error *err)
{
    pl_session *session = bench->session;
    pl_device *device = session->run.device;
    const pl_dtype dtype = session->run.gpt.layout.dtype;
    const double tokens = (double)session->run.gpt.layout.batches *
                          (double)session->run.gpt.layout.batch *
                          (double)session->run.shape.T,
                 peak = pl_device_peak_flops(device, dtype);
    pl_status status = pl_bench_update(session, &round->update_seconds, loops,
                                       err);
    if (status)
        return status;
    round->train_tokens = tokens / round->update_seconds;
    const double then = pl_device_peak_flops(device, dtype);
    status = run_eval(session, &round->eval_tokens, err);
    const double last = pl_device_peak_flops(device, dtype),
                 read = pl_device_read_bytes(device);
    if (!status)
        status = run_sample(session, decoded, &round->sample_tokens, err);
    round->peak_flops = (peak + then + last) / 3.0;
    round->read_bytes = fmax(read, pl_device_read_bytes(device));
    round->train_share = round->train_tokens *
                         pl_bench_train_flops(&session->run.shape) /
                         (0.5 * (peak + then));
    round->eval_share = round->eval_tokens *
                        pl_bench_eval_flops(&session->run.shape,
                                            session->run.gpt.layout.eval_T) /
                        (0.5 * (then + last));
    round->sample_share = round->sample_tokens *
                          pl_bench_sample_bytes(&session->run.gpt) /
                          round->read_bytes;
    return status;
}

pl_status pl_bench_run_round(pl_bench *bench, pl_error *err)
{
    const int kept = bench->count >= 0 && bench->count < PL_BENCH_MAX_ROUNDS;
    pl_bench_round round = { 0 };
    double loops = 0.0, decoded = 0.0;

    const pl_load from = pl_machine_load(&bench->session->machine);
    profile(bench, kept);
    pl_status status = measure(bench, &round, &loops, &decoded, err);
    profile(bench, 0);
    if (status)
        return status;
    if (kept) {
        bench->loops += loops;
        bench->tokens += decoded;
        bench->rounds[bench->count] = round;
    }
    if (kept || bench->count < 0)
        bench->count++;
    if (kept)
        look_at_round(bench, &from);
    return PL_OK;
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
    const double batches = (double)layout->batches,
                 rounds = batches * (double)(layout->batch / layout->micro),
                 runs = (double)bench->count;
    const pl_program *train = &session->run.gpt.graph.programs[PL_TRAIN];
    const pl_program *groups = &session->run.gpt.graph.programs[PL_ADD_GROUPS];
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
    for (size_t i = 0; i < groups->n_steps; i++)
        bench->op_seconds[groups->steps[i].op] +=
            session->step_seconds[PL_ADD_GROUPS][i] / runs *
            pl_cost_carries(&session->run.gpt);
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
