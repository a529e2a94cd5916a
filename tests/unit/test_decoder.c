/* Tests of train/decoder, slots and score: a text among others has the tokens
 * and scores that it has alone, to the bit. */
#include "base/rng.h"
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/decoder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { V = 61, T = 13, TEXTS = 12 };

/* A checkpoint of a few updates, and a session that serves it. */
typedef struct fixture {
    tiny_run trained;
    pl_heap heap;
    pl_config config;
    pl_session session;
    pl_slots slots;
    pl_decoder decoder;
} fixture;

static void open_serving(fixture *f, const char *setting)
{
    pl_error err = { 0 };
    pl_machine machine;
    f->heap = pl_heap_make(64 << 20);
    f->config = pl_config_make_default();
    if (pl_config_override(&f->config, setting, PL_FOR_ALL, &f->heap, &err) ||
        pl_machine_make(&machine, PL_MACHINE_RUN, &f->config, NULL, &f->heap,
                        &err) ||
        pl_session_open_serve(&f->session, &f->config, &machine,
                              scratch_path(&f->trained.folder, "out/latest"),
                              1 << 20, NULL, &f->heap, &err))
        fail_msg("%s", err.text);
    f->slots = pl_slots_make(&f->session);
    if (pl_decoder_open(&f->decoder, &f->slots, &f->heap, &err))
        fail_msg("%s", err.text);
}

static void close_serving(fixture *f)
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
    tiny_run_close(&f.trained);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tiny_run_remove(&f->trained);
    return 0;
}

/* ---- texts that remember what they were told ---- */

typedef struct told {
    pl_decoding text;
    int32_t tokens[T];
    size_t heard;        /* tokens that were told of */
    pl_score scores[T];  /* all zero where there was none */
    pl_decoding_end end; /* PL_DECODING_GOES_ON: it hasn't ended */
    size_t enough;       /* tokens after which the taker had enough; 0: none */
} told;

static pl_decoding_end hear(void *context, pl_decoding *text, size_t index,
                            const pl_score *score)
{
    told *t = context;
    assert_ptr_equal(text, &t->text);
    assert_int_equal(score != NULL,
                     index > 0 && (index < text->prompt ? text->prompt_scored
                                                        : text->scored));
    if (score) {
        assert_int_equal(score->own.token, text->tokens[index]);
        t->scores[index].own = score->own;
        t->scores[index].top_count = score->top_count;
        memcpy(t->scores[index].top, score->top,
               score->top_count * sizeof score->top[0]);
    }
    t->heard++;
    return t->enough && index + 1 >= t->enough ? PL_DECODING_FINISHED
                                               : PL_DECODING_GOES_ON;
}

static void be_over(void *context, pl_decoding *text, pl_decoding_end end)
{
    told *t = context;
    assert_ptr_equal(text, &t->text);
    assert_int_equal(t->end, PL_DECODING_GOES_ON);
    t->end = end;
}

/* Text `number` of mix `mix`: its prompt, lengths and ways are random. */
static void make_text(told *t, uint32_t mix, uint32_t number)
{
    uint32_t words[4];
    memset(t, 0, sizeof *t);
    pl_rng_words(PL_RNG_CROP, mix, number, 0, 0, 0, words);
    const size_t prompt = 1 + words[0] % (T - 1),
                 most = prompt + words[1] % (T - prompt + 1);
    t->text =
        (pl_decoding){ .tokens = t->tokens,
                       .count = prompt,
                       .most = most,
                       .sampling = { .temperature = words[2] % 4 ? 0.9 : 0.0,
                                     .top_k = words[2] / 4 % 3 * 7,
                                     .seed = words[3],
                                     .top_p = words[2] / 16 % 2 ? 0.7 : 0 },
                       .sample = number,
                       .end_token = words[2] / 32 % 3 ? -1 : 4,
                       .scored = words[2] / 128 % 2,
                       .prompt_scored = words[2] / 256 % 2,
                       .top = words[2] / 512 % 4,
                       .taker = { t, hear, be_over } };
    t->enough = words[2] / 2048 % 4 == 0 ? prompt + 2 : 0;
    for (size_t i = 0; i < prompt; i++) {
        pl_rng_words(PL_RNG_CROP, mix, number, 1, (uint32_t)i, 0, words);
        t->tokens[i] = (int32_t)(words[0] % V);
    }
}

