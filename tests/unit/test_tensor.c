#include "plan/tensor.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    return 0;
}

static const struct {
    pl_dtype dtype;
    size_t bytes;
    const char *name;
} dtypes[] = {
    { PL_F32, 4, "float32" }, { PL_BF16, 2, "bfloat16" },
    { PL_F16, 2, "float16" }, { PL_F64, 8, "float64" },
    { PL_I32, 4, "int32" },   { PL_U8, 1, "uint8" },
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

static void every_dtype_has_its_size_and_name(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPES; i++) {
        assert_int_equal(pl_dtype_bytes(dtypes[i].dtype), dtypes[i].bytes);
        assert_string_equal(pl_dtype_name(dtypes[i].dtype), dtypes[i].name);
    }
}

static void bytes_are_rows_times_columns_times_the_dtype(void **state)
{
    (void)state;
    for (int i = 0; i < DTYPES; i++) {
        size_t bytes = 0;
        assert_int_equal(pl_tensor_bytes("x", dtypes[i].dtype,
                                         (pl_extent){ 7, 67 }, &bytes, &err),
                         PL_OK);
        assert_int_equal(bytes, 7 * 67 * dtypes[i].bytes);
    }
}

static pl_status bytes_of(pl_dtype dtype, size_t rows, size_t cols,
                          size_t *bytes)
{
    return pl_tensor_bytes("h.3.fc", dtype, (pl_extent){ rows, cols }, bytes,
                           &err);
}

static void an_empty_tensor_is_refused_by_name(void **state)
{
    (void)state;
    size_t bytes = 99;
    assert_int_equal(bytes_of(PL_F32, 0, 5, &bytes), PL_E_MEMORY);
    assert_contains(err.text, "tensor h.3.fc is empty: 0 x 5");
    assert_int_equal(bytes_of(PL_F32, 5, 0, &bytes), PL_E_MEMORY);
    assert_contains(err.text, "5 x 0");
    assert_int_equal(bytes, 99);
}

static void a_size_that_no_address_can_count_is_refused_by_name(void **state)
{
    (void)state;
    const size_t one = 1, most = SIZE_MAX / 4;
    size_t bytes = 99;
    assert_int_equal(bytes_of(PL_U8, one << 32, one << 32, &bytes),
                     PL_E_MEMORY);
    assert_contains(err.text, "tensor h.3.fc of 4294967296 x 4294967296 uint8");
    assert_int_equal(bytes_of(PL_F64, one << 30, one << 32, &bytes),
                     PL_E_MEMORY);
    assert_int_equal(bytes_of(PL_F32, SIZE_MAX / 4 + 1, 1, &bytes),
                     PL_E_MEMORY);
    assert_int_equal(bytes_of(PL_U8, SIZE_MAX, 1, &bytes), PL_E_MEMORY);
    assert_int_equal(bytes_of(PL_U8, most + 1, 1, &bytes), PL_E_MEMORY);
    assert_int_equal(bytes, 99);
    assert_int_equal(bytes_of(PL_U8, most, 1, &bytes), PL_OK);
    assert_int_equal(bytes, most);
}

static void sums_and_products_say_when_they_overflow(void **state)
{
    (void)state;
    size_t out = 0;
    assert_false(pl_size_add(2, 3, &out));
    assert_int_equal(out, 5);
    assert_false(pl_size_mul(2, 3, &out));
    assert_int_equal(out, 6);
    assert_false(pl_size_add(SIZE_MAX - 1, 1, &out));
    assert_int_equal(out, SIZE_MAX);
    assert_true(pl_size_add(SIZE_MAX, 1, &out));
    assert_false(pl_size_mul(SIZE_MAX / 5, 5, &out));
    assert_int_equal(out, SIZE_MAX);
    assert_true(pl_size_mul(SIZE_MAX / 5 + 1, 5, &out));
    assert_false(pl_size_mul(SIZE_MAX, 0, &out));
    assert_int_equal(out, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_has_its_size_and_name),
        TEST(bytes_are_rows_times_columns_times_the_dtype),
        TEST(an_empty_tensor_is_refused_by_name),
        TEST(a_size_that_no_address_can_count_is_refused_by_name),
        TEST(sums_and_products_say_when_they_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
