#include "text/unicode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void classes_are_those_of_unicode(void **state)
{
    (void)state;
    assert_int_equal(pl_unicode_class_of('a'), PL_UNICODE_LETTER);
    assert_int_equal(pl_unicode_class_of(0xAA), PL_UNICODE_LETTER);
    assert_int_equal(pl_unicode_class_of(0x6C34), PL_UNICODE_LETTER);
    assert_int_equal(pl_unicode_class_of(0x323AF), PL_UNICODE_LETTER);
    assert_int_equal(pl_unicode_class_of('7'), PL_UNICODE_NUMBER);
    assert_int_equal(pl_unicode_class_of(0xB2), PL_UNICODE_NUMBER);
    assert_int_equal(pl_unicode_class_of(0x2160), PL_UNICODE_NUMBER);
    assert_int_equal(pl_unicode_class_of(0x3000), PL_UNICODE_SPACE);
    assert_int_equal(pl_unicode_class_of(0x85), PL_UNICODE_SPACE);
    assert_int_equal(pl_unicode_class_of(0x200B), PL_UNICODE_OTHER);
    assert_int_equal(pl_unicode_class_of(0x1C), PL_UNICODE_OTHER);
    assert_int_equal(pl_unicode_class_of(0x301), PL_UNICODE_OTHER);
}

static void each_class_has_the_size_that_unicode_16_gives_it(void **state)
{
    (void)state;
    int counts[4] = { 0 };
    for (uint32_t code = 0; code < 0x110000; code++)
        counts[pl_unicode_class_of(code)]++;
    assert_int_equal(counts[PL_UNICODE_LETTER], 141028);
    assert_int_equal(counts[PL_UNICODE_NUMBER], 1911);
    assert_int_equal(counts[PL_UNICODE_SPACE], 25);
}

static void numbers_beyond_unicode_are_other(void **state)
{
    (void)state;
    assert_int_equal(pl_unicode_class_of(0x110000), PL_UNICODE_OTHER);
    assert_int_equal(pl_unicode_class_of(0xFFFFFFFF), PL_UNICODE_OTHER);
    assert_int_equal(pl_unicode_class_of(0xD800), PL_UNICODE_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_those_of_unicode),
        cmocka_unit_test(each_class_has_the_size_that_unicode_16_gives_it),
        cmocka_unit_test(numbers_beyond_unicode_are_other),
    };
    return cmocka_run_group_tests_name("unicode", tests, NULL, NULL);
}
