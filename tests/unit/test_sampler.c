/* Tests of train/sampler: the cache saves work and changes nothing. */
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { V = 61, T = 13, LENGTH = 30 };

/* A checkpoint of a few updates, and a session that samples from it. */
typedef struct fixture {
    tiny_run trained;
    pl_heap heap;
    pl_config config;
    pl_session session;
} fixture;

static void open_sampling(fixture *f, const char *setting)
{
    pl_error err = { 0 };
    f->heap = pl_heap_make(64 << 20);
    f->config = pl_config_make_default();
    if (setting &&
        pl_config_override(&f->config, setting, PL_FOR_ALL, &f->heap, &err))
        fail_msg("%s", err.text);
    pl_machine machine;
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &f->config, NULL, &f->heap,
                        &err) ||
        pl_session_open_sample(&f->session, &f->config, &machine,
                               scratch_path(&f->trained.folder, "out/latest"),
                               NULL, &f->heap, &err))
        fail_msg("%s", err.text);
}

static void close_sampling(fixture *f)
{
    pl_session_close(&f->session);
    pl_heap_close(&f->heap);
}

/* What the model is, beside tiny_run's. */
static const char *const *of_model;

static int set_up(void **state)
{
    static fixture f;
    pl_error err = { 0 };
    tiny_run_make(&f.trained);
    for (const char *const *setting = of_model; setting && *setting; setting++)
        tiny_run_set(&f.trained, *setting);
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

static pl_sampler open_sampler(fixture *f, double temperature, size_t top_k)
{
    pl_sampler sampler;
    pl_error err = { 0 };
    pl_sampling sampling = { temperature, top_k, 1337, 0 };
    if (pl_sampler_open(&sampler, &f->session, &sampling, LENGTH, &err))
        fail_msg("%s", err.text);
    return sampler;
}

static const float *logits_of(pl_sampler *sampler)
{
    float *logits;
    pl_error err = { 0 };
    if (pl_sampler_logits(sampler, &logits, &err))
        fail_msg("%s", err.text);
    return logits;
}

static void write_next(pl_sampler *sampler)
{
    int32_t token;
    pl_error err = { 0 };
    if (pl_sampler_next(sampler, &token, &err))
        fail_msg("%s", err.text);
}

static void the_cache_changes_no_bit_of_the_logits(void **state)
{
    fixture *f = *state;
    const int32_t prompt[] = { 5, 40, 12 };
    open_sampling(f, NULL);
    pl_sampler cached = open_sampler(f, 0.8, 0);
    pl_sampler fresh = open_sampler(f, 0.8, 0);
    pl_sampler_start(&cached, 0, prompt, 3);
    while (cached.count < LENGTH - 1) { /* well past block_size */
        float a[V];
        memcpy(a, logits_of(&cached), sizeof a);
        pl_sampler_start(&fresh, 0, cached.tokens, cached.count);
        assert_memory_equal(a, logits_of(&fresh), sizeof a);
        cached.cached = 0; /* the other sampler used the same cache */
        write_next(&cached);
    }
    close_sampling(f);
}

static void one_token_at_a_time_equals_all_at_once(void **state)
{
    fixture *f = *state;
    int32_t tokens[T];
    float step[V];
    for (int i = 0; i < T; i++)
        tokens[i] = (i * 17 + 3) % V;
    open_sampling(f, NULL);
    pl_sampler sampler = open_sampler(f, 1.0, 0);
    pl_sampler_start(&sampler, 0, tokens, 1);
    for (size_t n = 1; n <= T; n++) {
        memcpy(step, logits_of(&sampler), sizeof step);
        assert_int_equal(sampler.cached, n);
        if (n < T)
            sampler.tokens[sampler.count++] = tokens[n];
    }
    pl_sampler_start(&sampler, 0, tokens, T);
    assert_memory_equal(step, logits_of(&sampler), sizeof step);
    close_sampling(f);
}

static void write_text(fixture *f, const char *setting, int32_t out[LENGTH])
{
    const int32_t prompt[] = { 7 };
    open_sampling(f, setting);
    pl_sampler sampler = open_sampler(f, 0.9, 20);
    pl_sampler_start(&sampler, 3, prompt, 1);
    while (sampler.count < LENGTH)
        write_next(&sampler);
    memcpy(out, sampler.tokens, LENGTH * sizeof *out);
    close_sampling(f);
}

static void the_same_seed_writes_the_same_text_on_any_threads(void **state)
{
    fixture *f = *state;
    int32_t one[LENGTH], three[LENGTH];
    write_text(f, "--threads=1", one);
    write_text(f, "--threads=3", three);
    assert_memory_equal(one, three, sizeof one);
}

/* ---- choosing ---- */

static int32_t choose(const float *logits, size_t n, double temperature,
                      size_t top_k, uint32_t word)
{
    float work[64];
    const uint32_t words[4] = { word, 0, 0, 0 };
    pl_sampling sampling = { temperature, top_k, 0, 0 };
    memcpy(work, logits, n * sizeof *work);
    return pl_sampler_choose(work, n, &sampling, words);
}

static void no_temperature_takes_the_likeliest(void **state)
{
    (void)state;
    const float logits[] = { 1.0f, 3.0f, 2.0f };
    assert_int_equal(choose(logits, 3, 0.0, 0, 0xffffffffu), 1);
}

static void logits_that_are_no_numbers_choose_nothing(void **state)
{
    (void)state;
    const float logits[] = { NAN, NAN, NAN };
    assert_int_equal(choose(logits, 3, 0.8, 2, 7), -1);
    assert_int_equal(choose(logits, 3, 0.0, 0, 7), -1);
}

static void top_k_leaves_only_the_likeliest_and_their_equals(void **state)
{
    (void)state;
    const float logits[] = { 1.0f, 3.0f, 2.0f, 3.0f, -1.0f, 2.5f };
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t word = i * 4294967u;
        assert_int_equal(choose(logits, 6, 1.0, 2, word) % 2, 1);
        assert_true(choose(logits, 6, 1.0, 1, word) % 2 == 1);
        int32_t three = choose(logits, 6, 1.0, 3, word);
        assert_true(three == 1 || three == 3 || three == 5);
    }
}

