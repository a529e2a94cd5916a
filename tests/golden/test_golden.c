/* test_golden.c: the whole model against PyTorch, with every kernel set of the
 * machine; and every way to lay a run out against the literal one. The
 * fixtures and what is in them: make_fixtures.py and make_families.py. */
#include "golden/fixture.h"
#include "golden/rig.h"
#include "support/on_device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double tolerance = 1e-5;

static const char *const cases[] = {
    "case_bias",    "case_no_bias",         "case_gelu_tanh", "case_dropout",
    "case_short",   "case_head_dim",        "case_long",      "case_own_head",
    "case_rmsnorm", "case_rmsnorm_no_bias", "case_llama",     "case_llama_bias",
    "case_qwen3",   "case_qwen3_own_head",  "case_mixed",
};

/* Calls fn for every case, with every kernel set, on one and two threads. */
typedef void check_fn(fixture *f, const pl_kernels *set, int threads,
                      worst *seen);

static void for_all(check_fn *fn, const char *what)
{
    pl_kernels sets[RIG_SETS];
    size_t n_sets = rig_sets(sets);
    worst seen = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        fixture_open(&f, cases[i]);
        for (size_t k = 0; k < n_sets; k++)
            for (int threads = 1; threads <= 2; threads++)
                fn(&f, &sets[k], threads, &seen);
        fixture_close(&f);
    }
    if (seen.where[0])
        worst_say(&seen, what);
}

static const int32_t *tokens_of(fixture *f)
{
    size_t count = fixture_config(f, "batch") * (fixture_config(f, "T") + 1);
    return fixture_ints(f, "tokens", count);
}

/* ---- loss and gradients ---- */

static void check_training(fixture *f, const pl_kernels *set, int threads,
                           worst *seen)
{
    rig r;
    double sums[8] = { 0 };
    rig_open(&r, f, set, &(rig_way){ .threads = threads });
    const double *expected = fixture_doubles(f, "loss", r.batch);
    rig_train(&r, tokens_of(f), sums);
    for (size_t s = 0; s < r.batch; s++)
        assert_number_near(seen, sums[s], expected[s], expected[s], tolerance,
                           "%s, %s x %d: loss of sequence %zu", f->name, r.set,
                           threads, s);
    for (size_t i = 0; i < pl_param_slots(&r.gpt.shape); i++) {
        pl_param param = pl_param_at(&r.gpt.shape, i);
        size_t count = param.rows * param.cols;
        char name[PL_PARAM_NAME_BYTES + 8];
        if (!pl_param_present(&r.gpt.shape, &param))
            continue;
        snprintf(name, sizeof name, "grad.%s", pl_param_name_of(&param).text);
        float *found = rig_floats(&r, r.gpt.gradients[i]),
              *wanted = malloc(count * sizeof *wanted);
        assert_non_null(wanted);
        rig_tensor(f, &r.gpt.shape, i, "grad.", wanted);
        assert_near(seen, found, wanted, count, tolerance, "%s, %s x %d: %s",
                    f->name, r.set, threads, name);
        free(found);
        free(wanted);
    }
    rig_close(&r);
}

static void loss_and_every_gradient_are_pytorchs(void **state)
{
    (void)state;
    for_all(check_training, "losses and gradients");
}

/* ---- evaluation ---- */

/* The loss of every row, by sums over ever longer sequences. */
static void check_evaluation(fixture *f, const pl_kernels *set, int threads,
                             worst *seen)
{
    size_t T = fixture_config(f, "T"), batch = fixture_config(f, "batch");
    const double *expected = fixture_doubles(f, "eval_losses", batch * T);
    for (size_t eval_T = 1; eval_T <= T; eval_T++) {
        rig r;
        double sums[8] = { 0 };
        rig_open(&r, f, set,
                 &(rig_way){ .eval_T = eval_T, .threads = threads });
        rig_evaluate(&r, tokens_of(f), sums);
        for (size_t s = 0; s < batch; s++) {
            double sum = 0.0;
            for (size_t t = 0; t < eval_T; t++)
                sum += expected[s * T + t];
            assert_number_near(seen, sums[s], sum, sum, tolerance,
                               "%s, %s x %d: sequence %zu, %zu tokens", f->name,
                               r.set, threads, s, eval_T);
        }
        rig_close(&r);
    }
}

static void the_loss_of_every_row_in_evaluation_is_pytorchs(void **state)
{
    (void)state;
    for_all(check_evaluation, "evaluation");
}

/* ---- decoding ---- */

/* Every prefix in one piece; then the same tokens one by one, through the
 * cache: the same bits. */
