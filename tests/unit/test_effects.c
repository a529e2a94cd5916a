/* Tests of the effects in the table of keys: what another value of a key does
 * to a run that goes on with it is what its row says. Every key of train has a
 * value to try here. */
#include "config/config.h"
#include "store/checkpoint.h"

#include "support/tiny_run.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FIRST = 4, LAST = 8 };

/* Another value than tiny_run's, or why there is none. */
static const struct other {
    const char *value, *why_not;
} others[PL_KEY_COUNT] = {
    [PL_KEY_out_dir] = { NULL, "a run goes on where it is" },
    [PL_KEY_init_from] = { NULL, "it is what goes on" },
    [PL_KEY_seed] = { "7", NULL },
    [PL_KEY_max_iters] = { "99", NULL },
    [PL_KEY_max_minutes] = { "3.0", NULL },
    [PL_KEY_log_interval] = { "3", NULL },
    [PL_KEY_always_save_checkpoint] = { "False", NULL },
    [PL_KEY_save_interval] = { "1", NULL },
    [PL_KEY_keep] = { "0", NULL },
    [PL_KEY_comm_timeout] = { "9.0", NULL },
    [PL_KEY_max_skipped] = { "1", NULL },
    [PL_KEY_dataset] = { NULL, "a test of its own" },
    [PL_KEY_batch_size] = { "4", NULL },
    [PL_KEY_gradient_accumulation_steps] = { "3", NULL },
    [PL_KEY_gradient_groups] = { "2", NULL },
    [PL_KEY_block_size] = { "12", NULL },
    [PL_KEY_vocab_size] = { "62", NULL },
    [PL_KEY_depth] = { "3", NULL },
    [PL_KEY_n_layer] = { "3", NULL },
    [PL_KEY_n_head] = { "2", NULL },
    [PL_KEY_n_embd] = { "30", NULL },
    [PL_KEY_head_dim] = { "6", NULL },
    [PL_KEY_dropout] = { "0.2", NULL },
    [PL_KEY_bias] = { "False", NULL },
    [PL_KEY_tie_word_embeddings] = { "False", NULL },
    [PL_KEY_norm] = { "rmsnorm", NULL },
    [PL_KEY_activation] = { "gelu_tanh", NULL },
    [PL_KEY_architecture] = { "llama", NULL },
    [PL_KEY_n_kv_head] = { "1", NULL },
    [PL_KEY_norm_eps] = { "1e-6", NULL },
    [PL_KEY_position] = { "rope", NULL },
    [PL_KEY_rope_theta] = { "500.0", NULL },
    [PL_KEY_mlp] = { "swiglu", NULL },
    [PL_KEY_mlp_hidden] = { "77", NULL },
    [PL_KEY_qk_norm] = { "True", NULL },
    [PL_KEY_logit_softcap] = { "30.0", NULL },
    [PL_KEY_optimizer] = { "muon", NULL },
    [PL_KEY_learning_rate] = { "0.02", NULL },
    [PL_KEY_weight_decay] = { "0.2", NULL },
    [PL_KEY_beta1] = { "0.8", NULL },
    [PL_KEY_beta2] = { "0.9", NULL },
    [PL_KEY_grad_clip] = { "0.01", NULL },
    [PL_KEY_optimizer_state] = { "8bit", NULL },
    [PL_KEY_muon_learning_rate] = { NULL, "a test of its own" },
    [PL_KEY_muon_scale] = { NULL, "likewise" },
    [PL_KEY_muon_momentum] = { NULL, "likewise" },
    [PL_KEY_muon_weight_decay] = { NULL, "likewise" },
    [PL_KEY_sync_interval] = { "2", NULL },
    [PL_KEY_outer_learning_rate] = { NULL, "a test of its own" },
    [PL_KEY_outer_momentum] = { NULL, "likewise" },
    [PL_KEY_decay_lr] = { "False", NULL },
    [PL_KEY_schedule] = { "linear", NULL },
    [PL_KEY_warmdown_share] = { NULL, "a test of its own" },
    [PL_KEY_warmup_iters] = { "7", NULL },
    [PL_KEY_lr_decay_iters] = { "20", NULL },
    [PL_KEY_min_lr] = { "0.005", NULL },
    [PL_KEY_eval_interval] = { "5", NULL },
    [PL_KEY_eval_iters] = { "3", NULL },
    [PL_KEY_eval_only] = { NULL, "it trains nothing" },
    [PL_KEY_eval_batch_size] = { "3", NULL },
    [PL_KEY_eval_block_size] = { "7", NULL },
    [PL_KEY_tasks] = { "some.jsonl", NULL },
    [PL_KEY_task_interval] = { NULL, "it needs tasks: cli/tasks.sh" },
    [PL_KEY_shots] = { "2", NULL },
    [PL_KEY_task_limit] = { "3", NULL },
    [PL_KEY_continuation_delimiter] = { "x", NULL },
    [PL_KEY_example_delimiter] = { "x", NULL },
    [PL_KEY_device] = { "cpu", NULL },
    [PL_KEY_dtype] = { "bfloat16", NULL },
    [PL_KEY_products] = { NULL, "a test of its own" },
    [PL_KEY_weights] = { "bf16", NULL },
    [PL_KEY_working_copy] = { NULL, "a test of its own" },
    [PL_KEY_threads] = { "2", NULL },
    [PL_KEY_memory] = { "900MB", NULL },
    [PL_KEY_host_memory] = { "900MB", NULL },
    [PL_KEY_fit] = { "auto", NULL },
    [PL_KEY_grad_checkpoint] = { "[3, 2]", NULL },
    [PL_KEY_sample_interval] = { NULL, "its data has no text: cli/samples.sh" },
    [PL_KEY_sample_prompts] = { NULL, "likewise" },
    [PL_KEY_max_new_tokens] = { "3", NULL },
    [PL_KEY_temperature] = { "0.5", NULL },
    [PL_KEY_top_k] = { "5", NULL },
    [PL_KEY_allow_other_tokenizer] = { "True", NULL },
    [PL_KEY_allow_other_arithmetic] = { "True", NULL },
};