static void step(fixture *f)
{
    pl_error err = { 0 };
    if (pl_decoder_step(&f->decoder, &err))
        fail_msg("%s", err.text);
}

static void run_alone(fixture *f, told *t)
{
    pl_decoder_add(&f->decoder, &t->text);
    while (t->end == PL_DECODING_GOES_ON)
        step(f);
    assert_false(pl_decoder_busy(&f->decoder));
}

/* They come at random moments, and some go before their end. */
static void run_mix(fixture *f, told *texts, uint32_t mix)
{
    uint32_t come = 0;
    for (uint32_t round = 0; come < TEXTS || pl_decoder_busy(&f->decoder);
         round++) {
        uint32_t words[4];
        pl_rng_words(PL_RNG_EVAL, mix, round, 0, 0, 0, words);
        for (uint32_t n = words[0] % 4; n > 0 && come < TEXTS; n--)
            pl_decoder_add(&f->decoder, &texts[come++].text);
        if (words[1] % 9 == 0)
            pl_decoder_drop(&f->decoder, &texts[words[2] % TEXTS].text);
        step(f);
    }
}

static void assert_same(const told *a, const told *b)
{
    const size_t count = a->text.count;
    assert_true(count <= b->text.count);
    assert_memory_equal(a->tokens, b->tokens, count * sizeof a->tokens[0]);
    for (size_t i = 0; i < count; i++) {
        if (a->scores[i].own.token == 0 && a->scores[i].top_count == 0)
            continue; /* not told of */
        assert_memory_equal(&a->scores[i].own.logprob,
                            &b->scores[i].own.logprob, sizeof(double));
        assert_int_equal(a->scores[i].top_count, b->scores[i].top_count);
        for (size_t k = 0; k < a->scores[i].top_count; k++) {
            assert_int_equal(a->scores[i].top[k].token,
                             b->scores[i].top[k].token);
            assert_memory_equal(&a->scores[i].top[k].logprob,
                                &b->scores[i].top[k].logprob, sizeof(double));
        }
    }
    if (a->end == PL_DECODING_GOES_ON)
        return; /* it was dropped */
    assert_int_equal(a->end, b->end);
    assert_int_equal(count, b->text.count);
    assert_int_equal(a->heard, b->heard);
}

/* An emulated card takes long: it has the first mixes alone. */
static int is_emulated(void)
{
    const char *device = getenv("PLIMSOLL_TEST_DEVICE");
    return device && strcmp(device, "silly") != 0;
}

static void mixes_equal_texts_alone(fixture *f, const char *alone,
                                    const char *together)
{
    static told one[4][TEXTS], many[4][TEXTS];
    const uint32_t mixes = is_emulated() ? 2 : 4;
    size_t whole = 0;
    open_serving(f, alone);
    for (uint32_t mix = 0; mix < mixes; mix++)
        for (uint32_t i = 0; i < TEXTS; i++) {
            make_text(&one[mix][i], mix, i);
            run_alone(f, &one[mix][i]);
        }
    close_serving(f);
    open_serving(f, together);
    for (uint32_t mix = 0; mix < mixes; mix++) {
        /* other cuts of the prompts */
        f->slots.rows = mix % 2 ? f->slots.count : f->slots.rows;
        f->slots.logits = mix % 2 ? f->slots.count : f->slots.logits;
        for (uint32_t i = 0; i < TEXTS; i++)
            make_text(&many[mix][i], mix, i);
        run_mix(f, many[mix], mix);
        for (uint32_t i = 0; i < TEXTS; i++) {
            assert_same(&many[mix][i], &one[mix][i]);
            whole += many[mix][i].end != PL_DECODING_GOES_ON;
        }
    }
    assert_true(whole > mixes * TEXTS / 2); /* few were dropped */
    close_serving(f);
}

static void a_text_among_others_has_its_own_bits(void **state)
{
    mixes_equal_texts_alone(*state, "--serve_slots=1", "--serve_slots=5");
}

