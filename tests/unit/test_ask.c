/* Tests of train/ask, scorer and quiz: a model's answers are those of the
 * definition, the same to the bit by either program and while it trains. */
#include "base/clock.h"
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/ask.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { V = 61, T = 13, MOST = 256 };

static const char choices[] =
    "{\"query\": \"0123\", \"choices\": [\"45\", \"9:;\", \"a\"], \"gold\": "
    "0}\n"
    "{\"query\": \"89:;<=>?@ABCDEFG\", \"choices\": [\"H\", \"0\"], \"gold\": "
    "1}\n"
    "{\"query\": \"Z[^_`abcdefg\", \"choices\": [\"hijkl\", \"hijk0\", \"h\"], "
    "\"gold\": 2}\n";
static const char language[] =
    "{\"context\": \"0123\", \"continuation\": \"4\"}\n"
    "{\"context\": \"89:\", \"continuation\": \";<=>\"}\n"
    "{\"context\": \"FGH\", \"continuation\": \"0\"}\n";

/* A model of some updates, its tasks, and what was answered. */
typedef struct fixture {
    tiny_run trained;
    pl_heap heap;
    pl_config config;
    pl_session session;
    pl_requests requests;
    pl_task_result results[2];
    double logprobs[MOST];
    size_t count, picks[MOST];
    int greedy[MOST], stop_after;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    pl_error err = { 0 };
    memset(&f, 0, sizeof f);
    tiny_run_make(&f.trained);
    scratch_write(scratch_path(&f.trained.folder, "a.jsonl"), choices,
                  sizeof choices - 1);
    scratch_write(scratch_path(&f.trained.folder, "b.jsonl"), language,
                  sizeof language - 1);
    tiny_run_open(&f.trained);
    tiny_run_train(&f.trained, 5);
    if (pl_checkpoint_save(&f.trained.session.run, &err))
        fail_msg("%s", err.text);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tiny_run_remove(&f->trained);
    return 0;
}

static void open_tasks(fixture *f, pl_heap *heap)
{
    pl_error err = { 0 };
    const char *paths[2];
    static const char *const names[] = { "a.jsonl", "b.jsonl" };
    f->config.continuation_delimiter = "";
    f->config.example_delimiter = "0";
    for (int i = 0; i < 2; i++) {
        const char *path = scratch_path(&f->trained.folder, names[i]);
        if (pl_heap_text(heap, &paths[i], path, strlen(path), &err))
            fail_msg("%s", err.text);
    }
    if (pl_requests_open(&f->requests, &f->config, paths, 2, T,
                         &f->trained.session.run.tokenizer, heap, &err) ||
        pl_requests_check(&f->requests, &f->trained.session.run.tokenizer, NULL,
                          NULL, &err))
        fail_msg("%s", err.text);
}

static void hear(void *context, const pl_ask_answer *answer)
{
    fixture *f = context;
    for (size_t i = 0; i < answer->item->count; i++)
        f->logprobs[f->count + i] = answer->logprobs[i];
    f->picks[f->count] = answer->picks[PL_MEASURE_WHOLE];
    f->greedy[f->count] = answer->greedy;
    f->count += answer->item->count;
}

static int stop(void *context)
{
    fixture *f = context;
    return f->stop_after && --f->stop_after == 0;
}

static pl_status ask(fixture *f, pl_session *session, pl_error *err)
{
    const pl_ask_watch watch = { .context = f, .answered = hear, .stop = stop };
    f->count = 0;
    return pl_ask(session, &f->requests, &watch, f->results, err);
}

static void open_serving(fixture *f, const char *setting)
{
    pl_error err = { 0 };
    pl_machine machine;
    f->heap = pl_heap_make(64 << 20);
    f->config = pl_config_make_default();
    f->config.serve_slots = 1;
    if (pl_config_override(&f->config, setting, PL_FOR_ALL, &f->heap, &err) ||
        pl_machine_make(&machine, PL_MACHINE_RUN, &f->config, NULL, &f->heap,
                        &err) ||
        pl_session_open_serve(&f->session, &f->config, &machine,
                              scratch_path(&f->trained.folder, "out/latest"), 0,
                              NULL, &f->heap, &err))
        fail_msg("%s", err.text);
    open_tasks(f, &f->heap);
}

static void close_serving(fixture *f)
{
    pl_session_close(&f->session);
    pl_heap_close(&f->heap);
}

/* ---- log probabilities ---- */

static double summed;

static void add(void *context, size_t index, const pl_score *score)
{
    if (index >= *(size_t *)context)
        summed += score->own.logprob;
}

