#include "text/bpe_train.h"

#include "base/file.h"
#include "base/threads.h"
#include "support/asserts.h"
#include "support/scratch.h"
#include "text/bpe_read.h"
#include "unit/bpe_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;
static scratch folder;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make((size_t)512 << 20);
    memset(&err, 0, sizeof err);
    scratch_open(&folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_arena_fail_at(0);
    scratch_close(&folder);
    pl_heap_close(&heap);
    return 0;
}

static pl_bpe_train_options options_for(int32_t vocab_size)
{
    return (pl_bpe_train_options){ .vocab_size = vocab_size,
                                   .threads = 1,
                                   .memory_bytes = (size_t)64 << 20,
                                   .folder = folder.folder };
}

/* PL_OK, or the test says what went wrong. */
static void assert_trains(const char *text, size_t bytes,
                          const pl_bpe_train_options *options,
                          pl_bpe_train_result *result)
{
    if (train_on(text, bytes, options, result, &heap, &err))
        fail_msg("%s", err.text);
}

static const char *merges_text(const pl_bpe *bpe)
{
    const char *text;
    size_t bytes;
    assert_int_equal(pl_bpe_write_merges(bpe, &heap, &text, &bytes, &err),
                     PL_OK);
    return text;
}

/* ---- against the definition ---- */

typedef struct corpus {
    int32_t ids[4096]; /* -1 between pieces */
    size_t count;
} corpus;

static void lay_out(corpus *c, const char *text, size_t bytes)
{
    int32_t id_of[256];
    for (unsigned place = 0; place < 256; place++)
        id_of[pl_bpe_byte_at(place)] = (int32_t)place;
    c->count = 0;
    for (size_t at = 0; at < bytes;) {
        size_t length = pl_pretok_next(PL_PATTERN_GPT2, text + at, bytes - at);
        for (size_t i = 0; i < length; i++)
            c->ids[c->count++] = id_of[(unsigned char)text[at + i]];
        c->ids[c->count++] = -1;
        at += length;
    }
}

/* The most frequent pair, the lower ids among equals; its count. */
static size_t best_pair(const corpus *c, pl_bpe_merge *best)
{
    size_t most = 0;
    for (size_t i = 0; i + 1 < c->count; i++) {
        int32_t left = c->ids[i], right = c->ids[i + 1];
        size_t count = 0;
        if (left < 0 || right < 0)
            continue;
        for (size_t k = 0; k + 1 < c->count; k++)
            count += c->ids[k] == left && c->ids[k + 1] == right;
        if (count > most ||
            (count == most && (left < best->left ||
                               (left == best->left && right < best->right)))) {
            most = count;
            best->left = left;
            best->right = right;
        }
    }
    return most;
}

static void training_is_as_defined(void **state)
{
    (void)state;
    static const char *const alphabets[] = { "a", "ab", "aaab ", "abc ",
                                             "the 1" };
    static corpus c;
    char text[500]; /* no token can be too long */
    for (uint32_t seed = 0; seed < 25; seed++) {
        random_text(text, sizeof text, alphabets[seed % 5], seed);
        pl_bpe_train_options options = options_for(256 + 40);
        options.min_count = seed % 3;
        pl_bpe_train_result result;
        assert_int_equal(
            train_on(text, sizeof text, &options, &result, &heap, &err), PL_OK);
        size_t count, at = 0;
        pl_bpe_merge *merges = merges_of(result.bpe, &count), best = { 0 };
        lay_out(&c, text, sizeof text);
        for (; at < 40; at++) {
            size_t most = best_pair(&c, &best);
            if (most == 0 || most < options.min_count)
                break;
            assert_true(at < count);
            assert_int_equal(merges[at].left, best.left);
            assert_int_equal(merges[at].right, best.right);
            best.made = 256 + (int32_t)at;
            c.count = naive_merge(c.ids, c.count, &best, 1);
        }
        assert_int_equal(at, count);
        free(merges);
    }
}

/* ---- the same whatever the threads and the memory ---- */

enum { WORDS = 60000, TEXT_BYTES = WORDS * 12 };

