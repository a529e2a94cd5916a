#include "format/tensorboard.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static pl_tensorboard events;
static char path[2 * SCRATCH_PATH_BYTES];

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, PL_TENSORBOARD_NAME));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static void open_at(uint64_t keep)
{
    assert_int_equal(pl_tensorboard_open(&events, path, keep, 1000.5, &err),
                     PL_OK);
}

static void tell(int64_t step, float value)
{
    assert_int_equal(pl_tensorboard_scalar(&events, "loss/train", step,
                                           2000.25 + (double)step, value, &err),
                     PL_OK);
}

static void done(void)
{
    assert_int_equal(pl_tensorboard_close(&events, &err), PL_OK);
}

static size_t file_bytes(void)
{
    size_t bytes;
    free(scratch_read(path, &bytes));
    return bytes;
}

/* What tensorboard 2.21.0's own writer makes of the same two events. */
static const unsigned char golden[] = {
    0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa3, 0x7f, 0x4b, 0x22,
    0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x44, 0x8f, 0x40, 0x1a, 0x0d, 0x62,
    0x72, 0x61, 0x69, 0x6e, 0x2e, 0x45, 0x76, 0x65, 0x6e, 0x74, 0x3a, 0x32,
    0xab, 0xa3, 0x33, 0x45, 0x21, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x01, 0x7b, 0xec, 0xf6, 0x09, 0x00, 0x00, 0x00, 0x00, 0x80, 0xf8, 0xa1,
    0x40, 0x10, 0xac, 0x02, 0x2a, 0x13, 0x0a, 0x11, 0x0a, 0x0a, 0x6c, 0x6f,
    0x73, 0x73, 0x2f, 0x74, 0x72, 0x61, 0x69, 0x6e, 0x15, 0x00, 0x00, 0x20,
    0x40, 0x25, 0xf0, 0x18, 0xba
};

