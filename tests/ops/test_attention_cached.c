/* test_attention_cached.c: attention of a few queries over keys and values that
 * are kept, as in decoding. */
#include "attention_decoding.h"

static void decoding_gives_the_rows_of_the_whole_to_the_bit(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 4 * FORMS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            /* less than a vector, and some with a rest */
            const size_t D = form / (2 * FORMS) ? 37 : 10;
            const shape s = make_shape((size_t[]){ 2, 67, 4, 2, D },
                                       forms[form / 2 % FORMS], form % 2);
            expect_decoding(&set, &s);
        }
}

/* Few queries and many, each sequence somewhere else. */
static void sequences_at_any_positions_are_decoded_together(void **state)
{
    (void)state;
    static const int32_t at[][4] = { { 0, 66, 31, 7 },
                                     { 64, 0, 1, 33 },
                                     { 40, 3, 0, 17 } };
    static const size_t counts[] = { 1, 3, 27 };
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 2 * FORMS; form++)
            for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                const pl_kernels set = pl_kernels_for((pl_isa)isa);
                const shape s = make_shape((size_t[]){ 4, 67, 4, 2, 19 },
                                           forms[form / 2], form % 2);
                const pl_attention whole = make_forward(&s, 1);
                set.attention(&whole, 0, 1);
                expect_rows(&set, &(decoding){ &whole, counts[i], 80, at[i] });
                fenced_release();
            }
}

/* What `first` says of all sequences, positions say of each. */
static void one_position_for_all_is_the_same_as_many_equal_ones(void **state)
{
    (void)state;
    static const int32_t at[] = { 20, 20, 20 };
    const shape s = make_shape((size_t[]){ 3, 67, 2, 1, 8 }, forms[1], 0);
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        const pl_attention whole = make_forward(&s, 1);
        const decoding c = { &whole, 9, 40, at };
        const pl_attention a = make_decoding(&c);
        pl_attention b = make_decoding(&c);
        b.positions = NULL;
        b.first = 20;
        set.attention(&a, 0, 1);
        set.attention(&b, 0, 1);
        assert_memory_equal(a.out, b.out, s.B * 9 * s.H * s.D * 2);
        fenced_release();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_gives_the_rows_of_the_whole_to_the_bit),
        cmocka_unit_test(sequences_at_any_positions_are_decoded_together),
        cmocka_unit_test(one_position_for_all_is_the_same_as_many_equal_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