/* Words of 1 to 20 letters, most of them different. */
static char *make_words(void)
{
    char *text = malloc(TEXT_BYTES);
    size_t used = 0;
    for (uint32_t i = 0; used + 32 < TEXT_BYTES; i++) {
        size_t length = 1 + random_at(1, i) % (i % 50 ? 8 : 20);
        random_text(text + used, length, "etaoinsh", 7 * i);
        used += length;
        text[used++] = ' ';
    }
    memset(text + used, ' ', TEXT_BYTES - used);
    return text;
}

typedef struct job {
    pl_bpe_counter *counter;
    const char *text;
    pl_status status[8];
} job;

static void add_share(void *context, int ith, int nth)
{
    job *j = context;
    size_t each = TEXT_BYTES / (size_t)nth;
    size_t begin = pl_pretok_cut(PL_PATTERN_GPT2, j->text, each * (size_t)ith);
    size_t end = ith + 1 == nth ? TEXT_BYTES
                                : pl_pretok_cut(PL_PATTERN_GPT2, j->text,
                                                each * (size_t)(ith + 1));
    j->status[ith] = pl_bpe_counter_add(j->counter, ith, j->text + begin,
                                        end - begin, NULL);
}

static pl_bpe_train_result train_with(const char *text, int threads,
                                      size_t memory_bytes)
{
    pl_bpe_train_options options = options_for(500);
    options.threads = threads;
    options.memory_bytes = memory_bytes;
    job j = { .text = text };
    pl_threads *pool;
    pl_bpe_train_result result;
    assert_int_equal(pl_threads_open(&pool, threads, &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_counter_open(&j.counter, &options, &heap, &err),
                     PL_OK);
    pl_threads_run(pool, add_share, &j);
    for (int i = 0; i < threads; i++)
        assert_int_equal(j.status[i], PL_OK);
    if (pl_bpe_train(j.counter, &result, &heap, &err))
        fail_msg("%s", err.text);
    pl_bpe_counter_close(j.counter);
    pl_threads_close(pool);
    assert_int_equal(scratch_count(folder.folder), 0);
    return result;
}

static void threads_and_memory_change_nothing(void **state)
{
    (void)state;
    char *text = make_words();
    pl_bpe_train_result one = train_with(text, 1, (size_t)128 << 20);
    assert_int_equal(one.spilled_runs, 0);
    const char *want = merges_text(one.bpe);
    pl_bpe_train_result many = train_with(text, 3, (size_t)128 << 20);
    assert_int_equal(many.spilled_runs, 0);
    assert_string_equal(merges_text(many.bpe), want);
    /* The tables have too little, and so has what comes after. */
    static const size_t megabytes[] = { 14, 8, 3, 2 };
    static const int threads[] = { 8, 8, 3, 1 };
    for (int i = 0; i < 4; i++) {
        size_t memory_bytes = megabytes[i] << 20;
        pl_bpe_train_result tight = train_with(text, threads[i], memory_bytes);
        assert_true(tight.spilled_runs >= 1);
        assert_true(tight.peak_bytes <= memory_bytes);
        assert_string_equal(merges_text(tight.bpe), want);
        assert_int_equal(tight.piece_count, one.piece_count);
        assert_int_equal(tight.unique_count, one.unique_count);
    }
    free(text);
}

static void more_runs_than_are_kept_are_united(void **state)
{
    (void)state;
    char *text = make_words();
    pl_bpe_train_options options = options_for(300);
    options.memory_bytes = PL_BPE_MIN_SHARE_BYTES * 5;
    pl_bpe_train_result result;
    pl_bpe_counter *counter;
    const char *want = merges_text(train_with(text, 1, 64 << 20).bpe);
    options.vocab_size = 500;
    options.threads = 5;
    assert_int_equal(pl_bpe_counter_open(&counter, &options, &heap, &err),
                     PL_OK);
    /* All by one thread; the text again and again, in parts of a thousand
     * words, fills one table more than 32 times. Every count is four times
     * what it was, so that the merges stay. */
    for (int round = 0; round < 4; round++)
        for (size_t at = 0, end; at < TEXT_BYTES; at = end) {
            end = at + 8000 < TEXT_BYTES
                      ? at + pl_pretok_cut(PL_PATTERN_GPT2, text + at, 8000)
                      : TEXT_BYTES;
            assert_int_equal(
                pl_bpe_counter_add(counter, 0, text + at, end - at, &err),
                PL_OK);
        }
    assert_true(scratch_count(folder.folder) <= 32);
    pl_status status = pl_bpe_train(counter, &result, &heap, &err);
    pl_bpe_counter_close(counter);
    assert_int_equal(status, PL_OK);
    assert_string_equal(merges_text(result.bpe), want);
    assert_true(result.spilled_runs > 32);
    assert_int_equal(scratch_count(folder.folder), 0);
    free(text);
}

static void a_piece_larger_than_the_tables_is_counted(void **state)
{
    (void)state;
    size_t bytes = 400 * 1000;
    char *text = malloc(bytes);
    pl_bpe_train_options options = options_for(256 + 8);
    pl_bpe_train_result result;
    memset(text, 'a', bytes);
    assert_trains(text, bytes, &options, &result);
    const char *want = merges_text(result.bpe);
    assert_int_equal(result.spilled_runs, 0);
    assert_int_equal(pl_bpe_merge_count(result.bpe), 8);
    /* Of a thread's share long pieces get an eighth. */
    options.memory_bytes = (size_t)9 << 20;
    options.threads = 4;
    assert_trains(text, bytes, &options, &result);
    assert_int_equal(result.spilled_runs, 1);
    assert_string_equal(merges_text(result.bpe), want);
    free(text);
}

/* ---- failures ---- */

static void too_little_memory_says_what_to_do(void **state)
{
    (void)state;
    char *text = make_words();
    pl_bpe_train_options options = options_for(500);
    pl_bpe_train_result result;
    char *noise = malloc(TEXT_BYTES);
    for (uint32_t i = 0; i < TEXT_BYTES; i++)
        noise[i] = (char)random_at(9, i);
    options.memory_bytes = 2 << 20; /* nearly all pairs of bytes occur */
    assert_int_equal(
        train_on(noise, TEXT_BYTES, &options, &result, &heap, &err),
        PL_E_MEMORY);
    assert_contains(err.text, "different pieces");
    assert_contains(err.text, "than the 2.10 MB");
    assert_contains(err.text, "Raise --memory to 4.19 MB");
    assert_int_equal(scratch_count(folder.folder), 0);
    free(noise);
    options.memory_bytes = 1 << 10;
    assert_int_equal(train_on(text, TEXT_BYTES, &options, &result, &heap, &err),
                     PL_E_MEMORY);
    free(text);
}

/* Words at random have more pairs than texts have, once many are merged: the
 * pieces fit, but not these beside them. */
static void pairs_without_room_send_the_pieces_to_the_disk(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    char *noise = malloc(BYTES);
    pl_bpe_train_options options = options_for(6000);
    pl_bpe_train_result ample, tight;
    for (uint32_t i = 0; i < BYTES; i++)
        noise[i] = i % 9 ? (char)('a' + random_at(9, i) % 26) : ' ';
    assert_trains(noise, BYTES, &options, &ample);
    options.memory_bytes = ample.peak_bytes / 10 * 9;
    assert_trains(noise, BYTES, &options, &tight);
    assert_true(tight.peak_bytes <= options.memory_bytes);
    assert_true(ample.spilled_runs == 0 && tight.spilled_runs > 0);
    assert_string_equal(merges_text(tight.bpe), merges_text(ample.bpe));
    assert_int_equal(scratch_count(folder.folder), 0);
    free(noise);
}

static void impossible_wishes_are_refused(void **state)
{
    (void)state;
    static const char *const twice[] = { "<|a|>", "<|a|>" };
    static const char *const broken[] = { "<|\xff|>" };
    static const char *const word[] = { "abab" };
    pl_bpe_train_options options = options_for(255);
    pl_bpe_train_result result;
    assert_int_equal(train_on("ab", 2, &options, &result, &heap, &err),
                     PL_E_CONFIG);
    options = options_for(300);
    options.specials = twice;
    options.special_count = 2;
    assert_int_equal(train_on("ab", 2, &options, &result, &heap, &err),
                     PL_E_CONFIG);
    assert_contains(err.text, "twice");
    options.specials = broken;
    options.special_count = 1;
    assert_int_equal(train_on("ab", 2, &options, &result, &heap, &err),
                     PL_E_CONFIG);
    options.specials = word;
    assert_int_equal(train_on("abab", 4, &options, &result, &heap, &err),
                     PL_E_CONFIG);
    assert_contains(err.text, "also an ordinary one");
}

static void a_text_without_pairs_gives_the_bytes(void **state)
{
    (void)state;
    pl_bpe_train_options options = options_for(1000);
    pl_bpe_train_result result;
    assert_int_equal(train_on("", 0, &options, &result, &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_vocab_size(result.bpe), 256);
    assert_int_equal(train_on("a", 1, &options, &result, &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_vocab_size(result.bpe), 256);
    options.min_count = 3;
    assert_int_equal(train_on("ab ab", 5, &options, &result, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_vocab_size(result.bpe), 256);
}

static void no_token_is_longer_than_the_limit(void **state)
{
    (void)state;
    char text[4096];
    pl_bpe_train_options options = options_for(300);
    pl_bpe_train_result result;
    size_t bytes, longest = 0;
    memset(text, 'a', sizeof text);
    assert_int_equal(
        train_on(text, sizeof text, &options, &result, &heap, &err), PL_OK);
    for (int32_t id = 0; id < pl_bpe_vocab_size(result.bpe); id++) {
        pl_bpe_token(result.bpe, id, &bytes);
        longest = bytes > longest ? bytes : longest;
    }
    assert_int_equal(longest, PL_BPE_TOKEN_BYTES);
}

static pl_bpe_wish stop_late(void *context, size_t merges, size_t of_merges)
{
    int *asked = context;
    assert_true(merges < of_merges);
    return ++*asked > 2 ? PL_BPE_STOP : PL_BPE_GO_ON;
}

static void training_stops_when_asked_to(void **state)
{
    (void)state;
    char *text = make_words();
    int asked = 0;
    pl_bpe_train_options options = options_for(800);
    pl_bpe_train_result result;
    options.wish = stop_late;
    options.context = &asked;
    assert_int_equal(train_on(text, TEXT_BYTES, &options, &result, &heap, &err),
                     PL_E_STOPPED);
    assert_int_equal(asked, 3);
    free(text);
}

static void every_failing_call_is_an_error_that_leaves_nothing(void **state)
{
    (void)state;
    char *text = make_words();
    pl_bpe_train_options options = options_for(260);
    pl_bpe_train_result result;
    options.memory_bytes = 8 << 20;
    options.threads = 8;
    int open_files = scratch_open_files(), failures = 0;
    for (long nth = 1;; nth += nth < 40 ? 1 : 37) {
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = train_on(text, 300 * 1000, &options, &result, &heap,
                                    &err);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        assert_int_equal(scratch_count(folder.folder), 0);
        assert_int_equal(scratch_open_files(), open_files);
        if (!happened) {
            assert_int_equal(status, PL_OK);
            break;
        }
        if (status)
            assert_int_equal(status, PL_E_IO);
        failures += status != PL_OK;
    }
    assert_true(failures > 40);
    for (long nth = 1;; nth += nth < 40 ? 1 : 37) {
        pl_arena_fail_at(nth);
        pl_status status = train_on(text, 300 * 1000, &options, &result, &heap,
                                    &err);
        pl_arena_fail_at(0);
        assert_int_equal(scratch_count(folder.folder), 0);
        if (!status)
            break;
        assert_int_equal(status, PL_E_MEMORY);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(training_is_as_defined, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(threads_and_memory_change_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_runs_than_are_kept_are_united,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_piece_larger_than_the_tables_is_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            pairs_without_room_send_the_pieces_to_the_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_little_memory_says_what_to_do,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(impossible_wishes_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_text_without_pairs_gives_the_bytes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_token_is_longer_than_the_limit,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(training_stops_when_asked_to, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            every_failing_call_is_an_error_that_leaves_nothing, set_up,
            tear_down),
    };
    return cmocka_run_group_tests_name("bpe_train", tests, NULL, NULL);
}
