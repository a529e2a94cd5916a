/* Tests of train/session_rehearse: everything is run, nothing is left behind.
 */
#include "base/file.h"
#include "support/on_device.h"
#include "support/tiny_run.h"
#include "train/session_rehearse.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static tiny_run run;
static pl_error err;

/* Whether every byte of a buffer is zero. */
static int is_zero(pl_buffer_id buffer)
{
    const pl_graph *graph = &run.session.run.gpt.graph;
    unsigned char *at = on_device_copy(run.session.run.device, graph, buffer);
    size_t i = 0;
    while (i < graph->buffers[buffer].bytes && at[i] == 0)
        i++;
    free(at);
    return i == graph->buffers[buffer].bytes;
}

/* What lives throughout, as it is when a device was just opened. */
static void set_to_zero(void)
{
    const pl_graph *graph = &run.session.run.gpt.graph;
    for (size_t i = 0; i < graph->n_buffers; i++)
        if (pl_class_lives_throughout(graph->buffers[i].class))
            assert_int_equal(
                pl_device_clear(run.session.run.device, (int)i, &err), PL_OK);
}

static int set_up(void **state)
{
    (void)state;
    tiny_run_make(&run);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    tiny_run_remove(&run);
    return 0;
}

static void every_step_runs(void)
{
    set_to_zero();
    for (int id = 0; id < PL_PROGRAM_COUNT; id++)
        pl_device_profile(run.session.run.device, (pl_program_id)id,
                          run.session.step_seconds[id]);
    assert_int_equal(pl_rehearse(&run.session, &err), PL_OK);
    for (int id = 0; id < PL_PROGRAM_COUNT; id++) {
        const pl_program *p = &run.session.run.gpt.graph.programs[id];
        for (size_t i = 0; i < p->n_steps && id != PL_SAVE; i++)
            if (!(run.session.step_seconds[id][i] > 0.0))
                fail_msg("%s of %s was not run", pl_op_name(p->steps[i].op),
                         pl_program_name((pl_program_id)id));
    }
}

static void every_step_of_every_program_runs(void **state)
{
    static const char *const ways[] = { "--gradient_groups=2",
                                        "--sync_interval=2" };
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        tiny_run_set(&run, ways[way]);
        tiny_run_open(&run);
        every_step_runs();
        tiny_run_close(&run);
        tiny_run_set(&run, "--gradient_groups=1");
    }
}

/* What a run begins with. The room in which products pack their factors is
 * written anew by each of them; which factors those are, and so what is left
 * there, differs by instruction set. */
static int is_state(const pl_graph *graph, size_t i)
{
    pl_class class = graph->buffers[i].class;
    return pl_class_lives_throughout(class) && class != PL_CLASS_PACKING &&
           class != PL_CLASS_CONTROL;
}

static void zeros_stay_zeros(void **state)
{
    static const char *const ways[] = {
        "--sync_interval=2", "--sync_interval=1",      "--dtype=float16",
        "--weights=bf16",    "--optimizer_state=8bit", "--gradient_groups=2"
    };
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        tiny_run_set(&run, ways[way]);
        tiny_run_open(&run);
        set_to_zero();
        assert_int_equal(pl_rehearse(&run.session, &err), PL_OK);
        const pl_graph *graph = &run.session.run.gpt.graph;
        for (size_t i = 0; i < graph->n_buffers; i++)
            if (is_state(graph, i) && !is_zero((int)i))
                fail_msg("%s: %s was changed", ways[way],
                         graph->buffers[i].name);
        tiny_run_close(&run);
    }
}

static void a_run_starts_from_clean_moments_and_its_own_weights(void **state)
{
    (void)state;
    float first[8], found[8];
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++)
        if (gpt->m[i] != PL_NO_BUFFER)
            assert_true(is_zero(gpt->m[i]) && is_zero(gpt->v[i]) &&
                        is_zero(gpt->gradients[i]));
    pl_param_init(&gpt->shape, 0, (unsigned)run.config.seed, 0, 8, first);
    on_device_read(run.session.run.device, gpt->weights[0], 0, found,
                   sizeof found);
    assert_memory_equal(found, first, sizeof first);
}

static void nothing_of_it_is_left_in_the_folder(void **state)
{
    (void)state;
    tiny_run_open(&run);
    assert_true(scratch_has(scratch_path(&run.folder, "out")));
    assert_false(scratch_has(scratch_path(&run.folder, "out/.rehearsal")));
}

static void an_evaluation_writes_nothing(void **state)
{
    (void)state;
    run.purpose = PL_RUN_EVALUATES;
    tiny_run_open(&run);
    assert_false(scratch_has(scratch_path(&run.folder, "out")));
}

static void every_failing_call_is_told(void **state)
{
    (void)state;
    int failures = 0;
    tiny_run_open(&run);
    set_to_zero();
    for (long nth = 1;; nth++) {
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = pl_rehearse(&run.session, &err);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        if (!happened)
            break;
        failures += status != PL_OK;
        const char *left = scratch_path(&run.folder, "out/.rehearsal");
        if (status)
            assert_non_null(strstr(err.text, ".rehearsal"));
        if (scratch_has(left)) /* only if it is the removal that fails */
            assert_non_null(strstr(err.text, "remove"));
        unlink(left);
    }
    assert_true(failures >= 4); /* create, write, sync, read */
    assert_int_equal(pl_rehearse(&run.session, &err), PL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_step_of_every_program_runs),
        TEST(zeros_stay_zeros),
        TEST(a_run_starts_from_clean_moments_and_its_own_weights),
        TEST(nothing_of_it_is_left_in_the_folder),
        TEST(an_evaluation_writes_nothing),
        TEST(every_failing_call_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
