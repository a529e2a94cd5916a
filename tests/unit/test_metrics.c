/* Tests of store/metrics: whole lines, each step once, whatever happens. */
#include "store/metrics.h"
#include "support/scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static pl_heap heap;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    heap = pl_heap_make((size_t)64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_file_fail_every(0, 0);
    scratch_close(&dir);
    pl_heap_close(&heap);
    return 0;
}

static void update(pl_metrics *m, uint64_t step)
{
    const pl_update_event e = { .step = step,
                                .loss = 2.5,
                                .step_ms = 1.0,
                                .learning_rate = 0.001,
                                .grad_norm = 0.5,
                                .loss_scale = 1.0,
                                .arithmetic = 4 };
    pl_metrics_updated(m, &e);
}

static void open_at(pl_metrics *m, const pl_metrics_past *past,
                    const pl_log *log)
{
    if (pl_metrics_open(m, dir.folder, scratch_path(&dir, "kept"), past, log,
                        &heap, &err))
        fail_msg("%s", err.text);
}

static const pl_metrics_past *const anew = NULL;
/* of a checkpoint that has no copy, though there were lines */
static const pl_metrics_past long_ago = { .step = 50, .lines = 50 };

static void evaluate(pl_metrics *m, uint64_t step)
{
    const pl_eval_event e = { .step = step,
                              .train = { .loss = 1.5, .standard_error = 0.25 },
                              .val = { .loss = 1.75,
                                       .standard_error = (double)NAN } };
    pl_metrics_evaluated(m, &e);
}

/* What a checkpoint at `step` has, in the folder "kept". */
static pl_metrics_past keep(const pl_metrics *m, uint64_t step)
{
    if (pl_folder_make(scratch_path(&dir, "kept"), &err))
        fail_msg("%s", err.text);
    scratch_write(scratch_path(&dir, "kept/metrics.jsonl"), m->thin.text,
                  m->thin.used);
    return pl_metrics_past_at(m, step);
}

static size_t events_bytes(void)
{
    size_t bytes;
    char *file = scratch_read(scratch_path(&dir, PL_TENSORBOARD_NAME), &bytes);
    assert_non_null(file);
    free(file);
    return bytes;
}

static void assert_holds(const char *want)
{
    size_t bytes;
    char *text = scratch_read(scratch_path(&dir, "metrics.jsonl"), &bytes);
    assert_non_null(text);
    assert_string_equal(text, want);
    free(text);
}

#define REST                                                                   \
    ", \"loss\": 2.5, \"lr\": 0.001, \"grad_norm\": 0.5, \"loss_scale\": 1, "  \
    "\"skipped\": 0, \"arithmetic\": 4, \"step_ms\": 1}\n"
#define LINE(step) "{\"step\": " step REST

#define EVAL(step)                                                             \
    "{\"step\": " step ", \"train_loss\": 1.5, \"val_loss\": 1.75, "           \
    "\"train_error\": 0.25, \"val_error\": null}\n"

static void bits_per_byte_are_there_where_bytes_are_known(void **state)
{
    (void)state;
    const pl_eval_event e = {
        .step = 3,
        .train = { .loss = 1.5, .standard_error = 0.25 },
        .val = { .loss = 1.75, .standard_error = 0.25, .bytes = 10, .bpb = 0.5 }
    };
    pl_metrics m;
    open_at(&m, anew, NULL);
    pl_metrics_evaluated(&m, &e);
    pl_metrics_close(&m);
    assert_holds("{\"step\": 3, \"train_loss\": 1.5, \"val_loss\": 1.75, "
                 "\"train_error\": 0.25, \"val_error\": 0.25, \"val_bpb\": "
                 "0.5}\n");
}

static void there_is_a_line_for_every_event(void **state)
{
    (void)state;
    pl_metrics m;
    open_at(&m, anew, NULL);
    update(&m, 0);
    evaluate(&m, 1);
    evaluate(&m, 1); /* once is enough */
    update(&m, 1);
    pl_metrics_close(&m);
    assert_holds(LINE("0") EVAL("1") LINE("1"));
}

