/* cmd_bench.c: what this machine does with a config, beside its own best. */
#include "advise/runplan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/dial.h"
#include "cli/term.h"
#include "format/jsontext.h"
#include "train/bench.h"

#include <stdio.h>

enum { FLAG_JSON = 1 };

/* ---- for people ---- */

static double product_flops(const pl_bench_product *p)
{
    return 2.0 * (double)p->rows * (double)p->cols * (double)p->inner *
           (double)p->count / p->seconds;
}

static void print_rates(const pl_bench *b)
{
    const pl_session *session = b->session;
    const pl_bench_round *m = &b->median;
    const double train = m->train_tokens *
                         pl_bench_train_flops(&session->run.shape),
                 eval = m->eval_tokens *
                        pl_bench_eval_flops(&session->run.shape,
                                            session->run.gpt.layout.eval_T),
                 sample = m->sample_tokens *
                          pl_bench_sample_bytes(&session->run.gpt);
    printf("%s%-10s %12s %14s %10s%s\n", pl_term_out(PL_TERM_BOLD), "",
           "tokens/s", "", "of peak", pl_term_out_end());
    printf("%-10s %12.1f %7.1f GFLOP/s %8.1f %%\n", "training", m->train_tokens,
           train * 1e-9, 100.0 * m->train_share);
    printf("%-10s %12.1f %7.1f GFLOP/s %8.1f %%\n", "evaluation",
           m->eval_tokens, eval * 1e-9, 100.0 * m->eval_share);
    printf("%-10s %12.1f %7.1f GB/s    %8.1f %% of what can be read\n",
           "sampling", m->sample_tokens, sample * 1e-9,
           100.0 * m->sample_share);
    printf("\nan update takes %s; predicted: %s (%+.1f %%), from %s\n",
           pl_units_duration(m->update_seconds).text,
           pl_units_duration(b->predicted_seconds).text,
           100.0 * (b->predicted_seconds / m->update_seconds - 1.0),
           b->prior_source > PL_RATES_STATED ? "what was measured before"
                                             : "a built-in table");
}

static void print_share(double seconds, double all)
{
    if (seconds > 0.0)
        printf(" %8.1f %%", 100.0 * seconds / all);
    else
        printf(" %10s", "");
}

static void print_ops(const pl_bench *b)
{
    double update = 0.0, token = 0.0;
    for (int op = 0; op < PL_OP_COUNT; op++) {
        update += b->op_seconds[op];
        token += b->token_seconds[op];
    }
    printf("\n%s%-18s %10s %10s%s\n", pl_term_out(PL_TERM_BOLD), "share of",
           "an update", "a token", pl_term_out_end());
    for (int op = 0; op < PL_OP_COUNT; op++) {
        if (b->op_seconds[op] + b->token_seconds[op] <= 0.0)
            continue;
        printf("%-18s", pl_op_name((pl_op)op));
        print_share(b->op_seconds[op], update);
        print_share(b->token_seconds[op], token);
        printf("\n");
    }
}

static void print_products(const pl_bench *b)
{
    double flops = 0.0, seconds = 0.0;
    printf("\n%s%-12s %8s %8s %8s %6s %10s %8s%s\n", pl_term_out(PL_TERM_BOLD),
           "product", "rows", "columns", "inner", "times", "GFLOP/s", "of peak",
           pl_term_out_end());
    for (size_t i = 0; i < b->n_products; i++) {
        const pl_bench_product *p = &b->products[i];
        const double rate = product_flops(p);
        flops += rate * p->seconds;
        seconds += p->seconds;
        printf("%-12s %8zu %8zu %8zu %6zu %10.1f %6.1f %%\n", pl_op_name(p->op),
               p->rows, p->cols, p->inner, p->count, rate * 1e-9,
               100.0 * rate / b->median.peak_flops);
    }
    printf("%-12s %43s %10.1f %6.1f %%\n", "all", "", flops / seconds * 1e-9,
           100.0 * flops / seconds / b->median.peak_flops);
}

