#include "plan/graph.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static pl_heap heap;
static pl_graph graph;
static pl_error err;
static pl_buffer_id always; /* what else a step needs: it lives throughout */

static void begin(void)
{
    pl_graph_begin(&graph, &heap);
    always = pl_graph_buffer(&graph, "always", PL_CLASS_WEIGHT, PL_F32, 8, 4);
}

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(4 << 20);
    memset(&err, 0, sizeof err);
    begin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_arena_fail_at(0);
    pl_heap_close(&heap);
    return 0;
}

static pl_buffer_id buffer(const char *name)
{
    return pl_graph_buffer(&graph, name, PL_CLASS_TRANSIENT, PL_F32, 8, 4);
}

/* A step of the smallest size, whose arguments are `always`. */
static pl_step *step_of(pl_program_id program, pl_op op)
{
    const pl_op_info *info = pl_op_of(op);
    pl_step *step = pl_graph_step(&graph, program, op);
    for (int i = 0; i < info->n_args; i++)
        pl_step_arg(step, i, always);
    step->rows = info->constants & PL_ROWS ? 1 : 0;
    step->cols = info->constants & PL_COLS ? 1 : 0;
    step->T = info->constants & PL_T ? 1 : 0;
    step->heads = info->constants & PL_HEADS ? 1 : 0;
    step->inner = info->constants & PL_INNER ? 1 : 0;
    step->kv = info->constants & PL_KV ? 1 : 0;
    step->eps = info->constants & PL_EPS ? 1e-5 : 0;
    return step;
}

/* A step that does this with `id`, and nothing that matters besides. */
static pl_step *use(pl_program_id program, pl_access access, pl_buffer_id id)
{
    const struct {
        pl_op op;
        int arg;
    } uses[] = {
        [PL_READ] = { PL_OP_GELU, PL_ARG_GELU_X },
        [PL_WRITE] = { PL_OP_GELU, PL_ARG_GELU_Y },
        [PL_UPDATE] = { PL_OP_COLUMN_SUM, PL_ARG_COLUMN_SUM_SUM },
        [PL_SCRATCH] = { PL_OP_ATTENTION, PL_ARG_ATTENTION_SCRATCH },
    };
    pl_step *step = step_of(program, uses[access].op);
    pl_step_arg(step, uses[access].arg, id);
    return step;
}

/* Steps that concern nobody. */
static void idle(pl_program_id program, int steps)
{
    for (int i = 0; i < steps; i++)
        step_of(program, PL_OP_DROP);
}

static void finish(void)
{
    if (pl_graph_finish(&graph, &err))
        fail_msg("%s", err.text);
}

static void assert_lives(pl_buffer_id id, pl_program_id program, size_t first,
                         size_t last)
{
    const pl_buffer *b = &graph.buffers[id];
    if (b->program != (int)program || b->first != first || b->last != last)
        fail_msg("%s lives in program %d, steps %zu to %zu; expected %d, %zu "
                 "to %zu",
                 b->name, b->program, b->first, b->last, (int)program, first,
                 last);
}

/* ---- building ---- */

static void a_graph_is_what_was_appended(void **state)
{
    (void)state;
    enum { N = 300 };
    pl_buffer_id ids[N];
    static char names[N][16];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "b%d", i);
        ids[i] = pl_graph_buffer(&graph, names[i], PL_CLASS_SAVED, PL_F16,
                                 (size_t)i + 1, 3);
        assert_int_equal(ids[i], i + 1);
        pl_step *step = pl_graph_step(&graph, PL_EVAL, PL_OP_GELU);
        assert_int_equal(step->layer, -1);
        assert_int_equal(step->args[PL_ARG_GELU_X].buffer, PL_NO_BUFFER);
        step->layer = i;
        step->rows = 1;
        step->cols = 3;
        pl_step_rows(step, PL_ARG_GELU_Y, ids[i], (size_t)i);
        pl_step_arg(step, PL_ARG_GELU_X, always);
    }
    finish();
    assert_int_equal(graph.n_buffers, N + 1);
    assert_int_equal(graph.programs[PL_EVAL].n_steps, N);
    for (int i = 0; i < N; i++) {
        const pl_buffer *b = &graph.buffers[i + 1];
        const pl_step *step = &graph.programs[PL_EVAL].steps[i];
        assert_string_equal(b->name, names[i]);
        assert_int_equal(b->bytes, 2 * 3 * (i + 1));
        assert_int_equal(b->dtype, PL_F16);
        assert_int_equal(b->class, PL_CLASS_SAVED);
        assert_int_equal(step->op, PL_OP_GELU);
        assert_int_equal(step->layer, i);
        assert_int_equal(step->args[PL_ARG_GELU_Y].buffer, i + 1);
        assert_int_equal(step->args[PL_ARG_GELU_Y].access, PL_WRITE);
        assert_int_equal(step->args[PL_ARG_GELU_Y].row, i);
        assert_lives(i + 1, PL_EVAL, (size_t)i, (size_t)i);
    }
}