static void a_resumed_run_goes_on_where_its_checkpoint_was(void **state)
{
    (void)state;
    pl_metrics m;
    open_at(&m, anew, NULL);
    update(&m, 0);
    update(&m, 1);
    pl_metrics_past at = keep(&m, 2);
    update(&m, 2);
    const size_t events = events_bytes();
    update(&m, 3);
    pl_metrics_close(&m);
    assert_true(events_bytes() > events);
    open_at(&m, &at, NULL);
    update(&m, 2);
    pl_metrics_close(&m);
    assert_holds(LINE("0") LINE("1") LINE("2"));
    assert_int_equal(events_bytes(), events);
    open_at(&m, anew, NULL); /* a new run */
    update(&m, 0);
    pl_metrics_close(&m);
    assert_holds(LINE("0"));
}

static void count_note(void *context, pl_log_level level, const char *text)
{
    (void)level;
    (void)text;
    ++*(int *)context;
}

/* Somebody shortened it, or took it away. */
static void what_is_missing_is_said_and_half_a_line_goes(void **state)
{
    (void)state;
    int said = 0;
    pl_log log = { count_note, &said };
    pl_metrics m;
    scratch_write(scratch_path(&dir, "metrics.jsonl"),
                  LINE("0") "{\"step\": 1,", strlen(LINE("0")) + 11);
    open_at(&m, &long_ago, &log);
    update(&m, 7);
    pl_metrics_close(&m);
    assert_holds(LINE("0") LINE("7"));
    assert_int_equal(said, 1);
    remove(scratch_path(&dir, "metrics.jsonl"));
    open_at(&m, &long_ago, &log);
    update(&m, 8);
    pl_metrics_close(&m);
    assert_holds(LINE("8"));
}

static void a_full_disk_loses_lines_but_never_half_of_one(void **state)
{
    (void)state;
    int said = 0;
    pl_log log = { count_note, &said };
    pl_metrics m;
    open_at(&m, anew, &log);
    update(&m, 0);
    pl_file_fail_every(1, ENOSPC);
    update(&m, 1);
    update(&m, 2);
    pl_file_fail_every(0, 0);
    assert_int_equal(said, 1); /* once, not for every line */
    /* half of one was written before the disk was full */
    assert_int_equal(pl_file_append(&m.file, "{\"step\": 3, \"los", 15, &err),
                     PL_OK);
    update(&m, 4);
    pl_metrics_close(&m);
    assert_holds(LINE("0") LINE("4"));
}

/* The evaluation of a checkpoint's own step is past if it was before it. */
static void the_evaluation_of_its_step_stands_there_once(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        pl_metrics m;
        pl_metrics_past at = { 0 };
        open_at(&m, anew, NULL);
        evaluate(&m, 0);
        update(&m, 0);
        if (!before)
            at = keep(&m, 1);
        evaluate(&m, 1);
        const size_t events = events_bytes();
        if (before)
            at = keep(&m, 1);
        update(&m, 1);
        assert_int_equal(at.evaluated, before);
        pl_metrics_close(&m);
        open_at(&m, &at, NULL);
        evaluate(&m, 1);
        pl_metrics_close(&m);
        assert_holds(EVAL("0") LINE("0") EVAL("1"));
        assert_int_equal(events_bytes(), events);
    }
}

/* ---- a checkpoint's copy ---- */

#define TIMELESS(step)                                                         \
    "{\"step\": " step ", \"loss\": 2.5, \"lr\": 0.001, \"grad_norm\": 0.5, "  \
    "\"loss_scale\": 1, \"skipped\": 0, \"arithmetic\": 4}\n"

