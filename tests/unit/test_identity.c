/* test_identity.c: neither the plan nor the device can change the run. Random
 * small models are trained literally (batch_size sequences at once, level 0,
 * one thread) on the processor, then again under random plans, stopped and
 * resumed on the way: every loss, every byte of the checkpoint's tensors and
 * its state must be the same. Where PLIMSOLL_TEST_DEVICE names a device, two of
 * three sittings are there, the others on the processor.
 *
 *   unit_identity [SEED [CONFIG|all [VARIANTS]]]    other configs, or one of
 * them alone, under so many plans */
#include "advise/runplan.h"
#include "base/rng.h"
#include "device/device_kind.h"
#include "store/checkpoint.h"
#include "support/sanitized.h"
#include "support/two_places.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    UPDATES = 3,
    VARIANTS = 6,
    CONFIGS = SANITIZED_THREAD    ? 1
              : SANITIZED_ADDRESS ? 2
                                  : 5, /* per dtype */
    TENSOR_CONFIGS = CONFIGS < 3 ? 1 : 3,
    FILES = 2,
    TEXT_BYTES = 1200,
    HEAP_BYTES = 64 * 1024 * 1024,
};

/* ---- what is random ---- */

/* What makes a run another run. One of the words is taken for each key. */
static const struct {
    const char *key, *choices;
} run_knobs[] = {
    { "n_layer", "1 2 3" },
    { "n_head", "1 2 3 5" },
    { "n_embd", "7 20 24 33 36 57 145" },
    { "vocab_size", "61 67 83 101 127 131" },
    /* 6 x 97 rows, 4 x 145 channels: more than a block of any kernel's k */
    { "block_size", "5 7 13 18 29 33 97" },
    { "batch_size", "1 2 3 4 4 5 6 6 6" },
    { "gradient_accumulation_steps", "1 2 3 4" },
    { "dropout", "0.0 0.1 0.25 0.5" },
    { "grad_clip", "0.01 0.05 0.1" },
    { "bias", "True False" },
    { "activation", "gelu gelu_tanh" },
    { "tie_word_embeddings", "True False" },
    { "weight_decay", "0.1 0.5" },
    { "learning_rate", "1e-3 1e-2" },
    { "seed", "1337 1 2 3 4294967295" },
    { "optimizer_state", "float32 float32 8bit" },
    { "weights", "float32 float32 bf16" },
    { "norm", "layernorm rmsnorm" },
    { "optimizer", "adamw muon" },
    { "muon_scale", "spectral rms" },
    { "muon_momentum", "0.95 0.8" },
    { "schedule", "cosine wsd linear constant" },
};
enum { RUN_KNOBS = sizeof run_knobs / sizeof run_knobs[0] };

/* What must not: fields of the layout, and how each is drawn from `dice`, for a
 * batch of `rows` rows. */
#define LAYOUT_KNOBS(X)                                                        \
    X(micro, divisor(dice, layout->batch))                                     \
    X(chunk_rows, roll(dice, 1 + rows / 16, rows + 1))                         \
    X(mlp_rows, roll(dice, 1 + rows / 16, rows + 1))                           \
    X(eval_micro, roll(dice, 1, 7))                                            \
    X(pack_columns, roll(dice, 0, 3) * 64)                                     \
    X(copy, (pl_gpt_copy)roll(dice, PL_COPY_NONE, PL_COPY_RESIDENT))

static const size_t thread_counts[] = { 1, 1, 2, 2, 3, 5 };

/* Numbers looked up by (seed, config, variant), one after the other. */
typedef struct random_dice {
    uint32_t seed, config, variant, next;
} random_dice;

static size_t roll(random_dice *dice, size_t least, size_t most)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_INIT, dice->seed, dice->config, dice->variant,
                 dice->next++, 0, words);
    return least + (size_t)pl_rng_below(words, most - least + 1);
}

static size_t divisor(random_dice *dice, size_t of)
{
    size_t found = 0;
    while (found == 0 || of % found != 0)
        found = roll(dice, 1, of);
    return found;
}

/* ---- text: what would have to be repeated ---- */

typedef struct note {
    char text[TEXT_BYTES];
    size_t used;
} note;

__attribute__((format(printf, 2, 3))) static void add(note *n,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(n->text + n->used, sizeof n->text - n->used, format,
                          args);
    va_end(args);
    assert_true(wrote >= 0 && (size_t)wrote < sizeof n->text - n->used);
    n->used += (size_t)wrote;
}

