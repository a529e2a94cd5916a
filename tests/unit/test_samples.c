/* Tests of samples: lines that are JSON whatever a model writes, and what is
 * left of them for a run that goes on. */
#include "store/samples.h"

#include "base/json.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char memory[PL_SAMPLES_LINE_BYTES];

static pl_sample_event event_of(uint64_t step, size_t index, size_t count,
                                const char *text, size_t bytes)
{
    return (pl_sample_event){ .step = step,
                              .index = index,
                              .count = count,
                              .prompt = "a",
                              .prompt_bytes = 1,
                              .text = text,
                              .text_bytes = bytes,
                              .line_bytes = 512 };
}

static void add(pl_samples *samples, const scratch *s, uint64_t step,
                size_t index, size_t count)
{
    const pl_sample_event event = event_of(step, index, count, "b", 1);
    pl_samples_add(samples, s->folder, &event, memory);
}

/* The file, from a heap. */
static char *file_text(const scratch *s, pl_heap *heap)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", s->folder, PL_SAMPLES_NAME);
    pl_error err = { 0 };
    if (pl_file_read_all(path, 1 << 20, heap, &text, &bytes, &err))
        fail_msg("%s", err.text);
    return text;
}

static void a_line_is_json_whatever_a_model_writes(void **state)
{
    static const char text[] = "\x1b[31m\"\\\n\t\r\xff\xc3\xa9\xe2\x82</script>"
                               "\xc2\x9b\0end";
    scratch s;
    scratch_open(&s);
    pl_heap heap = pl_heap_make(1 << 22);
    pl_samples samples = PL_SAMPLES_CLOSED;
    pl_error err = { 0 };
    json_t *root = NULL;
    const pl_sample_event event = event_of(7, 0, 1, text, sizeof text - 1);
    (void)state;
    pl_samples_add(&samples, s.folder, &event, memory);
    pl_step_lines_close(&samples);
    const char *line = file_text(&s, &heap);
    assert_int_equal(strcspn(line, "\n"), strlen(line) - 1);
    for (const char *c = line; *c; c++)
        assert_true((unsigned char)*c >= 0x20 || *c == '\n');
    assert_int_equal(pl_json_parse(line, strlen(line), "line", &root, &err),
                     PL_OK);
    const json_t *got = json_object_get(root, "text");
    assert_int_equal(json_integer_value(json_object_get(root, "step")), 7);
    static const char want[] = "\x1b[31m\"\\\n\t\r\xef\xbf\xbd\xc3\xa9"
                               "\xef\xbf\xbd\xef\xbf\xbd</script>\xc2\x9b\0end";
    assert_int_equal(json_string_length(got), sizeof want - 1);
    assert_memory_equal(json_string_value(got), want, sizeof want - 1);
    assert_null(json_object_get(root, "cut"));
    json_decref(root);
    pl_heap_close(&heap);
    scratch_close(&s);
}

