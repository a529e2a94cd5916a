#include "base/clock.h"
#include "base/json.h"
#include "store/notes.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_notes notes;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    notes = (pl_notes)PL_NOTES_CLOSED;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_notes_close(&notes, PL_PHASE_DONE);
    scratch_close(&dir);
    return 0;
}

static json_t *read_progress(void)
{
    size_t bytes;
    json_t *value;
    pl_error err;
    char *text = scratch_read(scratch_path(&dir, PL_NOTES_PROGRESS), &bytes);
    assert_non_null(text);
    assert_int_equal(bytes, PL_NOTES_PROGRESS_BYTES);
    while (text[bytes - 1] == ' ' || text[bytes - 1] == '\n')
        bytes--;
    if (pl_json_parse(text, bytes, "progress", &value, &err))
        fail_msg("%s", err.text);
    free(text);
    return value;
}

static void progress_is(const char *phase, int step)
{
    json_t *value = read_progress();
    assert_string_equal(json_string_value(json_object_get(value, "phase")),
                        phase);
    assert_int_equal(json_integer_value(json_object_get(value, "step")), step);
    json_decref(value);
}

static void progress_is_written_over_in_place(void **state)
{
    (void)state;
    pl_notes_open(&notes, dir.folder);
    progress_is("start", 0);
    pl_notes_now now = { .phase = PL_PHASE_TRAIN,
                         .step = 1234567,
                         .max_iters = INT64_MAX,
                         .share = 0.5,
                         .tokens_per_second = -1e300,
                         .seconds_left = 1e300,
                         .mfu = 1e-300,
                         .peak_flops = 1.0 / 3.0 };
    pl_notes_tell(&notes, &now);
    progress_is("train", 1234567);
    json_t *value = read_progress();
    assert_int_equal(json_integer_value(json_object_get(value, "pid")),
                     getpid());
    assert_true(json_integer_value(json_object_get(value, "held_train_bytes")) >
                0);
    assert_int_equal(
        json_integer_value(json_object_get(value, "held_save_bytes")), 0);
    json_decref(value);
    /* the same again so soon is not written, another phase is */
    now.step = 7;
    pl_notes_tell(&notes, &now);
    progress_is("train", 1234567);
    now.phase = PL_PHASE_SAVE;
    now.step = 8;
    pl_notes_tell(&notes, &now);
    progress_is("save", 8);
    pl_notes_close(&notes, PL_PHASE_STOPPED);
    progress_is("stopped", 8);
}

static size_t lines_of_warnings(void)
{
    size_t bytes, count = 0;
    char *text = scratch_read(scratch_path(&dir, PL_NOTES_WARNINGS), &bytes);
    if (!text)
        return 0;
    for (char *at = text, *end; *at; at = end + 1) {
        json_t *value;
        pl_error err;
        end = strchr(at, '\n');
        assert_non_null(end);
        if (pl_json_parse(at, (size_t)(end - at), "line", &value, &err))
            fail_msg("%s", err.text);
        json_decref(value);
        count++;
    }
    free(text);
    return count;
}

static void warnings_are_lines_of_json_whatever_they_say(void **state)
{
    (void)state;
    pl_notes_warn(&notes, PL_LOG_WARN, "before the folder was there");
    pl_notes_warn(&notes, PL_LOG_INFO, "no warning");
    assert_int_equal(lines_of_warnings(), 0);
    pl_notes_open(&notes, dir.folder);
    assert_int_equal(lines_of_warnings(), 1);
    pl_notes_warn(&notes, PL_LOG_NOTE,
                  "two\nlines, \"quotes\", \x1b[31mred\x1b[0m, \xff\xfe");
    assert_int_equal(lines_of_warnings(), 2);
    /* a run that goes on adds to them */
    pl_notes_close(&notes, PL_PHASE_DONE);
    notes = (pl_notes)PL_NOTES_CLOSED;
    pl_notes_open(&notes, dir.folder);
    assert_int_equal(lines_of_warnings(), 2);
    pl_notes_warn(&notes, PL_LOG_WARN, "third");
    assert_int_equal(lines_of_warnings(), 3);
}

static void a_folder_without_warnings_has_no_file_of_them(void **state)
{
    (void)state;
    pl_notes_open(&notes, dir.folder);
    pl_notes_close(&notes, PL_PHASE_DONE);
    assert_false(scratch_has(scratch_path(&dir, PL_NOTES_WARNINGS)));
}

static void warnings_stay_within_their_bytes(void **state)
{
    size_t bytes;
    char text[1000];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 20; i++) /* more than fits before the folder */
        pl_notes_warn(&notes, PL_LOG_WARN, text);
    pl_notes_open(&notes, dir.folder);
    for (int i = 0; i < 200; i++)
        pl_notes_warn(&notes, PL_LOG_WARN, text);
    free(scratch_read(scratch_path(&dir, PL_NOTES_WARNINGS), &bytes));
    assert_in_range(bytes, PL_NOTES_WARNINGS_BYTES / 2,
                    PL_NOTES_WARNINGS_BYTES);
    assert_true(lines_of_warnings() > 50);
}

static void a_disk_that_takes_nothing_stops_no_run(void **state)
{
    (void)state;
    pl_notes_open(&notes, dir.folder);
    pl_file_fail_every(1, ENOSPC);
    pl_notes_now now = { .phase = PL_PHASE_TRAIN, .step = 3 };
    pl_notes_tell(&notes, &now);
    pl_notes_warn(&notes, PL_LOG_WARN, "lost");
    pl_file_fail_every(0, 0);
    now.phase = PL_PHASE_EVAL;
    pl_notes_tell(&notes, &now);
    pl_notes_warn(&notes, PL_LOG_WARN, "also lost, perhaps");
    pl_notes_close(&notes, PL_PHASE_DONE);
    progress_is("start", 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(progress_is_written_over_in_place),
        TEST(warnings_are_lines_of_json_whatever_they_say),
        TEST(a_folder_without_warnings_has_no_file_of_them),
        TEST(warnings_stay_within_their_bytes),
        TEST(a_disk_that_takes_nothing_stops_no_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
