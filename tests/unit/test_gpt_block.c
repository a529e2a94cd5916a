#include "model/gpt_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define BIT(id) (1u << STAGE_##id)

static void each_level_keeps_less_and_all_keep_the_output(void **state)
{
    (void)state;
    const unsigned want[PL_MAX_LEVEL + 1] = {
        (1u << STAGES) - 1,
        BIT(QKV) | BIT(ATT) | BIT(MID) | BIT(FC) | BIT(OUT),
        BIT(QKV) | BIT(ATT) | BIT(MID) | BIT(OUT),
        BIT(OUT),
    };
    for (unsigned level = 0; level <= PL_MAX_LEVEL; level++)
        assert_int_equal(pl_build_keeps(level), want[level]);
}

static void what_is_not_kept_is_forgotten_and_the_input_stays(void **state)
{
    (void)state;
    block k = { .have = (1u << STAGES) - 1 };
    for (int i = 0; i < ACTS; i++)
        k.act[i] = 100 + i;
    pl_build_forget(&k, pl_build_keeps(1));
    assert_int_equal(k.have, pl_build_keeps(1));
    assert_int_equal(k.act[ACT_X], 100 + ACT_X);
    assert_int_equal(k.act[ACT_LSE], 100 + ACT_LSE);
    assert_int_equal(k.act[ACT_FC], 100 + ACT_FC);
    assert_int_equal(k.act[ACT_STAT1], PL_NO_BUFFER);
    assert_int_equal(k.act[ACT_LN2], PL_NO_BUFFER);
    assert_int_equal(k.act[ACT_GELU], PL_NO_BUFFER);
}

/* So that a walk in the order of the table finds all that a stage reads. */
static void a_stage_reads_only_what_comes_before_it(void **state)
{
    (void)state;
#define AT(level) (1u << (level))
    static const struct {
        unsigned reads, needs, levels;
    } rows[] = {
#define ROW(id, name, branch, reads, levels, needs, ...)                       \
    [STAGE_##id] = { reads, needs, levels },
        PL_STAGE_TABLE(ROW)
#undef ROW
    };
    for (unsigned i = 0; i < STAGES; i++) {
        assert_true(rows[i].reads < 1u << i);
        assert_true(rows[i].needs < 2u << i);
        /* a level that keeps it is followed by none that does so again */
        assert_true((rows[i].levels & (rows[i].levels + 1)) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_level_keeps_less_and_all_keep_the_output),
        cmocka_unit_test(what_is_not_kept_is_forgotten_and_the_input_stays),
        cmocka_unit_test(a_stage_reads_only_what_comes_before_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
