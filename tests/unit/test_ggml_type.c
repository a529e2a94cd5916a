#include "format/ggml_type.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Values that need every bit of a block: signs, halves, a largest one. */
static void fill(float values[32], float scale)
{
    for (int i = 0; i < 32; i++)
        values[i] = (float)((i * 37) % 64 - 31) / 16.0f *
                    (i % 3 ? 1.0f : -0.37f) * scale;
}

/* What gguf's own quantiser (gguf 0.19.0) makes of them. */
static const unsigned char expected[34] = {
    0x08, 0x24, 0x2e, 0x18, 0xad, 0xe9, 0xd4, 0x67, 0x01, 0x91, 0x24, 0x1a,
    0x4b, 0xe0, 0xd5, 0x08, 0x9d, 0xee, 0xc4, 0x57, 0x07, 0x7f, 0x14, 0x20,
    0x3c, 0xd0, 0xdb, 0xf8, 0x8d, 0xf4, 0xb5, 0x47, 0x0d, 0x6f
};

static void q8_0_is_what_ggml_writes(void **state)
{
    (void)state;
    float values[32];
    unsigned char bytes[34];
    fill(values, 1.0f);
    pl_ggml_pack(PL_GGML_Q8_0, values, 32, bytes);
    assert_memory_equal(bytes, expected, sizeof bytes);
}

static void halves_are_rounded_away_from_zero(void **state)
{
    (void)state;
    float values[32] = { 127.0f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f };
    unsigned char bytes[34];
    pl_ggml_pack(PL_GGML_Q8_0, values, 32, bytes);
    const signed char quants[6] = { 127, 1, -1, 2, 3, -3 };
    assert_memory_equal(bytes + 2, quants, sizeof quants);
}

static void a_block_of_zeros_has_a_zero_scale(void **state)
{
    (void)state;
    float values[32] = { 0 };
    unsigned char bytes[34], zeros[34] = { 0 };
    memset(bytes, 0xaa, sizeof bytes);
    pl_ggml_pack(PL_GGML_Q8_0, values, 32, bytes);
    assert_memory_equal(bytes, zeros, sizeof bytes);
}

static void q8_0_comes_back_within_half_a_step(void **state)
{
    (void)state;
    float values[96], back[96];
    unsigned char bytes[3 * 34];
    for (int block = 0; block < 3; block++)
        fill(values + 32 * block, powf(10.0f, (float)(-block)));
    pl_ggml_pack(PL_GGML_Q8_0, values, 96, bytes);
    pl_ggml_unpack(PL_GGML_Q8_0, bytes, 96, back);
    for (int i = 0; i < 96; i++) {
        float most = 0.0f;
        for (int k = 0; k < 32; k++)
            most = fmaxf(most, fabsf(values[i / 32 * 32 + k]));
        assert_true(fabsf(values[i] - back[i]) <= most / 127.0f * 0.57f);
    }
}

static void what_was_unpacked_is_packed_to_the_same_quants(void **state)
{
    (void)state;
    float values[32], back[32];
    unsigned char once[34], twice[34];
    fill(values, 0.123f);
    pl_ggml_pack(PL_GGML_Q8_0, values, 32, once);
    pl_ggml_unpack(PL_GGML_Q8_0, once, 32, back);
    pl_ggml_pack(PL_GGML_Q8_0, back, 32, twice);
    assert_memory_equal(once, twice, sizeof once);
}

static void values_that_are_not_finite_do_not_leave_the_block(void **state)
{
    (void)state;
    float values[64] = { INFINITY, -INFINITY, NAN, 1.0f }, back[64];
    unsigned char bytes[68];
    values[32] = 127.0f;
    pl_ggml_pack(PL_GGML_Q8_0, values, 64, bytes);
    pl_ggml_unpack(PL_GGML_Q8_0, bytes, 64, back);
    assert_true(back[32] == 127.0f);
    assert_true(back[33] == 0.0f);
}

static void f32_f16_and_bf16_come_back(void **state)
{
    (void)state;
    const float values[5] = { 0.0f, -1.5f, 0.099975586f, 65504.0f, -0.25f };
    const pl_ggml_type all[] = { PL_GGML_F32, PL_GGML_F16 };
    unsigned char bytes[20];
    float back[5];
    for (int i = 0; i < 2; i++) {
        pl_ggml_pack(all[i], values, 5, bytes);
        pl_ggml_unpack(all[i], bytes, 5, back);
        assert_memory_equal(values, back, sizeof back);
    }
    pl_ggml_pack(PL_GGML_BF16, values, 5, bytes);
    pl_ggml_unpack(PL_GGML_BF16, bytes, 5, back);
    assert_true(back[1] == -1.5f && back[4] == -0.25f && back[3] == 65536.0f);
    assert_int_equal(pl_ggml_type_block_bytes(PL_GGML_BF16), 2);
}

static void only_four_types_are_known(void **state)
{
    (void)state;
    int known = 0;
    for (uint32_t number = 0; number < 1000; number++)
        known += pl_ggml_type_known(number);
    assert_int_equal(known, 4);
    assert_true(pl_ggml_type_known(PL_GGML_Q8_0));
    assert_string_equal(pl_ggml_type_name(PL_GGML_Q8_0), "q8_0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q8_0_is_what_ggml_writes),
        cmocka_unit_test(halves_are_rounded_away_from_zero),
        cmocka_unit_test(a_block_of_zeros_has_a_zero_scale),
        cmocka_unit_test(q8_0_comes_back_within_half_a_step),
        cmocka_unit_test(what_was_unpacked_is_packed_to_the_same_quants),
        cmocka_unit_test(values_that_are_not_finite_do_not_leave_the_block),
        cmocka_unit_test(f32_f16_and_bf16_come_back),
        cmocka_unit_test(only_four_types_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
