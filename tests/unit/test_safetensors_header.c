/* Safetensors headers by hand: every lie is refused by name, every oddity that
 * the format allows is read. */
#include "format/safetensors.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;
static pl_safetensors st;
static char path[2 * SCRATCH_PATH_BYTES];

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "m.safetensors"));
    heap = pl_heap_make(64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

/* A file with a header that says it is `says` bytes long. */
static void write_saying(uint64_t says, const char *header, size_t data_bytes)
{
    size_t bytes = strlen(header);
    char *file = calloc(8 + bytes + data_bytes, 1);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (char)(says >> (8 * i));
    memcpy(file + 8, header, bytes);
    for (size_t i = 0; i < data_bytes; i++)
        file[8 + bytes + i] = (char)i;
    scratch_write(path, file, 8 + bytes + data_bytes);
    free(file);
}

static pl_status open_header(const char *header, size_t data_bytes)
{
    write_saying(strlen(header), header, data_bytes);
    memset(&err, 0, sizeof err);
    return pl_safetensors_open(&st, path, &heap, &err);
}

static void accept(const char *header, size_t data_bytes)
{
    if (open_header(header, data_bytes))
        fail_msg("%s: %s", header, err.text);
}

static void refuse(const char *header, size_t data_bytes, const char *part)
{
    if (open_header(header, data_bytes) == PL_OK)
        fail_msg("not refused: %s", header);
    assert_int_equal(err.status, PL_E_FORMAT);
    assert_contains(err.text, "m.safetensors");
    assert_contains(err.text, part);
    pl_heap_close(&heap);
}

#define TENSOR(name, dtype, shape, offsets)                                    \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                   \
    ",\"data_offsets\":" offsets "}"

/* ---- what the format allows ---- */

static void every_dtype_has_its_size(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        pl_tensor_dtype dtype;
        size_t bytes;
    } dtypes[] = {
        { "F32", PL_TENSOR_F32, 4 }, { "F64", PL_TENSOR_F64, 8 },
        { "F16", PL_TENSOR_F16, 2 }, { "BF16", PL_TENSOR_BF16, 2 },
        { "I32", PL_TENSOR_I32, 4 }, { "I64", PL_TENSOR_I64, 8 },
        { "U8", PL_TENSOR_U8, 1 },
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        char header[256];
        size_t bytes = 6 * dtypes[i].bytes;
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,3],"
                 "\"data_offsets\":[0,%zu]}}",
                 dtypes[i].name, bytes);
        accept(header, bytes);
        assert_int_equal(st.count, 1);
        assert_int_equal(st.tensors[0].dtype, dtypes[i].dtype);
        assert_int_equal(st.tensors[0].bytes, bytes);
        pl_safetensors_close(&st);
    }
}

static void tensors_come_in_the_order_of_their_data(void **state)
{
    (void)state;
    char byte;
    accept("{" TENSOR("c", "U8", "[3]", "[3,6]") "," TENSOR(
               "a", "U8", "[1]", "[0,1]") "," TENSOR("b", "U8", "[2]",
                                                     "[1,3]") "}",
           6);
    assert_int_equal(st.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const char name[] = { (char)('a' + i), '\0' };
        assert_string_equal(st.tensors[i].name, name);
        assert_ptr_equal(pl_safetensors_find(&st, name), &st.tensors[i]);
        assert_int_equal(
            pl_safetensors_read(&st, &st.tensors[i], 0, &byte, 1, &err), PL_OK);
        assert_int_equal(byte, st.tensors[i].offset);
    }
    pl_safetensors_close(&st);
}

static void scalars_and_empty_tensors_are_read(void **state)
{
    (void)state;
    /* "none" lies where "t" begins, and is mentioned after it */
    accept("{" TENSOR("s", "F32", "[]", "[0,4]") "," TENSOR(
               "t", "F32", "[1,1,1,1]",
               "[4,8]") "," TENSOR("none", "F32", "[3,0,5]", "[4,4]") "}",
           8);
    const pl_tensor_info *scalar = pl_safetensors_find(&st, "s");
    const pl_tensor_info *none = pl_safetensors_find(&st, "none");
    assert_int_equal(scalar->rank, 0);
    assert_int_equal(scalar->bytes, 4);
    assert_int_equal(none->rank, 3);
    assert_int_equal(none->bytes, 0);
    assert_int_equal(pl_safetensors_find(&st, "t")->offset, 4);
    pl_safetensors_close(&st);
}

