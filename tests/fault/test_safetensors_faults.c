/* Every system call and every allocation of format/safetensors fails once: the
 * error is clean, no half-written file and no descriptor stays. */
#include "format/safetensors.h"
#include "support/asserts.h"
#include "support/faults.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static char path[2 * SCRATCH_PATH_BYTES];
static pl_error err;
enum { ROWS = 50, TENSORS = 3 };

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "m.safetensors"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_arena_fail_at(0);
    scratch_close(&dir);
    return 0;
}

static void describe(void *context, size_t i, pl_tensor_info *info)
{
    (void)context;
    *info = (pl_tensor_info){ .rank = 1, .dims = { ROWS } };
    snprintf(info->name, sizeof info->name, "tensor.%zu", i);
}

static pl_status yield(void *context, size_t i, size_t at, void *out,
                       size_t bytes, pl_error *ignored)
{
    (void)context, (void)ignored;
    for (size_t k = 0; k < bytes; k++)
        ((unsigned char *)out)[k] = (unsigned char)(i * 50 + at + k);
    return PL_OK;
}

static const pl_tensor_source source = { .count = TENSORS,
                                         .describe = describe,
                                         .read = yield };

static pl_status write_file(void)
{
    char slice[64];
    return pl_safetensors_write(path, &source, slice, sizeof slice, &err);
}

static pl_status read_file(void)
{
    pl_heap heap = pl_heap_make(1 << 20);
    pl_safetensors st;
    pl_status status = pl_safetensors_open(&st, path, &heap, &err);
    if (!status) {
        assert_int_equal(st.count, TENSORS);
        for (size_t i = 0; i < TENSORS && !status; i++) {
            unsigned char out[4 * ROWS];
            status = pl_safetensors_read(&st, &st.tensors[i], 0, out,
                                         sizeof out, &err);
            for (size_t k = 0; k < sizeof out && !status; k++)
                assert_int_equal(out[k], (unsigned char)(i * 50 + k));
        }
        pl_safetensors_close(&st);
    }
    pl_heap_close(&heap);
    return status;
}

/* A call that fails is no fault of the file. */
static void judge_status(pl_status status)
{
    assert_true(status == PL_OK || status == PL_E_IO);
}

static void judge_written(pl_status status)
{
    size_t bytes = 0;
    judge_status(status);
    assert_int_equal(scratch_count(dir.folder), status ? 0 : 1);
    if (status)
        return;
    free(scratch_read(path, &bytes));
    assert_int_equal(bytes, pl_safetensors_size(&source));
    assert_int_equal(remove(path), 0);
}

static void writing_leaves_a_whole_file_or_none(void **state)
{
    (void)state;
    /* open, length, head, 3 entries, padding, 3 x 4 slices, sync, close */
    faults_in_every_call(write_file, judge_written, 1 + 3 + 3 + 12 + 2, &err,
                         path);
}

static pl_status write_over(void)
{
    scratch_write(path, "something old", 13);
    return write_file();
}

/* If it can't be opened, nothing was begun: the old file is there still. */
static void judge_written_over(pl_status status)
{
    size_t bytes = 0;
    char *data = scratch_read(path, &bytes);
    judge_status(status);
    if (!status)
        assert_int_equal(bytes, pl_safetensors_size(&source));
    else if (data)
        assert_string_equal(data, "something old");
    free(data);
}

static void writing_over_a_file_never_leaves_a_part(void **state)
{
    (void)state;
    faults_in_every_call(write_over, judge_written_over, 21, &err, path);
}

static void reading_fails_cleanly_or_is_right(void **state)
{
    (void)state;
    assert_int_equal(write_file(), PL_OK);
    /* open, stat, length, header, 3 tensors */
    faults_in_every_call(read_file, judge_status, 7, &err, path);
}

static void reading_without_memory_fails_cleanly(void **state)
{
    (void)state;
    long nth = 1;
    assert_int_equal(write_file(), PL_OK);
    for (;; nth++) {
        int before = scratch_open_files();
        memset(&err, 0, sizeof err);
        pl_arena_fail_at(nth);
        pl_status status = read_file();
        pl_arena_fail_at(0);
        assert_int_equal(scratch_open_files(), before);
        if (!status)
            break;
        assert_int_equal(status, PL_E_MEMORY);
        assert_contains(err.text, "out of set-up memory");
    }
    assert_int_equal(nth, 3); /* the header's text and the table */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(writing_leaves_a_whole_file_or_none),
        TEST(writing_over_a_file_never_leaves_a_part),
        TEST(reading_fails_cleanly_or_is_right),
        TEST(reading_without_memory_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
