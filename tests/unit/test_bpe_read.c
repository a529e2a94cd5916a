#include "text/bpe_read.h"

#include "support/asserts.h"
#include "support/scratch.h"
#include "text/bpe_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;
static pl_bpe *bpe;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(64 << 20);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_arena_fail_at(0);
    pl_heap_close(&heap);
    return 0;
}

/* ---- ranks ---- */

static char ranks[8192];

/* The 256 bytes in order, with `more` behind them. */
static const char *with_bytes(const char *more)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs"
                                 "tuvwxyz0123456789+/";
    size_t used = 0;
    for (int b = 0; b < 256; b++)
        used += (size_t)snprintf(ranks + used, sizeof ranks - used,
                                 "%c%c== %d\n", digits[b >> 2],
                                 digits[(b & 3) << 4], b);
    snprintf(ranks + used, sizeof ranks - used, "%s", more);
    return ranks;
}

static pl_status read_ranks(const char *more)
{
    const char *text = with_bytes(more);
    return pl_bpe_read_ranks(&bpe, text, strlen(text), "x.tiktoken", &heap,
                             &err);
}

static void assert_ranks_refused(const char *more, pl_status status,
                                 const char *part)
{
    assert_int_equal(read_ranks(more), status);
    assert_contains(err.text, "x.tiktoken");
    assert_contains(err.text, part);
}

static void ranks_become_a_vocabulary(void **state)
{
    (void)state;
    size_t bytes;
    /* "ab", "bc", "abc" (of a and bc, since "ab" is of lower rank: of ab and
     * c) */
    assert_int_equal(read_ranks("YWI= 256\nYmM= 257\nYWJj 258\n"), PL_OK);
    assert_int_equal(pl_bpe_vocab_size(bpe), 260);
    assert_int_equal(pl_bpe_merge_count(bpe), 3);
    assert_int_equal(pl_bpe_special(bpe, "<|endoftext|>"), 259);
    assert_memory_equal(pl_bpe_token(bpe, 258, &bytes), "abc", 3);
    assert_int_equal(bytes, 3);
    assert_int_equal(bpe->ids[bpe->left[258]], 256);
    assert_int_equal(bpe->ids[bpe->right[258]], 'c');
    assert_null(pl_bpe_token(bpe, 260, &bytes));
    assert_null(pl_bpe_token(bpe, -1, &bytes));
}

static void the_end_of_text_fills_a_gap(void **state)
{
    (void)state;
    size_t bytes;
    assert_int_equal(read_ranks("YWI= 256\r\n\n\nYmM= 259"), PL_OK);
    assert_int_equal(pl_bpe_special(bpe, "<|endoftext|>"), 257);
    assert_int_equal(pl_bpe_vocab_size(bpe), 260);
    assert_null(pl_bpe_token(bpe, 258, &bytes));
    assert_int_equal(pl_bpe_special_at(bpe, 0), 257);
    assert_int_equal(pl_bpe_special_at(bpe, 1), -1);
}

static void broken_ranks_are_refused_with_their_line(void **state)
{
    (void)state;
    assert_ranks_refused("YWI=256\n", PL_E_FORMAT, "x.tiktoken:257: no blank");
    assert_ranks_refused("YWI= \n", PL_E_FORMAT, ":257: no rank");
    assert_ranks_refused("YWI= 12x\n", PL_E_FORMAT, ":257: the rank is no");
    assert_ranks_refused("YWI= -1\n", PL_E_FORMAT, "the rank is no number");
    assert_ranks_refused("YWI= 99999999999999999999\n", PL_E_FORMAT,
                         "larger than 1048574");
    assert_ranks_refused("YW?= 256\n", PL_E_FORMAT, ":257: the token isn't");
    assert_ranks_refused("YWI 256\n", PL_E_FORMAT, "base64");
    assert_ranks_refused("Y=I= 256\n", PL_E_FORMAT, "base64");
    assert_ranks_refused("YW=i 256\n", PL_E_FORMAT, "base64");
    assert_ranks_refused(" 256\n", PL_E_FORMAT, "base64");
    assert_ranks_refused("YWI= 255\n", PL_E_FORMAT, "two tokens have the id");
    assert_ranks_refused("YWI= 256\nYWI= 257\n", PL_E_FORMAT,
                         "the tokens 256 and 257 have the same text");
    assert_ranks_refused("YWJj 256\n", PL_E_UNSUPPORTED,
                         "token 256 can't be made");
}