static void metadata_is_no_tensor(void **state)
{
    (void)state;
    accept("{\"__metadata__\":{\"format\":\"pt\",\"dtype\":\"F99\"}," TENSOR(
               "a", "U8", "[1]", "[0,1]") "}      ",
           1);
    assert_int_equal(st.count, 1);
    pl_safetensors_close(&st);
    accept("{}", 0);
    assert_int_equal(st.count, 0);
    pl_safetensors_close(&st);
}

static void names_may_be_as_long_as_the_table_holds(void **state)
{
    (void)state;
    char name[PL_TENSOR_NAME_BYTES + 1], header[512];
    for (int extra = 0; extra < 2; extra++) {
        size_t length = PL_TENSOR_NAME_BYTES - 1 + (size_t)extra;
        memset(name, 'n', length);
        name[length] = '\0';
        snprintf(header, sizeof header,
                 "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],"
                 "\"data_offsets\":[0,1]}}",
                 name);
        if (extra) {
            refuse(header, 1, "name has 128 bytes, expected at most 127");
        } else {
            accept(header, 1);
            assert_string_equal(st.tensors[0].name, name);
            pl_safetensors_close(&st);
        }
    }
}

/* ---- lies ---- */

static void overlaps_and_holes_are_refused(void **state)
{
    (void)state;
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]",
                                                            "[3,7]") "}",
           7, "tensor b begins at byte 3 of the data, expected 4");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]",
                                                            "[0,4]") "}",
           4, "overlap");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "," TENSOR("b", "U8", "[4]",
                                                            "[5,9]") "}",
           9, "tensor b begins at byte 5 of the data, expected 4");
    refuse("{" TENSOR("a", "U8", "[4]", "[1,5]") "}", 5, "expected 0");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "}", 5,
           "the tensors cover 4 bytes, the file has 5");
    refuse("{}", 1, "the tensors cover 0 bytes, the file has 1");
}

static void offsets_outside_the_file_are_refused(void **state)
{
    (void)state;
    refuse("{" TENSOR("a", "U8", "[4]", "[0,4]") "}", 3,
           "tensor a ends at byte 4 of 3 bytes of data");
    refuse("{" TENSOR("a", "U8", "[0]", "[9,9]") "}", 0, "ends at byte 9");
    refuse("{" TENSOR("a", "U8", "[9223372036854775807]",
                      "[0,9223372036854775807]") "}",
           3, "ends at byte 9223372036854775807");
    refuse("{" TENSOR("a", "U8", "[4]",
                      "[9223372036854775803,9223372036854775807]") "}",
           4, "ends at byte");
}

static void offsets_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "[4,0]", "[-4,0]",  "[0,-4]",   "[0]",       "[0,4,4]",
        "[]",    "\"0,4\"", "[0,4.0]",  "[\"0\",4]", "null",
        "4",     "{}",      "[0,null]",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char header[256];
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":%s}}",
                 wrong[i]);
        refuse(header, 4, "tensor a: data_offsets must be [begin, end]");
    }
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4]}}", 4, "data_offsets");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,18446744073709551616]") "}", 4,
           "not valid JSON");
    refuse("{" TENSOR("a", "U8", "[4]", "[0,5]") "}", 5,
           "its shape needs 4 bytes, its data_offsets give 5");
    refuse("{" TENSOR("a", "F64", "[4]", "[0,16]") "}", 16,
           "its shape needs 32 bytes, its data_offsets give 16");
}

