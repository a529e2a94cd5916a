/* What Hugging Face's tokenizers do with the patterns of Llama 3, Qwen and
 * SmolLM2 (make_patterns.py) is what we do: the same ids, the same merges. */
#include "support/scratch.h"
#include "text/bpe_read.h"
#include "text/bpe_train.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *name;
    pl_splitting splitting;
} forms[] = {
    { "llama3", { PL_PATTERN_LLAMA3, PL_NORMAL_NONE } },
    { "qwen2", { PL_PATTERN_QWEN2, PL_NORMAL_NFC } },
    { "smollm2", { PL_PATTERN_SMOLLM2, PL_NORMAL_NONE } },
};

enum { FORMS = sizeof forms / sizeof *forms, LLAMA3 = 0 };

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

static const char *file_of(size_t form, const char *end)
{
    static char path[128];
    snprintf(path, sizeof path, "tests/golden/patterns/%s%s", forms[form].name,
             end);
    return path;
}

static pl_bpe *load(size_t form)
{
    pl_bpe *bpe;
    if (pl_bpe_load(&bpe, file_of(form, ".json"), &heap, &err))
        fail_msg("%s", err.text);
    assert_int_equal(pl_bpe_splitting(bpe).pattern,
                     forms[form].splitting.pattern);
    assert_int_equal(pl_bpe_splitting(bpe).normal,
                     forms[form].splitting.normal);
    return bpe;
}

static void assert_ids(size_t form, const pl_bpe *bpe, pl_bpe_specials specials,
                       const char *end)
{
    size_t bytes, want_bytes;
    char *text = scratch_read("tests/golden/patterns/text.txt", &bytes);
    char *want = scratch_read(file_of(form, end), &want_bytes);
    /* Exactly the room that is asked for: a sanitizer sees more. */
    int32_t *ids = malloc(pl_bpe_most_ids(bpe, bytes) * sizeof *ids);
    pl_bpe_encoder encoder;
    assert_int_equal(pl_bpe_encoder_open(&encoder, bpe, 1 << 16, &heap, &err),
                     PL_OK);
    for (int round = 0; round < 3; round++) { /* learning, knowing, without */
        size_t count = round < 2
                           ? pl_bpe_encode(&encoder, text, bytes, specials, ids)
                           : pl_bpe_encode_plain(bpe, text, bytes, specials,
                                                 ids);
        for (size_t i = 0; i < count && i < want_bytes / 2; i++) {
            unsigned char *two = (unsigned char *)want + 2 * i;
            if (ids[i] != (two[0] | two[1] << 8))
                fail_msg("%s%s: token %zu is %d, not %d", forms[form].name, end,
                         i, (int)ids[i], two[0] | two[1] << 8);
        }
        assert_int_equal(count, want_bytes / 2);
    }
    free(ids);
    free(want);
    free(text);
}

static void the_ids_are_theirs(void **state)
{
    (void)state;
    for (size_t form = 0; form < FORMS; form++) {
        pl_bpe *bpe = load(form);
        assert_ids(form, bpe, PL_BPE_SPECIALS_AS_TEXT, ".ids");
        assert_ids(form, bpe, PL_BPE_SPECIALS_FOUND, ".found");
    }
}

static void what_is_written_encodes_the_same(void **state)
{
    (void)state;
    for (size_t form = 0; form < FORMS; form++) {
        pl_bpe *again;
        const char *text, *twice;
        size_t bytes, twice_bytes;
        assert_int_equal(
            pl_bpe_write_json(load(form), &heap, &text, &bytes, &err), PL_OK);
        assert_int_equal(
            pl_bpe_read_json(&again, text, bytes, "again", &heap, &err), PL_OK);
        assert_ids(form, again, PL_BPE_SPECIALS_AS_TEXT, ".ids");
        assert_ids(form, again, PL_BPE_SPECIALS_FOUND, ".found");
        assert_int_equal(
            pl_bpe_write_json(again, &heap, &twice, &twice_bytes, &err), PL_OK);
        assert_string_equal(text, twice);
    }
}

static void add_text(pl_bpe_counter *counter, const char *path)
{
    size_t bytes;
    char *text = scratch_read(path, &bytes);
    assert_int_equal(pl_bpe_counter_add(counter, 0, text, bytes, &err), PL_OK);
    free(text);
}

static void training_finds_their_merges(void **state)
{
    (void)state;
    for (size_t form = 0; form < FORMS; form++) {
        pl_bpe_train_options options = { .vocab_size = 600,
                                         .splitting = forms[form].splitting,
                                         .threads = 1,
                                         .memory_bytes = 16 << 20 };
        pl_bpe_train_result result;
        pl_bpe_counter *counter;
        const char *text, *want;
        size_t bytes, want_bytes;
        if (form == LLAMA3)
            continue; /* its merges were disordered */
        assert_int_equal(pl_bpe_counter_open(&counter, &options, &heap, &err),
                         PL_OK);
        add_text(counter, "tests/golden/tokens_train.txt");
        add_text(counter, "tests/golden/patterns/text.txt");
        assert_int_equal(pl_bpe_train(counter, &result, &heap, &err), PL_OK);
        pl_bpe_counter_close(counter);
        assert_int_equal(
            pl_bpe_write_merges(result.bpe, &heap, &text, &bytes, &err), PL_OK);
        assert_int_equal(
            pl_bpe_write_merges(load(form), &heap, &want, &want_bytes, &err),
            PL_OK);
        assert_string_equal(text, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ids_are_theirs),
        cmocka_unit_test(what_is_written_encodes_the_same),
        cmocka_unit_test(training_finds_their_merges),
    };
    return cmocka_run_group_tests_name("patterns", tests, set_up, tear_down);
}
