/* Tests of train/trainer: what an update computes must not depend on how it is
 * computed. */
#include "store/checkpoint.h"
#include "support/on_device.h"
#include "support/sanitized.h"
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

typedef struct result {
    double losses[6];
    unsigned long long hash;
} result;

/* Six updates with more settings. */
static result run_with3(const char *first, const char *second,
                        const char *third)
{
    const char *const settings[] = { first, second, third };
    tiny_run run;
    result out = { { 0 }, 0 };
    tiny_run_make(&run);
    for (int i = 0; i < 3; i++)
        if (settings[i])
            tiny_run_set(&run, settings[i]);
    tiny_run_open(&run);
    for (int i = 0; i < 6; i++)
        out.losses[i] = tiny_run_train(&run, 1);
    out.hash = tiny_run_hash(&run);
    tiny_run_remove(&run);
    return out;
}

static void assert_same(const result *a, const result *b)
{
    assert_memory_equal(a->losses, b->losses, sizeof a->losses);
    assert_true(a->hash == b->hash);
}

static result run_with(const char *first, const char *second)
{
    return run_with3(first, second, NULL);
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    (void)state;
    result one = run_with("--threads=1", NULL);
    result two = run_with("--threads=2", NULL);
    result three = run_with("--threads=3", NULL);
    result seven = run_with("--threads=7", NULL);
    assert_same(&one, &two);
    assert_same(&one, &three);
    assert_same(&one, &seven);
}

static void the_checkpoint_level_changes_no_bit(void **state)
{
    (void)state;
    result literal = run_with("--grad_checkpoint=False", NULL);
    static const char *const levels[] = { "--grad_checkpoint=1",
                                          "--grad_checkpoint=2",
                                          "--grad_checkpoint=True",
                                          "--grad_checkpoint=[3, 1]" };
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        result other = run_with(levels[i], NULL);
        assert_same(&literal, &other);
    }
}

static const char *const dtypes[] = { "--dtype=float32", "--dtype=bfloat16",
                                      "--dtype=float16" };

static void threads_and_levels_change_no_bit_in_any_storage(void **state)
{
    (void)state;
    for (size_t i = 1; i < 3; i++) {
        result one = run_with(dtypes[i], "--threads=1");
        result three = run_with(dtypes[i], "--threads=3");
        result level = run_with(dtypes[i], "--grad_checkpoint=[2, 3]");
        assert_same(&one, &three);
        assert_same(&one, &level);
    }
}

/* ---- small weights, small moments, working copies ---- */

static const char *const small[] = { "--optimizer_state=8bit",
                                     "--weights=bf16" };

static void small_state_is_another_run_that_no_layout_changes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        result plain = run_with(dtypes[i], NULL);
        for (size_t k = 0; k < 2; k++) {
            result one = run_with3(dtypes[i], small[k], "--threads=1");
            result three = run_with3(dtypes[i], small[k], "--threads=3");
            result level = run_with3(dtypes[i], small[k],
                                     "--grad_checkpoint=[2, 3]");
            assert_same(&one, &three);
            assert_same(&one, &level);
            assert_true(one.hash != plain.hash);
        }
    }
}

static void a_resident_working_copy_changes_no_bit(void **state)
{
    (void)state;
    for (size_t i = 1; i < 3; i++) {
        tiny_run run;
        tiny_run_make(&run);
        tiny_run_set(&run, dtypes[i]);
        tiny_run_set(&run, "--working_copy=resident");
        tiny_run_open(&run);
        assert_true(run.session.run.gpt.copies[0] != PL_NO_BUFFER);
        tiny_run_remove(&run);
        result rounded = run_with(dtypes[i], "--working_copy=rounded");
        result kept = run_with(dtypes[i], "--working_copy=resident");
        assert_same(&rounded, &kept);
    }
}

static void small_state_still_learns(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_set(&run, "--dropout=0.0");
    tiny_run_set(&run, small[0]);
    tiny_run_set(&run, small[1]);
    tiny_run_open(&run);
    double first = tiny_run_train(&run, 1), last = tiny_run_train(&run, 60);
    assert_true(last < 0.75 * first);
    tiny_run_remove(&run);
}