/* ---- a run that goes on ---- */

typedef struct result {
    pl_status status; /* of going on */
    unsigned long long hash;
    double evaluated; /* the sum of its validation losses */
    int evaluations;
    char said[4096]; /* while it was opened */
    pl_error err;
} result;

static void listen(void *context, pl_log_level level, const char *text)
{
    result *r = context;
    (void)level;
    strncat(r->said, text, sizeof r->said - strlen(r->said) - 2);
    strcat(r->said, "\n");
}

static void on_evaluation(void *context, const pl_eval_event *event)
{
    result *r = context;
    r->evaluated += event->val.loss;
    r->evaluations++;
}

/* As many evaluations as the run has that is not changed. */
static int has_enough(void *context)
{
    return ((const result *)context)->evaluations == 2;
}

static void train_to_end(tiny_run *run, result *r)
{
    const pl_listener listener = { .context = r,
                                   .evaluated = on_evaluation,
                                   .stop = has_enough };
    pl_error err = { 0 };
    r->evaluated = 0.0;
    r->evaluations = 0;
    pl_status status = pl_train(&run->session, &listener, &err);
    if (status && status != PL_E_STOPPED)
        fail_msg("%s", err.text);
    assert_int_equal(run->session.run.step, LAST);
    r->hash = tiny_run_hash(run);
}

/* Each of a list that ends with NULL; NULL: none. */
static void set_all(tiny_run *run, const char *const *settings)
{
    for (; settings && *settings; settings++)
        tiny_run_set(run, *settings);
}

/* Before: the same for all but what `base` says. */
static void train_first(tiny_run *run, const char *const *base)
{
    pl_error err = { 0 };
    tiny_run_make(run);
    tiny_run_set(run, "--max_iters=8");
    tiny_run_set(run, "--threads=1");
    tiny_run_set(run, "--eval_interval=4");
    set_all(run, base);
    tiny_run_open(run);
    tiny_run_train(run, FIRST);
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
    tiny_run_close(run);
    tiny_run_set(run, "--init_from=resume");
}

static void go_on(tiny_run *run, result *r)
{
    const pl_log log = { listen, r };
    pl_machine machine;
    *r = (result){ .evaluated = 0.0 };
    r->status = pl_machine_make(&machine, PL_MACHINE_RUN, &run->config, NULL,
                                &run->heap, &r->err);
    if (!r->status)
        r->status = pl_session_open_train(&run->session, run->purpose,
                                          &run->config, &machine, &log,
                                          &run->heap, &r->err);
    run->is_open = !r->status;
    if (!r->status)
        train_to_end(run, r);
}

/* Goes on with other values. */
static result go_on_with_all(const char *const *base,
                             const char *const *settings)
{
    tiny_run run;
    result r;
    train_first(&run, base);
    set_all(&run, settings);
    go_on(&run, &r);
    tiny_run_remove(&run);
    return r;
}

/* The same with one of each, or none. */
static result go_on_with(const char *base, const char *setting)
{
    const char *const bases[] = { base, NULL }, *const all[] = { setting,
                                                                 NULL };
    return go_on_with_all(bases, all);
}

static int says_another(const result *r)
{
    return strstr(r->said, "another one from here on") != NULL;
}

