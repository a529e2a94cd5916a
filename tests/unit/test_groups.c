/* test_groups.c: gradient_groups. An update in groups is what comes out when
 * each group is trained alone and their gradients are added by hand, as a
 * binary tree; and its plan has one set of gradients more for each level of
 * it. */
#include "model/cost.h"
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

enum { MOST_GROUPS = 16 };

static pl_error err;

static void require(pl_status status)
{
    if (status)
        fail_msg("%s", err.text);
}

static void set(tiny_run *run, const char *key, size_t value)
{
    char argument[96];
    snprintf(argument, sizeof argument, "--%s=%zu", key, value);
    tiny_run_set(run, argument);
}

/* `batches` of `batch` sequences in `groups` groups, all else being equal. */
static void make(tiny_run *run, size_t batches, size_t batch, size_t groups,
                 const char *more)
{
    tiny_run_make(run);
    set(run, "gradient_accumulation_steps", batches);
    set(run, "batch_size", batch);
    set(run, "gradient_groups", groups);
    if (more)
        tiny_run_set(run, more);
    require(pl_config_check(&run->config, &err));
    tiny_run_open(run);
}

/* ---- by hand ---- */

/* Gradients of all parameters, one after the other. */
typedef struct gradients {
    float *values;
    size_t count;
} gradients;

/* Copies them from the device, or to it. */
static void transfer(tiny_run *run, gradients *g, int to_device)
{
    const pl_gpt *gpt = &run->session.run.gpt;
    size_t at = 0;
    if (!g->values) {
        g->count = pl_param_count(&gpt->shape);
        g->values = malloc(g->count * sizeof *g->values);
        assert_non_null(g->values);
    }
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++) {
        const pl_buffer_id id = gpt->gradients[i];
        if (id == PL_NO_BUFFER)
            continue;
        const size_t bytes = gpt->graph.buffers[id].bytes;
        if (to_device)
            on_device_write(run->session.run.device, id, 0, g->values + at,
                            bytes);
        else
            on_device_read(run->session.run.device, id, 0, g->values + at,
                           bytes);
        at += bytes / sizeof *g->values;
    }
    assert_int_equal(at, g->count);
}

static void clear(tiny_run *run)
{
    const pl_gpt *gpt = &run->session.run.gpt;
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++)
        if (gpt->gradients[i] != PL_NO_BUFFER)
            require(pl_device_clear(run->session.run.device, gpt->gradients[i],
                                    &err));
}

/* One batch of the update that begins at sequence `first`. */
static void train_batch(tiny_run *run, size_t first)
{
    pl_session *session = &run->session;
    const pl_gpt *gpt = &session->run.gpt;
    const pl_batch_key key = { .use = PL_BATCH_TRAIN,
                               .seed = (uint32_t)run->config.seed,
                               .step = (uint32_t)session->run.step };
    for (size_t i = 0; i < gpt->layout.batch; i++)
        require(pl_session_load_row(session, gpt->train_tokens, i, &key,
                                    first + i, gpt->shape.T, &err));
    session->controls.batch_first = (uint32_t)first;
    session->controls.micro_first = 0;
    require(pl_session_run(session, PL_TRAIN, PL_PART_LOOP, &err));
    require(pl_session_run(session, PL_TRAIN, PL_PART_REST, &err));
}

/* The sum of groups from .. from + count - 1: the left half and the right. */
static void add_tree(gradients *groups, size_t from, size_t count)
{
    if (count == 1)
        return;
    const size_t half = count / 2;
    add_tree(groups, from, half);
    add_tree(groups, from + half, half);
    for (size_t i = 0; i < groups[from].count; i++)
        groups[from].values[i] += groups[from + half].values[i];
}

/* What `run`'s update has to give, from a run whose batches lie within groups,
 * with the controls that it had. */
static unsigned long long by_hand(const pl_controls *controls, size_t batches,
                                  size_t batch, size_t groups, const char *more)
{
    gradients g[MOST_GROUPS] = { { NULL, 0 } };
    tiny_run run;
    make(&run, batches, batch, 1, more);
    run.session.controls = *controls;
    for (size_t i = 0; i < groups; i++) {
        for (size_t b = 0; b < batches / groups; b++)
            train_batch(&run, (i * (batches / groups) + b) * batch);
        transfer(&run, &g[i], 0);
        clear(&run);
    }
    add_tree(g, 0, groups);
    transfer(&run, &g[0], 1);
    require(
        pl_session_run(&run.session, PL_UPDATE_WEIGHTS, PL_PART_LOOP, &err));
    require(
        pl_session_run(&run.session, PL_UPDATE_WEIGHTS, PL_PART_REST, &err));
    const unsigned long long hash = tiny_run_hash(&run);
    for (size_t i = 0; i < groups; i++)
        free(g[i].values);
    tiny_run_remove(&run);
    return hash;
}

static unsigned long long one_update(size_t batches, size_t batch,
                                     size_t groups, const char *more,
                                     pl_controls *controls)
{
    tiny_run run;
    make(&run, batches, batch, groups, more);
    tiny_run_train(&run, 1);
    const unsigned long long hash = tiny_run_hash(&run);
    *controls = run.session.controls;
    tiny_run_remove(&run);
    return hash;
}

