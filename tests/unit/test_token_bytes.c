/* Tests of train/token_bytes: bytes of text that tokens stand for. */
#include "text/bpe_read.h"
#include "train/token_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static pl_token_bytes make(const pl_tokenizer *tokenizer, pl_heap *heap)
{
    pl_token_bytes bytes;
    pl_error err = { 0 };
    const size_t before = heap->taken_bytes;
    if (pl_token_bytes_make(&bytes, tokenizer, heap, &err))
        fail_msg("%s", err.text);
    assert_true(heap->taken_bytes - before >= pl_token_bytes_room(tokenizer));
    return bytes;
}

static void a_byte_is_a_byte(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(1 << 20);
    const pl_tokenizer tokenizer = pl_tokenizer_make_byte();
    const pl_token_bytes bytes = make(&tokenizer, &heap);
    assert_int_equal(bytes.count, 256);
    assert_int_equal(pl_token_bytes_room(&tokenizer), 512);
    for (int i = 0; i < 256; i++)
        assert_int_equal(bytes.of[i], 1);
    pl_heap_close(&heap);
}

static void a_character_has_the_bytes_of_its_utf8(void **state)
{
    (void)state;
    static const uint32_t codes[] = { 'a', 0xe9, 0x2014, 0x1f600 };
    pl_heap heap = pl_heap_make(1 << 20);
    pl_tokenizer tokenizer;
    pl_error err = { 0 };
    assert_int_equal(pl_tokenizer_make_char(&tokenizer, codes, 4, &heap, &err),
                     PL_OK);
    const pl_token_bytes bytes = make(&tokenizer, &heap);
    for (int i = 0; i < 4; i++)
        assert_int_equal(bytes.of[i], i + 1);
    pl_heap_close(&heap);
}

static void ids_without_text_are_unknown(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(1 << 20);
    const pl_tokenizer tokenizer = pl_tokenizer_make_none();
    const pl_token_bytes bytes = make(&tokenizer, &heap);
    assert_null(bytes.of);
    assert_int_equal(pl_token_bytes_room(&tokenizer), 0);
    pl_heap_close(&heap);
}

/* The corpus' own has a special token and merges. */
static void a_special_token_stands_for_no_text(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(1 << 26);
    pl_tokenizer tokenizer;
    pl_bpe *bpe;
    pl_error err = { 0 };
    if (pl_bpe_load(&bpe, "tests/golden/tokens.json", &heap, &err))
        fail_msg("%s", err.text);
    tokenizer = pl_tokenizer_make_bpe(bpe);
    const pl_token_bytes bytes = make(&tokenizer, &heap);
    const int32_t special = pl_bpe_special_at(bpe, 0);
    assert_true(special >= 0);
    size_t longest = 0;
    for (int32_t id = 0; id < tokenizer.vocab_size; id++) {
        size_t length = 0;
        const char *text = pl_bpe_token(bpe, id, &length);
        if (id == special || !text)
            assert_int_equal(bytes.of[id], 0);
        else
            assert_int_equal(bytes.of[id], length);
        longest = length > longest && id != special ? length : longest;
    }
    assert_true(longest > 1);
    pl_heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_is_a_byte),
        cmocka_unit_test(a_character_has_the_bytes_of_its_utf8),
        cmocka_unit_test(ids_without_text_are_unknown),
        cmocka_unit_test(a_special_token_stands_for_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