static int same_real(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static int is_right(const char *setting, pl_effect effect, const result *plain,
                    const result *r)
{
    int right = 0;
    switch (effect) {
    case PL_EFFECT_CALL:
    case PL_EFFECT_SAME:
        right = !r->status && r->hash == plain->hash && !says_another(r) &&
                same_real(r->evaluated, plain->evaluated) &&
                r->evaluations == plain->evaluations;
        right &= (strstr(r->said, "changed since") != NULL) ==
                 (effect == PL_EFFECT_SAME);
        break;
    case PL_EFFECT_EVALUATION:
        right = !r->status && r->hash == plain->hash && !says_another(r) &&
                !same_real(r->evaluated, plain->evaluated);
        break;
    case PL_EFFECT_NUMBERS:
        right = !r->status && r->hash != plain->hash && says_another(r);
        break;
    case PL_EFFECT_TENSORS:
        right = r->status == PL_E_FORMAT && !says_another(r);
        break;
    case PL_EFFECT_MODEL:
    case PL_EFFECT_DATA:
    case PL_EFFECT_IDENTITY:
        right = r->status == PL_E_CONFIG;
        break;
    case PL_EFFECT_COUNT:
        break;
    }
    if (!right)
        print_error("%s: its row says '%s'; status %d (%s), hash %llx, was "
                    "%llx, %d evaluations, %g in all, were %d, %g; it said: "
                    "%s\n",
                    setting, pl_effect_name(effect), (int)r->status,
                    r->err.text, r->hash, plain->hash, r->evaluations,
                    r->evaluated, plain->evaluations, plain->evaluated,
                    r->said);
    return right;
}

static void a_change_in_a_run_does_what_its_row_says(void **state)
{
    (void)state;
    const result plain = go_on_with(NULL, NULL);
    int tried[PL_EFFECT_COUNT] = { 0 }, wrong = 0;
    assert_int_equal(plain.status, PL_OK);
    assert_int_equal(plain.evaluations, 2);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row(key);
        char setting[128];
        if (!(row->commands & PL_FOR_TRAIN) || row->type == PL_TYPE_IGNORED)
            continue;
        if (!others[key].value && !others[key].why_not)
            fail_msg("%s has no value to try here", row->name);
        if (!others[key].value)
            continue;
        snprintf(setting, sizeof setting, "--%s=%s", row->name,
                 others[key].value);
        const result r = go_on_with(NULL, setting);
        wrong += !is_right(setting, row->effect, &plain, &r);
        tried[row->effect]++;
    }
    assert_int_equal(wrong, 0);
    for (int effect = 0; effect < PL_EFFECT_COUNT; effect++)
        assert_true(tried[effect] > 0 || effect == PL_EFFECT_DATA);
}

/* Another arithmetic is other numbers, which have to be allowed; another word
 * for the same is nothing. */
static void other_products_are_other_numbers(void **state)
{
    static const char *const base[] = { "--dtype=bfloat16", "--block_size=16",
                                        NULL },
                             *const exact[] = { "--products=exact", NULL },
                             *const tensor[] = { "--products=tensor24", NULL },
                             *const allowed[] = {
                                 "--products=tensor24",
                                 "--allow_other_arithmetic=True", NULL
                             };
    (void)state;
    const result plain = go_on_with_all(base, NULL),
                 same = go_on_with_all(base, exact),
                 refused = go_on_with_all(base, tensor),
                 other = go_on_with_all(base, allowed);
    assert_int_equal(plain.status, PL_OK);
    assert_int_equal(same.status, PL_OK);
    assert_true(same.hash == plain.hash);
    assert_non_null(strstr(same.said, "products 'auto' -> 'exact'"));
    assert_false(says_another(&same));
    assert_int_equal(refused.status, PL_E_CONFIG);
    assert_non_null(strstr(refused.err.text, "products = 'exact'"));
    assert_true(is_right("--products=tensor24",
                         pl_key_row(PL_KEY_products)->effect, &plain, &other));
}

/* What only Muon reads, and what only its schedule does. */
static void keys_of_one_optimizer_or_schedule(void **state)
{
    static const struct {
        const char *base, *setting;
        pl_key key;
    } tries[] = {
        { "--optimizer=muon", "--muon_learning_rate=0.01",
          PL_KEY_muon_learning_rate },
        { "--optimizer=muon", "--muon_scale=rms", PL_KEY_muon_scale },
        { "--optimizer=muon", "--muon_momentum=0.9", PL_KEY_muon_momentum },
        { "--optimizer=muon", "--muon_weight_decay=0.5",
          PL_KEY_muon_weight_decay },
        { "--optimizer=muon", "--optimizer=adamw", PL_KEY_optimizer },
        { "--optimizer=muon", "--schedule=linear", PL_KEY_schedule },
        { "--schedule=wsd", "--warmdown_share=0.95", PL_KEY_warmdown_share },
        { "--sync_interval=2", "--outer_learning_rate=0.5",
          PL_KEY_outer_learning_rate },
        { "--sync_interval=2", "--outer_momentum=0.5", PL_KEY_outer_momentum },
    };
    (void)state;
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const result plain = go_on_with(tries[i].base, NULL),
                     r = go_on_with(tries[i].base, tries[i].setting);
        assert_int_equal(plain.status, PL_OK);
        assert_true(is_right(tries[i].setting, pl_key_row(tries[i].key)->effect,
                             &plain, &r));
    }
}