static void check_logits(fixture *f, const pl_kernels *set, int threads,
                         worst *seen)
{
    rig r;
    rig_open(&r, f, set, &(rig_way){ .threads = threads });
    size_t T = r.T, V = r.gpt.shape.V;
    const float *expected = fixture_floats(f, "logits", r.batch * T * V);
    float *pieces = malloc(T * V * sizeof *pieces);
    float *logits = malloc(V * sizeof *logits);
    assert_non_null(pieces);
    assert_non_null(logits);
    for (size_t s = 0; s < r.batch; s++) {
        const int32_t *tokens = tokens_of(f) + s * (T + 1);
        for (size_t t = 0; t < T; t++)
            rig_decode(&r, tokens, 0, t + 1, pieces + t * V);
        for (size_t t = 0; t < T; t++) {
            assert_near(seen, pieces + t * V, expected + (s * T + t) * V, V,
                        tolerance, "%s, %s x %d: logits of sequence %zu at %zu",
                        f->name, r.set, threads, s, t);
            rig_decode(&r, tokens, t, 1, logits);
            if (memcmp(logits, pieces + t * V, V * sizeof *logits) != 0)
                fail_msg("%s, %s x %d: sequence %zu at %zu: decoding one token "
                         "gives other bits than decoding all at once",
                         f->name, r.set, threads, s, t);
        }
    }
    free(logits);
    free(pieces);
    rig_close(&r);
}

static void the_logits_of_every_prefix_are_pytorchs(void **state)
{
    (void)state;
    for_all(check_logits, "logits");
}

/* ---- the layout changes no bit ---- */

/* All gradients one after the other, and the losses; malloc'ed. */
typedef struct outcome {
    double sums[8];
    float *gradients;
    size_t count;
} outcome;

static outcome train_once(fixture *f, const pl_kernels *set, const rig_way *way)
{
    rig r;
    rig_open(&r, f, set, way);
    outcome out = { .count = pl_param_count(&r.gpt.shape) };
    size_t at = 0;
    rig_train(&r, tokens_of(f), out.sums);
    out.gradients = malloc(out.count * sizeof(float));
    assert_non_null(out.gradients);
    for (size_t i = 0; i < pl_param_slots(&r.gpt.shape); i++) {
        pl_buffer_id buffer = r.gpt.gradients[i];
        if (buffer == PL_NO_BUFFER)
            continue;
        size_t bytes = r.gpt.graph.buffers[buffer].bytes;
        on_device_read(r.device, buffer, 0, out.gradients + at, bytes);
        at += bytes / sizeof(float);
    }
    assert_int_equal(at, out.count);
    rig_close(&r);
    return out;
}

static void assert_same_bits(const fixture *f, const pl_kernels *set,
                             const char *way, const outcome *literal,
                             const outcome *found)
{
    assert_int_equal(literal->count, found->count);
    for (size_t i = 0; i < found->count; i++)
        if (memcmp(&literal->gradients[i], &found->gradients[i],
                   sizeof(float)) != 0)
            fail_msg("%s, %s, %s: gradient element %zu is %.9g, in the literal "
                     "run %.9g",
                     f->name, set->name, way, i, (double)found->gradients[i],
                     (double)literal->gradients[i]);
    if (memcmp(literal->sums, found->sums, sizeof found->sums) != 0)
        fail_msg("%s, %s, %s: the loss has other bits than the literal run's",
                 f->name, set->name, way);
}

static const struct {
    const char *name;
    rig_way way;
} ways[] = {
    { "micro-batches of 1", { .micro = 1 } },
    { "chunks of 5 rows", { .chunk_rows = 5 } },
    { "an MLP of 4 rows", { .mlp_rows = 4 } },
    { "an MLP of 4 rows, level 1", { .mlp_rows = 4, .levels = { 1, 1 } } },
    { "an MLP of 5 rows, level 2", { .mlp_rows = 5, .levels = { 2, 2 } } },
    { "an MLP of 3 rows, level 3", { .mlp_rows = 3, .levels = { 3, 3 } } },
    { "level 1", { .levels = { 1, 1 } } },
    { "level 2", { .levels = { 2, 2 } } },
    { "level 3", { .levels = { 3, 3 } } },
    { "levels 3 and 0", { .levels = { 3, 0 } } },
    { "2 threads", { .threads = 2 } },
    { "3 threads", { .threads = 3 } },
    { "all at once",
      { .micro = 1,
        .chunk_rows = 5,
        .mlp_rows = 4,
        .levels = { 3, 1 },
        .threads = 2 } },
};

/* The reference sums in double and rounds where a sum is cut: it promises
 * nothing of the kind. */
static void no_layout_changes_a_bit_of_the_gradients(void **state)
{
    pl_kernels sets[RIG_SETS];
    size_t n_sets = rig_sets(sets);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        fixture_open(&f, cases[i]);
        for (size_t k = 1; k < n_sets; k++) {
            outcome literal = train_once(&f, &sets[k], &(rig_way){ 0 });
            for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
                outcome found = train_once(&f, &sets[k], &ways[w].way);
                assert_same_bits(&f, &sets[k], ways[w].name, &literal, &found);
                free(found.gradients);
            }
            free(literal.gradients);
        }
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_and_every_gradient_are_pytorchs),
        cmocka_unit_test(the_loss_of_every_row_in_evaluation_is_pytorchs),
        cmocka_unit_test(the_logits_of_every_prefix_are_pytorchs),
        cmocka_unit_test(no_layout_changes_a_bit_of_the_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
