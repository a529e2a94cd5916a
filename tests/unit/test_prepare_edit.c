/* A text that is edited between a stop and the next run. */
#include "data/prepare.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static pl_heap heap;
static pl_prepare_result result;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    heap = pl_heap_make(1 << 24);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static void count_load(void *context, const pl_prepare_progress *progress)
{
    (void)progress;
    ++*(int *)context;
}

static pl_prepare_wish stop_after_two(void *context)
{
    return *(int *)context >= 2 ? PL_PREPARE_STOP : PL_PREPARE_GO_ON;
}

/* Stops, changes one byte of the text, goes on: to the tokens of the text as
 * it is now. Returns how much of the work was kept. */
static uint64_t go_on_after_an_edit(size_t at)
{
    enum { N = 9000000 };
    char *text = malloc(N), path[SCRATCH_PATH_BYTES + 8];
    const char *paths[] = { path };
    char out[SCRATCH_PATH_BYTES + 8];
    pl_tokenizer byte = pl_tokenizer_make_byte();
    int loads = 0;
    assert_non_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 26);
    snprintf(path, sizeof path, "%s/long", dir.folder);
    scratch_write(path, text, N);
    snprintf(out, sizeof out, "%s/out", dir.folder);
    pl_prepare_options options = {
        .source = { .paths = paths, .path_count = 1 },
        .folder = out,
        .tokenizer = &byte,
        .end_token = PL_PREPARE_NO_TOKEN,
        .val_fraction = 0.1,
        .threads = 1,
        .memory_bytes = pl_prepare_min_bytes(1, NULL),
        .progress = count_load,
        .wish = stop_after_two,
        .context = &loads,
    };
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_STOPPED);
    if (at < N)
        text[at] = 'Q';
    scratch_write(path, text, N);
    options.progress = NULL;
    options.wish = NULL;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
    size_t size, i = 0;
    char *data = scratch_read(scratch_path(&dir, "out/train.bin"), &size);
    while (i < size / 2 && data[2 * i] == text[i])
        i++;
    assert_int_equal(i, N / 10 * 9);
    free(data);
    free(text);
    return result.resumed_bytes;
}

static void an_edit_before_the_stop_begins_anew(void **state)
{
    (void)state;
    assert_int_equal(go_on_after_an_edit(100), 0);
}

static void an_edit_behind_the_stop_is_read_as_it_is(void **state)
{
    (void)state;
    assert_true(go_on_after_an_edit(8000000) > 0);
    assert_true(go_on_after_an_edit(SIZE_MAX) > 0); /* written again, no more */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_edit_before_the_stop_begins_anew),
        TEST(an_edit_behind_the_stop_is_read_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