static void the_tables_have_names(void **state)
{
    (void)state;
    assert_string_equal(pl_class_name(PL_CLASS_SAVED), "saved activations");
    assert_string_equal(pl_class_name(PL_CLASS_CACHE), "kv cache");
    assert_string_equal(pl_op_name(PL_OP_LAYERNORM_BWD), "layernorm.bwd");
    assert_string_equal(pl_op_name(PL_OP_FETCH), "fetch");
    assert_string_equal(pl_program_name(PL_TRAIN), "train");
    assert_string_equal(pl_program_name(PL_SAVE), "save");
    for (int i = 0; i < PL_CLASS_COUNT; i++)
        assert_int_equal(pl_class_lives_throughout((pl_class)i),
                         i <= PL_CLASS_ROTARY);
}

/* ---- lifetimes ---- */

static void a_buffer_lives_from_its_write_to_its_last_use(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a"), b = buffer("b"), c = buffer("c");
    idle(PL_TRAIN, 1);
    use(PL_TRAIN, PL_WRITE, a);                /* 1 */
    pl_step *step = use(PL_TRAIN, PL_READ, a); /* 2 */
    pl_step_arg(step, PL_ARG_GELU_Y, b);
    use(PL_TRAIN, PL_UPDATE, a); /* 3 */
    use(PL_TRAIN, PL_WRITE, c);  /* 4: nobody reads it */
    use(PL_TRAIN, PL_READ, a);   /* 5 */
    idle(PL_TRAIN, 2);
    finish();
    assert_lives(a, PL_TRAIN, 1, 5);
    assert_lives(b, PL_TRAIN, 2, 2);
    assert_lives(c, PL_TRAIN, 4, 4);
}

static void writing_again_does_not_split_a_life(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_EVAL, PL_WRITE, a);
    use(PL_EVAL, PL_READ, a);
    idle(PL_EVAL, 2);
    use(PL_EVAL, PL_WRITE, a); /* 4: perhaps only some of its rows */
    use(PL_EVAL, PL_READ, a);
    finish();
    assert_lives(a, PL_EVAL, 0, 5);
}

static void what_the_host_writes_lives_from_the_beginning(void **state)
{
    (void)state;
    pl_buffer_id read = buffer("read"), updated = buffer("updated"),
                 filled = buffer("filled");
    pl_graph_host(&graph, read, PL_HOST_WRITES);
    pl_graph_host(&graph, updated, PL_HOST_WRITES);
    pl_graph_host(&graph, filled, PL_HOST_WRITES);
    idle(PL_SAMPLE, 2);
    use(PL_SAMPLE, PL_READ, read);
    use(PL_SAMPLE, PL_UPDATE, updated);
    use(PL_SAMPLE, PL_WRITE, filled); /* 4: some of its rows */
    idle(PL_SAMPLE, 1);
    finish();
    assert_lives(read, PL_SAMPLE, 0, 2);
    assert_lives(updated, PL_SAMPLE, 0, 3);
    assert_lives(filled, PL_SAMPLE, 0, 4);
}

static void what_the_host_reads_lives_to_the_end(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    pl_graph_host(&graph, a, PL_HOST_READS);
    idle(PL_EVAL, 2);
    use(PL_EVAL, PL_WRITE, a);
    idle(PL_EVAL, 3);
    finish();
    assert_lives(a, PL_EVAL, 2, 5);
}

