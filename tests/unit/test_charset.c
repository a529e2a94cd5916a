#include "data/charset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;
static pl_charset set;
static pl_tokenizer tokenizer;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(16 << 20);
    memset(&err, 0, sizeof err);
    memset(&set, 0, sizeof set);
    return pl_charset_open(&set, &heap, &err) != PL_OK;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static void mark(const char *text)
{
    assert_int_equal(pl_charset_mark(&set, text, strlen(text)), strlen(text));
}

static void what_was_marked_becomes_ids_in_order(void **state)
{
    (void)state;
    static const char text[] = "ab\n🚢é";
    int32_t ids[8];
    size_t count;
    mark("ba");
    mark("🚢\nébb");
    assert_int_equal(pl_charset_make(&set, &tokenizer, &heap, &err), PL_OK);
    assert_int_equal(tokenizer.vocab_size, 5); /* \n a b é 🚢 */
    assert_int_equal(
        pl_charset_encode(&set, &tokenizer, text, sizeof text - 1, ids, &count),
        sizeof text - 1);
    static const int32_t want[] = { 1, 2, 0, 4, 3 };
    assert_int_equal(count, 5);
    assert_memory_equal(ids, want, sizeof want);
}

static void marking_stops_at_what_is_no_utf8(void **state)
{
    (void)state;
    assert_int_equal(pl_charset_mark(&set, "abc\xFFz", 5), 3);
    assert_int_equal(pl_charset_mark(&set, "é\xE2\x82", 4), 2); /* cut off */
    assert_int_equal(pl_charset_mark(&set, "", 0), 0);
    assert_int_equal(pl_charset_make(&set, &tokenizer, &heap, &err), PL_OK);
    assert_int_equal(tokenizer.vocab_size, 4); /* z was not reached */
}

static void encoding_stops_at_what_the_vocabulary_lacks(void **state)
{
    (void)state;
    int32_t ids[8];
    size_t count;
    mark("xyz");
    assert_int_equal(pl_charset_make(&set, &tokenizer, &heap, &err), PL_OK);
    /* x has id 0, as all that is unknown looks in the table. */
    assert_int_equal(
        pl_charset_encode(&set, &tokenizer, "xzqx", 4, ids, &count), 2);
    assert_int_equal(count, 2);
    assert_int_equal(
        pl_charset_encode(&set, &tokenizer, "y\x80", 2, ids, &count), 1);
    assert_int_equal(count, 1);
    assert_int_equal(pl_charset_encode(&set, &tokenizer, "", 0, ids, &count),
                     0);
    assert_int_equal(count, 0);
}

static void the_table_of_another_tokenizer_replaces_the_marks(void **state)
{
    (void)state;
    static const uint32_t codes[] = { 'c', 'a' };
    int32_t ids[4];
    size_t count;
    pl_tokenizer other;
    mark("abc");
    assert_int_equal(pl_tokenizer_make_char(&other, codes, 2, &heap, &err),
                     PL_OK);
    pl_charset_fill(&set, &other);
    assert_int_equal(pl_charset_encode(&set, &other, "acb", 3, ids, &count), 2);
    assert_int_equal(count, 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_marked_becomes_ids_in_order,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(marking_stops_at_what_is_no_utf8,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            encoding_stops_at_what_the_vocabulary_lacks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            the_table_of_another_tokenizer_replaces_the_marks, set_up,
            tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