static void a_file_without_all_bytes_is_refused(void **state)
{
    (void)state;
    const char *text = with_bytes("");
    assert_int_equal(
        pl_bpe_read_ranks(&bpe, text + 7, strlen(text) - 7, "x", &heap, &err),
        PL_E_FORMAT);
    assert_contains(err.text, "the byte 0x00 has no token");
    assert_int_equal(pl_bpe_read_ranks(&bpe, "", 0, "x", &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "x: ");
}

static void too_long_tokens_are_refused(void **state)
{
    (void)state;
    char more[1200];
    memset(more, 'Q', 688);
    memcpy(more + 688, " 256\n", 6);
    assert_ranks_refused(more, PL_E_FORMAT, "longer than 512 bytes");
}

/* ---- tokenizer.json ---- */

/* The golden tokenizer.json with `from` replaced by `to`. */
static pl_status read_changed(const char *from, const char *to)
{
    size_t bytes;
    char *text = scratch_read("tests/golden/tokens.json", &bytes);
    char *place = from ? strstr(text, from) : text + bytes;
    assert_non_null(place);
    size_t before = (size_t)(place - text), skip = from ? strlen(from) : 0;
    char *changed = malloc(bytes + strlen(to) + 1);
    memcpy(changed, text, before);
    memcpy(changed + before, to, strlen(to));
    memcpy(changed + before + strlen(to), place + skip,
           bytes - before - skip + 1);
    pl_status status = pl_bpe_read_json(&bpe, changed, strlen(changed),
                                        "tokenizer.json", &heap, &err);
    free(changed);
    free(text);
    return status;
}

static void assert_json_refused(const char *from, const char *to,
                                pl_status status, const char *part)
{
    assert_int_equal(read_changed(from, to), status);
    assert_contains(err.text, "tokenizer.json");
    assert_contains(err.text, part);
}

static void other_kinds_of_tokenizer_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_changed(NULL, ""), PL_OK);
    assert_json_refused("\"type\":\"BPE\"", "\"type\":\"Unigram\"",
                        PL_E_UNSUPPORTED, "of type \"Unigram\"");
    assert_json_refused("\"normalizer\":null",
                        "\"normalizer\":{\"type\":\"NFKC\"}", PL_E_UNSUPPORTED,
                        "\"normalizer\" changes the text by \"NFKC\"");
    assert_json_refused("\"add_prefix_space\":false",
                        "\"add_prefix_space\":true", PL_E_UNSUPPORTED,
                        "puts a blank before");
    assert_json_refused("\"use_regex\":true", "\"use_regex\":false",
                        PL_E_UNSUPPORTED, "does not cut the text");
    assert_json_refused("\"type\":\"ByteLevel\"", "\"type\":\"Whitespace\"",
                        PL_E_UNSUPPORTED, "is not of type ByteLevel");
    assert_json_refused("\"post_processor\":null",
                        "\"post_processor\":{\"type\":\"RobertaProcessing\"}",
                        PL_E_UNSUPPORTED, "of type \"RobertaProcessing\"");
    assert_json_refused("\"post_processor\":null",
                        "\"post_processor\":{\"type\":\"Sequence\","
                        "\"processors\":[{\"type\":\"Other\"}]}",
                        PL_E_UNSUPPORTED, "of type \"Other\"");
    assert_int_equal(
        read_changed("\"post_processor\":null",
                     "\"post_processor\":{\"type\":\"Sequence\","
                     "\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":"
                     "\"TemplateProcessing\"}]}"),
        PL_OK);
    assert_json_refused("\"dropout\":null", "\"dropout\":0.1", PL_E_UNSUPPORTED,
                        "\"dropout\" is set");
    assert_json_refused("\"end_of_word_suffix\":null",
                        "\"end_of_word_suffix\":\"</w>\"", PL_E_UNSUPPORTED,
                        "end_of_word_suffix");
    assert_json_refused("\"lstrip\":false", "\"lstrip\":true", PL_E_UNSUPPORTED,
                        "\"<|endoftext|>\" is found with");
    assert_int_equal(
        read_changed("\"ignore_merges\":false", "\"ignore_merges\":true"),
        PL_OK);
}

