/* test_diloco.c: workers (sync_interval above 1), as far as one of them shows
 * it; tests/cli/diloco.sh has several. Their updates are those of a run that
 * never meets, and where they meet the outer step is what comes out by hand. */
#include "store/checkpoint.h"
#include "support/on_device.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NEVER = 99 }; /* no run here has as many updates */

static pl_error err;

static void make(tiny_run *run, const char *const *settings)
{
    tiny_run_make(run);
    for (; settings && *settings; settings++)
        tiny_run_set(run, *settings);
    if (pl_config_check(&run->config, &err))
        fail_msg("%s", err.text);
}

/* All of one set, one after the other; malloc'ed. */
static float *values_of(tiny_run *run, const pl_buffer_id *set, size_t *count)
{
    const pl_gpt *gpt = &run->session.run.gpt;
    float *all = malloc(pl_param_count(&gpt->shape) * sizeof *all);
    assert_non_null(all);
    *count = 0;
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++) {
        if (set[i] == PL_NO_BUFFER)
            continue;
        const size_t bytes = gpt->graph.buffers[set[i]].bytes;
        on_device_read(run->session.run.device, set[i], 0, all + *count, bytes);
        *count += bytes / sizeof *all;
    }
    return all;
}

static void require_same(const float *a, const float *b, size_t count,
                         const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof a[i]) != 0)
            fail_msg("%s: element %zu is %.9g, not %.9g", what, i, (double)a[i],
                     (double)b[i]);
}

/* ---- where they meet ---- */

static void the_outer_step_is_what_comes_out_by_hand(void **state)
{
    static const char *const meets[] = { "--sync_interval=2", NULL },
                             *const never[] = { "--sync_interval=6", NULL };
    tiny_run a, b;
    size_t n;
    (void)state;
    make(&b, never);
    tiny_run_open(&b);
    tiny_run_train(&b, 1);
    const unsigned long long before = tiny_run_hash(&b);
    tiny_run_train(&b, 1);
    float *local = values_of(&b, b.session.run.gpt.weights, &n);
    tiny_run_remove(&b);
    make(&a, meets);
    tiny_run_open(&a);
    const pl_gpt *of_a = &a.session.run.gpt;
    float *anchor = values_of(&a, of_a->weights, &n),
          *first = values_of(&a, of_a->anchor, &n);
    assert_int_equal(n, pl_param_count(&of_a->shape));
    require_same(first, anchor, n, "the first anchor");
    tiny_run_train(&a, 1);
    assert_true(tiny_run_hash(&a) == before);
    tiny_run_train(&a, 1);
    float *w = values_of(&a, of_a->weights, &n),
          *met = values_of(&a, of_a->anchor, &n),
          *momentum = values_of(&a, of_a->outer, &n),
          *g = values_of(&a, of_a->gradients, &n);
    for (size_t i = 0; i < n; i++) {
        const float d = anchor[i] - local[i], ahead = 0.9f * d,
                    step = 0.7f * (d + ahead), new = anchor[i] - step;
        assert_true(momentum[i] == d && w[i] == new &&met[i] == new);
        assert_true(g[i] == 0.0f);
    }
    free(anchor);
    free(first);
    free(local);
    free(w);
    free(met);
    free(momentum);
    free(g);
    tiny_run_remove(&a);
}

/* Of 16 bits too, and with a working copy that goes with the weights: whether
 * there is one changes no bit. */
static void a_working_copy_follows(void **state)
{
    unsigned long long hashes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const settings[] = {
            "--sync_interval=2", "--dtype=bfloat16",
            i ? "--working_copy=resident" : "--working_copy=rounded", NULL
        };
        tiny_run run;
        make(&run, settings);
        tiny_run_open(&run);
        tiny_run_train(&run, 5);
        hashes[i] = tiny_run_hash(&run);
        tiny_run_remove(&run);
    }
    assert_true(hashes[0] == hashes[1]);
}

/* ---- the plan ---- */

static void the_outer_state_is_planned(void **state)
{
    static const char *const settings[] = { "--sync_interval=2", NULL };
    tiny_run run;
    (void)state;
    make(&run, settings);
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    size_t bytes = 0;
    for (size_t i = 0; i < gpt->graph.n_buffers; i++)
        if (gpt->graph.buffers[i].class == PL_CLASS_OUTER)
            bytes += gpt->graph.buffers[i].bytes;
    assert_int_equal(bytes, 2 * sizeof(float) * pl_param_count(&gpt->shape));
    assert_true(gpt->placement.class_bytes[PL_TRAIN][PL_CLASS_OUTER] >= bytes);
    tiny_run_remove(&run);
}

