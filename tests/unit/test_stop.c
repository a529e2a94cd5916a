/* A run that is stopped between any two steps of its programs, and then goes
 * on, must be the run that was never stopped: the same bits, the same numbers
 * in its metrics, the same best checkpoint. */
#include "base/file.h"
#include "store/checkpoint.h"
#include "support/sanitized.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Asks for a stop at the `at`-th question and ever after. */
typedef struct asker {
    uint64_t calls, at;
    int kind;
    int gave_up;
    pl_progress progress; /* of what was given up */
    uint64_t saved_after; /* updates that were done when it saved last */
    uint64_t updates;
} asker;

static int stop(void *context)
{
    asker *a = context;
    return ++a->calls >= a->at ? a->kind : PL_STOP_NOT;
}

static void gave_up(void *context, const pl_progress *progress)
{
    asker *a = context;
    a->gave_up++;
    a->progress = *progress;
}

static void updated(void *context, const pl_update_event *event)
{
    asker *a = context;
    (void)event;
    a->updates++;
}

static pl_status train(tiny_run *run, asker *a, double patience)
{
    pl_error err = { 0 };
    const pl_listener listener = { .context = a,
                                   .updated = updated,
                                   .gave_up = gave_up,
                                   .stop = stop,
                                   .patience_seconds = patience };
    a->calls = 0;
    pl_status status = pl_train(&run->session, &listener, &err);
    if (status && status != PL_E_STOPPED)
        fail_msg("%s", err.text);
    return status;
}

/* ---- what is compared ---- */

static char *text_of(const tiny_run *run, const char *name)
{
    size_t bytes;
    char *text = scratch_read(scratch_path(&run->folder, name), &bytes);
    if (!text)
        fail_msg("no %s", name);
    return text;
}

static void assert_same_file(const tiny_run *a, const tiny_run *b,
                             const char *name)
{
    size_t a_bytes = 0, b_bytes = 0;
    char *x = scratch_read(scratch_path(&a->folder, name), &a_bytes);
    char *y = scratch_read(scratch_path(&b->folder, name), &b_bytes);
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(x, y, a_bytes);
    free(x);
    free(y);
}

/* metrics.jsonl without the times, which no two runs share. */
static char *numbers_of(const tiny_run *run)
{
    char *text = text_of(run, "out/metrics.jsonl"), *to = text;
    for (const char *from = text; *from;) {
        if (strncmp(from, ", \"step_ms\"", 11) == 0)
            from += strcspn(from, "}");
        *to++ = *from++;
    }
    *to = '\0';
    return text;
}

static void assert_same_end(const tiny_run *whole, const tiny_run *parts)
{
    static const char *const files[] = { "out/latest/model.safetensors",
                                         "out/latest/optimizer.safetensors",
                                         "out/latest/metrics.jsonl" };
    char best[2][PATH_MAX] = { "", "" };
    const tiny_run *const runs[] = { whole, parts };
    char *state[2], *numbers[2];
    for (size_t i = 0; i < 3; i++)
        assert_same_file(whole, parts, files[i]);
    for (int i = 0; i < 2; i++) {
        state[i] = text_of(runs[i], "out/latest/state.json");
        char *config = strstr(state[i], "\"config\"");
        assert_non_null(config);
        *config = '\0'; /* it names folders, and how the run began */
        numbers[i] = numbers_of(runs[i]);
        ssize_t got = readlink(scratch_path(&runs[i]->folder, "out/best"),
                               best[i], PATH_MAX - 1);
        assert_true(got > 0);
    }
    assert_string_equal(state[0], state[1]);
    assert_string_equal(numbers[0], numbers[1]);
    assert_string_equal(best[0], best[1]);
    for (int i = 0; i < 2; i++) {
        free(state[i]);
        free(numbers[i]);
    }
}

/* ---- stopping everywhere ---- */

static void make(tiny_run *run, const char *const *settings)
{
    tiny_run_make(run);
    tiny_run_set(run, "--max_iters=4");
    tiny_run_set(run, "--eval_interval=2");
    tiny_run_set(run, "--keep=9");
    for (; *settings; settings++)
        tiny_run_set(run, *settings);
}