static void another_number_of_slots_and_threads_changes_nothing(void **state)
{
    if (is_emulated())
        return;
    mixes_equal_texts_alone(*state, "--serve_slots=3", "--threads=2");
}

/* What decoding writes alone is what `sample` writes. */
static void the_tokens_are_those_of_sample(void **state)
{
    fixture *f = *state;
    told texts[TEXTS];
    pl_error err = { 0 };
    open_serving(f, "--serve_slots=2");
    for (uint32_t i = 0; i < TEXTS; i++) {
        make_text(&texts[i], 9, i);
        texts[i].text.end_token = -1;
        texts[i].enough = 0;
        pl_decoder_add(&f->decoder, &texts[i].text);
    }
    while (pl_decoder_busy(&f->decoder))
        step(f);
    close_serving(f);
    f->heap = pl_heap_make(64 << 20);
    pl_machine machine;
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &f->config, NULL, &f->heap,
                        &err) ||
        pl_session_open_sample(&f->session, &f->config, &machine,
                               scratch_path(&f->trained.folder, "out/latest"),
                               NULL, &f->heap, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < TEXTS; i++) {
        const pl_decoding *text = &texts[i].text;
        pl_sampler sampler;
        if (pl_sampler_open(&sampler, &f->session, &text->sampling, T, &err))
            fail_msg("%s", err.text);
        pl_sampler_start(&sampler, i, texts[i].tokens, text->prompt);
        while (sampler.count < text->most) {
            int32_t token;
            if (pl_sampler_next(&sampler, &token, &err))
                fail_msg("%s", err.text);
            assert_int_equal(token, texts[i].tokens[sampler.count - 1]);
        }
    }
    close_serving(f);
}

static void take_score(void *context, size_t index, const pl_score *score)
{
    ((pl_score *)context)[index] = *score;
}

/* Its sum is what a text's prompt gets, and cuts don't matter. */
static void a_text_is_scored_token_by_token(void **state)
{
    fixture *f = *state;
    pl_error err = { 0 };
    pl_score scores[3][T];
    told t;
    open_serving(f, "--serve_slots=2");
    make_text(&t, 77, 0);
    t.text.count = t.text.most = T;
    t.text.prompt_scored = 1;
    t.text.top = 3;
    t.enough = 0;
    for (size_t i = 0; i < T; i++)
        t.tokens[i] = (int32_t)(i * 23 % V);
    run_alone(f, &t);
    for (int way = 0; way < 3; way++) {
        const pl_score_taker taker = { scores[way], take_score };
        f->slots.logits = way == 0 ? f->slots.logits : (size_t)(2 * way + 1);
        if (pl_score_text(&f->slots, (size_t)way % 2, t.tokens, T, 3, &taker,
                          &err))
            fail_msg("%s", err.text);
        for (size_t i = 1; i < T; i++) {
            assert_memory_equal(&scores[way][i].own.logprob,
                                &t.scores[i].own.logprob, sizeof(double));
            assert_int_equal(scores[way][i].own.token, t.tokens[i]);
            assert_int_equal(scores[way][i].top_count, 3);
            assert_int_equal(scores[way][i].top[2].token,
                             t.scores[i].top[2].token);
        }
    }
    close_serving(f);
}

static void a_score_is_a_log_softmax(void **state)
{
    float logits[V];
    pl_score score;
    double sum = 0.0;
    (void)state;
    for (int i = 0; i < V; i++) {
        logits[i] = (float)((i * 29) % V) / 7.0f;
        sum += exp((double)logits[i]);
    }
    logits[40] = logits[12]; /* equal ones: the smaller token first */
    sum += exp((double)logits[40]) - exp((double)((40 * 29) % V) / 7.0);
    for (int32_t token = 0; token < V; token++) {
        assert_true(pl_score_make(&score, logits, V, token, 20));
        assert_true(fabs(score.own.logprob -
                         ((double)logits[token] - log(sum))) < 1e-6);
    }
    assert_int_equal(score.top_count, 20);
    for (size_t i = 1; i < 20; i++) {
        const pl_score_choice *a = &score.top[i - 1], *b = &score.top[i];
        assert_true(a->logprob > b->logprob ||
                    (a->logprob == b->logprob && a->token < b->token));
    }
    assert_true(pl_score_make(&score, logits, 3, 2, 5));
    assert_int_equal(score.top_count, 3);
    logits[7] = NAN;
    assert_false(pl_score_make(&score, logits, V, 1, 0));
    for (int i = 0; i < V; i++)
        logits[i] = -HUGE_VALF;
    assert_false(pl_score_make(&score, logits, V, 1, 0));
}

