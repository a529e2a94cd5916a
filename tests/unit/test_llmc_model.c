#include "format/llmc_model.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static pl_llmc llmc;
static char path[2 * SCRATCH_PATH_BYTES];

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "m.bin"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static const pl_llmc_shape small = {
    .T = 3, .V = 5, .L = 2, .H = 2, .C = 4, .padded_V = 8
};

/* By hand: 8*4 + 3*4, per layer 12 C^2 + 13 C, 2 C at the end. */
enum { ELEMENTS = 32 + 12 + 2 * (12 * 16 + 13 * 4) + 8 };

static float value_of(size_t i)
{
    return (float)(i % 97) * 0.5f - 20.0f;
}

static pl_status write_with(pl_llmc_version version, pl_llmc_biases biases)
{
    float some[50];
    pl_status status = pl_llmc_begin(&llmc, path, &small, version, biases,
                                     &err);
    if (status)
        return status;
    for (size_t at = 0; at < ELEMENTS && !status;) {
        size_t count = ELEMENTS - at < 50 ? ELEMENTS - at : 50;
        for (size_t i = 0; i < count; i++)
            some[i] = value_of(at + i);
        status = pl_llmc_append(&llmc, some, count, &err);
        at += count;
    }
    if (status) {
        pl_llmc_drop(&llmc);
        return status;
    }
    return pl_llmc_end(&llmc, &err);
}

static pl_status write_model(pl_llmc_version version)
{
    return write_with(version, PL_LLMC_BIASES);
}

static void tensors_lie_in_llm_c_s_order(void **state)
{
    (void)state;
    pl_llmc_tensor wpe = pl_llmc_tensor_at(&small, 1),
                   qkv = pl_llmc_tensor_at(&small, 4),
                   proj = pl_llmc_tensor_at(&small, 12),
                   last = pl_llmc_tensor_at(&small, 15);
    assert_int_equal(wpe.first, 32);
    assert_string_equal(qkv.name, "qkvw");
    assert_int_equal(qkv.first, 32 + 12 + 8 + 8);
    assert_int_equal(qkv.layers, 2);
    assert_int_equal(qkv.rows, 12);
    assert_int_equal(qkv.cols, 4);
    assert_int_equal(proj.rows, 4);
    assert_int_equal(proj.cols, 16);
    assert_int_equal(last.first, ELEMENTS - 4);
    assert_int_equal(pl_llmc_bytes(&small, PL_LLMC_F32), 1024 + 4 * ELEMENTS);
    assert_int_equal(pl_llmc_bytes(&small, PL_LLMC_BF16), 1024 + 2 * ELEMENTS);
}

static void the_header_is_llm_c_s(void **state)
{
    (void)state;
    const int32_t expected[8] = { 20240326, 3, 3, 5, 2, 2, 4, 8 };
    size_t bytes;
    assert_int_equal(write_model(PL_LLMC_F32), PL_OK);
    char *file = scratch_read(path, &bytes);
    assert_int_equal(bytes, 1024 + 4 * ELEMENTS);
    assert_memory_equal(file, expected, sizeof expected);
    for (size_t i = sizeof expected; i < 1024; i++)
        assert_int_equal(file[i], 0);
    free(file);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    const pl_llmc_version versions[] = { PL_LLMC_F32, PL_LLMC_BF16 };
    for (int v = 0; v < 2; v++) {
        float back[ELEMENTS];
        int yes = 0;
        assert_int_equal(write_model(versions[v]), PL_OK);
        assert_int_equal(pl_llmc_is_one(path, &yes, &err), PL_OK);
        assert_true(yes);
        assert_int_equal(pl_llmc_open(&llmc, path, &err), PL_OK);
        assert_int_equal(llmc.version, versions[v]);
        assert_memory_equal(&llmc.shape, &small, sizeof small);
        assert_int_equal(pl_llmc_read(&llmc, 7, ELEMENTS - 7, back, &err),
                         PL_OK);
        for (size_t i = 7; i < ELEMENTS; i++)
            assert_true(back[i - 7] == value_of(i));
        pl_llmc_close(&llmc);
    }
}

