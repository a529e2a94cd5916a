/* Tests of train/evaluate: the same sequences every time, and a number that
 * does not depend on how they were batched. */
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/evaluate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_eval evaluate_with(const char *setting, const char *other,
                             pl_split split)
{
    tiny_run run;
    pl_eval result;
    pl_error err = { 0 };
    tiny_run_make(&run);
    if (setting)
        tiny_run_set(&run, setting);
    if (other)
        tiny_run_set(&run, other);
    tiny_run_open(&run);
    tiny_run_train(&run, 3);
    if (pl_evaluate(&run.session, split, NULL, &result, &err))
        fail_msg("%s", err.text);
    tiny_run_remove(&run);
    return result;
}

static void assert_same(const pl_eval *a, const pl_eval *b)
{
    assert_memory_equal(&a->loss, &b->loss, sizeof a->loss);
    assert_memory_equal(&a->standard_error, &b->standard_error,
                        sizeof a->standard_error);
    assert_int_equal(a->tokens, b->tokens);
}

static void the_batch_size_of_evaluation_changes_no_bit(void **state)
{
    (void)state;
    pl_eval wide = evaluate_with("--eval_batch_size=6", "--eval_iters=2",
                                 PL_SPLIT_VAL);
    pl_eval narrow = evaluate_with("--eval_batch_size=1", "--eval_iters=12",
                                   PL_SPLIT_VAL);
    pl_eval odd = evaluate_with("--eval_batch_size=4", "--eval_iters=3",
                                PL_SPLIT_VAL);
    assert_int_equal(wide.sequences, 12);
    assert_int_equal(wide.tokens, 12 * 13);
    assert_same(&wide, &narrow);
    assert_same(&wide, &odd);
}

static void the_splits_differ(void **state)
{
    (void)state;
    pl_eval train = evaluate_with(NULL, NULL, PL_SPLIT_TRAIN);
    pl_eval val = evaluate_with(NULL, NULL, PL_SPLIT_VAL);
    assert_true(train.loss != val.loss);
}

static void a_shorter_context_is_another_number_over_fewer_tokens(void **state)
{
    (void)state;
    pl_eval whole = evaluate_with(NULL, NULL, PL_SPLIT_VAL);
    pl_eval part = evaluate_with("--eval_block_size=4", NULL, PL_SPLIT_VAL);
    assert_int_equal(whole.tokens, 10 * 13);
    assert_int_equal(part.tokens, 10 * 4);
    assert_true(whole.loss != part.loss);
}

static void evaluation_uses_no_dropout_and_changes_nothing(void **state)
{
    (void)state;
    tiny_run run;
    pl_eval first, second;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, "--dropout=0.5");
    tiny_run_open(&run);
    unsigned long long before = tiny_run_hash(&run);
    assert_int_equal(
        pl_evaluate(&run.session, PL_SPLIT_VAL, NULL, &first, &err), PL_OK);
    assert_int_equal(
        pl_evaluate(&run.session, PL_SPLIT_VAL, NULL, &second, &err), PL_OK);
    assert_same(&first, &second);
    assert_true(tiny_run_hash(&run) == before);
    tiny_run_remove(&run);
}

/* The standard error, from the losses of single sequences: a list's prefixes
 * of 1 .. n sequences give each of them. */
static void the_standard_error_is_that_of_the_sequences(void **state)
{
    (void)state;
    enum { N = 5 };
    double means[N], before = 0.0, sum = 0.0, squares = 0.0;
    pl_eval last = { 0 };
    for (int n = 1; n <= N; n++) {
        char iters[32];
        snprintf(iters, sizeof iters, "--eval_iters=%d", n);
        last = evaluate_with("--eval_batch_size=1", iters, PL_SPLIT_VAL);
        means[n - 1] = last.loss * n - before;
        before = last.loss * n;
        if (n == 1)
            assert_true(isnan(last.standard_error));
    }
    for (int i = 0; i < N; i++)
        sum += means[i];
    for (int i = 0; i < N; i++)
        squares += (means[i] - sum / N) * (means[i] - sum / N);
    assert_true(fabs(last.standard_error - sqrt(squares / (N - 1) / N)) < 1e-9);
}

/* ---- bits per byte ---- */

enum { V = 61 };

/* As evaluate_with, with tokens that stand for so many bytes. */
static pl_eval evaluate_bytes(const char *setting, const char *other,
                              const uint16_t *bytes)
{
    tiny_run run;
    pl_eval result;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, setting);
    tiny_run_set(&run, other);
    tiny_run_open(&run);
    tiny_run_train(&run, 3);
    run.session.token_bytes = (pl_token_bytes){ .of = bytes, .count = V };
    if (pl_evaluate(&run.session, PL_SPLIT_VAL, NULL, &result, &err))
        fail_msg("%s", err.text);
    tiny_run_remove(&run);
    return result;
}

static void without_a_tokenizer_bits_per_byte_are_unknown(void **state)
{
    (void)state;
    pl_eval result = evaluate_bytes("--eval_iters=3", "--eval_batch_size=2",
                                    NULL);
    assert_int_equal(result.bytes, 0);
    assert_true(isnan(result.bpb));
}

static void with_one_byte_per_token_bits_per_byte_are_the_loss(void **state)
{
    (void)state;
    uint16_t ones[V], threes[V];
    for (int i = 0; i < V; i++) {
        ones[i] = 1;
        threes[i] = 3;
    }
    pl_eval one = evaluate_bytes("--eval_iters=3", "--eval_batch_size=2", ones),
            three = evaluate_bytes("--eval_iters=3", "--eval_batch_size=2",
                                   threes);
    assert_int_equal(one.bytes, one.tokens);
    assert_true(fabs(one.bpb * M_LN2 - one.loss) < 1e-6);
    assert_int_equal(three.bytes, 3 * three.tokens);
    assert_true(fabs(3.0 * three.bpb - one.bpb) < 1e-12);
}