static void what_a_loop_hands_to_its_next_round_lives_through_it(void **state)
{
    (void)state;
    pl_buffer_id sum = buffer("sum"), round = buffer("round");
    idle(PL_TRAIN, 1);
    use(PL_TRAIN, PL_WRITE, round);                /* 1 */
    pl_step *step = use(PL_TRAIN, PL_UPDATE, sum); /* 2 */
    pl_step_arg(step, PL_ARG_COLUMN_SUM_X, round);
    idle(PL_TRAIN, 2);
    pl_graph_end_loop(&graph, PL_TRAIN);
    idle(PL_TRAIN, 3);
    finish();
    assert_int_equal(graph.programs[PL_TRAIN].loop_steps, 5);
    assert_lives(sum, PL_TRAIN, 0, 4);
    assert_lives(round, PL_TRAIN, 1, 2); /* each round makes its own */
}

static void what_a_loop_hands_to_the_rest_lives_through_it(void **state)
{
    (void)state;
    pl_buffer_id written = buffer("written"), updated = buffer("updated"),
                 read = buffer("read"), after = buffer("after");
    pl_graph_host(&graph, read, PL_HOST_WRITES);
    idle(PL_TRAIN, 2);
    use(PL_TRAIN, PL_WRITE, written);
    use(PL_TRAIN, PL_UPDATE, updated);
    use(PL_TRAIN, PL_READ, read); /* 4 */
    pl_graph_end_loop(&graph, PL_TRAIN);
    use(PL_TRAIN, PL_READ, written); /* 5 */
    use(PL_TRAIN, PL_READ, updated);
    use(PL_TRAIN, PL_WRITE, after); /* 7 */
    use(PL_TRAIN, PL_READ, after);
    use(PL_TRAIN, PL_READ, read); /* 9 */
    finish();
    assert_lives(written, PL_TRAIN, 0, 5);
    assert_lives(updated, PL_TRAIN, 0, 6);
    assert_lives(after, PL_TRAIN, 7, 8);
    assert_lives(read, PL_TRAIN, 0, 9);
}

static void what_the_host_reads_of_a_loop_lives_through_it(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    pl_graph_host(&graph, a, PL_HOST_READS);
    idle(PL_TRAIN, 2);
    use(PL_TRAIN, PL_WRITE, a);
    pl_graph_end_loop(&graph, PL_TRAIN);
    idle(PL_TRAIN, 2);
    finish();
    assert_lives(a, PL_TRAIN, 0, 4);
}

static void scratch_lives_for_one_step(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a"), b = buffer("b");
    idle(PL_EVAL, 1);
    use(PL_EVAL, PL_SCRATCH, a);
    use(PL_EVAL, PL_SCRATCH, b);
    idle(PL_EVAL, 1);
    pl_graph_end_loop(&graph, PL_EVAL);
    finish();
    assert_lives(a, PL_EVAL, 1, 1);
    assert_lives(b, PL_EVAL, 2, 2);
}

static void what_lives_throughout_is_everybodys(void **state)
{
    (void)state;
    pl_buffer_id w = pl_graph_buffer(&graph, "w", PL_CLASS_WEIGHT, PL_F32, 1,
                                     1);
    pl_buffer_id unused = pl_graph_buffer(&graph, "m", PL_CLASS_MOMENT, PL_F32,
                                          1, 1);
    use(PL_TRAIN, PL_READ, w);
    use(PL_UPDATE_WEIGHTS, PL_UPDATE, w);
    use(PL_EVAL, PL_READ, w);
    finish();
    assert_int_equal(graph.buffers[w].program, -1);
    assert_int_equal(graph.buffers[unused].program, -1);
}

/* ---- failures are kept ---- */