static int64_t drawn(const note *settings, const char *key)
{
    return strtoll(strstr(settings->text, key) + strlen(key), NULL, 10);
}

/* Any number of groups that the drawn batches can be cut into. */
static size_t draw_groups(random_dice *dice, const note *settings)
{
    pl_config config = pl_config_make_default();
    config.batch_size = drawn(settings, "--batch_size=");
    config.gradient_accumulation_steps = drawn(
        settings, "--gradient_accumulation_steps=");
    const size_t most = (size_t)pl_config_most_groups(&config);
    return (size_t)1 << roll(dice, 0, pl_gpt_digits(most));
}

static const char *const dtypes[] = { "float32", "bfloat16", "float16" };
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* The configs of a test: those from `first` up to `end` whose dtype is its. */
typedef struct options {
    uint32_t dtype, seed, first, end, variants;
    int tensor; /* in tensor arithmetic */
} options;

/* The class of the tensor cores that compute, where there are some; else any
 * that has this dtype: a processor has all. */
static pl_products draw_class(random_dice *dice, uint32_t dtype)
{
    static const pl_products all[] = { PL_PRODUCTS_TENSOR24,
                                       PL_PRODUCTS_TENSOR25, PL_PRODUCTS_AMX };
    const int bf16 = strcmp(dtypes[dtype], "bfloat16") == 0;
    const pl_products any = all[roll(dice, 0, bf16 ? 2 : 1)];
    const pl_device_info here = two_places_info(1);
    return here.has_all_products ? any : here.tensor;
}

/* What tensor arithmetic asks for: it takes the place of what was drawn. */
static void add_tensor(random_dice *dice, note *settings, uint32_t dtype)
{
    const pl_products products = draw_class(dice, dtype);
    const size_t group = (size_t)pl_products_group(products);
    add(settings, " --products=%s --block_size=%zu%s",
        pl_products_name(products), group * roll(dice, 1, 64 / group),
        strcmp(dtypes[dtype], "float16") == 0 ? " --weights=float32" : "");
}

/* Half of the models aren't GPT-2s: a family, and some of its keys otherwise.
 */
static void add_family(random_dice *dice, note *settings)
{
    static const char *const families[] = { "gpt2", "llama", "qwen3" };
    static const struct {
        const char *key, *values[3];
    } keys[] = {
        { "position", { "rope", "learned", "rope" } },
        { "mlp", { "relu2", "swiglu", "gelu" } },
        { "qk_norm", { "True", "True", "False" } },
        { "mlp_hidden", { "29", "64", "101" } },
        { "logit_softcap", { "2.0", "5.0", "30.0" } },
        { "norm_eps", { "1e-6", "1e-4", "1e-3" } },
        { "rope_theta", { "1.0", "100.0", "1e6" } },
    };
    if (roll(dice, 0, 1))
        return;
    add(settings, " --architecture=%s --head_dim=%zu --n_kv_head=%zu",
        families[roll(dice, 0, 2)], 2 * roll(dice, 1, 12),
        divisor(dice, (size_t)drawn(settings, "--n_head=")));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (roll(dice, 0, 1))
            add(settings, " --%s=%s", keys[i].key,
                keys[i].values[roll(dice, 0, 2)]);
}

/* The run of a config, as arguments: "--n_layer=2 --n_head=3 ...". */
static note draw_run(random_dice *dice, const options *o)
{
    note settings = { .used = 0 };
    add(&settings, "--dtype=%s", dtypes[o->dtype]);
    for (size_t i = 0; i < RUN_KNOBS; i++) {
        const char *at = run_knobs[i].choices;
        size_t words = 1;
        for (const char *c = at; *c; c++)
            words += *c == ' ';
        for (size_t skip = roll(dice, 0, words - 1); skip > 0; skip--)
            at = strchr(at, ' ') + 1;
        add(&settings, " --%s=%.*s", run_knobs[i].key, (int)strcspn(at, " "),
            at);
    }
    add(&settings, " --gradient_groups=%zu", draw_groups(dice, &settings));
    add_family(dice, &settings);
    if (o->tensor)
        add_tensor(dice, &settings, o->dtype);
    return settings;
}

/* ---- one run ---- */

/* All that must not depend on the plan. */
typedef struct outcome {
    double losses[UPDATES], norms[UPDATES], val_loss;
    pl_checkpoint_state state;
    char *files[FILES]; /* malloc'ed */
    size_t bytes[FILES];
} outcome;

static const char *const file_names[FILES] = {
    "out/latest/model.safetensors", "out/latest/optimizer.safetensors"
};