/* The search lays a run out anew for every budget. Returns how many different
 * layouts were seen, all with the reference's bits. */
static int run_with_budgets(const char *dtype, const result *literal)
{
    enum { BUDGETS = SANITIZED_ADDRESS || SANITIZED_THREAD ? 5 : 8 };
    unsigned long long seen = 0;
    int layouts = 0;
    tiny_run run;
    tiny_run_make(&run);
    /* Nothing is written, so that no checkpoint takes its share of a budget
     * where the folder lies in memory. Updates are made by hand. */
    run.purpose = PL_RUN_EVALUATES;
    tiny_run_set(&run, dtype);
    tiny_run_set(&run, "--batch_size=6");
    tiny_run_open(&run);
    const pl_placement *place = &run.session.run.gpt.placement;
    size_t fixed = tiny_run_beside(&run) + place->throughout_bytes;
    size_t most = place->program_bytes[PL_TRAIN];
    tiny_run_close(&run);
    tiny_run_set(&run, "--fit=auto");
    for (size_t i = 1; i <= BUDGETS; i++) {
        char budget[64];
        pl_error err = { 0 };
        snprintf(budget, sizeof budget, "--memory=%zu",
                 fixed + most / BUDGETS * i);
        tiny_run_set(&run, budget);
        pl_status status = tiny_run_try(&run, &err);
        assert_true(status == PL_OK || status == PL_E_MEMORY);
        run.is_open = status == PL_OK;
        if (!status) {
            const pl_gpt_layout *layout = &run.session.run.gpt.layout;
            unsigned long long kind = layout->micro * 64 +
                                      layout->levels[0] * 8u +
                                      layout->levels[1];
            layouts += kind != seen;
            seen = kind;
            for (int k = 0; k < 6; k++)
                assert_true(tiny_run_train(&run, 1) == literal->losses[k]);
            assert_true(tiny_run_hash(&run) == literal->hash);
        }
        tiny_run_close(&run);
    }
    tiny_run_remove(&run);
    return layouts;
}

/* unit.identity has all dtypes under the sanitizers, too. */
static void the_budget_changes_no_bit(void **state)
{
    const size_t dtypes_here = SANITIZED_ADDRESS || SANITIZED_THREAD ? 1 : 3;
    (void)state;
    for (size_t i = 0; i < dtypes_here; i++) {
        result literal = run_with(dtypes[i], "--batch_size=6");
        assert_true(run_with_budgets(dtypes[i], &literal) >= 3);
    }
}

static void another_seed_is_another_run(void **state)
{
    (void)state;
    result a = run_with(NULL, NULL), b = run_with("--seed=7", NULL);
    assert_true(a.hash != b.hash);
    assert_true(a.losses[5] != b.losses[5]);
}

static void dropout_changes_the_run(void **state)
{
    (void)state;
    result a = run_with("--dropout=0.0", NULL), b = run_with(NULL, NULL);
    assert_true(a.hash != b.hash);
}

/* Rounded to float it would be 1, and its threshold 2^32: no mask at all. */
static void a_dropout_next_to_one_is_not_none(void **state)
{
    (void)state;
    result a = run_with("--dropout=0.0", NULL);
    result b = run_with("--dropout=0.99999999999", NULL);
    assert_true(a.losses[0] != b.losses[0]);
    assert_true(a.hash != b.hash);
}

static void the_loss_falls(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_set(&run, "--dropout=0.0");
    tiny_run_open(&run);
    double first = tiny_run_train(&run, 1), last = tiny_run_train(&run, 60);
    assert_true(fabs(first - log(61.0)) < 0.15); /* knows nothing yet */
    assert_true(last < 0.75 * first);
    tiny_run_remove(&run);
}

/* Muon learns as fast with a rate of its own, and by both scales. */
static void the_loss_falls_with_muon(void **state)
{
    static const char *const scales[] = { "--muon_scale=spectral",
                                          "--muon_scale=rms" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        tiny_run run;
        tiny_run_make(&run);
        tiny_run_set(&run, "--dropout=0.0");
        tiny_run_set(&run, "--optimizer=muon");
        tiny_run_set(&run, scales[i]);
        tiny_run_open(&run);
        double first = tiny_run_train(&run, 1), last = tiny_run_train(&run, 60);
        if (!(last < 0.75 * first))
            fail_msg("%s: from %g to %g", scales[i], first, last);
        tiny_run_remove(&run);
    }
}

