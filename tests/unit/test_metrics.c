/* Tests of train/metrics: whole lines, each step once, whatever happens. */
#include "support/scratch.h"
#include "train/metrics.h"

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

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_file_fail_every(0, 0);
    scratch_close(&dir);
    return 0;
}

static void update(pl_metrics *m, uint64_t step)
{
    const pl_update_event e = { .step = step,
                                .loss = 2.5,
                                .step_ms = 1.0,
                                .learning_rate = 0.001,
                                .grad_norm = 0.5,
                                .loss_scale = 1.0 };
    pl_metrics_updated(m, &e);
}

static void open_at(pl_metrics *m, pl_metrics_size size, const pl_log *log)
{
    if (pl_metrics_open(m, dir.folder, scratch_path(&dir, "kept"), size, log,
                        &err))
        fail_msg("%s", err.text);
}

static const pl_metrics_size anew = { 0 }, long_ago = { 50, 5000 };

static size_t events_bytes(void)
{
    size_t bytes;
    char *file = scratch_read(scratch_path(&dir, PL_EVENTS_NAME), &bytes);
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
    "\"skipped\": 0, \"step_ms\": 1}\n"
#define LINE(step) "{\"step\": " step REST

static void there_is_a_line_for_every_event(void **state)
{
    (void)state;
    pl_metrics m;
    const pl_eval_event e = { .step = 1,
                              .train = { .loss = 1.5, .standard_error = 0.25 },
                              .val = { .loss = 1.75,
                                       .standard_error = (double)NAN } };
    open_at(&m, anew, NULL);
    update(&m, 0);
    pl_metrics_evaluated(&m, &e);
    update(&m, 1);
    pl_metrics_close(&m);
    assert_holds(LINE("0") "{\"step\": 1, \"train_loss\": 1.5, \"val_loss\": "
                           "1.75, \"train_error\": 0.25, \"val_error\": "
                           "null}\n" LINE("1"));
}

static void a_resumed_run_goes_on_where_its_checkpoint_was(void **state)
{
    (void)state;
    pl_metrics m;
    open_at(&m, anew, NULL);
    update(&m, 0);
    update(&m, 1);
    const pl_metrics_size at = pl_metrics_sync(&m);
    update(&m, 2);
    const size_t events = events_bytes();
    assert_true(events > at.events_bytes);
    update(&m, 3);
    pl_metrics_close(&m);
    assert_true(events_bytes() > events);
    open_at(&m, at, NULL);
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
    open_at(&m, long_ago, &log);
    update(&m, 7);
    pl_metrics_close(&m);
    assert_holds(LINE("0") LINE("7"));
    assert_int_equal(said, 1);
    remove(scratch_path(&dir, "metrics.jsonl"));
    open_at(&m, long_ago, &log);
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

/* ---- a checkpoint's copy ---- */

#define TIMELESS(step)                                                         \
    "{\"step\": " step ", \"loss\": 2.5, \"lr\": 0.001, \"grad_norm\": 0.5, "  \
    "\"loss_scale\": 1, \"skipped\": 0}\n"

static uint64_t copy(pl_metrics *m, pl_hash *hash)
{
    uint64_t bytes = 0;
    if (pl_folder_make(scratch_path(&dir, "kept"), &err) ||
        pl_metrics_copy(m, scratch_path(&dir, "kept/metrics.jsonl"), hash,
                        &bytes, &err))
        fail_msg("%s", err.text);
    return bytes;
}

/* More than are copied at once, so that pieces end in the middle of lines. */
static void the_copy_has_every_line_but_no_times(void **state)
{
    (void)state;
    enum { LINES = 500 };
    pl_metrics m;
    pl_hash hash, again;
    size_t bytes, at = 0;
    open_at(&m, anew, NULL);
    assert_int_equal(copy(&m, &hash), 0); /* nothing yet, and no file */
    assert_null(scratch_read(scratch_path(&dir, "kept/metrics.jsonl"), &bytes));
    for (uint64_t i = 0; i < LINES; i++)
        update(&m, i);
    assert_int_equal(pl_file_append(&m.file, "{\"half", 6, &err), PL_OK);
    uint64_t said = copy(&m, &hash);
    char *text = scratch_read(scratch_path(&dir, "kept/metrics.jsonl"), &bytes);
    assert_int_equal(bytes, said);
    for (int i = 0; i < LINES; i++) {
        char line[256], step[12];
        snprintf(step, sizeof step, "%d", i);
        snprintf(line, sizeof line, "{\"step\": %s%s", step,
                 &TIMELESS("")[sizeof "{\"step\": " - 1]);
        assert_memory_equal(text + at, line, strlen(line));
        at += strlen(line);
    }
    assert_int_equal(at, bytes);
    pl_hash_begin(&again);
    pl_hash_add(&again, text, bytes);
    assert_string_equal(pl_hash_end(&again).text, pl_hash_end(&hash).text);
    free(text);
    pl_metrics_close(&m);
}

static void lines_that_are_gone_come_from_the_copy(void **state)
{
    (void)state;
    int said = 0;
    pl_log log = { count_note, &said };
    pl_metrics m;
    pl_hash hash;
    open_at(&m, anew, NULL);
    update(&m, 0);
    update(&m, 1);
    const pl_metrics_size at = pl_metrics_sync(&m);
    copy(&m, &hash);
    update(&m, 2);
    pl_metrics_close(&m);
    remove(scratch_path(&dir, "metrics.jsonl"));
    open_at(&m, at, &log);
    update(&m, 2);
    pl_metrics_close(&m);
    assert_holds(TIMELESS("0") TIMELESS("1") LINE("2"));
    assert_int_equal(said, 1);
    scratch_write(scratch_path(&dir, "metrics.jsonl"), LINE("0"),
                  strlen(LINE("0")));
    open_at(&m, at, &log);
    pl_metrics_close(&m);
    assert_holds(TIMELESS("0") TIMELESS("1"));
    assert_int_equal(said, 2);
    open_at(&m, at, &log); /* nothing is missing now */
    pl_metrics_close(&m);
    assert_int_equal(said, 2);
}

/* A checkpoint without its copy is better than none. */
static void lines_that_cannot_be_read_are_left_out(void **state)
{
    (void)state;
    int said = 0;
    size_t bytes;
    pl_log log = { count_note, &said };
    pl_metrics m;
    pl_hash hash;
    open_at(&m, anew, &log);
    update(&m, 0);
    remove(scratch_path(&dir, "metrics.jsonl"));
    assert_int_equal(copy(&m, &hash), 0);
    assert_int_equal(said, 1);
    assert_null(scratch_read(scratch_path(&dir, "kept/metrics.jsonl"), &bytes));
    pl_metrics_close(&m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_is_a_line_for_every_event),
        TEST(a_resumed_run_goes_on_where_its_checkpoint_was),
        TEST(what_is_missing_is_said_and_half_a_line_goes),
        TEST(a_full_disk_loses_lines_but_never_half_of_one),
        TEST(the_copy_has_every_line_but_no_times),
        TEST(lines_that_are_gone_come_from_the_copy),
        TEST(lines_that_cannot_be_read_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
