/* Tests of text/vocabulary: one sum for one tokenizer, whatever it was read
 * from, and another for any other. */
#include "text/vocabulary.h"

#include "bpe_fixture.h"
#include "text/bpe_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(PL_BPE_HEAP_BYTES);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static pl_vocabulary of(const pl_tokenizer *tokenizer)
{
    pl_vocabulary v;
    if (pl_vocabulary_of(&v, tokenizer, &err))
        fail_msg("%s", err.text);
    return v;
}

static pl_vocabulary of_bpe(const pl_bpe *bpe)
{
    pl_tokenizer tokenizer = pl_tokenizer_make_bpe(bpe);
    return of(&tokenizer);
}

static pl_vocabulary of_chars(const uint32_t *codes, size_t count)
{
    pl_tokenizer tokenizer;
    if (pl_tokenizer_make_char(&tokenizer, codes, count, &heap, &err))
        fail_msg("%s", err.text);
    return of(&tokenizer);
}

static const pl_bpe *trained(const char *text, const char *special)
{
    const char *const specials[] = { special };
    pl_bpe_train_options options = { .vocab_size = 270,
                                     .specials = specials,
                                     .special_count = 1,
                                     .min_count = 1,
                                     .threads = 1,
                                     .memory_bytes = 8 << 20,
                                     .folder = "." };
    pl_bpe_train_result result;
    if (train_on(text, strlen(text), &options, &result, &heap, &err))
        fail_msg("%s", err.text);
    return result.bpe;
}

static const char text[] = "the cat sat on the mat that the cat had, and the "
                           "hat sat there too";

static void the_order_of_characters_counts(void **state)
{
    (void)state;
    static const uint32_t one[] = { 'a', 'b', 'c' }, two[] = { 'a', 'c', 'b' };
    pl_vocabulary a = of_chars(one, 3), b = of_chars(two, 3),
                  again = of_chars(one, 3), less = of_chars(one, 2);
    assert_true(pl_vocabulary_same(&a, &again));
    assert_false(pl_vocabulary_same(&a, &b));
    assert_false(pl_vocabulary_same(&a, &less));
}

static void kinds_differ_and_none_has_no_sum(void **state)
{
    (void)state;
    pl_tokenizer byte = pl_tokenizer_make_byte(),
                 none = pl_tokenizer_make_none();
    uint32_t codes[256];
    for (uint32_t i = 0; i < 256; i++)
        codes[i] = i;
    pl_vocabulary a = of(&byte), b = of_chars(codes, 256), c = of(&none);
    assert_false(pl_vocabulary_same(&a, &b));
    assert_string_equal(c.sum.text, "");
}

/* Written as Hugging Face's three files, and read from each. */
static void a_bpe_is_the_same_from_any_of_its_files(void **state)
{
    (void)state;
    const pl_bpe *bpe = trained(text, "<|endoftext|>");
    pl_bpe *from_json, *from_vocab;
    pl_bpe_text vocab = { .name = "v" }, merges = { .name = "m" };
    const char *json;
    size_t bytes;
    assert_int_equal(pl_bpe_write_json(bpe, &heap, &json, &bytes, &err), PL_OK);
    assert_int_equal(
        pl_bpe_read_json(&from_json, json, bytes, "j", &heap, &err), PL_OK);
    assert_int_equal(
        pl_bpe_write_vocab(bpe, &heap, &vocab.text, &vocab.bytes, &err), PL_OK);
    assert_int_equal(
        pl_bpe_write_merges(bpe, &heap, &merges.text, &merges.bytes, &err),
        PL_OK);
    assert_int_equal(
        pl_bpe_read_vocab(&from_vocab, &vocab, &merges, &heap, &err), PL_OK);
    pl_vocabulary a = of_bpe(bpe), b = of_bpe(from_json),
                  c = of_bpe(from_vocab);
    assert_true(pl_vocabulary_same(&a, &b));
    assert_true(pl_vocabulary_same(&a, &c));
}

/* Three bytes as four letters. */
static size_t put_base64(char *out, const char *from, size_t bytes)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                  "qrstuvwxyz0123456789+/";
    size_t used = 0;
    for (size_t at = 0; at < bytes; at += 3) {
        uint32_t group = 0;
        for (size_t i = 0; i < 3; i++)
            group = group << 8 |
                    (at + i < bytes ? (unsigned char)from[at + i] : 0);
        for (int i = 0; i < 4; i++)
            out[used++] = at + (size_t)i > bytes
                              ? '='
                              : letters[group >> (18 - 6 * i) & 63];
    }
    return used;
}

/* As tiktoken has it: tokens and their ranks, and no word of merges or of the
 * special token behind them. */
static void a_bpe_is_the_same_from_its_ranks(void **state)
{
    (void)state;
    const pl_bpe *bpe = trained(text, "<|endoftext|>");
    pl_bpe *from_ranks;
    static char ranks[16384];
    size_t used = 0;
    for (int32_t id = 0; id < pl_bpe_special(bpe, "<|endoftext|>"); id++) {
        size_t bytes;
        const char *token = pl_bpe_token(bpe, id, &bytes);
        used += put_base64(ranks + used, token, bytes);
        used += (size_t)sprintf(ranks + used, " %d\n", (int)id);
    }
    if (pl_bpe_read_ranks(&from_ranks, ranks, used, "x.tiktoken", &heap, &err))
        fail_msg("%s", err.text);
    pl_vocabulary a = of_bpe(bpe), b = of_bpe(from_ranks);
    assert_true(pl_vocabulary_same(&a, &b));
}

static void merges_and_special_tokens_count(void **state)
{
    (void)state;
    pl_vocabulary a = of_bpe(trained(text, "<|endoftext|>"));
    pl_vocabulary b = of_bpe(trained("zebras in zoos are zigging and zagging "
                                     "about in the zoos of zebras",
                                     "<|endoftext|>"));
    pl_vocabulary c = of_bpe(trained(text, "<|end|>"));
    assert_int_equal(a.size, b.size);
    assert_int_equal(a.size, c.size);
    assert_false(pl_vocabulary_same(&a, &b));
    assert_false(pl_vocabulary_same(&a, &c));
}

static void a_person_sees_kind_size_and_the_sums_beginning(void **state)
{
    (void)state;
    char shown[PL_VOCABULARY_TEXT_BYTES], want[PL_VOCABULARY_TEXT_BYTES];
    pl_tokenizer byte = pl_tokenizer_make_byte();
    pl_vocabulary v = of(&byte);
    snprintf(want, sizeof want, "byte, 256 tokens, %.8s", v.sum.text);
    assert_int_equal(strlen(want), strlen("byte, 256 tokens, 12345678"));
    assert_string_equal(pl_vocabulary_text(&v, shown), want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_order_of_characters_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(kinds_differ_and_none_has_no_sum,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bpe_is_the_same_from_any_of_its_files,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bpe_is_the_same_from_its_ranks,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(merges_and_special_tokens_count, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_person_sees_kind_size_and_the_sums_beginning, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
