/* tiny_run.c: see tiny_run.h. */
#include "support/tiny_run.h"
#include "advise/runplan.h"
#include "base/rng.h"
#include "support/on_device.h"
#include "support/silly_device.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VOCAB = 61, TOKENS = 3000 };

/* Tokens that mostly follow from the one before: something to learn. */
static void write_tokens(const tiny_run *run, const char *name, uint32_t seed)
{
    uint16_t tokens[TOKENS];
    unsigned last = 0;
    for (uint32_t i = 0; i < TOKENS; i++) {
        uint32_t words[4];
        pl_rng_words(PL_RNG_INIT, seed, i, 0, 0, 0, words);
        last = words[0] % 4 == 0 ? words[1] % VOCAB : (last * 7 + 3) % VOCAB;
        tokens[i] = (uint16_t)last;
    }
    scratch_write(scratch_path(&run->folder, name), tokens, sizeof tokens);
}

void tiny_run_set(tiny_run *run, const char *argument)
{
    pl_error err = { 0 };
    if (pl_config_override(&run->config, argument, PL_FOR_ALL, &run->heap,
                           &err))
        fail_msg("%s", err.text);
}

static void set_path(tiny_run *run, const char *key, const char *name)
{
    char argument[1024];
    snprintf(argument, sizeof argument, "--%s=%s", key,
             name ? scratch_path(&run->folder, name) : run->folder.folder);
    tiny_run_set(run, argument);
}

void tiny_run_make(tiny_run *run)
{
    static const char *const settings[] = {
        "--n_layer=2",         "--n_head=3",
        "--n_embd=24",         "--block_size=13",
        "--batch_size=5",      "--gradient_accumulation_steps=2",
        "--vocab_size=61",     "--dropout=0.1",
        "--bias=True",         "--max_iters=6",
        "--eval_iters=2",      "--eval_interval=1000",
        "--threads=2",         "--warmup_iters=3",
        "--lr_decay_iters=50", "--learning_rate=1e-2",
        "--fit=exact",
    };
    static const char meta[] = "{\"tokenizer\": \"char\", \"vocab_size\": 61, "
                               "\"characters\": [";
    char text[1024];
    size_t used = sizeof meta - 1;

    silly_device_if_asked();
    memset(run, 0, sizeof *run);
    scratch_open(&run->folder);
    run->heap = pl_heap_make(256 * 1024 * 1024);
    run->config = pl_config_make_default();
    write_tokens(run, "train.bin", 1);
    write_tokens(run, "val.bin", 2);
    memcpy(text, meta, used);
    for (int i = 0; i < VOCAB; i++) /* '0' .. 'l', without the backslash */
        used += (size_t)snprintf(text + used, sizeof text - used, "%s\"%c\"",
                                 i ? ", " : "",
                                 '0' + i + ('0' + i >= '\\' ? 1 : 0));
    used += (size_t)snprintf(text + used, sizeof text - used, "]}");
    scratch_write(scratch_path(&run->folder, "meta.json"), text, used);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        tiny_run_set(run, settings[i]);
    set_path(run, "dataset", NULL);
    set_path(run, "out_dir", "out");
}

pl_status tiny_run_try(tiny_run *run, pl_error *err)
{
    pl_machine machine;
    pl_status status = pl_machine_make(&machine, PL_MACHINE_RUN, &run->config,
                                       NULL, &run->heap, err);
    if (!status && run->comm) {
        machine.comm = run->comm;
        machine.ranks = (size_t)pl_comm_ranks(run->comm);
        machine.rank = (size_t)pl_comm_rank(run->comm);
    }
    if (!status)
        status = pl_session_open_train(&run->session, run->purpose,
                                       &run->config, &machine, NULL, &run->heap,
                                       err);
    return status;
}

void tiny_run_open(tiny_run *run)
{
    pl_error err = { 0 };
    if (tiny_run_try(run, &err))
        fail_msg("%s", err.text);
    run->is_open = 1;
}

/* The config's own texts live in the heap: they are copied over. */
void tiny_run_close(tiny_run *run)
{
    static char values[PL_KEY_COUNT][1024];
    if (run->is_open)
        pl_session_close(&run->session);
    run->is_open = 0;
    for (int key = 0; key < PL_KEY_COUNT; key++)
        pl_config_value_text(&run->config, (pl_key)key, values[key],
                             sizeof values[key]);
    pl_heap_close(&run->heap);
    run->config = pl_config_make_default();
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char argument[1200];
        snprintf(argument, sizeof argument, "--%s=%.1023s",
                 pl_key_row((pl_key)key)->name, values[key]);
        tiny_run_set(run, argument);
    }
}

void tiny_run_remove(tiny_run *run)
{
    if (run->is_open)
        pl_session_close(&run->session);
    run->is_open = 0;
    pl_heap_close(&run->heap);
    scratch_close(&run->folder);
}

double tiny_run_train(tiny_run *run, int count)
{
    pl_update_event event = { 0 };
    pl_error err = { 0 };
    for (int i = 0; i < count; i++)
        if (pl_train_update(&run->session, &event, &err))
            fail_msg("%s", err.text);
    return event.loss;
}

static unsigned long long hash_bytes(unsigned long long hash, const void *data,
                                     size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 1099511628211ull; /* FNV-1a */
    return hash;
}

unsigned long long tiny_run_hash(tiny_run *run)
{
    const pl_gpt *gpt = &run->session.run.gpt;
    const pl_buffer_id *const sets[] = { gpt->weights,  gpt->m,
                                         gpt->v,        gpt->m_scales,
                                         gpt->v_scales, gpt->anchor,
                                         gpt->outer };
    unsigned long long hash = 14695981039346656037ull;
    for (int set = 0; set < 7; set++)
        for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++) {
            if (sets[set][i] == PL_NO_BUFFER)
                continue;
            size_t bytes = gpt->graph.buffers[sets[set][i]].bytes;
            void *copy = on_device_copy(run->session.run.device, &gpt->graph,
                                        sets[set][i]);
            hash = hash_bytes(hash, copy, bytes);
            free(copy);
        }
    return hash;
}

size_t tiny_run_beside(const tiny_run *run)
{
    return pl_run_plan_is_apart(&run->session.run.gpt.layout)
               ? 0
               : run->session.reserve_bytes;
}

typedef struct stopper {
    uint64_t after;
    uint64_t seen;
} stopper;

static void count_update(void *context, const pl_update_event *event)
{
    stopper *s = context;
    s->seen = event->step + 1;
}

static int stop_after(void *context)
{
    const stopper *s = context;
    return s->seen >= s->after;
}

pl_status tiny_run_until(tiny_run *run, uint64_t after, pl_error *err)
{
    stopper s = { .after = after };
    pl_listener listener = { .context = &s,
                             .updated = count_update,
                             .stop = stop_after };
    return pl_train(&run->session, &listener, err);
}

int tiny_run_has_step(const tiny_run *run, int step)
{
    char name[64];
    snprintf(name, sizeof name, "out/step-%08d/manifest.json", step);
    return scratch_has(scratch_path(&run->folder, name));
}