static void a_failure_is_reported_at_the_end(void **state)
{
    (void)state;
    buffer("fine");
    pl_graph_buffer(&graph, "empty", PL_CLASS_SAVED, PL_F32, 0, 7);
    pl_graph_buffer(&graph, "huge", PL_CLASS_SAVED, PL_F32, SIZE_MAX, 7);
    pl_buffer_id later = buffer("later");
    pl_graph_host(&graph, later, PL_HOST_READS);
    use(PL_TRAIN, PL_READ, later);
    pl_graph_end_loop(&graph, PL_TRAIN);
    assert_int_equal(pl_graph_finish(&graph, &err), PL_E_MEMORY);
    assert_int_equal(err.status, PL_E_MEMORY);
    assert_contains(err.text, "tensor empty is empty: 0 x 7"); /* the first */
    assert_int_equal(graph.n_buffers, 2);
    assert_int_equal(graph.programs[PL_TRAIN].n_steps, 0);
    assert_int_equal(pl_graph_finish(&graph, NULL), PL_E_MEMORY);
}

static pl_status build_some(void)
{
    begin();
    for (int i = 0; i < 40; i++) {
        pl_buffer_id id = buffer("b");
        use(PL_TRAIN, PL_WRITE, id);
        pl_graph_host(&graph, id, PL_HOST_READS);
    }
    pl_graph_end_loop(&graph, PL_TRAIN);
    return pl_graph_finish(&graph, &err);
}

static void running_out_of_memory_anywhere_is_reported(void **state)
{
    (void)state;
    long nth = 1;
    for (;; nth++) {
        pl_arena_fail_at(nth);
        pl_status status = build_some();
        pl_arena_fail_at(0);
        if (!status)
            break;
        assert_int_equal(status, PL_E_MEMORY);
        assert_contains(err.text, "out of set-up memory");
    }
    assert_int_equal(nth, 7); /* two tables, which grow to 16, 32 and 64 */
}

/* ---- bugs of ours ---- */

static void finish_it(void *context)
{
    (void)context;
    if (pl_graph_finish(&graph, &err))
        _exit(3);
}

static void assert_finish_dies(const char *part)
{
    assert_dies(finish_it, NULL, part);
}

static void reading_what_nobody_wrote_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_EVAL, PL_READ, a);
    use(PL_EVAL, PL_WRITE, a);
    assert_finish_dies("written");
}

static void reading_in_a_loop_what_nobody_wrote_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_EVAL, PL_READ, a);
    pl_graph_end_loop(&graph, PL_EVAL);
    assert_finish_dies("written");
}

static void updating_what_nobody_wrote_is_a_bug_outside_a_loop(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    idle(PL_TRAIN, 2);
    pl_graph_end_loop(&graph, PL_TRAIN);
    use(PL_TRAIN, PL_UPDATE, a);
    assert_finish_dies("written");
}

static void a_buffer_of_two_programs_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_TRAIN, PL_WRITE, a);
    use(PL_EVAL, PL_WRITE, a);
    assert_finish_dies("buffer->program == id");
}

static void a_buffer_that_nobody_uses_is_a_bug(void **state)
{
    (void)state;
    buffer("a");
    idle(PL_TRAIN, 1);
    assert_finish_dies("buffer->program >= 0");
}

static void a_row_outside_its_buffer_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    pl_step *step = use(PL_TRAIN, PL_WRITE, a);
    pl_step_rows(step, PL_ARG_GELU_Y, a, 8);
    assert_finish_dies("shape.rows");
}

static void a_buffer_that_is_none_is_a_bug(void **state)
{
    (void)state;
    use(PL_TRAIN, PL_WRITE, buffer("a"));
    use(PL_TRAIN, PL_WRITE, 2);
    assert_finish_dies("n_buffers");
    graph.programs[PL_TRAIN].steps[1].args[PL_ARG_GELU_Y].buffer = -2;
    assert_finish_dies("n_buffers");
}

static void scratch_of_two_steps_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_TRAIN, PL_SCRATCH, a);
    use(PL_TRAIN, PL_SCRATCH, a);
    assert_finish_dies("PL_SCRATCH");
}

static void reading_what_was_scratch_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_TRAIN, PL_SCRATCH, a);
    use(PL_TRAIN, PL_READ, a);
    assert_finish_dies("PL_SCRATCH");
}

static void using_as_scratch_what_is_alive_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id a = buffer("a");
    use(PL_TRAIN, PL_WRITE, a);
    use(PL_TRAIN, PL_SCRATCH, a);
    assert_finish_dies("PL_SCRATCH");
}