/* AdamW divides the moments by what their sums of powers lack to 1: so a weight
 * whose gradient stays the same moves by the learning rate, from the first
 * update on, and no weight by much more. */
static void the_first_updates_are_as_large_as_the_learning_rate(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_set(&run, "--dropout=0.0");
    tiny_run_set(&run, "--decay_lr=False");
    tiny_run_set(&run, "--learning_rate=1e-3");
    tiny_run_set(&run, "--weight_decay=0.0");
    tiny_run_set(&run, "--grad_clip=0.0");
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    const pl_buffer_id id = gpt->weights[PL_WTE];
    const size_t count = gpt->graph.buffers[id].bytes / sizeof(float);
    float *before = on_device_copy(run.session.run.device, &gpt->graph, id);
    for (int update = 0; update < 3; update++) {
        double most = 0.0;
        tiny_run_train(&run, 1);
        float *after = on_device_copy(run.session.run.device, &gpt->graph, id);
        for (size_t i = 0; i < count; i++) {
            const double moved = fabs((double)after[i] - (double)before[i]);
            most = moved > most ? moved : most;
        }
        if (fabs(most - 1e-3) > 1e-5)
            fail_msg("update %d moves a weight by %g", update, most);
        free(before);
        before = after;
    }
    free(before);
    tiny_run_remove(&run);
}

/* ---- stop and resume ---- */

/* Every way of keeping the weights and the moments. */
static void stop_and_resume(const char *dtype, const char *first,
                            const char *second)
{
    static const char *const files[] = { "out/latest/model.safetensors",
                                         "out/latest/optimizer.safetensors" };
    tiny_run whole, parts;
    pl_error err = { 0 };

    for (int i = 0; i < 2; i++) {
        tiny_run *run = i ? &parts : &whole;
        tiny_run_make(run);
        tiny_run_set(run, "--eval_interval=2");
        tiny_run_set(run, dtype);
        tiny_run_set(run, first);
        tiny_run_set(run, second);
    }
    tiny_run_open(&whole);
    assert_int_equal(tiny_run_until(&whole, 1000, &err), PL_OK);

    for (uint64_t stop = 2; stop <= 8; stop += 3) {
        tiny_run_open(&parts);
        pl_status status = tiny_run_until(&parts, stop, &err);
        assert_int_equal(status, stop < 6 ? PL_E_STOPPED : PL_OK);
        assert_int_equal(parts.session.run.step, stop < 6 ? stop : 6);
        tiny_run_close(&parts);
        tiny_run_set(&parts, "--init_from=resume");
        tiny_run_set(&parts, stop == 2 ? "--threads=1" : "--threads=3");
    }
    for (size_t i = 0; i < 2; i++) {
        size_t a_bytes, b_bytes;
        char *a = scratch_read(scratch_path(&whole.folder, files[i]), &a_bytes);
        char *b = scratch_read(scratch_path(&parts.folder, files[i]), &b_bytes);
        assert_non_null(a);
        assert_non_null(b);
        assert_int_equal(a_bytes, b_bytes);
        assert_memory_equal(a, b, a_bytes);
        free(a);
        free(b);
    }
    tiny_run_remove(&whole);
    tiny_run_remove(&parts);
}

static void a_stopped_and_resumed_run_equals_an_uninterrupted_one(void **state)
{
    (void)state;
    stop_and_resume(dtypes[0], "--weights=float32",
                    "--optimizer_state=float32");
    stop_and_resume(dtypes[0], small[0], small[1]);
    stop_and_resume(dtypes[1], small[1], "--grad_checkpoint=2");
    stop_and_resume(dtypes[2], small[0], "--working_copy=resident");
    stop_and_resume(dtypes[0], "--optimizer=muon", "--schedule=wsd");
    stop_and_resume(dtypes[1], "--optimizer=muon", small[0]);
}