/* What the files of an open run count for, which is nothing on a disk. */
static uint64_t file_bytes(tiny_run *run)
{
    return tiny_run_beside(run) == 0 ? 0 : run->session.files_bytes;
}

/* Not much more than half of the memory that a batch at once takes. */
static void make_narrow(tiny_run *run)
{
    char budget[64];
    tiny_run_open(run);
    const pl_placement *place = &run->session.run.gpt.placement;
    snprintf(budget, sizeof budget, "--memory=%zu",
             tiny_run_beside(run) + place->throughout_bytes +
                 place->program_bytes[PL_TRAIN] / 8 * 5 +
                 (size_t)file_bytes(run));
    tiny_run_close(run);
    scratch_remove(scratch_path(&run->folder, "out"));
    tiny_run_set(run, "--fit=auto");
    tiny_run_set(run, budget);
}

typedef enum width { BATCH_AT_ONCE, NARROW } width;

/* How far apart stops are: a sanitizer takes its time, and is after what a stop
 * does more than after where it comes. */
static uint64_t apart(uint64_t stride)
{
    if (getenv("PL_TEST_LONG"))
        return stride;
    return SANITIZED_ADDRESS || SANITIZED_THREAD ? 8 * stride : 3 * stride;
}

/* Stops at every `stride`-th of the questions that a whole run is asked, or
 * at fewer of them. */
static void stop_everywhere(const char *const *settings, uint64_t stride,
                            width how)
{
    tiny_run whole, parts;
    asker never = { .at = UINT64_MAX };
    int within = 0;
    make(&whole, settings);
    if (how == NARROW)
        make_narrow(&whole);
    tiny_run_open(&whole);
    const pl_gpt_layout *layout = &whole.session.run.gpt.layout;
    assert_true((how == NARROW) == (layout->micro < layout->batch));
    assert_int_equal(train(&whole, &never, 0.0), PL_OK);
    const uint64_t questions = never.calls;
    assert_true(questions > 200);
    uint64_t step = apart(stride);
    if (step > questions / 6)
        step = questions / 6;
    for (uint64_t at = 1; at <= questions; at += step) {
        asker a = { .at = at, .kind = PL_STOP_SOON };
        make(&parts, settings);
        if (how == NARROW)
            make_narrow(&parts);
        tiny_run_open(&parts);
        assert_int_equal(train(&parts, &a, 0.0), PL_E_STOPPED);
        assert_true(a.calls == at || a.calls == at + 1);
        within += a.gave_up;
        tiny_run_close(&parts);
        if (scratch_has(scratch_path(&parts.folder, "out/latest")))
            tiny_run_set(&parts, "--init_from=resume");
        else
            assert_int_equal(parts.session.run.step, 0);
        tiny_run_open(&parts);
        a.at = UINT64_MAX;
        assert_int_equal(train(&parts, &a, 0.0), PL_OK);
        assert_same_end(&whole, &parts);
        tiny_run_remove(&parts);
    }
    assert_true(within > 1);
    tiny_run_remove(&whole);
}

static void a_run_in_micro_batches_may_stop_anywhere(void **state)
{
    static const char *const settings[] = { NULL };
    (void)state;
    stop_everywhere(settings, 151, NARROW);
}

/* Among batches, and within them. */
static void a_run_in_groups_may_stop_anywhere(void **state)
{
    static const char *const batches[] = { "--gradient_groups=4",
                                           "--gradient_accumulation_steps=4",
                                           "--max_iters=2", NULL };
    static const char *const parts[] = { "--gradient_groups=4",
                                         "--batch_size=8", "--max_iters=2",
                                         NULL };
    (void)state;
    scratch_in_memory();
    stop_everywhere(batches, 89, BATCH_AT_ONCE);
    stop_everywhere(parts, 97, NARROW);
}

static void a_run_may_stop_between_any_two_steps(void **state)
{
    static const char *const plain[] = { NULL };
    static const char *const half[] = { "--dtype=float16", "--threads=3",
                                        "--weights=bf16",
                                        "--optimizer_state=8bit", NULL };
    static const char *const best[] = { "--always_save_checkpoint=False",
                                        "--save_interval=3", "--threads=1",
                                        NULL };
    (void)state;
    scratch_in_memory();
    stop_everywhere(plain, 17, BATCH_AT_ONCE);
    stop_everywhere(half, 41, BATCH_AT_ONCE);
    stop_everywhere(best, 43, BATCH_AT_ONCE);
}