static void groups_are_added_as_a_tree(void **state)
{
    static const struct {
        size_t batches, batch, groups;
        const char *more;
    } cases[] = {
        { 2, 3, 2, NULL },
        { 4, 3, 4, "--tie_word_embeddings=False" },
        { 8, 1, 4, "--norm=rmsnorm" },
        { 12, 2, 4, "--bias=False" }, /* three batches each */
        { 16, 1, 16, NULL },
        /* parts of a batch: by hand they are batches */
        { 1, 6, 2, NULL },
        { 1, 16, 16, "--dtype=bfloat16" },
        { 2, 12, 8, "--dtype=float16" },
        { 4, 4, 8, "--weights=bf16" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const size_t batches = cases[i].batches, batch = cases[i].batch,
                     groups = cases[i].groups,
                     cut = groups > batches ? groups / batches : 1;
        pl_controls controls;
        const unsigned long long hash = one_update(batches, batch, groups,
                                                   cases[i].more, &controls),
                                 hand = by_hand(&controls, batches * cut,
                                                batch / cut, groups,
                                                cases[i].more);
        if (hash != hand)
            fail_msg("%zu x %zu in %zu groups %s: %llx, by hand %llx", batches,
                     batch, groups, cases[i].more ? cases[i].more : "", hash,
                     hand);
        assert_true(hash !=
                    one_update(batches, batch, 1, cases[i].more, &controls));
    }
}

/* What several machines rely on: only the groups count, not whether they are
 * batches or parts of one. */
static void batches_that_are_groups_can_be_cut_from_larger_ones(void **state)
{
    pl_controls controls;
    (void)state;
    assert_true(one_update(8, 1, 8, NULL, &controls) ==
                one_update(1, 8, 8, NULL, &controls));
    assert_true(one_update(8, 2, 8, NULL, &controls) ==
                one_update(2, 8, 8, NULL, &controls));
}

/* ---- what is kept ---- */

/* A sum is put by before it is read: nothing of an update that was given up or
 * skipped gets into another. */
static void sums_of_an_earlier_update_dont_matter(void **state)
{
    unsigned long long hash[2];
    (void)state;
    for (int dirty = 0; dirty < 2; dirty++) {
        tiny_run run;
        int found = 0;
        make(&run, 4, 2, 8, NULL);
        const pl_graph *graph = &run.session.run.gpt.graph;
        for (size_t i = 0; i < graph->n_buffers && dirty; i++) {
            const pl_buffer *b = &graph->buffers[i];
            if (strncmp(b->name, "groups.", 7) != 0)
                continue;
            for (size_t at = 0; at < b->bytes; at += sizeof(float))
                on_device_write(run.session.run.device, (pl_buffer_id)i, at,
                                &(float){ NAN }, sizeof(float));
            found++;
        }
        assert_true(!dirty || found > 20);
        tiny_run_train(&run, 2);
        hash[dirty] = tiny_run_hash(&run);
        tiny_run_remove(&run);
    }
    assert_true(hash[0] == hash[1]);
}

typedef struct sizes {
    size_t gradients, arena, bank;
    double seconds, carry;
} sizes;

/* All tensors are of whole cache lines here, so that nothing is aligned. */
static sizes sizes_of(size_t batches, size_t batch, size_t groups)
{
    const pl_rates rates = pl_rates_built_in(2);
    tiny_run run;
    tiny_run_make(&run);
    set(&run, "n_embd", 48);
    set(&run, "vocab_size", 64);
    set(&run, "block_size", 16);
    set(&run, "gradient_accumulation_steps", batches);
    set(&run, "batch_size", batch);
    set(&run, "gradient_groups", groups);
    tiny_run_open(&run);
    const pl_gpt *gpt = &run.session.run.gpt;
    const pl_program *p = &gpt->graph.programs[PL_ADD_GROUPS];
    sizes s = {
        .gradients =
            gpt->placement.class_bytes[PL_UPDATE_WEIGHTS][PL_CLASS_GRADIENT],
        .arena = gpt->placement.arena_bytes,
        .bank = gpt->layout.device.memory.bank_bytes,
        .seconds = pl_cost_update(gpt, &rates),
    };
    for (size_t i = 0; i < p->n_steps; i++)
        s.carry += pl_cost_step(&p->steps[i], &rates);
    assert_int_equal(gpt->layout.batch * gpt->layout.batches, batches * batch);
    tiny_run_remove(&run);
    return s;
}

static void every_level_of_the_tree_is_one_set_of_gradients(void **state)
{
    (void)state;
    const sizes one = sizes_of(16, 2, 1);
    for (size_t groups = 2, digits = 1; groups <= 16; groups *= 2, digits++) {
        const sizes s = sizes_of(16, 2, groups);
        assert_int_equal(s.gradients, (digits + 1) * one.gradients);
        if (s.bank == SIZE_MAX) /* at the end of a bank there may be a gap */
            assert_int_equal(s.arena, one.arena + digits * one.gradients);
        assert_true(fabs(s.seconds - one.seconds -
                         (double)(groups - 1) * s.carry) < 1e-9 * s.seconds);
        assert_true(s.carry > 0.0);
    }
}

/* With groups within a batch, no more than a group waits in `carry` or in
 * activations. */
static void a_group_within_a_batch_is_all_that_is_there_at_once(void **state)
{
    (void)state;
    const sizes cut = sizes_of(1, 16, 8), batches = sizes_of(8, 2, 8);
    assert_int_equal(cut.arena, batches.arena);
    assert_true(fabs(cut.seconds - batches.seconds) < 1e-9 * cut.seconds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_added_as_a_tree),
        cmocka_unit_test(batches_that_are_groups_can_be_cut_from_larger_ones),
        cmocka_unit_test(sums_of_an_earlier_update_dont_matter),
        cmocka_unit_test(every_level_of_the_tree_is_one_set_of_gradients),
        cmocka_unit_test(a_group_within_a_batch_is_all_that_is_there_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