static void shapes_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = { "null", "4", "\"4\"", "{}",
                                         "[1,1,1,1,4]" };
    static const char *const dims[] = {
        "[-4]",
        "[4.0]",
        "[\"4\"]",
        "[null]",
        "[[4]]",
        "[9223372036854775807,3]",
        "[4294967296,4294967296]",
        "[4294967296,4294967296,0]",
        "[-1,-4]",
    };
    char header[256];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"U8\",\"shape\":%s,"
                 "\"data_offsets\":[0,4]}}",
                 wrong[i]);
        refuse(header, 4, "shape must be a list of at most 4 numbers");
    }
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"U8\",\"shape\":%s,"
                 "\"data_offsets\":[0,4]}}",
                 dims[i]);
        refuse(header, 4, "of its shape is not a size");
    }
    refuse("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,4]}}", 4, "shape");
    /* the product of the dimensions fits, their bytes don't */
    refuse("{" TENSOR("a", "F64", "[2305843009213693952]", "[0,0]") "}", 0,
           "dimension 0");
}

static void dtypes_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "\"F8_E4M3\"", "\"f32\"",        "\"F32 \"",
        "\"\"",        "\"F32\\u0000\"", "\"U8\\u0000x\"",
    };
    static const char *const missing[] = { "null", "4", "[\"F32\"]", "{}" };
    char header[256];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":%s,\"shape\":[1],\"data_offsets\":[0,4]}}",
                 wrong[i]);
        refuse(header, 4, "expected one of F32 F64 F16 BF16 I32 I64 U8");
    }
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":%s,\"shape\":[1],\"data_offsets\":[0,4]}}",
                 missing[i]);
        refuse(header, 4, "tensor a: dtype is missing");
    }
    refuse("{\"a\":[1,2]}", 0, "tensor a: dtype is missing");
    refuse("{\"a\":null}", 0, "tensor a: dtype is missing");
}

static void a_name_that_stands_twice_is_refused(void **state)
{
    (void)state;
    refuse("{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]",
                                                            "[1,2]") "}",
           2, "duplicate");
    refuse("{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("\\u0061", "U8",
                                                            "[1]", "[1,2]") "}",
           2, "duplicate");
}

static void a_header_that_is_no_object_is_refused(void **state)
{
    (void)state;
    static const char *const not_json[] = {
        "{} x", "{}{}", "{\"a\"}", "{a:1}", "{,}", "{\"a\":\"\xFF\"}", "{      "
    };
    static const char *const no_brace[] = { " {}", "[]", "\"a\"", "12",
                                            "\xEF\xBB\xBF{}" };
    for (size_t i = 0; i < sizeof not_json / sizeof not_json[0]; i++)
        refuse(not_json[i], 0, "not valid JSON");
    for (size_t i = 0; i < sizeof no_brace / sizeof no_brace[0]; i++)
        refuse(no_brace[i], 0, "does not begin with '{'");
}

static void a_header_length_that_lies_is_refused(void **state)
{
    (void)state;
    static const char header[] = "{" TENSOR("a", "U8", "[4]", "[0,4]") "}";
    const uint64_t right = sizeof header - 1;
    const uint64_t lengths[] = { 0,
                                 1,
                                 right - 1,
                                 right + 1,
                                 right + 4,
                                 right + 5,
                                 PL_SAFETENSORS_MAX_HEADER,
                                 PL_SAFETENSORS_MAX_HEADER + 1ull,
                                 INT64_MAX,
                                 1ull << 63 | right,
                                 UINT64_MAX - 7,
                                 UINT64_MAX };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        write_saying(lengths[i], header, 4);
        memset(&err, 0, sizeof err);
        assert_int_equal(pl_safetensors_open(&st, path, &heap, &err),
                         PL_E_FORMAT);
        assert_contains(err.text, "m.safetensors");
        if (lengths[i] < 2 || lengths[i] > right + 4)
            assert_contains(err.text, "its header would have");
        pl_heap_close(&heap);
    }
    write_saying(right, header, 4);
    assert_int_equal(pl_safetensors_open(&st, path, &heap, &err), PL_OK);
    pl_safetensors_close(&st);
}

/* ---- limits ---- */

