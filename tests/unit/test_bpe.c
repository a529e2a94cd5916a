#include "text/bpe.h"

#include "text/bpe_read.h"
#include "text/tokenizer.h"
#include "unit/bpe_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make((size_t)256 << 20);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static pl_bpe *train(const char *text, size_t bytes, int32_t vocab_size)
{
    static const char *const specials[] = { "<|endoftext|>", "<|end|>",
                                            "<|end|>ing" };
    pl_bpe_train_options options = { .vocab_size = vocab_size,
                                     .specials = specials,
                                     .special_count = 3,
                                     .threads = 1,
                                     .memory_bytes = 32 << 20 };
    pl_bpe_train_result result;
    if (train_on(text, bytes, &options, &result, &heap, &err))
        fail_msg("%s", err.text);
    return result.bpe;
}

/* ---- exactness ---- */

static void assert_as_defined(const pl_bpe *bpe, pl_bpe_encoder *encoder,
                              const char *text, size_t bytes)
{
    int32_t want[512], ids[512];
    size_t want_count = naive_encode(bpe, text, bytes, want);
    size_t count = pl_bpe_encode(encoder, text, bytes, PL_BPE_SPECIALS_AS_TEXT,
                                 ids);
    assert_int_equal(count, want_count);
    assert_memory_equal(ids, want, count * sizeof *ids);
    count = pl_bpe_encode_plain(bpe, text, bytes, PL_BPE_SPECIALS_AS_TEXT, ids);
    assert_int_equal(count, want_count);
    assert_memory_equal(ids, want, count * sizeof *ids);
}

static void encoding_is_merging_in_order(void **state)
{
    (void)state;
    static const char *const alphabets[] = {
        "a", "ab", "aab", "abc", "abcd ", "ab c1", "the in", "\xc3\xa9\xa8 a"
    };
    char corpus[3000], text[200];
    for (uint32_t seed = 0; seed < 64; seed++) {
        const char *alphabet = alphabets[seed % 8];
        random_text(corpus, sizeof corpus, alphabet, seed);
        pl_bpe *bpe = train(corpus, sizeof corpus,
                            259 + (int32_t)(random_at(seed, 9999) % 200));
        pl_bpe_encoder encoder;
        assert_int_equal(pl_bpe_encoder_open(&encoder, bpe, 0, &heap, &err),
                         PL_OK);
        for (uint32_t i = 0; i < 100; i++) {
            size_t bytes = 1 + random_at(seed, 5000 + i) % sizeof text;
            random_text(text, bytes, alphabet, 1000 * seed + i);
            assert_as_defined(bpe, &encoder, text, bytes);
        }
        pl_heap_close(&heap);
    }
}

static void every_text_comes_back(void **state)
{
    (void)state;
    char corpus[4000], text[256], back[256];
    int32_t ids[256];
    for (size_t i = 0; i < sizeof corpus; i++)
        corpus[i] = (char)random_at(1, (uint32_t)i);
    pl_bpe *bpe = train(corpus, sizeof corpus, 600);
    for (uint32_t seed = 0; seed < 500; seed++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)random_at(seed % 2 ? seed : 1, (uint32_t)i);
        size_t count = pl_bpe_encode_plain(bpe, text, sizeof text,
                                           PL_BPE_SPECIALS_FOUND, ids);
        size_t used = 0, bytes;
        for (size_t i = 0; i < count; i++) {
            const char *token = pl_bpe_token(bpe, ids[i], &bytes);
            assert_non_null(token);
            memcpy(back + used, token, bytes);
            used += bytes;
        }
        assert_int_equal(used, sizeof text);
        assert_memory_equal(back, text, used);
    }
}

static void a_row_of_a_million_letters_is_encoded(void **state)
{
    (void)state;
    size_t bytes = 1000 * 1000 + 3;
    char *text = malloc(bytes);
    int32_t *ids = malloc(bytes * sizeof *ids);
    memset(text, 'a', bytes);
    pl_bpe *bpe = train(text, 64, 265); /* aa, aaaa, ... 64 of them */
    size_t count = pl_bpe_encode_plain(bpe, text, bytes,
                                       PL_BPE_SPECIALS_AS_TEXT, ids),
           longest;
    pl_bpe_token(bpe, ids[0], &longest);
    assert_int_equal(longest, 64);
    /* 15625 of 64, and 3 are left: two and one */
    assert_int_equal(count, 15625 + 2);
    free(ids);
    free(text);
}

/* ---- special tokens ---- */