/* Each request alone, from its beginning, by train/score. */
static void answers_are_sums_of_scores(void **state)
{
    fixture *f = *state;
    pl_error err = { 0 };
    open_serving(f, "--shots=1");
    if (ask(f, &f->session, &err))
        fail_msg("%s", err.text);
    size_t at = 0;
    for (size_t t = 0; t < 2; t++) {
        const pl_task *task = &f->requests.tasks.tasks[t];
        for (size_t i = 0; i < task->asked; i++)
            for (size_t k = 0; k < task->items[i].count; k++, at++) {
                pl_slots slots = pl_slots_make(&f->session);
                pl_request r;
                if (pl_request_encode(&r, &f->requests, task, i, k,
                                      &f->session.run.tokenizer, &err))
                    fail_msg("%s", err.text);
                const pl_score_taker taker = { .context = &r.from,
                                               .take = add };
                /* it takes T tokens; the last one's score needs only T */
                if (r.count > T)
                    continue;
                summed = 0.0;
                if (pl_score_text(&slots, 0, r.tokens, r.count, 1, &taker,
                                  &err))
                    fail_msg("%s", err.text);
                assert_memory_equal(&summed, &f->logprobs[at], sizeof summed);
            }
    }
    assert_int_equal(at, f->count);
    close_serving(f);
}

static void both_programs_give_the_same_bits(void **state)
{
    fixture *f = *state;
    static const char *const dtypes[] = { "--shots=0", "--shots=1",
                                          "--threads=1" };
    for (int i = 0; i < 3; i++) {
        double served[MOST];
        pl_error err = { 0 };
        open_serving(f, dtypes[i]);
        if (ask(f, &f->session, &err))
            fail_msg("%s", err.text);
        const size_t count = f->count;
        const pl_task_result first = f->results[0];
        memcpy(served, f->logprobs, sizeof served);
        if (ask(f, &f->trained.session, &err)) /* by the one that samples */
            fail_msg("%s", err.text);
        assert_int_equal(f->count, count);
        assert_memory_equal(served, f->logprobs, count * sizeof *served);
        assert_memory_equal(first.accuracy, f->results[0].accuracy,
                            sizeof first.accuracy);
        close_serving(f);
    }
}

static void asking_changes_no_bit_of_a_run(void **state)
{
    fixture *f = *state;
    pl_error err = { 0 };
    const unsigned long long before = tiny_run_hash(&f->trained);
    const pl_controls controls = f->trained.session.controls;
    open_serving(f, "--shots=0");
    close_serving(f);
    f->heap = pl_heap_make(64 << 20);
    open_tasks(f, &f->heap);
    if (ask(f, &f->trained.session, &err))
        fail_msg("%s", err.text);
    f->trained.session.controls = controls;
    assert_true(tiny_run_hash(&f->trained) == before);
    pl_heap_close(&f->heap);
}

/* ---- numbers ---- */

static void accuracies_follow_from_log_probabilities(void **state)
{
    fixture *f = *state;
    static const size_t gold[] = { 0, 1, 2 }, count[] = { 3, 2, 3 };
    pl_error err = { 0 };
    double right = 0.0, sum = 0.0, greedy = 0.0;
    open_serving(f, "--shots=0");
    if (ask(f, &f->session, &err))
        fail_msg("%s", err.text);
    size_t at = 0;
    for (int i = 0; i < 3; at += count[i++]) {
        size_t best = 0;
        for (size_t k = 1; k < count[i]; k++)
            if (f->logprobs[at + k] > f->logprobs[at + best])
                best = k;
        assert_int_equal(f->picks[at], best);
        right += best == gold[i];
    }
    for (int i = 0; i < 3; i++, at++) {
        sum += f->logprobs[at];
        greedy += f->greedy[at];
    }
    const pl_task_result *a = &f->results[0], *b = &f->results[1];
    const double p = right / 3.0;
    assert_true(a->accuracy[PL_MEASURE_WHOLE].value == p);
    assert_true(fabs(a->accuracy[PL_MEASURE_WHOLE].error -
                     sqrt(p * (1.0 - p) / 2.0)) < 1e-15);
    assert_true(fabs(a->chance - (1.0 / 3 + 0.5 + 1.0 / 3) / 3) < 1e-15);
    assert_true(
        fabs(a->centred - (a->accuracy[PL_MEASURE_TOKENS].value - a->chance) /
                              (1.0 - a->chance)) < 1e-15);
    assert_true(isnan(a->perplexity.value));
    assert_int_equal(a->cut, 2);
    assert_true(b->accuracy[PL_MEASURE_WHOLE].value == greedy / 3.0);
    assert_true(isnan(b->accuracy[PL_MEASURE_CHARACTERS].value));
    assert_true(fabs(b->perplexity.value / exp(-sum / 3.0) - 1.0) < 1e-12);
    assert_true(pl_ask_centred(f->results, 2) ==
                (a->centred + b->centred) / 2.0);
    close_serving(f);
}

static void asking_can_be_stopped_between_any_two_steps(void **state)
{
    fixture *f = *state;
    pl_error err = { 0 };
    open_serving(f, "--shots=0");
    for (int after = 1; after < 60; after += 7) {
        f->stop_after = after;
        assert_int_equal(ask(f, &f->session, &err), PL_E_STOPPED);
    }
    f->stop_after = 0;
    assert_int_equal(ask(f, &f->session, &err), PL_OK);
    close_serving(f);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(answers_are_sums_of_scores),
        TEST(both_programs_give_the_same_bits),
        TEST(asking_changes_no_bit_of_a_run),
        TEST(accuracies_follow_from_log_probabilities),
        TEST(asking_can_be_stopped_between_any_two_steps),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