/* 8, 4, 2 and 1 parts of 15 in a shuffled order. */
static void top_p_leaves_the_likeliest_that_have_the_share(void **state)
{
    static const struct {
        double top_p;
        unsigned may; /* tokens that may be chosen: bits */
    } cases[] = { { 0.5, 4 },          { 8.0 / 15.0 - 1e-6, 4 },
                  { 0.54, 4 | 1 },     { 0.79, 4 | 1 },
                  { 0.81, 4 | 1 | 8 }, { 0.94, 15 },
                  { 1.0, 15 },         { 0.0, 15 } };
    const float parts[4] = { 4, 1, 8, 2 };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        unsigned seen = 0;
        for (uint32_t i = 0; i < 400; i++) {
            const pl_sampling sampling = { .temperature = 1.0,
                                           .top_p = cases[c].top_p };
            float logits[4];
            uint32_t words[4];
            for (int k = 0; k < 4; k++)
                logits[k] = (float)log((double)parts[k]);
            pl_rng_words(PL_RNG_SAMPLE, 1, i, 0, 0, 0, words);
            seen |= 1u << pl_sampler_choose(logits, 4, &sampling, words);
        }
        assert_int_equal(seen, cases[c].may);
    }
}

/* A free slot goes to whoever waits longest. */
static void who_leaves_makes_room_for_the_next(void **state)
{
    fixture *f = *state;
    told t[4];
    open_serving(f, "--serve_slots=1");
    for (uint32_t i = 0; i < 4; i++) {
        make_text(&t[i], 5, i);
        t[i].text.count = 2;
        t[i].text.most = T;
        t[i].text.end_token = -1;
        t[i].enough = 0;
        pl_decoder_add(&f->decoder, &t[i].text);
    }
    assert_int_equal(f->decoder.waiting, 4);
    step(f);
    assert_ptr_equal(f->decoder.in_slot[0], &t[0].text);
    pl_decoder_drop(&f->decoder, &t[3].text); /* the last of the queue */
    pl_decoder_drop(&f->decoder, &t[0].text); /* in its slot */
    pl_decoder_drop(&f->decoder, &t[0].text); /* once more is fine */
    assert_int_equal(f->decoder.waiting, 2);
    pl_decoder_add(&f->decoder, &t[3].text);
    step(f);
    assert_ptr_equal(f->decoder.in_slot[0], &t[1].text);
    while (pl_decoder_busy(&f->decoder))
        step(f);
    assert_int_equal(t[0].end, PL_DECODING_GOES_ON);
    for (int i = 1; i < 4; i++)
        assert_int_equal(t[i].end, PL_DECODING_LENGTH);
    close_serving(f);
}

static int stop_at_once(void *context, const pl_step *done)
{
    (void)context, (void)done;
    return 1;
}

static void a_watch_ends_a_round(void **state)
{
    fixture *f = *state;
    const pl_run_watch watch = { NULL, stop_at_once };
    pl_error err = { 0 };
    told t;
    open_serving(f, "--serve_slots=2");
    f->slots.watch = &watch;
    make_text(&t, 5, 1);
    pl_decoder_add(&f->decoder, &t.text);
    assert_int_equal(pl_decoder_step(&f->decoder, &err), PL_E_STOPPED);
    close_serving(f);
}

/* Drops one text at its nth question, and adds another. */
typedef struct meddler {
    pl_decoder *decoder;
    int left;
    pl_decoding *leaves, *comes;
} meddler;

static int meddle(void *context, const pl_step *done)
{
    meddler *m = context;
    (void)done;
    if (m->left-- == 0) {
        pl_decoder_drop(m->decoder, m->leaves);
        memset(m->leaves, 0xff, sizeof *m->leaves); /* it is gone */
        pl_decoder_add(m->decoder, m->comes);
    }
    return 0;
}