/* What two halves of the vocabulary leave out, the other has. */
static void tokens_without_bytes_are_left_out(void **state)
{
    (void)state;
    uint16_t even[V], odd[V];
    for (int i = 0; i < V; i++) {
        even[i] = i % 2 ? 0 : 2;
        odd[i] = i % 2 ? 5 : 0;
    }
    pl_eval a = evaluate_bytes("--eval_iters=3", "--eval_batch_size=2", even),
            b = evaluate_bytes("--eval_iters=3", "--eval_batch_size=2", odd);
    assert_int_equal(a.bytes / 2 + b.bytes / 5, a.tokens);
    assert_true(a.bytes > 0 && b.bytes > 0);
    const double bits = a.bpb * (double)a.bytes + b.bpb * (double)b.bytes;
    assert_true(fabs(bits * M_LN2 / (double)a.tokens - a.loss) < 1e-6);
}

static void bits_per_byte_dont_depend_on_how_sequences_are_batched(void **state)
{
    (void)state;
    uint16_t bytes[V];
    for (int i = 0; i < V; i++)
        bytes[i] = (uint16_t)(i % 4);
    pl_eval wide = evaluate_bytes("--eval_batch_size=6", "--eval_iters=2",
                                  bytes),
            odd = evaluate_bytes("--eval_batch_size=4", "--eval_iters=3",
                                 bytes);
    assert_int_equal(wide.bytes, odd.bytes);
    assert_memory_equal(&wide.bpb, &odd.bpb, sizeof wide.bpb);
}

static int at_once(void *context)
{
    (void)context;
    return 1;
}

static void an_evaluation_can_be_stopped(void **state)
{
    (void)state;
    tiny_run run;
    pl_eval result;
    pl_error err = { 0 };
    pl_eval_watch watch = { .stop = at_once };
    tiny_run_make(&run);
    tiny_run_open(&run);
    assert_int_equal(
        pl_evaluate(&run.session, PL_SPLIT_VAL, &watch, &result, &err),
        PL_E_STOPPED);
    tiny_run_remove(&run);
}

/* Evaluates the model in out/latest within *budget bytes (0: any), and says
 * what that took, and what arena. */
static size_t evaluate_alone(tiny_run *run, size_t *budget, pl_eval *result)
{
    pl_machine machine;
    pl_error err = { 0 };
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &run->config, NULL,
                        &run->heap, &err))
        fail_msg("%s", err.text);
    if (*budget)
        machine.budget_bytes = *budget;
    if (pl_session_open_eval(&run->session, &run->config, &machine,
                             scratch_path(&run->folder, "out/latest"), NULL,
                             &run->heap, &err))
        fail_msg("%s", err.text);
    run->is_open = 1;
    assert_int_equal(run->session.run.step, 3);
    if (pl_evaluate(&run->session, PL_SPLIT_VAL, NULL, result, &err))
        fail_msg("%s", err.text);
    size_t arena = run->session.run.gpt.placement.arena_bytes;
    *budget = arena + tiny_run_beside(run);
    tiny_run_close(run);
    return arena;
}

/* Without gradients and moments, and in as little as there is. */
static void a_model_alone_gives_the_same_number_in_less_memory(void **state)
{
    (void)state;
    static const char *const dtypes[] = { "--dtype=float32", "--dtype=bfloat16",
                                          "--weights=bf16" };
    for (int i = 0; i < 3; i++) {
        tiny_run run;
        pl_eval whole, alone, narrow;
        pl_error err = { 0 };
        tiny_run_make(&run);
        tiny_run_set(&run, dtypes[i]);
        tiny_run_set(&run, "--eval_batch_size=5");
        tiny_run_open(&run);
        tiny_run_train(&run, 3);
        if (pl_evaluate(&run.session, PL_SPLIT_VAL, NULL, &whole, &err) ||
            pl_checkpoint_save(&run.session.run, &err))
            fail_msg("%s", err.text);
        size_t trained = run.session.run.gpt.placement.arena_bytes;
        tiny_run_close(&run);
        remove(scratch_path(&run.folder, "out/latest/optimizer.safetensors"));
        size_t budget = 0, wide = evaluate_alone(&run, &budget, &alone);
        assert_same(&whole, &alone);
        assert_true(wide < trained);
        assert_int_equal(evaluate_alone(&run, &budget, &narrow), wide);
        for (int less = 0; less < 2; less++) { /* 5 at once, 2, 1 */
            size_t last = wide;
            budget--;
            wide = evaluate_alone(&run, &budget, &narrow);
            assert_same(&whole, &narrow);
            assert_true(wide < last);
        }
        tiny_run_remove(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_batch_size_of_evaluation_changes_no_bit),
        cmocka_unit_test(the_splits_differ),
        cmocka_unit_test(a_shorter_context_is_another_number_over_fewer_tokens),
        cmocka_unit_test(evaluation_uses_no_dropout_and_changes_nothing),
        cmocka_unit_test(the_standard_error_is_that_of_the_sequences),
        cmocka_unit_test(without_a_tokenizer_bits_per_byte_are_unknown),
        cmocka_unit_test(with_one_byte_per_token_bits_per_byte_are_the_loss),
        cmocka_unit_test(tokens_without_bytes_are_left_out),
        cmocka_unit_test(
            bits_per_byte_dont_depend_on_how_sequences_are_batched),
        cmocka_unit_test(an_evaluation_can_be_stopped),
        cmocka_unit_test(a_model_alone_gives_the_same_number_in_less_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