/* n tensors of one byte, the first one last. */
static char *many_tensors(size_t n)
{
    char *header = malloc(n * 80 + 3);
    size_t used = 1;
    assert_non_null(header);
    header[0] = '{';
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(header + used,
                                "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[1],"
                                "\"data_offsets\":[%zu,%zu]}",
                                i ? "," : "", i, n - 1 - i, n - i);
    header[used++] = '}';
    header[used] = '\0';
    return header;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void as_many_tensors_as_are_allowed_are_read_in_no_time(void **state)
{
    (void)state;
    enum { N = PL_TENSOR_MAX_COUNT };
    char *header = many_tensors(N);
    double before = seconds();
    accept(header, N);
    assert_true(seconds() - before < 10);
    assert_int_equal(st.count, N);
    for (size_t i = 0; i < N; i++)
        assert_int_equal(st.tensors[i].offset, i);
    pl_safetensors_close(&st);
    free(header);
}

static void more_tensors_than_are_allowed_are_refused(void **state)
{
    (void)state;
    char *header = many_tensors(PL_TENSOR_MAX_COUNT + 1);
    refuse(header, PL_TENSOR_MAX_COUNT + 1, "100001 tensors");
    free(header);
}

static void a_heap_that_is_too_small_is_an_error(void **state)
{
    (void)state;
    static const char header[] = "{" TENSOR("a", "U8", "[4]", "[0,4]") "}";
    static const size_t limits[] = { 0, sizeof header - 2, sizeof header - 1,
                                     sizeof header + 100 };
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        heap = pl_heap_make(limits[i]);
        assert_int_equal(open_header(header, 4), PL_E_MEMORY);
        pl_heap_close(&heap);
    }
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_int_equal(pl_safetensors_open(&st, path, &heap, &err), PL_E_IO);
    assert_int_equal(pl_safetensors_open(&st, dir.folder, &heap, &err),
                     PL_E_IO);
    assert_contains(err.text, "a folder, not a plain file");
    /* a file whose size lies */
    assert_int_equal(pl_safetensors_open(&st, "/proc/self/status", &heap, &err),
                     PL_E_FORMAT);
}

static void a_long_path_leaves_room_for_the_message(void **state)
{
    (void)state;
    char part[256];
    size_t used = (size_t)snprintf(path, sizeof path, "%s", dir.folder);
    memset(part, 'd', 200);
    part[200] = '\0';
    for (int i = 0; i < 2; i++)
        used += (size_t)snprintf(path + used, sizeof path - used, "/%s", part);
    assert_true(used < sizeof path - 100);
    assert_int_equal(pl_folder_make(path, &err), PL_OK);
    char long_path[4000];
    used = (size_t)snprintf(long_path, sizeof long_path, "%s", path);
    while (used < 3000)
        used += (size_t)snprintf(long_path + used, sizeof long_path - used,
                                 "/./././.");
    snprintf(long_path + used, sizeof long_path - used, "/m.safetensors");
    scratch_write(long_path, "\x2\0\0\0\0\0\0\0{}!", 11);
    assert_int_equal(pl_safetensors_open(&st, long_path, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "m.safetensors: the tensors cover 0 bytes");
    scratch_write(long_path, "\x2\0\0\0\0\0\0\0{!", 10);
    assert_int_equal(pl_safetensors_open(&st, long_path, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "not valid JSON");
    scratch_write(long_path, "\x2\0\0\0\0\0\0\0[]", 10);
    assert_int_equal(pl_safetensors_open(&st, long_path, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "does not begin");
    scratch_write(long_path, "\0\0\0\0\0\0\0\0\0", 8);
    assert_int_equal(pl_safetensors_open(&st, long_path, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "its header would have");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_has_its_size),
        TEST(tensors_come_in_the_order_of_their_data),
        TEST(scalars_and_empty_tensors_are_read),
        TEST(metadata_is_no_tensor),
        TEST(names_may_be_as_long_as_the_table_holds),
        TEST(overlaps_and_holes_are_refused),
        TEST(offsets_outside_the_file_are_refused),
        TEST(offsets_that_are_none_are_refused),
        TEST(shapes_that_are_none_are_refused),
        TEST(dtypes_that_are_none_are_refused),
        TEST(a_name_that_stands_twice_is_refused),
        TEST(a_header_that_is_no_object_is_refused),
        TEST(a_header_length_that_lies_is_refused),
        TEST(as_many_tensors_as_are_allowed_are_read_in_no_time),
        TEST(more_tensors_than_are_allowed_are_refused),
        TEST(a_heap_that_is_too_small_is_an_error),
        TEST(what_is_no_file_is_refused),
        TEST(a_long_path_leaves_room_for_the_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
