/* test_run_watch.c: what a watch of a program sees, and where it ends it. */
#include "device/device.h"
#include "support/tiny_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Ends the program at the `at`-th question. */
typedef struct asker {
    const pl_step *steps;
    size_t calls, at;
} asker;

static int between(void *context, const pl_step *step)
{
    asker *a = context;
    assert_ptr_equal(step, &a->steps[a->calls]);
    return ++a->calls == a->at;
}

/* An evaluation that ends at the `at`-th question; `seconds` of the steps that
 * did not run stay 0. */
static pl_run_end evaluate(tiny_run *run, size_t at, double *seconds,
                           size_t *calls)
{
    const pl_run *r = &run->session.run;
    const pl_program *program = &r->gpt.graph.programs[PL_EVAL];
    asker a = { .steps = program->steps, .at = at };
    const pl_run_watch watch = { .context = &a, .between = between };
    pl_error err;
    pl_run_end end = PL_RUN_DONE;
    if (pl_device_clear(r->device, r->gpt.eval_tokens, &err))
        fail_msg("%s", err.text);
    memset(seconds, 0, program->n_steps * sizeof *seconds);
    pl_device_profile(r->device, PL_EVAL, seconds);
    if (pl_device_run_watched(r->device, PL_EVAL, PL_PART_LOOP, &watch, &end,
                              &err))
        fail_msg("%s", err.text);
    pl_device_profile(r->device, PL_EVAL, NULL);
    *calls = a.calls;
    return end;
}

static void a_program_ends_after_the_step_at_which_it_is_stopped(void **state)
{
    tiny_run run;
    size_t calls;
    (void)state;
    tiny_run_make(&run);
    tiny_run_set(&run, "--threads=2");
    tiny_run_open(&run);
    const size_t steps = run.session.run.gpt.graph.programs[PL_EVAL].loop_steps;
    double *seconds = calloc(
        run.session.run.gpt.graph.programs[PL_EVAL].n_steps, sizeof *seconds);
    assert_non_null(seconds);
    assert_true(steps > 3);
    for (size_t at = 1; at < steps; at++) {
        assert_int_equal(evaluate(&run, at, seconds, &calls), PL_RUN_STOPPED);
        assert_int_equal(calls, at);
        for (size_t i = 0; i < steps; i++)
            assert_int_equal(seconds[i] > 0.0, i < at);
    }
    /* nobody asks after the last one */
    assert_int_equal(evaluate(&run, steps, seconds, &calls), PL_RUN_DONE);
    assert_int_equal(calls, steps - 1);
    for (size_t i = 0; i < steps; i++)
        assert_true(seconds[i] > 0.0);
    free(seconds);
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_ends_after_the_step_at_which_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