static void require(pl_status status, const pl_error *err)
{
    if (status)
        fail_msg("%s", err->text);
}

static void make_run(tiny_run *run, const note *settings)
{
    char words[TEXT_BYTES], *rest = words;
    tiny_run_make(run);
    two_places_go(ON_PROCESSOR);
    memcpy(words, settings->text, sizeof words);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        tiny_run_set(run, word);
    tiny_run_set(run, "--threads=1");
    two_places_set(run);
}

static void save(tiny_run *run)
{
    pl_error err = { 0 };
    require(pl_checkpoint_save(&run->session.run, &err), &err);
}

static void train(tiny_run *run, uint64_t until, outcome *out)
{
    while (run->session.run.step < until) {
        pl_update_event event;
        pl_error err = { 0 };
        uint64_t step = run->session.run.step;
        require(pl_train_update(&run->session, &event, &err), &err);
        out->losses[step] = event.loss;
        out->norms[step] = event.grad_norm;
    }
}

/* The rest of the outcome, and the end of the run. */
static void finish(tiny_run *run, outcome *out)
{
    pl_error err = { 0 };
    pl_eval val;
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    require(pl_evaluate(&run->session, PL_SPLIT_VAL, NULL, &val, &err), &err);
    out->val_loss = val.loss;
    save(run);
    require(pl_checkpoint_read_state(&out->state,
                                     scratch_path(&run->folder, "out/latest"),
                                     &heap, &err),
            &err);
    pl_heap_close(&heap);
    for (size_t i = 0; i < FILES; i++) {
        out->files[i] = scratch_read(scratch_path(&run->folder, file_names[i]),
                                     &out->bytes[i]);
        assert_non_null(out->files[i]);
    }
    tiny_run_remove(run);
}

static void forget(outcome *out)
{
    for (size_t i = 0; i < FILES; i++)
        free(out->files[i]);
}

static outcome run_literally(const note *settings)
{
    outcome out = { .val_loss = 0 };
    tiny_run run;
    make_run(&run, settings);
    tiny_run_open(&run);
    const pl_gpt_layout *layout = &run.session.run.gpt.layout;
    assert_int_equal(layout->micro, layout->batch);
    assert_int_equal(layout->device.workers, 1);
    for (size_t l = 0; l < run.session.run.shape.L; l++)
        assert_int_equal(layout->levels[l], 0);
    train(&run, UPDATES, &out);
    finish(&run, &out);
    return out;
}

/* ---- another plan for it ---- */

