#include "base/clock.h"
#include "base/json.h"
#include "device/device_kind.h"
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
    notes.device = NULL; /* it was a failed test's */
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

/* ---- actual bytes ---- */

/* A device whose every byte is backed but the first ones of its arena. */
enum { MISSING = 100 };

static pl_status most_backed(pl_device *device, size_t at, size_t bytes,
                             size_t *backed_bytes, pl_error *err)
{
    (void)device, (void)err;
    const size_t lost = at < MISSING ? MISSING - at : 0;
    *backed_bytes = bytes > lost ? bytes - lost : 0;
    return PL_OK;
}

static pl_status not_known(pl_device *device, size_t at, size_t bytes,
                           size_t *backed_bytes, pl_error *err)
{
    (void)device, (void)at, (void)bytes, (void)backed_bytes;
    return pl_fail(err, PL_E_IO, "nobody knows");
}

static json_int_t actual_of(const char *program, const char *part)
{
    json_t *value = read_progress(),
           *own = json_object_get(json_object_get(value, "actual"), program);
    const json_int_t bytes =
        own ? json_integer_value(json_object_get(own, part)) : -1;
    json_decref(value);
    return bytes;
}

static void actual_bytes_are_told_once_a_phase_has_begun(void **state)
{
    pl_device_kind kind = { .backed = most_backed };
    pl_buffer buffers[] = {
        { .class = PL_CLASS_WEIGHT, .bytes = 4096, .program = -1 },
        { .class = PL_CLASS_SAVED, .bytes = 999, .program = PL_TRAIN },
        { .class = PL_CLASS_TOKENS, .bytes = 64, .program = PL_EVAL },
    };
    size_t offsets[] = { 0, 4096, 4096 };
    pl_step step;
    pl_graph graph = { .buffers = buffers,
                       .n_buffers = 3,
                       .programs[PL_TRAIN] = { &step, 1, 1, 0 },
                       .programs[PL_UPDATE_WEIGHTS] = { &step, 1, 1, 0 },
                       .programs[PL_EVAL] = { &step, 1, 1, 0 } };
    const pl_placement place = {
        .offsets = offsets,
        .throughout_bytes = 4096,
        .program_bytes = { [PL_TRAIN] = 1024, [PL_EVAL] = 64 },
        .arena_bytes = 5120
    };
    pl_device device = { .kind = &kind, .graph = &graph, .placement = &place };
    pl_notes_now now = { .phase = PL_PHASE_TRAIN };
    (void)state;
    pl_notes_open(&notes, dir.folder);
    pl_notes_measure(&notes, &device, &graph);
    pl_notes_tell(&notes, &now);
    assert_int_equal(actual_of("train", "weights"), -1);
    now.phase = PL_PHASE_EVAL;
    pl_notes_tell(&notes, &now);
    assert_int_equal(actual_of("train", "weights"), 4096 - MISSING);
    assert_int_equal(actual_of("train", "saved activations"), 999);
    assert_int_equal(actual_of("train", PL_NOTES_GAPS), 25);
    assert_int_equal(actual_of("train", PL_NOTES_REST), 0);
    assert_true(actual_of("train", PL_NOTES_RESERVE) > 100000);
    assert_int_equal(actual_of("update", "weights"), 4096 - MISSING);
    assert_int_equal(actual_of("groups", "weights"), -1);
    assert_int_equal(actual_of("eval", "weights"), -1);
    /* once; and what a system doesn't say is left out */
    kind.backed = not_known;
    pl_notes_close(&notes, PL_PHASE_DONE);
    assert_int_equal(actual_of("train", "weights"), 4096 - MISSING);
    assert_int_equal(actual_of("eval", "weights"), -1);
}

static void the_largest_numbers_fit_their_file(void **state)
{
    pl_notes_now now = { .phase = PL_PHASE_SAVE,
                         .step = INT32_MAX,
                         .max_iters = INT64_MAX,
                         .share = 1.0 / 3.0,
                         .tokens_per_second = -1.2345678901234567e-300,
                         .seconds_left = -1.2345678901234567e-300,
                         .mfu = -1.2345678901234567e-300,
                         .peak_flops = -1.2345678901234567e-300 };
    (void)state;
    pl_notes_open(&notes, dir.folder);
    for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
        pl_notes_actual *actual = &notes.actual[i];
        *actual = (pl_notes_actual){ 1, { .is_in_host = 1 }, 0 };
        actual->outside_bytes = actual->arena.gap_bytes =
            actual->arena.rest_bytes = (size_t)99999999999999;
        for (int class = 0; class < PL_CLASS_COUNT; class ++)
            actual->arena.class_bytes[class] = (size_t)99999999999999;
    }
    pl_notes_tell(&notes, &now);
    progress_is("save", INT32_MAX);
    assert_true(actual_of("serve", PL_NOTES_RESERVE) == 99999999999999);
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
        TEST(actual_bytes_are_told_once_a_phase_has_begun),
        TEST(the_largest_numbers_fit_their_file),
        TEST(warnings_are_lines_of_json_whatever_they_say),
        TEST(a_folder_without_warnings_has_no_file_of_them),
        TEST(warnings_stay_within_their_bytes),
        TEST(a_disk_that_takes_nothing_stops_no_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