/* In a round that reads its prompt, or in one that writes. */
static void texts_come_and_go_in_the_middle_of_a_round(void **state)
{
    fixture *f = *state;
    for (int at = is_emulated() ? 100 : 0; at < 120; at += 29) {
        told t[3], alone;
        open_serving(f, "--serve_slots=2");
        for (uint32_t i = 0; i < 3; i++)
            make_text(&t[i], 21, i);
        t[0].text.count = 2;
        t[0].text.most = T;
        t[0].text.end_token = -1;
        t[0].enough = 0;
        meddler m = { &f->decoder, at, &t[0].text, &t[2].text };
        const pl_run_watch watch = { &m, meddle };
        pl_decoder_add(&f->decoder, &t[0].text);
        pl_decoder_add(&f->decoder, &t[1].text);
        f->slots.watch = &watch;
        while (pl_decoder_busy(&f->decoder) && t[0].end == PL_DECODING_GOES_ON)
            step(f);
        assert_true(m.left < 0);
        f->slots.watch = NULL;
        for (uint32_t i = 1; i < 3; i++) {
            make_text(&alone, 21, i);
            run_alone(f, &alone);
            assert_same(&t[i], &alone);
        }
        close_serving(f);
    }
}

/* 'auto' takes as many slots as fit; a number is taken as it is. */
static void the_budget_decides_about_slots(void **state)
{
    fixture *f = *state;
    static const char *const settings[] = { "--threads=1", "--serve_slots=8" };
    pl_error err = { 0 };
    open_serving(f, settings[0]);
    const size_t all = f->session.run.gpt.placement.arena_bytes +
                       f->session.reserve_bytes + f->session.files_bytes;
    const int is_apart = f->session.run.gpt.placement.host_bytes != 0;
    assert_int_equal(f->slots.count, 8);
    close_serving(f);
    if (is_apart)
        return; /* other budgets */
    for (int i = 0; i < 2; i++) {
        pl_machine machine;
        f->heap = pl_heap_make(64 << 20);
        f->config = pl_config_make_default();
        if (pl_config_override(&f->config, settings[0], PL_FOR_ALL, &f->heap,
                               &err) ||
            pl_config_override(&f->config, settings[i], PL_FOR_ALL, &f->heap,
                               &err) ||
            pl_machine_make(&machine, PL_MACHINE_RUN, &f->config, NULL,
                            &f->heap, &err))
            fail_msg("%s", err.text);
        machine.budget_bytes = all - 64;
        const pl_status status = pl_session_open_serve(
            &f->session, &f->config, &machine,
            scratch_path(&f->trained.folder, "out/latest"), 1 << 20, NULL,
            &f->heap, &err);
        if (i == 0) {
            assert_int_equal(status, PL_OK);
            assert_true(f->session.run.gpt.layout.slots < 8);
            pl_session_close(&f->session);
        } else if (status == PL_OK) {
            /* fewer rows at once made room for them */
            assert_int_equal(f->session.run.gpt.layout.slots, 8);
            pl_session_close(&f->session);
        } else {
            assert_int_equal(status, PL_E_MEMORY);
        }
        pl_heap_close(&f->heap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_among_others_has_its_own_bits),
        cmocka_unit_test(another_number_of_slots_and_threads_changes_nothing),
        cmocka_unit_test(the_tokens_are_those_of_sample),
        cmocka_unit_test(a_text_is_scored_token_by_token),
        cmocka_unit_test(a_score_is_a_log_softmax),
        cmocka_unit_test(top_p_leaves_the_likeliest_that_have_the_share),
        cmocka_unit_test(who_leaves_makes_room_for_the_next),
        cmocka_unit_test(a_watch_ends_a_round),
        cmocka_unit_test(texts_come_and_go_in_the_middle_of_a_round),
        cmocka_unit_test(the_budget_decides_about_slots),
    };
    /* rotated positions, norms of heads, shared keys, capped logits */
    static const char *const other[] = {
        "--architecture=qwen3", "--n_head=4",      "--n_kv_head=2",
        "--logit_softcap=0.2",  "--mlp_hidden=37", NULL
    };
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);
    of_model = other;
    return failed + cmocka_run_group_tests(tests, set_up, tear_down);
}