static void print_start(const pl_session *session)
{
    const pl_shape *s = &session->run.shape;
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    char text[160];
    pl_run_plan_layout_text(layout, s->L, text, sizeof text);
    printf("model    %zu layers, %zu heads, %zu channels, context %zu, "
           "vocabulary %zu, %s\n",
           s->L, s->H, s->C, s->T, s->V,
           pl_config_word(session->run.config, PL_KEY_dtype));
    printf("layout   %s; arena %s\n", text,
           pl_units_bytes(session->run.gpt.placement.arena_bytes).text);
    fflush(stdout);
}

static void print_machine(const pl_bench *b)
{
    const pl_session *session = b->session;
    printf("machine  %s: %.1f GFLOP/s, reads %.1f GB/s\n\n",
           session->run.gpt.layout.device.text, b->median.peak_flops * 1e-9,
           b->median.read_bytes * 1e-9);
}

/* ---- for scripts ---- */

static void put_round(pl_json_text *j, const char *name,
                      const pl_bench_round *r)
{
    pl_json_text_open(j, name, '{');
    pl_json_text_real(j, "peak_flops", r->peak_flops);
    pl_json_text_real(j, "read_bytes_per_second", r->read_bytes);
    pl_json_text_real(j, "train_tokens_per_second", r->train_tokens);
    pl_json_text_real(j, "eval_tokens_per_second", r->eval_tokens);
    pl_json_text_real(j, "sample_tokens_per_second", r->sample_tokens);
    pl_json_text_real(j, "update_seconds", r->update_seconds);
    pl_json_text_real(j, "train_share_of_peak", r->train_share);
    pl_json_text_real(j, "eval_share_of_peak", r->eval_share);
    pl_json_text_real(j, "sample_share_of_reading", r->sample_share);
    pl_json_text_close(j, '}');
}

static void put_tables(pl_json_text *j, const pl_bench *b)
{
    pl_json_text_open(j, "update_seconds_by_op", '{');
    for (int op = 0; op < PL_OP_COUNT; op++)
        if (b->op_seconds[op] > 0.0)
            pl_json_text_real(j, pl_op_name((pl_op)op), b->op_seconds[op]);
    pl_json_text_close(j, '}');
    pl_json_text_open(j, "token_seconds_by_op", '{');
    for (int op = 0; op < PL_OP_COUNT; op++)
        if (b->token_seconds[op] > 0.0)
            pl_json_text_real(j, pl_op_name((pl_op)op), b->token_seconds[op]);
    pl_json_text_close(j, '}');
    pl_json_text_open(j, "products", '[');
    for (size_t i = 0; i < b->n_products; i++) {
        const pl_bench_product *p = &b->products[i];
        pl_json_text_open(j, NULL, '{');
        pl_json_text_string(j, "op", pl_op_name(p->op));
        pl_json_text_whole(j, "rows", p->rows);
        pl_json_text_whole(j, "cols", p->cols);
        pl_json_text_whole(j, "inner", p->inner);
        pl_json_text_whole(j, "count", p->count);
        pl_json_text_real(j, "flops_per_second", product_flops(p));
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, ']');
}

static pl_status print_json(const pl_bench *b, pl_heap *heap, pl_error *err)
{
    const pl_session *session = b->session;
    enum { TEXT_BYTES = 128 * 1024 };
    size_t peak = 0;
    char *text;
    pl_status status = pl_heap_take(heap, &text, TEXT_BYTES, 1, err);
    if (status)
        return status;
    if (pl_memory_peak_bytes(&peak, NULL))
        peak = 0;
    pl_json_text j = pl_json_text_begin(text, TEXT_BYTES);
    const pl_device_info *device = &session->run.gpt.layout.device;
    pl_json_text_string(&j, "kernels", device->kernels);
    pl_json_text_whole(&j, "threads", device->workers);
    pl_json_text_whole(&j, "micro_batch", session->run.gpt.layout.micro);
    pl_json_text_whole(&j, "parameters", pl_param_count(&session->run.shape));
    pl_json_text_whole(&j, "arena_bytes",
                       session->run.gpt.placement.arena_bytes);
    pl_json_text_whole(&j, "process_peak_bytes", peak);
    pl_json_text_real(&j, "train_flops_per_token",
                      pl_bench_train_flops(&session->run.shape));
    pl_json_text_real(&j, "eval_flops_per_token",
                      pl_bench_eval_flops(&session->run.shape,
                                          session->run.gpt.layout.eval_T));
    pl_json_text_real(&j, "sample_bytes_per_token",
                      pl_bench_sample_bytes(&session->run.gpt));
    pl_json_text_real(&j, "predicted_update_seconds", b->predicted_seconds);
    put_round(&j, "median", &b->median);
    pl_json_text_open(&j, "rounds", '[');
    for (int i = 0; i < b->count; i++)
        put_round(&j, NULL, &b->rounds[i]);
    pl_json_text_close(&j, ']');
    put_tables(&j, b);
    status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}