/* ---- in one session ---- */

static void give_up_often(const char *const *settings)
{
    tiny_run whole, parts;
    asker never = { .at = UINT64_MAX };
    make(&whole, settings);
    tiny_run_open(&whole);
    assert_int_equal(train(&whole, &never, 0.0), PL_OK);
    make(&parts, settings);
    tiny_run_open(&parts);
    int within = 0;
    for (uint64_t at = 30; at < 300; at += 30) {
        asker a = { .at = at, .kind = PL_STOP_SOON };
        const uint64_t step = parts.session.run.step;
        const unsigned long long before = tiny_run_hash(&parts);
        pl_status status = train(&parts, &a, 0.0);
        within += a.gave_up;
        if (a.gave_up && parts.session.run.step == step)
            assert_true(tiny_run_hash(&parts) == before);
        if (!status)
            break;
    }
    assert_true(within > 3);
    assert_int_equal(train(&parts, &never, 0.0), PL_OK);
    assert_true(tiny_run_hash(&whole) == tiny_run_hash(&parts));
    char *a = numbers_of(&whole), *b = numbers_of(&parts);
    assert_string_equal(a, b);
    free(a);
    free(b);
    tiny_run_remove(&parts);
    tiny_run_remove(&whole);
}

static void what_was_given_up_leaves_nothing_behind(void **state)
{
    static const char *const plain[] = { NULL };
    static const char *const groups[] = { "--gradient_groups=4",
                                          "--gradient_accumulation_steps=4",
                                          NULL };
    (void)state;
    give_up_often(plain);
    give_up_often(groups);
}

/* ---- which stop does what ---- */

/* A fresh run without evaluations, stopped at a question within its first
 * update. */
static asker stop_once(int kind, double patience, uint64_t *step)
{
    static const char *const settings[] = { "--eval_iters=1", NULL };
    tiny_run run;
    asker never = { .at = UINT64_MAX }, a = { .kind = kind };
    make(&run, settings);
    tiny_run_set(&run, "--max_iters=1");
    tiny_run_open(&run);
    assert_int_equal(train(&run, &never, 0.0), PL_OK);
    tiny_run_remove(&run);
    a.at = never.calls / 2; /* two short evaluations, one update, no other */
    make(&run, settings);
    tiny_run_open(&run);
    assert_int_equal(train(&run, &a, patience), PL_E_STOPPED);
    *step = run.session.run.step;
    assert_int_equal(tiny_run_has_step(&run, (int)*step), 1);
    tiny_run_remove(&run);
    return a;
}

static void a_stop_that_is_soon_gives_the_update_up(void **state)
{
    uint64_t step;
    (void)state;
    asker a = stop_once(PL_STOP_SOON, 0.0, &step);
    assert_int_equal(a.gave_up, 1);
    assert_int_equal(step, 0);
    assert_int_equal(a.updates, 0);
    assert_int_equal(a.progress.total, 2);
    assert_true(a.progress.done < 2);
    assert_true(a.progress.share > 0.0 && a.progress.share < 1.0);
}

static void an_update_that_ends_soon_is_finished(void **state)
{
    uint64_t step;
    (void)state;
    asker a = stop_once(PL_STOP_SOON, 1e9, &step);
    assert_int_equal(a.gave_up, 0);
    assert_int_equal(step, 1);
}

static void a_gentle_stop_waits_for_the_update(void **state)
{
    uint64_t step;
    (void)state;
    asker a = stop_once(PL_STOP_AFTER_UPDATE, 0.0, &step);
    assert_int_equal(a.gave_up, 0);
    assert_int_equal(step, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_in_micro_batches_may_stop_anywhere),
        cmocka_unit_test(a_run_in_groups_may_stop_anywhere),
        cmocka_unit_test(a_run_may_stop_between_any_two_steps),
        cmocka_unit_test(what_was_given_up_leaves_nothing_behind),
        cmocka_unit_test(a_stop_that_is_soon_gives_the_update_up),
        cmocka_unit_test(an_update_that_ends_soon_is_finished),
        cmocka_unit_test(a_gentle_stop_waits_for_the_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