/* Any layout: `literal` with all its knobs turned. */
static void draw_layout(random_dice *dice, const pl_gpt *literal, pl_gpt *gpt,
                        pl_heap *heap, note *n)
{
    const size_t rows = literal->layout.batch * literal->shape.T,
                 L = literal->shape.L;
    pl_gpt_layout made = literal->layout, *layout = &made;
    uint8_t *levels;
    pl_error err = { 0 };
    require(pl_heap_take(heap, &levels, L, 1, &err), &err);
    add(n, " levels");
    for (size_t l = 0; l < L; l++) {
        levels[l] = (uint8_t)roll(dice, 0, PL_MAX_LEVEL);
        add(n, " %d", levels[l]);
    }
    made.levels = levels;
#define TURN(field, value)                                                     \
    layout->field = (value);                                                   \
    add(n, " " #field " %zu", (size_t)layout->field);
    LAYOUT_KNOBS(TURN)
#undef TURN
    layout->device = two_places_info(thread_counts[roll(dice, 0, 5)]);
    layout->device.products = literal->layout.device.products;
    layout->device.arithmetic = literal->layout.device.arithmetic;
    add(n, " threads %zu", layout->device.workers);
    require(pl_gpt_make(gpt, &literal->shape, layout, heap, &err), &err);
}

/* The layout that the search takes under a budget between the smallest plan
 * and the literal one. */
static void draw_budget(random_dice *dice, const tiny_run *run, pl_gpt *gpt,
                        pl_heap *heap, note *n)
{
    pl_config config = run->config;
    pl_machine machine = { .budget_bytes = SIZE_MAX,
                           .host_budget_bytes = SIZE_MAX };
    pl_run_plan plan;
    pl_error err = { 0 };
    size_t total[2], V = run->session.run.shape.V;
    config.threads = (int64_t)thread_counts[roll(dice, 0, 5)];
    config.origin[PL_KEY_grad_checkpoint].source = PL_FROM_DEFAULT;
    for (int i = 0; i < PL_RATE_DTYPES; i++)
        machine.rates[i] = pl_rates_built_in((size_t)config.threads);
    for (int smallest = 0; smallest < 2; smallest++) {
        config.fit = smallest ? PL_FIT_AUTO : PL_FIT_EXACT;
        machine.budget_bytes = smallest ? 1 : SIZE_MAX;
        require(pl_run_plan_make(&plan, &config, &machine, V, NULL, heap, &err),
                &err);
        total[smallest] = plan.total_bytes;
    }
    machine.budget_bytes = roll(dice, total[1], total[0]);
    require(pl_run_plan_make(&plan, &config, &machine, V, NULL, heap, &err),
            &err);
    require(pl_run_plan_check(&plan, &machine, &err), &err);
    *gpt = plan.gpt;
    const pl_gpt_layout *layout = &gpt->layout;
    add(n, " budget %zu (micro %zu levels", machine.budget_bytes,
        layout->micro);
    for (size_t l = 0; l < gpt->shape.L; l++)
        add(n, " %d", layout->levels[l]);
    add(n, ") threads %zu", layout->device.workers);
}

/* Lays an open session out anew, and fills it from its newest checkpoint. */
static void lay_out(tiny_run *run, const pl_gpt *gpt, pl_heap *heap)
{
    pl_session *session = &run->session;
    pl_error err = { 0 };
    pl_device_close(session->run.device);
    run->is_open = 0;
    session->run.heap = heap;
    session->run.gpt = *gpt;
    require(pl_device_open(&session->run.device, &gpt->layout.device,
                           &session->run.gpt.graph, &session->run.gpt.placement,
                           heap, &err),
            &err);
    run->is_open = 1;
    require(pl_run_write_rotary(&session->run, &err), &err);
    require(pl_checkpoint_load(&session->run,
                               scratch_path(&run->folder, "out/latest"), &err),
            &err);
}

/* The same run in one to three sittings, each under a plan of its own. */
static outcome run_variant(random_dice *dice, const note *settings, note *n)
{
    outcome out = { .val_loss = 0 };
    tiny_run run;
    uint64_t until = 0;
    make_run(&run, settings);
    for (;;) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_gpt gpt;
        const place where = roll(dice, 0, 2) ? ON_TEST_DEVICE : ON_PROCESSOR;
        two_places_go(where);
        two_places_set(&run);
        add(n, " %s,", two_places_info(1).kind->name);
        tiny_run_open(&run);
        assert_int_equal(run.session.run.step, until);
        if (until == 0)
            save(&run);
        if (roll(dice, 0, 2) == 0)
            draw_budget(dice, &run, &gpt, &heap, n);
        else
            draw_layout(dice, &run.session.run.gpt, &gpt, &heap, n);
        lay_out(&run, &gpt, &heap);
        until = roll(dice, until + 1, UPDATES + 1);
        train(&run, until < UPDATES ? until : UPDATES, &out);
        if (until >= UPDATES) {
            finish(&run, &out);
            pl_heap_close(&heap);
            return out;
        }
        add(n, ", resumed after %d with", (int)until);
        save(&run);
        tiny_run_close(&run);
        pl_heap_close(&heap);
        tiny_run_set(&run, "--init_from=resume");
    }
}

/* ---- the comparison ---- */

/* Where two outcomes differ first; empty: nowhere. */
static note compare(const outcome *a, const outcome *b)
{
    note n = { .used = 0 };
    for (int i = 0; i < UPDATES; i++)
        if (memcmp(&a->losses[i], &b->losses[i], sizeof a->losses[i]) != 0 ||
            memcmp(&a->norms[i], &b->norms[i], sizeof a->norms[i]) != 0) {
            add(&n,
                "update %d: loss %.17g, gradient norm %.9g; literally "
                "%.17g, %.9g",
                i, b->losses[i], b->norms[i], a->losses[i], a->norms[i]);
            return n;
        }
    if (memcmp(&a->val_loss, &b->val_loss, sizeof a->val_loss) != 0)
        add(&n, "validation loss %.17g, literally %.17g", b->val_loss,
            a->val_loss);
    for (size_t i = 0; i < FILES; i++) {
        size_t at = 0;
        while (at < a->bytes[i] && at < b->bytes[i] &&
               a->files[i][at] == b->files[i][at])
            at++;
        if (at < a->bytes[i] || at < b->bytes[i])
            add(&n, "%s differs from byte %zu on. ", file_names[i], at);
    }
    const pl_checkpoint_state *s = &a->state, *t = &b->state;
    if (s->step != t->step || s->skipped != t->skipped ||
        s->scaler.scale != t->scaler.scale ||
        s->scaler.good != t->scaler.good ||
        s->scaler.adaptive != t->scaler.adaptive)
        add(&n, "state.json differs");
    return n;
}