/* AdamW's moments and Muon's are never taken for each other's. */
static void another_optimizer_is_refused_by_its_name(void **state)
{
    (void)state;
    const result there = go_on_with(NULL, "--optimizer=muon"),
                 back = go_on_with("--optimizer=muon", "--optimizer=adamw");
    assert_int_equal(there.status, PL_E_FORMAT);
    assert_non_null(strstr(there.err.text,
                           "optimizer is 'adamw' in the checkpoint and 'muon' "
                           "in the config"));
    assert_non_null(strstr(there.err.text, "--init_from="));
    assert_int_equal(back.status, PL_E_FORMAT);
    assert_non_null(strstr(back.err.text, "optimizer is 'muon'"));
}

/* In float32 there are no 16-bit weights to keep. */
static void a_working_copy_changes_no_bit(void **state)
{
    (void)state;
    const result plain = go_on_with("--dtype=bfloat16", NULL),
                 r = go_on_with("--dtype=bfloat16", "--working_copy=resident");
    assert_int_equal(plain.status, PL_OK);
    assert_true(is_right("--working_copy=resident",
                         pl_key_row(PL_KEY_working_copy)->effect, &plain, &r));
}

/* Where the data is makes no difference; which it is does. */
static void data_is_compared_as_tokens(void **state)
{
    (void)state;
    tiny_run run;
    result r;
    char setting[1100], path[1024];
    assert_int_equal(pl_key_row(PL_KEY_dataset)->effect, PL_EFFECT_DATA);
    const result plain = go_on_with(NULL, NULL);
    train_first(&run, NULL);
    snprintf(path, sizeof path, "%s", run.folder.folder);
    snprintf(setting, sizeof setting, "--dataset=%s/.", path);
    tiny_run_set(&run, setting);
    go_on(&run, &r);
    assert_int_equal(r.status, PL_OK);
    assert_true(r.hash == plain.hash);
    assert_non_null(strstr(r.said, "dataset"));
    assert_false(says_another(&r));
    tiny_run_close(&run);
    scratch_write(scratch_path(&run.folder, "val.bin"), (char[400]){ 0 }, 400);
    go_on(&run, &r);
    assert_int_equal(r.status, PL_E_CONFIG);
    tiny_run_remove(&run);
}

/* ---- what is read off the table ---- */

static void the_strongest_difference_counts(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(1 << 20);
    pl_error err = { 0 };
    const pl_config a = pl_config_make_default();
    pl_config b = a;
    static const struct {
        const char *setting;
        pl_effect effect;
    } steps[] = {
        { "--out_dir=elsewhere", PL_EFFECT_CALL },
        { "--grad_checkpoint=[1, 2]", PL_EFFECT_SAME },
        { "--eval_batch_size=3", PL_EFFECT_EVALUATION },
        { "--learning_rate=0.5", PL_EFFECT_NUMBERS },
        { "--weights=bf16", PL_EFFECT_TENSORS },
        { "--bias=True", PL_EFFECT_MODEL },
        { "--dropout=0.1", PL_EFFECT_MODEL },
        { "--dataset=other", PL_EFFECT_DATA },
        { "--seed=2", PL_EFFECT_IDENTITY },
    };
    assert_int_equal(pl_config_difference(&a, &b), PL_EFFECT_CALL);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(
            pl_config_override(&b, steps[i].setting, PL_FOR_ALL, &heap, &err),
            PL_OK);
        assert_int_equal(pl_config_difference(&a, &b), steps[i].effect);
        assert_int_equal(pl_config_difference(&b, &a), steps[i].effect);
    }
    pl_heap_close(&heap);
}

/* Of other commands, and of no command at all. */
static void what_no_run_keeps_belongs_to_a_call(void **state)
{
    (void)state;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row(key);
        if (!(row->commands & PL_FOR_TRAIN) || !pl_key_is_kept(key))
            assert_int_equal(row->effect, PL_EFFECT_CALL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_in_a_run_does_what_its_row_says),
        cmocka_unit_test(other_products_are_other_numbers),
        cmocka_unit_test(keys_of_one_optimizer_or_schedule),
        cmocka_unit_test(another_optimizer_is_refused_by_its_name),
        cmocka_unit_test(a_working_copy_changes_no_bit),
        cmocka_unit_test(data_is_compared_as_tokens),
        cmocka_unit_test(the_strongest_difference_counts),
        cmocka_unit_test(what_no_run_keeps_belongs_to_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