static void checksums_are_castagnoli_s(void **state)
{
    (void)state;
    unsigned char zeros[32] = { 0 };
    assert_int_equal(pl_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(pl_crc32c(0, zeros, 32), 0x8a9136aau);
    uint32_t part = pl_crc32c(0, "1234", 4);
    assert_int_equal(pl_crc32c(part, "56789", 5), 0xe3069283u);
    assert_int_equal(pl_crc32c_masked(0), 0xa282ead8u);
}

static void bytes_are_those_of_tensorboard_s_writer(void **state)
{
    (void)state;
    size_t bytes;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    tell(300, 2.5f);
    done();
    char *file = scratch_read(path, &bytes);
    assert_int_equal(bytes, sizeof golden);
    assert_memory_equal(file, golden, bytes);
    free(file);
}

static void a_file_goes_on_where_it_ended(void **state)
{
    (void)state;
    size_t bytes;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (int i = 0; i < 10; i++)
        tell(i, (float)i);
    done();
    char *at_once = scratch_read(path, &bytes);
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (int i = 0; i < 4; i++)
        tell(i, (float)i);
    done();
    open_at(PL_TENSORBOARD_KEEP_ALL);
    for (int i = 4; i < 10; i++)
        tell(i, (float)i);
    done();
    size_t in_two_bytes;
    char *in_two = scratch_read(path, &in_two_bytes);
    assert_int_equal(bytes, in_two_bytes);
    assert_memory_equal(at_once, in_two, bytes);
    free(at_once);
    free(in_two);
}

static void steps_that_are_taken_again_are_cut_off(void **state)
{
    (void)state;
    size_t bytes, again_bytes;
    uint64_t kept = 0;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (int i = 0; i < 300; i++) {
        tell(i, (float)i);
        if (i == 137) {
            assert_int_equal(pl_tensorboard_flush(&events, &err), PL_OK);
            kept = events.size_bytes;
        }
    }
    done();
    char *whole = scratch_read(path, &bytes);
    open_at(kept + 7); /* within a record: it goes too */
    for (int i = 138; i < 300; i++)
        tell(i, (float)i);
    done();
    char *again = scratch_read(path, &again_bytes);
    assert_int_equal(bytes, again_bytes);
    assert_memory_equal(whole, again, bytes);
    free(whole);
    free(again);
    open_at(40 + 48);
    done();
    assert_int_equal(file_bytes(), 40 + 48);
}

static void a_torn_record_is_cut_off_wherever_it_tore(void **state)
{
    (void)state;
    size_t bytes;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    tell(1, 1.0f);
    done();
    size_t kept = file_bytes();
    open_at(PL_TENSORBOARD_KEEP_ALL);
    tell(2, 2.0f);
    done();
    char *whole = scratch_read(path, &bytes);
    for (size_t n = kept; n < bytes; n++) {
        scratch_write(path, whole, n);
        open_at(PL_TENSORBOARD_KEEP_ALL);
        done();
        assert_int_equal(file_bytes(), kept);
    }
    /* and a changed byte anywhere in it */
    for (size_t n = kept; n < bytes; n++) {
        whole[n] = (char)(whole[n] ^ 0x10);
        scratch_write(path, whole, bytes);
        whole[n] = (char)(whole[n] ^ 0x10);
        open_at(PL_TENSORBOARD_KEEP_ALL);
        done();
        assert_int_equal(file_bytes(), kept);
    }
    free(whole);
}

static void a_broken_beginning_is_begun_anew(void **state)
{
    (void)state;
    for (size_t n = 0; n < 64; n += 9) {
        char zeros[64] = { 0 };
        scratch_write(path, zeros, n);
        open_at(PL_TENSORBOARD_KEEP_ALL);
        done();
        assert_int_equal(file_bytes(), 40);
    }
}

static void more_than_the_buffer_is_written(void **state)
{
    (void)state;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (int i = 0; i < 5000; i++)
        tell(i, 1.0f);
    done();
    assert_true(file_bytes() > 10 * PL_TENSORBOARD_BUFFER_BYTES);
    open_at(file_bytes());
    assert_true(events.size_bytes == file_bytes());
    done();
}

static void a_full_disk_loses_nothing_that_fits_the_buffer(void **state)
{
    (void)state;
    size_t bytes, again_bytes;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (int i = 0; i < 20; i++)
        tell(i, (float)i);
    done();
    char *whole = scratch_read(path, &bytes);
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (int i = 0; i < 20; i++) {
        tell(i, (float)i);
        pl_file_fail_at(i % 3 ? 1 : 0, ENOSPC);
        pl_status status = pl_tensorboard_flush(&events, &err);
        assert_int_equal(status, i % 3 ? PL_E_IO : PL_OK);
        pl_file_fail_at(0, 0);
    }
    done();
    char *again = scratch_read(path, &again_bytes);
    assert_int_equal(bytes, again_bytes);
    assert_memory_equal(whole, again, bytes);
    free(whole);
    free(again);
}

static void a_value_that_finds_no_room_is_an_error(void **state)
{
    (void)state;
    pl_status status = PL_OK;
    int told = 0;
    open_at(PL_TENSORBOARD_KEEP_NONE);
    for (; !status && told < 5000; told++) {
        pl_file_fail_at(1, ENOSPC);
        status = pl_tensorboard_scalar(&events, "x", told, 0.0, 1.0f, &err);
    }
    pl_file_fail_at(0, 0);
    assert_int_equal(status, PL_E_IO);
    assert_true(told > 100);
    tell(told, 1.0f);
    done();
}

static void a_long_tag_and_a_late_step_fit(void **state)
{
    (void)state;
    char tag[PL_TENSORBOARD_TAG_BYTES];
    memset(tag, 't', sizeof tag - 1);
    tag[sizeof tag - 1] = '\0';
    open_at(PL_TENSORBOARD_KEEP_NONE);
    assert_int_equal(
        pl_tensorboard_scalar(&events, tag, INT64_MAX - 1, 1e300, -1.0f, &err),
        PL_OK);
    done();
    size_t bytes = file_bytes();
    open_at(bytes);
    done();
    assert_int_equal(file_bytes(), bytes);
    open_at(bytes - 1);
    done();
    assert_int_equal(file_bytes(), 40);
}

static int is_before(const void *context, uint64_t step, const char *tag)
{
    const uint64_t *end = context;
    assert_string_equal(tag, "loss/train");
    return step < *end;
}

/* A file is cut by what its records are of, whatever its size was. */
static void records_are_kept_up_to_a_step(void **state)
{
    (void)state;
    static const uint64_t ends[] = { 0, 1, 3, 200, 1000000 };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t want = 0;
        open_at(PL_TENSORBOARD_KEEP_NONE);
        for (int64_t step = 0; step < 300; step++) {
            if ((uint64_t)step == ends[i])
                want = (size_t)events.size_bytes + events.used;
            tell(step, 1.0f);
        }
        done();
        if (want == 0)
            want = file_bytes();
        assert_int_equal(pl_tensorboard_open_past(&events, path, is_before,
                                                  &ends[i], 1000.5, &err),
                         PL_OK);
        done();
        assert_int_equal(file_bytes(), want);
    }
    assert_int_equal(
        pl_tensorboard_open_past(&events, path, NULL, NULL, 1000.5, &err),
        PL_OK);
    done();
    assert_int_equal(file_bytes(), PL_TENSORBOARD_FIRST_BYTES);
}

static void no_record_is_larger_than_was_said(void **state)
{
    (void)state;
    static const size_t lengths[] = { 0, 1, 20, PL_TENSORBOARD_TAG_BYTES - 1 };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char tag[PL_TENSORBOARD_TAG_BYTES] = "";
        memset(tag, 't', lengths[i]);
        open_at(PL_TENSORBOARD_KEEP_NONE);
        assert_int_equal(
            pl_tensorboard_scalar(&events, tag, INT64_MAX, 1.0, 1.0f, &err),
            PL_OK);
        size_t most = PL_TENSORBOARD_FIRST_BYTES +
                      PL_TENSORBOARD_MOST_BYTES(lengths[i]);
        assert_in_range(events.used, most - 5, most);
        done();
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(checksums_are_castagnoli_s),
        TEST(bytes_are_those_of_tensorboard_s_writer),
        TEST(a_file_goes_on_where_it_ended),
        TEST(steps_that_are_taken_again_are_cut_off),
        TEST(a_torn_record_is_cut_off_wherever_it_tore),
        TEST(a_broken_beginning_is_begun_anew),
        TEST(more_than_the_buffer_is_written),
        TEST(a_full_disk_loses_nothing_that_fits_the_buffer),
        TEST(a_value_that_finds_no_room_is_an_error),
        TEST(a_long_tag_and_a_late_step_fit),
        TEST(records_are_kept_up_to_a_step),
        TEST(no_record_is_larger_than_was_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