/* ---- the tests ---- */

/* Gradients were clipped, and not all were lost to an overflow. */
static void check_literal(const outcome *out, const note *settings)
{
    double clip = strtod(strstr(settings->text, "--grad_clip=") + 12, NULL);
    assert_int_equal(out->state.step, UPDATES);
    assert_true(out->state.skipped < UPDATES);
    for (int i = 0; i < UPDATES; i++)
        assert_false(out->norms[i] <= clip);
}

/* Returns how many of the variants differ. */
static int try_variants(const options *o, uint32_t config)
{
    random_dice dice = { .seed = o->seed, .config = config };
    two_places_go(ON_TEST_DEVICE);
    const note settings = draw_run(&dice, o);
    int differ = 0;
    print_message("seed %u config %u: %s\n", o->seed, config, settings.text);
    outcome literal = run_literally(&settings);
    check_literal(&literal, &settings);
    for (uint32_t v = 1; v <= o->variants; v++) {
        note plan = { .used = 0 };
        dice = (random_dice){ o->seed, config, v, 0 };
        outcome other = run_variant(&dice, &settings, &plan);
        note difference = compare(&literal, &other);
        if (difference.used)
            print_error("seed %u config %u variant %u:%s\n  %s\n", o->seed,
                        config, v, plan.text, difference.text);
        differ += difference.used != 0;
        forget(&other);
    }
    forget(&literal);
    return differ;
}

static void no_plan_changes_a_bit(void **state)
{
    const options *o = *state;
    int differ = 0;
    for (uint32_t i = o->first; i < o->end; i++)
        if (i % DTYPES == o->dtype)
            differ += try_variants(o, i);
    if (differ)
        fail_msg("%s%s: %d runs differ from the literal one; they are named "
                 "above",
                 dtypes[o->dtype], o->tensor ? ", tensor arithmetic" : "",
                 differ);
}

/* Whether the device computes in tensor arithmetic: a card may have no such
 * cores. */
static int has_tensor(void)
{
    two_places_go(ON_TEST_DEVICE);
    const pl_device_info info = two_places_info(1);
    return info.has_all_products || info.tensor != PL_PRODUCTS_EXACT;
}

int main(int argc, char **argv)
{
    enum { TESTS = DTYPES + 2 }; /* each dtype, and two in tensor arithmetic */
    options o[TESTS];
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash leaves the config's line */
    for (uint32_t i = 0; i < TESTS; i++) {
        const int tensor = i >= DTYPES;
        o[i] = (options){ .dtype = tensor ? i - DTYPES + 1 : i,
                          .seed = 20,
                          .variants = VARIANTS,
                          .end = DTYPES * (tensor ? TENSOR_CONFIGS : CONFIGS),
                          .tensor = tensor };
        if (argc > 1)
            o[i].seed = (uint32_t)strtoul(argv[1], NULL, 10);
        if (argc > 2 && strcmp(argv[2], "all") != 0) {
            o[i].first = (uint32_t)strtoul(argv[2], NULL, 10);
            o[i].end = o[i].first + 1;
        }
        if (argc > 3)
            o[i].variants = (uint32_t)strtoul(argv[3], NULL, 10);
    }
    const struct CMUnitTest exact[] = {
        { "no_plan_changes_a_bit_in_float32", no_plan_changes_a_bit, NULL, NULL,
          &o[0] },
        { "no_plan_changes_a_bit_in_bfloat16", no_plan_changes_a_bit, NULL,
          NULL, &o[1] },
        { "no_plan_changes_a_bit_in_float16", no_plan_changes_a_bit, NULL, NULL,
          &o[2] },
    };
    const struct CMUnitTest tensor[] = {
        { "no_plan_changes_a_bit_in_tensor_arithmetic_of_bfloat16",
          no_plan_changes_a_bit, NULL, NULL, &o[3] },
        { "no_plan_changes_a_bit_in_tensor_arithmetic_of_float16",
          no_plan_changes_a_bit, NULL, NULL, &o[4] },
    };
    const int failed = cmocka_run_group_tests(exact, NULL, NULL);
    return has_tensor() ? failed + cmocka_run_group_tests(tensor, NULL, NULL)
                        : failed;
}
