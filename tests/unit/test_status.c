#include "base/status.h"
#include "base/utf8.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;

static int set_up(void **state)
{
    (void)state;
    memset(&err, 'x', sizeof err); /* nothing may be expected of it */
    return 0;
}

static void codes_have_names_and_the_exit_codes_of_the_manual(void **state)
{
    (void)state;
    static const struct {
        pl_status status;
        const char *name;
        int exit_code;
    } codes[] = {
        { PL_OK, "ok", 0 },
        { PL_E_IO, "input/output", 1 },
        { PL_E_USAGE, "usage", 2 },
        { PL_E_CONFIG, "config", 3 },
        { PL_E_FORMAT, "format", 4 },
        { PL_E_MEMORY, "memory", 5 },
        { PL_E_UNSUPPORTED, "unsupported", 6 },
        { PL_E_RANKS, "ranks", 7 },
        { PL_E_STOPPED, "stopped", 130 },
    };
    assert_int_equal(PL_STATUS_COUNT, sizeof codes / sizeof codes[0]);
    for (int i = 0; i < PL_STATUS_COUNT; i++) {
        assert_string_equal(pl_status_name(codes[i].status), codes[i].name);
        assert_int_equal(pl_status_exit_code(codes[i].status),
                         codes[i].exit_code);
        assert_true(strlen(pl_status_meaning(codes[i].status)) > 3);
    }
}

static void a_failure_carries_its_status_and_message(void **state)
{
    (void)state;
    assert_int_equal(
        pl_fail(&err, PL_E_CONFIG, "%s:%d: no key %s", "x.py", 3, "n_layers"),
        PL_E_CONFIG);
    assert_int_equal(err.status, PL_E_CONFIG);
    assert_string_equal(err.text, "x.py:3: no key n_layers");
}

static void nobody_has_to_take_the_message(void **state)
{
    (void)state;
    assert_int_equal(pl_fail(NULL, PL_E_IO, "%s", "lost"), PL_E_IO);
    assert_int_equal(pl_fail_in(NULL, PL_E_FORMAT, "%s", "lost"), PL_E_FORMAT);
}

static void context_goes_before_the_message(void **state)
{
    (void)state;
    pl_fail(&err, PL_E_IO, "cannot read %s", "a.bin");
    assert_int_equal(pl_fail_in(&err, PL_E_FORMAT, "split %s: ", "val"),
                     PL_E_FORMAT);
    assert_int_equal(err.status, PL_E_FORMAT);
    assert_string_equal(err.text, "split val: cannot read a.bin");
    pl_fail_in(&err, PL_E_FORMAT, "%s", "");
    assert_string_equal(err.text, "split val: cannot read a.bin");
}

static void a_long_message_is_cut_and_ended(void **state)
{
    (void)state;
    char text[2 * PL_ERROR_TEXT_BYTES];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    pl_fail(&err, PL_E_IO, "%s", text);
    assert_int_equal(strlen(err.text), PL_ERROR_TEXT_BYTES - 1);
    pl_fail_in(&err, PL_E_IO, "%s", "before: ");
    assert_int_equal(strlen(err.text), PL_ERROR_TEXT_BYTES - 1);
    assert_int_equal(strncmp(err.text, "before: aaa", 11), 0);
    pl_fail_in(&err, PL_E_IO, "b%s", text);
    assert_int_equal(strlen(err.text), PL_ERROR_TEXT_BYTES - 1);
    assert_int_equal(strncmp(err.text, "baaa", 4), 0);
}

static void a_message_that_just_fits_is_whole(void **state)
{
    (void)state;
    char text[PL_ERROR_TEXT_BYTES];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    pl_fail(&err, PL_E_IO, "%s", text);
    assert_string_equal(err.text, text);
    text[sizeof text - 3] = '\0';
    pl_fail(&err, PL_E_IO, "%s", text);
    pl_fail_in(&err, PL_E_IO, "12");
    assert_int_equal(strlen(err.text), PL_ERROR_TEXT_BYTES - 1);
    assert_string_equal(err.text + 2, text);
}

static void a_long_message_is_never_cut_inside_a_character(void **state)
{
    (void)state;
    static const char *const characters[] = { "é", "€", "😀" };
    char text[2 * PL_ERROR_TEXT_BYTES];
    for (size_t c = 0; c < 3; c++)
        for (size_t shift = 0; shift < 4; shift++) {
            size_t length = strlen(characters[c]), used = shift;
            memset(text, 'a', sizeof text);
            for (; used + length < sizeof text; used += length)
                memcpy(text + used, characters[c], length);
            text[used] = '\0';
            pl_fail(&err, PL_E_IO, "%s", text);
            size_t kept = strlen(err.text);
            assert_true(pl_utf8_is_valid(err.text, kept));
            assert_true(kept + length >= PL_ERROR_TEXT_BYTES);
            pl_fail_in(&err, PL_E_IO, "b: ");
            kept = strlen(err.text);
            assert_true(pl_utf8_is_valid(err.text, kept));
            assert_true(kept + length >= PL_ERROR_TEXT_BYTES);
            pl_fail_in(&err, PL_E_IO, "%s", text);
            assert_true(pl_utf8_is_valid(err.text, strlen(err.text)));
        }
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(codes_have_names_and_the_exit_codes_of_the_manual),
        TEST(a_failure_carries_its_status_and_message),
        TEST(nobody_has_to_take_the_message),
        TEST(context_goes_before_the_message),
        TEST(a_long_message_is_cut_and_ended),
        TEST(a_message_that_just_fits_is_whole),
        TEST(a_long_message_is_never_cut_inside_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