static void broken_tokenizers_are_refused(void **state)
{
    (void)state;
    assert_json_refused("\"merges\":[", "\"merges\":[ \"zz q\",", PL_E_FORMAT,
                        "merge 0 names a token that the");
    assert_json_refused("\"merges\":[", "\"merges\":[ \"zz\",", PL_E_FORMAT,
                        "merge 0 must be");
    assert_json_refused("\"merges\":[", "\"merges\":[ [\"a\", 1],", PL_E_FORMAT,
                        "merge 0 must be");
    assert_json_refused("\"merges\":[", "\"merges\":[ \"\u6c34 a\",",
                        PL_E_FORMAT, "isn't written in byte-level");
    assert_json_refused("\"vocab\":{", "\"vocab\":{ \"\u2581a\":3000,",
                        PL_E_FORMAT, "token 3000: \"\u2581a\" isn't written");
    assert_json_refused("\"vocab\":{", "\"vocab\":{ \"qqq\":-1,", PL_E_FORMAT,
                        "whole number");
    assert_json_refused("\"vocab\":{", "\"vocab\":{ \"qqq\":1048576,",
                        PL_E_FORMAT, "whole number");
    assert_json_refused("\"vocab\":{", "\"vocab\":{ \"qqq\":7,", PL_E_FORMAT,
                        "two tokens have the id 7");
    assert_json_refused("\"vocab\":{", "\"vocab\":{ \"\":1000,", PL_E_FORMAT,
                        "token 1000 has 0 bytes");
    assert_json_refused("\"id\":900", "\"id\":\"900\"", PL_E_FORMAT,
                        "entry 0 of \"added_tokens\"");
    assert_json_refused("\"id\":900", "\"id\":9999999", PL_E_FORMAT,
                        "has ids up to 9999999");
    assert_json_refused("\"model\"", "\"muddle\"", PL_E_FORMAT, "\"model\"");
    assert_json_refused(NULL, "x", PL_E_FORMAT, "not valid JSON");
}

static void a_split_by_gpt2s_pattern_is_the_same_as_byte_level(void **state)
{
    (void)state;
    const char *before = "\"pre_tokenizer\":{";
    assert_int_equal(
        read_changed(before, "\"pre_tokenizer\":{\"type\":\"Sequence\", "
                             "\"pretokenizers\":[{\"type\":\"Split\", "
                             "\"pattern\":{\"Regex\":\"'(?:[sdmt]|ll|ve|re)| "
                             "?\\\\p{L}+| ?\\\\p{N}+| "
                             "?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+"
                             "\"}, \"behavior\":\"Isolated\", \"invert\":"
                             "false}, {\"type\":\"ByteLevel\", "
                             "\"use_regex\":false}]}, \"old\":{"),
        PL_OK);
    assert_json_refused(before,
                        "\"pre_tokenizer\":{\"type\":\"Sequence\", "
                        "\"pretokenizers\":[{\"type\":\"Split\", "
                        "\"pattern\":{\"Regex\":\"\\\\p{L}+\"}, "
                        "\"behavior\":\"Isolated\"}, {\"type\":"
                        "\"ByteLevel\", \"use_regex\":false}]}, \"old\":{",
                        PL_E_UNSUPPORTED, "another pattern");
}

