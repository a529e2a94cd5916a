#include "text/tokfile.h"

#include "base/file.h"
#include "support/scratch.h"
#include "text/bpe_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;
static pl_tokenizer tokenizer;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    heap = pl_heap_make(PL_BPE_HEAP_BYTES);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static void copy(const char *from, const char *name)
{
    size_t bytes;
    char *data = scratch_read(from, &bytes);
    assert_non_null(data);
    scratch_write(scratch_path(&dir, name), data, bytes);
    free(data);
}

static pl_tokenizer_kind found_in(const char *folder)
{
    if (pl_tokenizer_find(&tokenizer, folder, &heap, &err))
        fail_msg("%s", err.text);
    return tokenizer.kind;
}

static void a_folder_is_asked_in_a_fixed_order(void **state)
{
    (void)state;
    static const char meta[] = "{\"tokenizer\": \"byte\", \"vocab_size\": 256}";
    const char *text;
    size_t bytes;
    assert_int_equal(found_in(dir.folder), PL_TOKENIZER_NONE);
    assert_int_equal(pl_tokenizer_load(&tokenizer,
                                       "tests/golden/tokens.tiktoken", &heap,
                                       &err),
                     PL_OK);
    int32_t size = tokenizer.vocab_size;
    assert_int_equal(tokenizer.kind, PL_TOKENIZER_BPE);
    /* vocab.json and merges.txt, then each that comes before them */
    const pl_bpe *bpe = tokenizer.bpe;
    assert_int_equal(pl_bpe_write_vocab(bpe, &heap, &text, &bytes, &err),
                     PL_OK);
    scratch_write(scratch_path(&dir, "vocab.json"), text, bytes);
    assert_int_equal(pl_bpe_write_merges(bpe, &heap, &text, &bytes, &err),
                     PL_OK);
    scratch_write(scratch_path(&dir, "merges.txt"), text, bytes);
    assert_int_equal(found_in(dir.folder), PL_TOKENIZER_BPE);
    assert_int_equal(tokenizer.vocab_size, size);
    copy("tests/golden/tokens.json", "tokenizer.json");
    assert_int_equal(found_in(dir.folder), PL_TOKENIZER_BPE);
    scratch_write(scratch_path(&dir, "meta.json"), meta, strlen(meta));
    assert_int_equal(found_in(dir.folder), PL_TOKENIZER_BYTE);
}

static void what_is_there_must_be_right(void **state)
{
    (void)state;
    scratch_write(scratch_path(&dir, "tokenizer.json"), "{}", 2);
    assert_int_equal(pl_tokenizer_find(&tokenizer, dir.folder, &heap, &err),
                     PL_E_FORMAT);
    assert_non_null(strstr(err.text, "tokenizer.json"));
    assert_int_equal(pl_tokenizer_load(&tokenizer, dir.folder, &heap, &err),
                     PL_E_FORMAT);
    scratch_write(scratch_path(&dir, "meta.json"), "[", 1);
    assert_int_equal(pl_tokenizer_find(&tokenizer, dir.folder, &heap, &err),
                     PL_E_FORMAT);
    assert_non_null(strstr(err.text, "meta.json"));
}

static void a_path_without_a_tokenizer_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(pl_tokenizer_load(&tokenizer, dir.folder, &heap, &err),
                     PL_E_IO);
    assert_non_null(strstr(err.text, "has no tokenizer"));
    assert_int_equal(pl_tokenizer_load(&tokenizer, scratch_path(&dir, "absent"),
                                       &heap, &err),
                     PL_E_IO);
    assert_non_null(strstr(err.text, "absent"));
}

/* Each kind, written and read again by the name that it was given. */
static void what_is_written_is_read_back(void **state)
{
    (void)state;
    static const uint32_t codes[] = { '\n', 'a', 0x1F6A2 };
    pl_tokenizer kinds[3];
    kinds[0] = pl_tokenizer_make_byte();
    assert_int_equal(pl_tokenizer_make_char(&kinds[1], codes, 3, &heap, &err),
                     PL_OK);
    assert_int_equal(
        pl_tokenizer_load(&kinds[2], "tests/golden/tokens.json", &heap, &err),
        PL_OK);
    for (int i = 0; i < 3; i++) {
        pl_tokenizer_text file, again;
        assert_int_equal(pl_tokenizer_write(&kinds[i], &heap, &file, &err),
                         PL_OK);
        assert_string_equal(file.name, i == 2 ? "tokenizer.json" : "meta.json");
        assert_int_equal(strlen(file.text), file.bytes);
        const char *path = scratch_path(&dir, file.name);
        scratch_write(path, file.text, file.bytes);
        assert_int_equal(pl_tokenizer_load(&tokenizer, path, &heap, &err),
                         PL_OK);
        assert_int_equal(tokenizer.kind, kinds[i].kind);
        assert_int_equal(tokenizer.vocab_size, kinds[i].vocab_size);
        assert_int_equal(pl_tokenizer_write(&tokenizer, &heap, &again, &err),
                         PL_OK);
        assert_string_equal(again.text, file.text);
    }
    pl_tokenizer none = pl_tokenizer_make_none();
    pl_tokenizer_text file;
    assert_int_equal(pl_tokenizer_write(&none, &heap, &file, &err), PL_OK);
    assert_null(file.name);
}

static void models_round_the_vocabulary_of_a_bpe_up(void **state)
{
    (void)state;
    pl_tokenizer byte = pl_tokenizer_make_byte();
    byte.vocab_size = 65;
    assert_int_equal(pl_tokenizer_model_vocab(&byte), 65);
    assert_int_equal(pl_tokenizer_memory_bytes(&byte), 0);
    pl_tokenizer bpe = { .kind = PL_TOKENIZER_BPE, .vocab_size = 50257 };
    assert_int_equal(pl_tokenizer_model_vocab(&bpe), 50304);
    bpe.vocab_size = 64;
    assert_int_equal(pl_tokenizer_model_vocab(&bpe), 64);
    assert_true(pl_tokenizer_memory_bytes(&bpe) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_is_asked_in_a_fixed_order,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_there_must_be_right, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_path_without_a_tokenizer_is_an_error,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_back, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(models_round_the_vocabulary_of_a_bpe_up,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