static void lines_that_are_gone_come_from_the_copy(void **state)
{
    (void)state;
    int said = 0;
    pl_log log = { count_note, &said };
    pl_metrics m;
    open_at(&m, anew, NULL);
    update(&m, 0);
    update(&m, 1);
    pl_metrics_past at = keep(&m, 2);
    update(&m, 2);
    pl_metrics_close(&m);
    remove(scratch_path(&dir, "metrics.jsonl"));
    open_at(&m, &at, &log);
    update(&m, 2);
    pl_metrics_close(&m);
    assert_holds(TIMELESS("0") TIMELESS("1") LINE("2"));
    assert_int_equal(said, 1);
    /* what is there stays, with its times */
    scratch_write(scratch_path(&dir, "metrics.jsonl"), LINE("0"),
                  strlen(LINE("0")));
    open_at(&m, &at, &log);
    pl_metrics_close(&m);
    assert_holds(LINE("0") TIMELESS("1"));
    assert_int_equal(said, 2);
    open_at(&m, &at, &log); /* nothing is missing now */
    pl_metrics_close(&m);
    assert_int_equal(said, 2);
}

/* Of another run, or with a line lost in between. */
static void a_file_that_is_not_the_run_s_is_replaced(void **state)
{
    (void)state;
    static const char *const others[] = {
        "{\"step\": 0, \"loss\": 9}\n" LINE("1"),
        LINE("1"),
        "no line of ours\n" LINE("0") LINE("1"),
        "",
    };
    int said = 0;
    pl_log log = { count_note, &said };
    pl_metrics m;
    open_at(&m, anew, NULL);
    update(&m, 0);
    update(&m, 1);
    pl_metrics_past at = keep(&m, 2);
    pl_metrics_close(&m);
    for (int i = 0; i < 4; i++) {
        scratch_write(scratch_path(&dir, "metrics.jsonl"), others[i],
                      strlen(others[i]));
        open_at(&m, &at, &log);
        pl_metrics_close(&m);
        assert_holds(TIMELESS("0") TIMELESS("1"));
        assert_int_equal(said, i + 1);
    }
}

/* The first versions kept a copy of every line, and counted them alone. */
static void a_copy_of_every_line_is_read_too(void **state)
{
    (void)state;
    pl_metrics m, again;
    pl_thin want;
    open_at(&m, anew, NULL);
    evaluate(&m, 0);
    update(&m, 0);
    update(&m, 1);
    pl_metrics_past at = keep(&m, 2);
    want = m.thin;
    pl_metrics_close(&m);
    memset(&at.chain, 0, sizeof at.chain);
    at.evals = 0;
    open_at(&again, &at, NULL);
    assert_int_equal(again.thin.lines, 3);
    assert_int_equal(again.thin.evals, 1);
    assert_string_equal(again.thin.chain.text, want.chain.text);
    assert_int_equal(again.thin.used, want.used);
    assert_memory_equal(again.thin.text, want.text, want.used);
    pl_metrics_close(&again);
    assert_holds(EVAL("0") LINE("0") LINE("1"));
}

static void a_copy_that_was_changed_is_refused(void **state)
{
    (void)state;
    static const char *const changed[] = {
        TIMELESS("0") TIMELESS("0"),          TIMELESS("1") TIMELESS("0"),
        TIMELESS("0") TIMELESS("2"),          TIMELESS("0") "{\"step\": 1}\n",
        TIMELESS("0") "{\"step\": 1, \"loss", "\n",
    };
    pl_metrics m;
    open_at(&m, anew, NULL);
    update(&m, 0);
    update(&m, 1);
    pl_metrics_past at = keep(&m, 2);
    pl_metrics_close(&m);
    for (int old = 0; old < 2; old++) {
        for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++) {
            scratch_write(scratch_path(&dir, "kept/metrics.jsonl"), changed[i],
                          strlen(changed[i]));
            assert_int_equal(pl_metrics_open(&m, dir.folder,
                                             scratch_path(&dir, "kept"), &at,
                                             NULL, &heap, &err),
                             PL_E_FORMAT);
            assert_non_null(strstr(err.text, "kept/metrics.jsonl: line"));
        }
        memset(&at.chain, 0, sizeof at.chain);
    }
}

/* A long run, whose metrics.jsonl is lost at `lost`: its copies are those of
 * a run that lost nothing. */
enum { LONG = 9001, EVERY = 2 };

static void run_from_to(pl_metrics *m, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        if (i % EVERY == 0)
            evaluate(m, i);
        update(m, i);
    }
}