static void special_tokens_are_found_or_text(void **state)
{
    (void)state;
    static const char text[] = "ab<|endoftext|><|end|>ing<|end|><|en a";
    pl_bpe *bpe = train("ab ab ab", 8, 260);
    int32_t ids[sizeof text];
    pl_bpe_encoder encoder;
    assert_int_equal(pl_bpe_encoder_open(&encoder, bpe, 4096, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_special(bpe, "<|endoftext|>"), 257);
    assert_int_equal(pl_bpe_special(bpe, "<|end|>"), 258);
    assert_int_equal(pl_bpe_special(bpe, "<|end|>ing"), 259);
    assert_int_equal(pl_bpe_special(bpe, "<|nothing|>"), -1);
    size_t count = pl_bpe_encode(&encoder, text, strlen(text),
                                 PL_BPE_SPECIALS_FOUND, ids);
    assert_int_equal(ids[0], 256);
    assert_int_equal(ids[1], 257);
    assert_int_equal(ids[2], 259); /* the longest that begins there */
    assert_int_equal(ids[3], 258);
    assert_int_equal(count, 4 + 6);
    count = pl_bpe_encode(&encoder, text, strlen(text), PL_BPE_SPECIALS_AS_TEXT,
                          ids);
    assert_int_equal(count, strlen(text) - 1);
    for (size_t i = 0; i < count; i++)
        assert_true(ids[i] <= 256);
}

static void special_tokens_may_begin_with_any_bytes(void **state)
{
    (void)state;
    static const char *const specials[] = { "[EOS]", "\u6c34\u6c34", "<s>",
                                            "[E" };
    static const char text[] = "a[EOS][E]<s\u6c34\u6c34<s>";
    static const int32_t want[] = { 'a', 256, 259, ']', '<', 's', 257, 258 };
    pl_bpe_train_options options = { .vocab_size = 260,
                                     .specials = specials,
                                     .special_count = 4,
                                     .threads = 1,
                                     .memory_bytes = 1 << 20 };
    pl_bpe_train_result result;
    int32_t ids[sizeof text];
    size_t bytes;
    assert_int_equal(train_on("", 0, &options, &result, &heap, &err), PL_OK);
    size_t count = pl_bpe_encode_plain(result.bpe, text, strlen(text),
                                       PL_BPE_SPECIALS_FOUND, ids);
    assert_int_equal(count, sizeof want / sizeof *want);
    for (size_t i = 0; i < count; i++)
        if (want[i] < 256) {
            const char *token = pl_bpe_token(result.bpe, ids[i], &bytes);
            assert_int_equal(bytes, 1);
            assert_int_equal(token[0], want[i]);
        } else {
            assert_int_equal(ids[i], want[i]);
        }
}

static void an_empty_text_has_no_tokens(void **state)
{
    (void)state;
    pl_bpe *bpe = train("ab", 2, 260);
    int32_t ids[1];
    assert_int_equal(
        pl_bpe_encode_plain(bpe, "", 0, PL_BPE_SPECIALS_FOUND, ids), 0);
    assert_int_equal(
        pl_bpe_encode_plain(bpe, "", 0, PL_BPE_SPECIALS_AS_TEXT, ids), 0);
}

/* ---- as a tokenizer ---- */

static void a_tokenizer_can_be_bpe(void **state)
{
    (void)state;
    pl_tokenizer t = pl_tokenizer_make_bpe(train("ab ab ab", 8, 260));
    char out[PL_TOKENIZER_TOKEN_BYTES];
    int32_t ids[32];
    size_t count, bytes;
    assert_int_equal(t.vocab_size, 260);
    assert_string_equal(pl_tokenizer_kind_name(t.kind), "bpe");
    assert_int_equal(pl_tokenizer_encode(&t, "ab<|endoftext|>", 15, "--start",
                                         ids, 15, &count, &err),
                     PL_OK);
    assert_int_equal(count, 2);
    assert_int_equal(pl_tokenizer_decode(&t, ids[0], out, &bytes, &err), PL_OK);
    assert_int_equal(bytes, 2);
    assert_memory_equal(out, "ab", 2);
    assert_int_equal(
        pl_tokenizer_encode(&t, "ab", 2, "--start", ids, 1, &count, &err),
        PL_E_USAGE);
    assert_int_equal(pl_tokenizer_decode(&t, 260, out, &bytes, &err),
                     PL_E_FORMAT);
}

/* ---- the alphabet ---- */

static void every_byte_has_a_character_and_a_place(void **state)
{
    (void)state;
    int seen[256] = { 0 };
    for (unsigned byte = 0; byte < 256; byte++)
        assert_int_equal(pl_bpe_byte_of(pl_bpe_char_of(byte)), byte);
    for (unsigned place = 0; place < 256; place++) {
        unsigned byte = pl_bpe_byte_at(place);
        assert_false(seen[byte]++);
        if (place > 0) /* ascending characters */
            assert_true(pl_bpe_char_of(byte) >
                        pl_bpe_char_of(pl_bpe_byte_at(place - 1)));
    }
    assert_int_equal(pl_bpe_char_of(' '), 0x120);
    assert_int_equal(pl_bpe_char_of('\n'), 0x10A);
    assert_int_equal(pl_bpe_char_of(0xAD), 0x143);
    assert_int_equal(pl_bpe_char_of(0x7F), 0x121);
    assert_int_equal(pl_bpe_byte_of(' '), -1);
    assert_int_equal(pl_bpe_byte_of(0x144), -1);
    assert_int_equal(pl_bpe_byte_at(0), '!');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(encoding_is_merging_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_text_comes_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_row_of_a_million_letters_is_encoded,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(special_tokens_are_found_or_text,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(special_tokens_may_begin_with_any_bytes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_empty_text_has_no_tokens, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_tokenizer_can_be_bpe, set_up,
                                        tear_down),
        cmocka_unit_test(every_byte_has_a_character_and_a_place),
    };
    return cmocka_run_group_tests_name("bpe", tests, NULL, NULL);
}
