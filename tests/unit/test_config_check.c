/* Tests of config/check: what workers (sync_interval) need of other keys, and
 * what waits for them. test_config.c has the rest. */
#include "config_fixture.h"

static void workers_end_where_they_meet(void **state)
{
    fixture *f = *state;
    check_refused(f, "sync_interval = 30; max_iters = 100",
                  "max_iters = 100 (x.py:1:21) is no multiple of sync_interval "
                  "= 30 (x.py:1:1)");
    check_refused(f, "sync_interval = 30; max_iters = 100",
                  "max_iters = 120 is the next that will do");
    check_refused(f, "sync_interval = 30; weights = 'bf16'",
                  "set weights = 'float32'");
    check_refused(f,
                  "sync_interval = 30; gradient_groups = 512; "
                  "gradient_accumulation_steps = 512",
                  "at most 256");
    check_passes(f, "sync_interval = 30");
    check_passes(f, "sync_interval = 7; max_minutes = 3");
}

/* Without workers, every `interval` updates; else at the first meeting after
 * that. */
static void what_is_due_waits_for_the_next_meeting(void **state)
{
    fixture *f = *state;
    for (int64_t interval = 1; interval <= 9; interval++) {
        f->cfg.sync_interval = 1;
        for (uint64_t step = 0; step <= 40; step++)
            assert_int_equal(pl_config_is_due(&f->cfg, interval, step),
                             step % (uint64_t)interval == 0);
        for (f->cfg.sync_interval = 2; f->cfg.sync_interval <= 9;
             f->cfg.sync_interval++) {
            const uint64_t round = (uint64_t)f->cfg.sync_interval;
            int waits = 1;
            for (uint64_t step = 0; step <= 80; step++) {
                waits |= step % (uint64_t)interval == 0;
                const int due = waits && step % round == 0;
                assert_int_equal(pl_config_is_due(&f->cfg, interval, step),
                                 due);
                waits &= !due;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(workers_end_where_they_meet),
        TEST(what_is_due_waits_for_the_next_meeting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
