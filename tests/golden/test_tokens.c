/* What tiktoken and Hugging Face's tokenizers do (make_tokens.py) is what we
 * do: the same ids, the same merges. */
#include "support/scratch.h"
#include "text/bpe_read.h"
#include "text/bpe_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static pl_bpe *load(const char *path)
{
    pl_bpe *bpe;
    if (pl_bpe_load(&bpe, path, &heap, &err))
        fail_msg("%s", err.text);
    return bpe;
}

static void assert_ids_of_tiktoken(const pl_bpe *bpe)
{
    size_t bytes, want_bytes;
    char *text = scratch_read("tests/golden/tokens_text.txt", &bytes);
    char *want = scratch_read("tests/golden/tokens_text.ids", &want_bytes);
    int32_t *ids = malloc(bytes * sizeof *ids);
    pl_bpe_encoder encoder;
    assert_int_equal(pl_bpe_encoder_open(&encoder, bpe, 1 << 16, &heap, &err),
                     PL_OK);
    for (int round = 0; round < 2; round++) { /* learning and remembering */
        size_t count = pl_bpe_encode(&encoder, text, bytes,
                                     PL_BPE_SPECIALS_AS_TEXT, ids);
        assert_int_equal(count, want_bytes / 2);
        for (size_t i = 0; i < count; i++) {
            unsigned char *two = (unsigned char *)want + 2 * i;
            assert_int_equal(ids[i], two[0] | two[1] << 8);
        }
    }
    free(ids);
    free(want);
    free(text);
}

static void ranks_encode_as_tiktoken_does(void **state)
{
    (void)state;
    assert_ids_of_tiktoken(load("tests/golden/tokens.tiktoken"));
}

static void a_tokenizer_json_encodes_as_its_ranks_do(void **state)
{
    (void)state;
    pl_bpe *bpe = load("tests/golden/tokens.json");
    assert_ids_of_tiktoken(bpe);
    assert_int_equal(pl_bpe_special(bpe, "<|endoftext|>"), 900);
}

static void what_is_written_encodes_the_same(void **state)
{
    (void)state;
    pl_bpe *first = load("tests/golden/tokens.tiktoken"), *again;
    pl_bpe_text vocab = { .name = "vocab" }, merges = { .name = "merges" };
    const char *text;
    size_t bytes;
    assert_int_equal(pl_bpe_write_json(first, &heap, &text, &bytes, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_read_json(&again, text, bytes, "json", &heap, &err),
                     PL_OK);
    assert_ids_of_tiktoken(again);
    assert_int_equal(pl_bpe_special(again, "<|endoftext|>"), 900);
    assert_int_equal(
        pl_bpe_write_vocab(first, &heap, &vocab.text, &vocab.bytes, &err),
        PL_OK);
    assert_int_equal(
        pl_bpe_write_merges(first, &heap, &merges.text, &merges.bytes, &err),
        PL_OK);
    assert_int_equal(pl_bpe_read_vocab(&again, &vocab, &merges, &heap, &err),
                     PL_OK);
    assert_ids_of_tiktoken(again);
    assert_int_equal(pl_bpe_special(again, "<|endoftext|>"), 900);
}

static void training_finds_hugging_faces_merges(void **state)
{
    (void)state;
    static const char *const specials[] = { "<|endoftext|>" };
    pl_bpe_train_options options = { .vocab_size = 901,
                                     .specials = specials,
                                     .special_count = 1,
                                     .threads = 1,
                                     .memory_bytes = 16 << 20 };
    pl_bpe_train_result result;
    pl_bpe_counter *counter;
    const char *text, *want;
    size_t bytes, want_bytes;
    char *corpus = scratch_read("tests/golden/tokens_train.txt", &bytes);
    assert_int_equal(pl_bpe_counter_open(&counter, &options, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_counter_add(counter, 0, corpus, bytes, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_train(counter, &result, &heap, &err), PL_OK);
    pl_bpe_counter_close(counter);
    free(corpus);
    assert_int_equal(pl_bpe_write_vocab(result.bpe, &heap, &text, &bytes, &err),
                     PL_OK);
    assert_int_equal(pl_bpe_write_vocab(load("tests/golden/tokens.json"), &heap,
                                        &want, &want_bytes, &err),
                     PL_OK);
    assert_string_equal(text, want);
    assert_int_equal(
        pl_bpe_write_merges(result.bpe, &heap, &text, &bytes, &err), PL_OK);
    assert_int_equal(pl_bpe_write_merges(load("tests/golden/tokens.json"),
                                         &heap, &want, &want_bytes, &err),
                     PL_OK);
    assert_string_equal(text, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_encode_as_tiktoken_does),
        cmocka_unit_test(a_tokenizer_json_encodes_as_its_ranks_do),
        cmocka_unit_test(what_is_written_encodes_the_same),
        cmocka_unit_test(training_finds_hugging_faces_merges),
    };
    return cmocka_run_group_tests_name("tokens", tests, set_up, tear_down);
}