static void the_best_checkpoint_is_kept_apart(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    pl_checkpoint_state newest, best;
    pl_heap heap = pl_heap_make(1 << 20);

    tiny_run_make(&run);
    tiny_run_set(&run, "--always_save_checkpoint=False");
    tiny_run_set(&run, "--eval_interval=2");
    tiny_run_set(&run, "--max_iters=5");
    tiny_run_open(&run);
    assert_int_equal(tiny_run_until(&run, 1000, &err), PL_OK);
    assert_int_equal(
        pl_checkpoint_read_state(
            &newest, scratch_path(&run.folder, "out/latest"), &heap, &err),
        PL_OK);
    assert_int_equal(
        pl_checkpoint_read_state(&best, scratch_path(&run.folder, "out/best"),
                                 &heap, &err),
        PL_OK);
    assert_int_equal(newest.step, 5);
    assert_true(best.step == 2 || best.step == 4);
    assert_true(best.best_val_loss == run.session.run.best_val_loss);
    pl_heap_close(&heap);
    tiny_run_remove(&run);
}

/* Trains 7 updates, evaluating every 3, and says which steps were saved. */
static void assert_saves(const char *setting, const char *more, int improving,
                         const char *want)
{
    tiny_run run;
    pl_error err = { 0 };
    char saved[16] = "";
    tiny_run_make(&run);
    tiny_run_set(&run, "--max_iters=7");
    tiny_run_set(&run, "--eval_interval=3");
    tiny_run_set(&run, "--keep=20");
    tiny_run_set(&run, setting);
    tiny_run_set(&run, more);
    if (!improving)
        tiny_run_set(&run, "--learning_rate=0.0");
    tiny_run_set(&run, "--min_lr=0.0");
    tiny_run_open(&run);
    assert_int_equal(tiny_run_until(&run, 1000, &err), PL_OK);
    for (int i = 0; i < 10; i++)
        if (tiny_run_has_step(&run, i))
            snprintf(saved + strlen(saved), 2, "%d", i);
    assert_string_equal(saved, want);
    tiny_run_remove(&run);
}

static void it_saves_when_the_config_says(void **state)
{
    (void)state;
    const char *always = "--always_save_checkpoint=True",
               *best = "--always_save_checkpoint=False";
    /* the last one is the end of the run */
    assert_saves(always, "--save_interval=None", 1, "367");
    assert_saves(always, "--save_interval=2", 1, "2467");
    assert_saves(always, "--save_interval=100", 1, "7");
    assert_saves(best, "--save_interval=None", 1, "367");
    assert_saves(best, "--save_interval=None", 0, "7");
    assert_saves(best, "--save_interval=5", 0, "57");
    assert_saves(best, "--save_interval=5", 1, "3567");
}

static void an_evaluation_changes_and_writes_nothing(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    tiny_run_make(&run);
    run.purpose = PL_RUN_EVALUATES;
    tiny_run_open(&run);
    unsigned long long before = tiny_run_hash(&run);
    assert_int_equal(tiny_run_until(&run, 1000, &err), PL_OK);
    assert_true(tiny_run_hash(&run) == before);
    assert_false(scratch_has(scratch_path(&run.folder, "out")));
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(the_checkpoint_level_changes_no_bit),
        cmocka_unit_test(threads_and_levels_change_no_bit_in_any_storage),
        cmocka_unit_test(small_state_is_another_run_that_no_layout_changes),
        cmocka_unit_test(a_resident_working_copy_changes_no_bit),
        cmocka_unit_test(small_state_still_learns),
        cmocka_unit_test(the_budget_changes_no_bit),
        cmocka_unit_test(another_seed_is_another_run),
        cmocka_unit_test(dropout_changes_the_run),
        cmocka_unit_test(a_dropout_next_to_one_is_not_none),
        cmocka_unit_test(the_loss_falls),
        cmocka_unit_test(the_loss_falls_with_muon),
        cmocka_unit_test(the_first_updates_are_as_large_as_the_learning_rate),
        cmocka_unit_test(a_stopped_and_resumed_run_equals_an_uninterrupted_one),
        cmocka_unit_test(the_best_checkpoint_is_kept_apart),
        cmocka_unit_test(it_saves_when_the_config_says),
        cmocka_unit_test(an_evaluation_changes_and_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