/* Of all signs and sizes, some twice: those that can be chosen are those that
 * fewer than k are greater than. */
static void top_k_counts_what_is_greater(void **state)
{
    (void)state;
    enum { N = 40, DRAWS = 1000 };
    float logits[N];
    for (int i = 0; i < N; i++)
        logits[i] = ldexpf((float)(i % 37 - 18), i % 5 * 7 - 20);
    logits[3] = 0.0f;
    logits[9] = -0.0f;
    logits[20] = NAN; /* what is no number is never chosen */
    for (size_t k = 1; k < N; k++) {
        int seen[N] = { 0 };
        for (uint32_t i = 0; i < DRAWS; i++)
            seen[choose(logits, N, 1e12, k, i * (4294967295u / DRAWS))] = 1;
        for (int i = 0; i < N; i++) {
            size_t greater = 0;
            for (int j = 0; j < N; j++)
                greater += logits[j] > logits[i];
            assert_int_equal(seen[i], greater < k && !isnan(logits[i]));
        }
    }
}

static void tokens_come_as_often_as_the_softmax_says(void **state)
{
    (void)state;
    const float logits[] = { 0.0f, 1.0f, -2.0f };
    const double temperature = 0.7;
    double expected[3], sum = 0.0;
    int seen[3] = { 0 };
    enum { DRAWS = 40000 };
    for (int i = 0; i < 3; i++)
        sum += expected[i] = exp((double)logits[i] / temperature);
    for (uint32_t i = 0; i < DRAWS; i++)
        seen[choose(logits, 3, temperature, 0,
                    i * (uint32_t)(4294967295u / DRAWS))]++;
    for (int i = 0; i < 3; i++)
        assert_true(fabs((double)seen[i] / DRAWS - expected[i] / sum) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cache_changes_no_bit_of_the_logits),
        cmocka_unit_test(one_token_at_a_time_equals_all_at_once),
        cmocka_unit_test(the_same_seed_writes_the_same_text_on_any_threads),
        cmocka_unit_test(no_temperature_takes_the_likeliest),
        cmocka_unit_test(logits_that_are_no_numbers_choose_nothing),
        cmocka_unit_test(top_k_leaves_only_the_likeliest_and_their_equals),
        cmocka_unit_test(top_k_counts_what_is_greater),
        cmocka_unit_test(tokens_come_as_often_as_the_softmax_says),
    };
    /* rotated positions, shared keys, a gated MLP, capped logits */
    static const char *const other[] = { "--architecture=llama", "--n_head=4",
                                         "--n_kv_head=1", "--logit_softcap=2.0",
                                         NULL };
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    of_model = other;
    return failed + cmocka_run_group_tests(tests, set_up, tear_down);
}