static void merges_that_can_not_happen_are_left_out(void **state)
{
    (void)state;
    /* All bytes, ab, bc, abc; "a bc" can't happen: "ab" comes first. */
    const char *text = with_bytes("YWI= 256\nYmM= 257\nYWJj 258\n");
    pl_bpe_text vocab = { .name = "vocab.json" };
    pl_bpe_text merges = { .name = "merges.txt" };
    int32_t ids[8];
    assert_int_equal(
        pl_bpe_read_ranks(&bpe, text, strlen(text), "x", &heap, &err), PL_OK);
    assert_int_equal(
        pl_bpe_write_vocab(bpe, &heap, &vocab.text, &vocab.bytes, &err), PL_OK);
    merges.text = "#version: 0.2\na b\nb c\na bc\nab c\n";
    merges.bytes = strlen(merges.text);
    assert_int_equal(pl_bpe_read_vocab(&bpe, &vocab, &merges, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_merge_count(bpe), 3);
    assert_int_equal(bpe->ids[bpe->left[258]], 256); /* of ab and c */
    assert_int_equal(pl_bpe_special(bpe, "<|endoftext|>"), 259);

    merges.text = "ab c\na b\n"; /* before its parts are there: at once */
    merges.bytes = strlen(merges.text);
    assert_int_equal(pl_bpe_read_vocab(&bpe, &vocab, &merges, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_merge_count(bpe), 2);
    assert_int_equal(
        pl_bpe_encode_plain(bpe, "xabcabx", 7, PL_BPE_SPECIALS_AS_TEXT, ids),
        4);
    assert_int_equal(ids[1], 258);
    assert_int_equal(ids[2], 256);
    merges.text = "a b\nabc\n";
    merges.bytes = strlen(merges.text);
    assert_int_equal(pl_bpe_read_vocab(&bpe, &vocab, &merges, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "merges.txt:2: ");
    merges.text = "a b\nx y\n";
    merges.bytes = strlen(merges.text);
    assert_int_equal(pl_bpe_read_vocab(&bpe, &vocab, &merges, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "merges.txt: merge 2 names a token");
    vocab.text = "[]";
    vocab.bytes = 2;
    assert_int_equal(pl_bpe_read_vocab(&bpe, &vocab, &merges, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "vocab.json");
}

/* Whoever makes a part of an earlier merge makes that merge next, before its
 * own comes again further right: so do Hugging Face's tokenizers. */
static void a_late_merge_happens_at_once(void **state)
{
    (void)state;
    const char *text = with_bytes("YmM= 256\neWJj 257\nYmNiYw== 258\n");
    pl_bpe_text vocab = { .name = "vocab.json" };
    pl_bpe_text merges = { .name = "merges.txt", .text = "bc bc\ny bc\nb c\n" };
    int32_t ids[8];
    merges.bytes = strlen(merges.text);
    assert_int_equal(
        pl_bpe_read_ranks(&bpe, text, strlen(text), "x", &heap, &err), PL_OK);
    assert_int_equal(
        pl_bpe_write_vocab(bpe, &heap, &vocab.text, &vocab.bytes, &err), PL_OK);
    assert_int_equal(pl_bpe_read_vocab(&bpe, &vocab, &merges, &heap, &err),
                     PL_OK);
    assert_int_equal(
        pl_bpe_encode_plain(bpe, "ybcbc", 5, PL_BPE_SPECIALS_AS_TEXT, ids), 2);
    assert_int_equal(ids[0], 257);
    assert_int_equal(ids[1], 256);
    assert_int_equal(
        pl_bpe_encode_plain(bpe, "xbcbcbc", 7, PL_BPE_SPECIALS_AS_TEXT, ids),
        3);
    assert_int_equal(ids[1], 258);
    assert_int_equal(ids[2], 256);
}

/* ---- files ---- */

static void a_path_says_what_it_holds(void **state)
{
    (void)state;
    scratch s;
    const char *text;
    size_t bytes;
    scratch_open(&s);
    assert_int_equal(
        pl_bpe_load(&bpe, "tests/golden/tokens.tiktoken", &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_load(&bpe, s.folder, &heap, &err), PL_E_IO);
    assert_contains(err.text, "vocab.json");
    assert_int_equal(pl_bpe_write_vocab(bpe, &heap, &text, &bytes, &err),
                     PL_OK);
    scratch_write(scratch_path(&s, "vocab.json"), text, bytes);
    assert_int_equal(pl_bpe_load(&bpe, s.folder, &heap, &err), PL_E_IO);
    assert_contains(err.text, "merges.txt");
    assert_int_equal(pl_bpe_write_merges(bpe, &heap, &text, &bytes, &err),
                     PL_OK);
    scratch_write(scratch_path(&s, "merges.txt"), text, bytes);
    assert_int_equal(pl_bpe_load(&bpe, s.folder, &heap, &err), PL_OK);
    assert_int_equal(
        pl_bpe_load(&bpe, scratch_path(&s, "vocab.json"), &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_write_json(bpe, &heap, &text, &bytes, &err), PL_OK);
    scratch_write(scratch_path(&s, "tokenizer.json"), text, bytes);
    scratch_write(scratch_path(&s, "merges.txt"), "", 0);
    assert_int_equal(pl_bpe_load(&bpe, s.folder, &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_merge_count(bpe), 644);
    assert_int_equal(pl_bpe_load(&bpe, scratch_path(&s, "no"), &heap, &err),
                     PL_E_IO);
    scratch_close(&s);
}

static void running_out_of_memory_is_an_error_everywhere(void **state)
{
    (void)state;
    int failures = 0;
    for (long nth = 1;; nth++) {
        pl_heap small = pl_heap_make(64 << 20);
        pl_arena_fail_at(nth);
        pl_status status = pl_bpe_load(&bpe, "tests/golden/tokens.json", &small,
                                       &err);
        pl_arena_fail_at(0);
        pl_heap_close(&small);
        if (!status)
            break;
        assert_int_equal(status, PL_E_MEMORY);
        failures++;
    }
    assert_true(failures > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_become_a_vocabulary),
        cmocka_unit_test(the_end_of_text_fills_a_gap),
        cmocka_unit_test(broken_ranks_are_refused_with_their_line),
        cmocka_unit_test(a_file_without_all_bytes_is_refused),
        cmocka_unit_test(too_long_tokens_are_refused),
        cmocka_unit_test(other_kinds_of_tokenizer_are_refused),
        cmocka_unit_test(broken_tokenizers_are_refused),
        cmocka_unit_test(a_split_by_gpt2s_pattern_is_the_same_as_byte_level),
        cmocka_unit_test(merges_that_can_not_happen_are_left_out),
        cmocka_unit_test(a_late_merge_happens_at_once),
        cmocka_unit_test(a_path_says_what_it_holds),
        cmocka_unit_test(running_out_of_memory_is_an_error_everywhere),
    };
    return cmocka_run_group_tests_name("bpe_read", tests, set_up, tear_down);
}