static void a_lost_file_changes_no_later_copy(void **state)
{
    (void)state;
    static const uint64_t lost[] = { 1, 2048, 2049, 4097, 8999 };
    static pl_metrics whole, m;
    open_at(&whole, anew, NULL);
    run_from_to(&whole, 0, LONG);
    pl_metrics_past want = pl_metrics_past_at(&whole, LONG);
    pl_metrics_close(&whole);
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        int said = 0;
        pl_log log = { count_note, &said };
        open_at(&m, anew, NULL);
        run_from_to(&m, 0, lost[i]);
        pl_metrics_past at = keep(&m, lost[i]);
        pl_metrics_close(&m);
        remove(scratch_path(&dir, PL_METRICS_NAME));
        remove(scratch_path(&dir, PL_TENSORBOARD_NAME));
        open_at(&m, &at, &log);
        assert_int_equal(said, 1);
        run_from_to(&m, lost[i], LONG);
        pl_metrics_past got = pl_metrics_past_at(&m, LONG);
        assert_int_equal(got.lines, want.lines);
        assert_int_equal(got.evals, want.evals);
        assert_string_equal(got.chain.text, want.chain.text);
        assert_int_equal(m.thin.used, whole.thin.used);
        assert_memory_equal(m.thin.text, whole.thin.text, m.thin.used);
        at = keep(&m, LONG);
        pl_metrics_close(&m);
        /* and it stays as it is, with more lines than the copy has */
        size_t bytes, again;
        free(scratch_read(scratch_path(&dir, PL_METRICS_NAME), &bytes));
        open_at(&m, &at, NULL);
        pl_metrics_close(&m);
        free(scratch_read(scratch_path(&dir, PL_METRICS_NAME), &again));
        assert_int_equal(bytes, again);
    }
}

/* ---- sizes ---- */

static size_t file_bytes(const char *name)
{
    size_t bytes;
    char *text = scratch_read(scratch_path(&dir, name), &bytes);
    assert_non_null(text);
    free(text);
    return bytes;
}

/* No number is wider than these, and no step. */
static void files_are_never_larger_than_was_said(void **state)
{
    (void)state;
    const double wide = -1.23456789e-308;
    const pl_update_event u = { .step = 4294967295u,
                                .loss = wide,
                                .step_ms = wide,
                                .learning_rate = wide,
                                .grad_norm = wide,
                                .skipped = -2147483647,
                                .arithmetic = -2147483647,
                                .loss_scale = wide };
    const pl_eval_event e = {
        .step = 4294967295u,
        .train = { .loss = wide, .standard_error = wide },
        .val = { .loss = wide, .standard_error = wide, .bytes = 1, .bpb = wide }
    };
    pl_metrics m;
    open_at(&m, anew, NULL);
    pl_metrics_evaluated(&m, &e);
    pl_metrics_updated(&m, &u);
    pl_metrics_bytes most = pl_metrics_most_bytes(1, 1, (pl_samples_most){ 0 },
                                                  0);
    assert_in_range(file_bytes(PL_METRICS_NAME), most.lines - 40, most.lines);
    assert_in_range(file_bytes(PL_TENSORBOARD_NAME), most.events - 100,
                    most.events);
    assert_in_range(m.thin.used, 1, most.copy);
    pl_metrics_close(&m);
    assert_true(pl_metrics_most_bytes(4294967295u, 4294967295u,
                                      (pl_samples_most){ 0 }, 0)
                    .copy <= 1024 * 1024);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bits_per_byte_are_there_where_bytes_are_known),
        TEST(there_is_a_line_for_every_event),
        TEST(a_resumed_run_goes_on_where_its_checkpoint_was),
        TEST(what_is_missing_is_said_and_half_a_line_goes),
        TEST(a_full_disk_loses_lines_but_never_half_of_one),
        TEST(the_evaluation_of_its_step_stands_there_once),
        TEST(lines_that_are_gone_come_from_the_copy),
        TEST(a_file_that_is_not_the_run_s_is_replaced),
        TEST(a_copy_of_every_line_is_read_too),
        TEST(a_copy_that_was_changed_is_refused),
        TEST(a_lost_file_changes_no_later_copy),
        TEST(files_are_never_larger_than_was_said),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
