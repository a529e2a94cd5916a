/* devices_update.c: see devices_update.h. A session as `bench` opens it,
 * without data and without rates that were measured before. */
#include "cli/devices_update.h"
#include "cli/command.h"
#include "cli/term.h"
#include "train/bench.h"

#include <stdio.h>

/* What makes the model, and what an update is; the first is the one of
 * config/train_fineweb.py, whose update has 524,288 tokens. */
typedef struct model {
    const char *name;
    size_t vocabulary;
    const char *arguments[6];
} model;

static const model models[] = {
    { "the 77 M model (524,288 tokens)",
      50304,
      { "--n_layer=12", "--n_head=12", "--n_embd=576", "--block_size=1024",
        "--batch_size=16", "--gradient_accumulation_steps=32" } },
    { "a small model (128 tokens)",
      64,
      { "--n_layer=1", "--n_head=2", "--n_embd=32", "--block_size=32",
        "--batch_size=2", "--gradient_accumulation_steps=2" } },
};

static const model *model_for(const pl_gpu_card *card)
{
    return &models[pl_selftest_is_small(card)];
}

const char *pl_devices_model(const pl_gpu_card *card)
{
    return model_for(card)->name;
}

static pl_status read_keys(pl_config *config, const model *m,
                           const char *device, const char *dtype, pl_heap *heap,
                           pl_error *err)
{
    char text[2][64];
    snprintf(text[0], sizeof text[0], "--device=%s", device);
    snprintf(text[1], sizeof text[1], "--dtype=%s", dtype);
    *config = pl_config_make_default();
    pl_status status = PL_OK;
    for (size_t i = 0; i < 6 && !status; i++)
        status = pl_config_override(config, m->arguments[i], PL_FOR_TRAIN, heap,
                                    err);
    for (size_t i = 0; i < 2 && !status; i++)
        status = pl_config_override(config, text[i], PL_FOR_TRAIN, heap, err);
    return status;
}

/* The better of two updates behind a first one that warms up. */
static pl_status time_updates(pl_session *session, double *seconds,
                              pl_error *err)
{
    double loops;
    pl_status status = pl_bench_update(session, seconds, &loops, err);
    for (int i = 0; i < 2 && !status; i++) {
        double again;
        status = pl_bench_update(session, &again, &loops, err);
        if (i == 0 || again < *seconds)
            *seconds = again;
    }
    return status;
}

static pl_status measure(double *seconds, double *predicted, const model *m,
                         const char *device, const char *dtype, pl_error *err)
{
    pl_heap heap = pl_heap_make(PL_CLI_HEAP_BYTES);
    static pl_session session;
    pl_machine machine;
    pl_config config;
    pl_status status = read_keys(&config, m, device, dtype, &heap, err);
    if (!status)
        status = pl_machine_make(&machine, PL_MACHINE_RUN, &config, NULL, &heap,
                                 err);
    if (!status)
        status = pl_session_open_bench(&session, &config, &machine,
                                       PL_NEW_RANDOM, m->vocabulary, NULL,
                                       &heap, err);
    if (!status) {
        *predicted = pl_cost_update(&session.run.gpt,
                                    pl_machine_rates(&machine));
        status = time_updates(&session, seconds, err);
        pl_session_close(&session);
    }
    pl_heap_close(&heap);
    return status;
}

void pl_devices_measure(pl_selftest_result *result, const pl_gpu_card *card,
                        const char *device)
{
    const model *m = model_for(card);
    const struct {
        const char *dtype;
        double *seconds, *predicted;
    } rows[] = { { "float32", &result->float32_update_seconds,
                   &result->float32_update_predicted },
                 { "float16", &result->float16_update_seconds,
                   &result->float16_update_predicted } };
    for (size_t i = 0; i < 2; i++) {
        pl_error why = { 0 };
        pl_term_progress("%s: an update of %s in %s", device, m->name,
                         rows[i].dtype);
        const pl_status status = measure(rows[i].seconds, rows[i].predicted, m,
                                         device, rows[i].dtype, &why);
        pl_term_clear();
        if (!status)
            continue;
        *rows[i].seconds = *rows[i].predicted = 0.0;
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "%s: an update of %s in %s was not measured: %s", device,
                   m->name, rows[i].dtype, why.text);
    }
}