static void a_loop_that_never_ends_is_a_bug(void **state)
{
    (void)state;
    graph.programs[PL_TRAIN].loop_steps = SIZE_MAX; /* open until ended */
    use(PL_TRAIN, PL_UPDATE, buffer("a"));
    assert_finish_dies("loop_steps");
}

/* ---- signatures ---- */

static void an_access_that_was_not_chosen_is_a_bug(void **state)
{
    (void)state;
    step_of(PL_TRAIN, PL_OP_LAYERNORM_BWD);
    assert_finish_dies("layernorm.bwd (layer -1), its dx,");
}

static void a_step_of_another_dtype_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id tokens = pl_graph_buffer(&graph, "tokens", PL_CLASS_WEIGHT,
                                          PL_I32, 8, 4);
    pl_step_arg(step_of(PL_TRAIN, PL_OP_GELU), PL_ARG_GELU_X, tokens);
    assert_finish_dies("gelu (layer -1), its x,");
}

static void a_step_beyond_its_buffer_is_a_bug(void **state)
{
    (void)state;
    pl_step *step = step_of(PL_TRAIN, PL_OP_GELU);
    step->rows = 8;
    step->cols = 4;
    finish();
    step->rows = 9;
    assert_finish_dies("gelu (layer -1), its y,");
    step->rows = 8;
    pl_step_rows(step, PL_ARG_GELU_X, always, 1);
    assert_finish_dies("gelu (layer -1), its x,");
}

static void an_op_on_what_is_the_hosts_is_a_bug(void **state)
{
    (void)state;
    pl_buffer_id hosts = pl_graph_buffer(&graph, "slice", PL_CLASS_WEIGHT,
                                         PL_F32, 8, 4);
    pl_graph_in_host(&graph, hosts);
    pl_step *step = step_of(PL_TRAIN, PL_OP_FETCH);
    pl_step_arg(step, PL_ARG_FETCH_TO, hosts);
    finish();
    pl_step_arg(step, PL_ARG_FETCH_TO, always); /* fetch is for the host */
    assert_finish_dies("fetch (layer -1), its to,");
    pl_step_arg(step, PL_ARG_FETCH_TO, hosts);
    pl_step_arg(step_of(PL_TRAIN, PL_OP_GELU), PL_ARG_GELU_X, hosts);
    assert_finish_dies("gelu (layer -1), its x,");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_graph_is_what_was_appended),
        TEST(the_tables_have_names),
        TEST(a_buffer_lives_from_its_write_to_its_last_use),
        TEST(writing_again_does_not_split_a_life),
        TEST(what_the_host_writes_lives_from_the_beginning),
        TEST(what_the_host_reads_lives_to_the_end),
        TEST(what_a_loop_hands_to_its_next_round_lives_through_it),
        TEST(what_a_loop_hands_to_the_rest_lives_through_it),
        TEST(what_the_host_reads_of_a_loop_lives_through_it),
        TEST(scratch_lives_for_one_step),
        TEST(what_lives_throughout_is_everybodys),
        TEST(a_failure_is_reported_at_the_end),
        TEST(running_out_of_memory_anywhere_is_reported),
        TEST(reading_what_nobody_wrote_is_a_bug),
        TEST(reading_in_a_loop_what_nobody_wrote_is_a_bug),
        TEST(updating_what_nobody_wrote_is_a_bug_outside_a_loop),
        TEST(a_buffer_of_two_programs_is_a_bug),
        TEST(a_buffer_that_nobody_uses_is_a_bug),
        TEST(a_row_outside_its_buffer_is_a_bug),
        TEST(a_buffer_that_is_none_is_a_bug),
        TEST(scratch_of_two_steps_is_a_bug),
        TEST(reading_what_was_scratch_is_a_bug),
        TEST(using_as_scratch_what_is_alive_is_a_bug),
        TEST(a_loop_that_never_ends_is_a_bug),
        TEST(an_access_that_was_not_chosen_is_a_bug),
        TEST(a_step_of_another_dtype_is_a_bug),
        TEST(a_step_beyond_its_buffer_is_a_bug),
        TEST(an_op_on_what_is_the_hosts_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