/* ---- the command ---- */

static pl_status run_rounds(pl_bench *bench, int rounds, pl_error *err)
{
    const double began = pl_clock_seconds();
    pl_status status = PL_OK;
    for (int i = 0; i <= rounds && !status && !pl_cli_signal(); i++) {
        double spent = pl_clock_seconds() - began;
        if (i == 0)
            pl_term_progress("warming up");
        else
            pl_term_progress(
                "round %d of %d, %s left", i, rounds,
                pl_units_duration(spent / i * (rounds + 1 - i)).text);
        status = pl_bench_run_round(bench, err);
    }
    pl_term_clear();
    return status;
}

static pl_status run_bench(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    static pl_bench bench;
    pl_config *config = &args->config;
    const int json = (args->flags & FLAG_JSON) != 0;
    pl_session session;
    pl_machine machine;
    size_t vocab_size;
    const char *from;
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (!status)
        status = pl_cli_dial(config, heap, err);
    if (!status)
        status = pl_cli_vocabulary(config, heap, &vocab_size, NULL, &from, err);
    if (!status)
        status = pl_cli_machine(&machine, PL_MACHINE_RUN, config, heap, err);
    if (!status)
        status = pl_session_open_bench(&session, config, &machine,
                                       PL_NEW_RANDOM, vocab_size, &pl_term_log,
                                       heap, err);
    if (status)
        return status;
    if (!json)
        print_start(&session);
    pl_cli_catch_signals();
    pl_bench_begin(&bench, &session);
    status = run_rounds(&bench, (int)config->rounds, err);
    pl_bench_finish(&bench);
    if (status) {
        pl_session_close(&session);
        return status;
    }
    if (bench.count < 1) {
        status = pl_fail(err, PL_E_STOPPED, "stopped before the first round");
    } else if (json) {
        status = print_json(&bench, heap, err);
    } else {
        print_machine(&bench);
        print_rates(&bench);
        print_ops(&bench);
        print_products(&bench);
    }
    pl_session_close(&session);
    if (!status && pl_machine_remember(&session.machine, session.run.text,
                                       PL_RUN_TEXT_BYTES, err))
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "the rates are not remembered: %s", err->text);
    if (!status && pl_cli_signal())
        return pl_fail(err, PL_E_STOPPED, "stopped: %d of %lld rounds were run",
                       bench.count, (long long)config->rounds);
    return status;
}

static const char *const flags[] = { "--json", NULL };

const pl_command pl_command_bench = {
    .name = "bench",
    .arguments = "[CONFIG.py ...] [--key=value ...] [--json]",
    .summary = "how fast this machine trains, evaluates and samples",
    .text = "Runs the config's plan on random tokens, without data: training, "
            "an update,\nevaluation and decoding in rounds, each beside the "
            "multiply-add peak and the\nread bandwidth of the same threads in "
            "the same second. Prints the medians, the\nshare of each op, and "
            "each matrix product of the step. What it finds is kept\nfor "
            "`plan`.\n\n"
            "  plimsoll bench config/train_fineweb.py --rounds=3\n",
    .keys = PL_FOR_TRAIN | PL_FOR_BENCH,
    .model = PL_MODEL_PLANNED,
    .reads_configs = 1,
    .flags = flags,
    .run = run_bench,
};