static void
that_there_are_no_biases_is_the_last_word_of_the_header(void **state)
{
    (void)state;
    const pl_llmc_biases both[] = { PL_LLMC_BIASES, PL_LLMC_NO_BIASES };
    for (int i = 0; i < 2; i++) {
        size_t bytes;
        int32_t last;
        assert_int_equal(write_with(PL_LLMC_F32, both[i]), PL_OK);
        char *file = scratch_read(path, &bytes);
        memcpy(&last, file + 1020, sizeof last);
        free(file);
        assert_int_equal(last, i);
        assert_int_equal(pl_llmc_open(&llmc, path, &err), PL_OK);
        assert_int_equal(llmc.biases, both[i]);
        pl_llmc_close(&llmc);
    }
}

static void bfloat16_is_the_upper_half_of_a_float(void **state)
{
    (void)state;
    size_t bytes;
    assert_int_equal(write_model(PL_LLMC_BF16), PL_OK);
    char *file = scratch_read(path, &bytes);
    const unsigned char first[2] = { 0xa0, 0xc1 }; /* -20.0 */
    assert_memory_equal(file + PL_LLMC_HEADER_BYTES, first, 2);
    free(file);
}

static void a_write_that_fails_leaves_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (long nth = 1;; nth++, failures++) {
        pl_file_fail_at(nth, EDQUOT);
        pl_status status = write_model(PL_LLMC_BF16);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        if (!happened) {
            assert_int_equal(status, PL_OK);
            break;
        }
        assert_int_equal(status, PL_E_IO);
        assert_false(scratch_has(path));
    }
    assert_true(failures > 10);
}

static void refused(size_t word, int32_t value, pl_status status,
                    const char *part)
{
    size_t bytes;
    assert_int_equal(write_model(PL_LLMC_F32), PL_OK);
    char *file = scratch_read(path, &bytes);
    memcpy(file + 4 * word, &value, sizeof value);
    scratch_write(path, file, bytes);
    free(file);
    assert_int_equal(pl_llmc_open(&llmc, path, &err), status);
    assert_contains(err.text, "m.bin");
    assert_contains(err.text, part);
}

static void wrong_headers_are_refused(void **state)
{
    (void)state;
    refused(0, 20240327, PL_E_FORMAT, "not a model of llm.c");
    refused(0, 20240520, PL_E_FORMAT, "these are tokens");
    refused(1, 1, PL_E_UNSUPPORTED, "version 1");
    refused(2, -1, PL_E_FORMAT, "the longest context");
    refused(3, 0, PL_E_FORMAT, "the vocabulary");
    refused(3, 9, PL_E_FORMAT, "which is less");
    refused(4, 1 << 29, PL_E_FORMAT, "layers");
    refused(4, 99999, PL_E_FORMAT, "cut short");
    refused(5, 3, PL_E_FORMAT, "can't be shared");
    refused(6, 1 << 30, PL_E_FORMAT, "than can be counted");
    refused(7, 9, PL_E_FORMAT, "cut short");
}

static void every_other_length_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    int yes = 1;
    assert_int_equal(write_model(PL_LLMC_BF16), PL_OK);
    char *file = scratch_read(path, &bytes);
    for (size_t n = 0; n < bytes; n++) {
        scratch_write(path, file, n);
        assert_int_equal(pl_llmc_open(&llmc, path, &err), PL_E_FORMAT);
    }
    scratch_write(path, file, bytes + 1); /* its zero */
    assert_int_equal(pl_llmc_open(&llmc, path, &err), PL_E_FORMAT);
    scratch_write(path, file, 3);
    assert_int_equal(pl_llmc_is_one(path, &yes, &err), PL_OK);
    assert_false(yes);
    free(file);
}

static void leave_out_elements(void *context)
{
    (void)context;
    pl_status status = pl_llmc_begin(&llmc, path, &small, PL_LLMC_F32,
                                     PL_LLMC_BIASES, &err);
    if (!status)
        status = pl_llmc_end(&llmc, &err);
    (void)status;
}

static void an_end_before_the_last_element_is_a_mistake(void **state)
{
    (void)state;
    assert_dies(leave_out_elements, NULL, "written");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(tensors_lie_in_llm_c_s_order),
        TEST(the_header_is_llm_c_s),
        TEST(what_is_written_is_read),
        TEST(that_there_are_no_biases_is_the_last_word_of_the_header),
        TEST(bfloat16_is_the_upper_half_of_a_float),
        TEST(a_write_that_fails_leaves_nothing),
        TEST(wrong_headers_are_refused),
        TEST(every_other_length_is_refused),
        TEST(an_end_before_the_last_element_is_a_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