/* A worker of four has all of its moments, and a quarter of the outer state. */
static void workers_share_the_outer_state_alone(void **state)
{
    tiny_run run;
    size_t moments[2] = { 0 }, outer[2] = { 0 };
    (void)state;
    make(&run, NULL);
    tiny_run_open(&run);
    for (int i = 0; i < 2; i++) {
        pl_gpt_layout layout = run.session.run.gpt.layout;
        pl_heap heap = pl_heap_make((size_t)64 << 20);
        pl_gpt gpt;
        layout.sync_interval = 2;
        layout.groups = i ? 4 : 1;
        layout.batches = 4;
        if (i)
            pl_gpt_layout_share(&layout, 4, 2);
        if (pl_gpt_make(&gpt, &run.session.run.shape, &layout, &heap, &err))
            fail_msg("%s", err.text);
        for (size_t at = 0; at < gpt.graph.n_buffers; at++) {
            const pl_buffer *buffer = &gpt.graph.buffers[at];
            moments[i] += buffer->class == PL_CLASS_MOMENT ? buffer->bytes : 0;
            outer[i] += buffer->class == PL_CLASS_OUTER ? buffer->bytes : 0;
        }
        pl_heap_close(&heap);
    }
    assert_true(moments[0] == moments[1] && outer[1] > 0);
    assert_true(outer[1] * 2 < outer[0]);
    tiny_run_remove(&run);
}

/* ---- going on ---- */

static void stops_between_two_meetings_change_no_bit(void **state)
{
    static const char *const ways[] = { "--dtype=float16",
                                        "--optimizer_state=8bit",
                                        "--optimizer=muon" };
    (void)state;
    for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
        const char *const settings[] = { "--sync_interval=3", ways[way], NULL };
        tiny_run whole, cut;
        make(&whole, settings);
        tiny_run_open(&whole);
        assert_int_equal(tiny_run_until(&whole, NEVER, &err), PL_OK);
        const unsigned long long hash = tiny_run_hash(&whole);
        tiny_run_remove(&whole);
        make(&cut, settings);
        for (int step = 1; step <= 6; step++) {
            tiny_run_open(&cut);
            const pl_status status = tiny_run_until(
                &cut, step < 6 ? (uint64_t)step : NEVER, &err);
            assert_int_equal(status, step < 6 ? PL_E_STOPPED : PL_OK);
            assert_int_equal(cut.session.run.step, step);
            if (step == 6)
                break;
            tiny_run_close(&cut);
            tiny_run_set(&cut, "--init_from=resume");
        }
        if (tiny_run_hash(&cut) != hash)
            fail_msg("%s: not the same bits", ways[way]);
        tiny_run_remove(&cut);
    }
}

static void a_run_without_workers_has_no_state_of_theirs(void **state)
{
    tiny_run run;
    (void)state;
    make(&run, NULL);
    tiny_run_open(&run);
    assert_int_equal(tiny_run_until(&run, 2, &err), PL_E_STOPPED);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_set(&run, "--sync_interval=2");
    assert_int_equal(tiny_run_try(&run, &err), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "trained with sync_interval = 1"));
    assert_non_null(strstr(err.text, "--init_from="));
    tiny_run_remove(&run);
}

static void another_interval_is_another_run(void **state)
{
    static const char *const settings[] = { "--sync_interval=3", NULL };
    tiny_run run;
    (void)state;
    make(&run, settings);
    tiny_run_open(&run);
    assert_int_equal(tiny_run_until(&run, 2, &err), PL_E_STOPPED);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_set(&run, "--sync_interval=2");
    tiny_run_open(&run);
    assert_int_equal(tiny_run_until(&run, NEVER, &err), PL_OK);
    tiny_run_remove(&run);
}

static void one_process_is_one_worker(void **state)
{
    tiny_run run;
    (void)state;
    tiny_run_make(&run);
    tiny_run_set(&run, "--sync_interval=2");
    tiny_run_set(&run, "--gradient_groups=2");
    assert_int_equal(tiny_run_try(&run, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "mpirun -n 2 plimsoll train"));
    tiny_run_remove(&run);
}

/* ---- evaluations ---- */

typedef struct seen {
    int count;
    uint64_t steps[16];
} seen;

static void on_evaluation(void *context, const pl_eval_event *event)
{
    seen *s = context;
    if (s->count < 16)
        s->steps[s->count++] = event->step;
}

static void evaluations_wait_for_a_meeting(void **state)
{
    static const char *const settings[] = { "--sync_interval=3",
                                            "--eval_interval=4",
                                            "--max_iters=12", NULL };
    static const uint64_t steps[] = { 0, 6, 9, 12 };
    tiny_run run;
    seen s = { 0 };
    const pl_listener listener = { .context = &s, .evaluated = on_evaluation };
    (void)state;
    make(&run, settings);
    tiny_run_open(&run);
    if (pl_train(&run.session, &listener, &err))
        fail_msg("%s", err.text);
    assert_int_equal(s.count, 4);
    assert_memory_equal(s.steps, steps, sizeof steps);
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outer_step_is_what_comes_out_by_hand),
        cmocka_unit_test(a_working_copy_follows),
        cmocka_unit_test(the_outer_state_is_planned),
        cmocka_unit_test(workers_share_the_outer_state_alone),
        cmocka_unit_test(stops_between_two_meetings_change_no_bit),
        cmocka_unit_test(a_run_without_workers_has_no_state_of_theirs),
        cmocka_unit_test(another_interval_is_another_run),
        cmocka_unit_test(one_process_is_one_worker),
        cmocka_unit_test(evaluations_wait_for_a_meeting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