static void a_line_that_is_too_long_is_cut_and_says_so(void **state)
{
    static char text[4096];
    scratch s;
    scratch_open(&s);
    pl_heap heap = pl_heap_make(1 << 22);
    pl_samples samples = PL_SAMPLES_CLOSED;
    pl_error err = { 0 };
    json_t *root = NULL;
    (void)state;
    for (size_t i = 0; i + 1 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    pl_sample_event event = event_of(INT64_MAX, 0, 1, text, sizeof text);
    pl_samples_add(&samples, s.folder, &event, memory);
    pl_step_lines_close(&samples);
    const char *line = file_text(&s, &heap);
    assert_true(strlen(line) <= event.line_bytes);
    assert_int_equal(pl_json_parse(line, strlen(line), "line", &root, &err),
                     PL_OK);
    assert_true(json_is_true(json_object_get(root, "cut")));
    json_decref(root);
    pl_heap_close(&heap);
    scratch_close(&s);
}

/* Lines of 10, 20 and 30, two each, opened again at `step`. */
static size_t lines_after(uint64_t step, size_t lines, uint64_t *whole)
{
    scratch s;
    scratch_open(&s);
    pl_heap heap = pl_heap_make(1 << 22);
    pl_samples samples = PL_SAMPLES_CLOSED;
    pl_error err = { 0 };
    size_t count = 0;
    for (uint64_t at = 10; at <= 30; at += 10)
        for (size_t i = 0; i < 2; i++)
            add(&samples, &s, at, i, 2);
    pl_step_lines_close(&samples);
    assert_int_equal(
        pl_samples_open(&samples, s.folder, step, lines, NULL, &err), PL_OK);
    *whole = samples.step;
    add(&samples, &s, 99, 0, 1);
    pl_step_lines_close(&samples);
    for (const char *c = file_text(&s, &heap); *c; c++)
        count += *c == '\n';
    pl_heap_close(&heap);
    scratch_close(&s);
    return count - 1;
}

static void a_run_that_goes_back_drops_what_came_later(void **state)
{
    uint64_t whole;
    (void)state;
    assert_int_equal(lines_after(5, 0, &whole), 0);
    assert_int_equal(lines_after(15, 0, &whole), 2);
    assert_true(whole == UINT64_MAX);
    assert_int_equal(lines_after(20, 2, &whole), 4);
    assert_int_equal(whole, 20);
    assert_int_equal(lines_after(20, 3, &whole), 2); /* one is missing */
    assert_true(whole == UINT64_MAX);
    assert_int_equal(lines_after(20, 0, &whole), 4);
    assert_int_equal(lines_after(40, 0, &whole), 6);
}

static void what_is_torn_or_none_of_ours_is_cut_off(void **state)
{
    static const char *const tails[] = {
        "{\"step\": 20, \"pro", "hello, this is a longer line of text\n",
        "{\"step\": 5, \"prompt\": \"\", "
        "\"text\": \"out of order\"}\n",
        "\n\n\n"
    };
    (void)state;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        scratch s;
        scratch_open(&s);
        pl_samples samples = PL_SAMPLES_CLOSED;
        pl_error err = { 0 };
        add(&samples, &s, 10, 0, 1);
        const uint64_t good = samples.good_bytes;
        assert_int_equal(
            pl_file_append(&samples.file, tails[i], strlen(tails[i]), &err),
            PL_OK);
        pl_step_lines_close(&samples);
        assert_int_equal(pl_samples_open(&samples, s.folder, 50, 0, NULL, &err),
                         PL_OK);
        assert_int_equal(pl_file_size(&samples.file), good);
        pl_step_lines_close(&samples);
        scratch_close(&s);
    }
}

static void the_largest_file_is_known(void **state)
{
    pl_config config = pl_config_make_default();
    (void)state;
    assert_int_equal(pl_samples_most_bytes(&config).bytes, 0);
    assert_int_equal(pl_samples_due(&config, 2000), 0);
    config.sample_interval = 1000;
    config.max_iters = 4500;
    const pl_samples_most most = pl_samples_most_bytes(&config);
    assert_int_equal(most.lines, 4);
    assert_int_equal(most.bytes, 4 * pl_samples_line_bytes(&config, 1));
    assert_int_equal(pl_samples_due(&config, 0), 0);
    assert_int_equal(pl_samples_due(&config, 1500), 0);
    assert_int_equal(pl_samples_due(&config, 2000), 1);
    config.max_new_tokens = 1 << 30;
    assert_int_equal(pl_samples_line_bytes(&config, 1), PL_SAMPLES_LINE_BYTES);
    assert_int_equal(pl_samples_text_bytes(&config), PL_SAMPLES_TEXT_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_json_whatever_a_model_writes),
        cmocka_unit_test(a_line_that_is_too_long_is_cut_and_says_so),
        cmocka_unit_test(a_run_that_goes_back_drops_what_came_later),
        cmocka_unit_test(what_is_torn_or_none_of_ours_is_cut_off),
        cmocka_unit_test(the_largest_file_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
