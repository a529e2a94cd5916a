#include "data/prepare_state.h"

#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;

static const pl_prepare_state full = {
    .settings = UINT64_MAX,
    .tally = { .place = { .file = 1, .record = 2, .offset = UINT64_MAX - 3 },
               .in_document = 1,
               .mark = 1,
               .documents = 4,
               .text_bytes = 5,
               .marked_bytes = 6,
               .sum = 9 },
    .train_tokens = 7,
    .val_tokens = 8,
    .stamps = 10,
};

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static pl_prepare_found find(pl_prepare_state *state)
{
    pl_prepare_found found;
    if (pl_prepare_state_read(state, dir.folder, &found, &err))
        fail_msg("%s", err.text);
    return found;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    pl_prepare_state read = { .settings = full.settings };
    assert_int_equal(find(&read), PL_PREPARE_NOTHING);
    assert_int_equal(pl_prepare_state_write(&full, dir.folder, &err), PL_OK);
    assert_int_equal(find(&read), PL_PREPARE_SAME);
    assert_memory_equal(&read, &full, sizeof full);
}

static void that_of_other_settings_is_not_taken(void **state)
{
    (void)state;
    pl_prepare_state read = { .settings = 1, .train_tokens = 99 };
    assert_int_equal(pl_prepare_state_write(&full, dir.folder, &err), PL_OK);
    assert_int_equal(find(&read), PL_PREPARE_OTHER);
    assert_int_equal(read.train_tokens, 99);
}

/* Cut off at every byte, and with every byte changed. */
static void a_damaged_one_is_nothing_or_another(void **state)
{
    (void)state;
    size_t bytes;
    const char *path = scratch_path(&dir, PL_PREPARE_STATE_FILE);
    assert_int_equal(pl_prepare_state_write(&full, dir.folder, &err), PL_OK);
    char *text = scratch_read(path, &bytes);
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++) {
        pl_prepare_state read = { .settings = full.settings };
        scratch_write(path, text, i);
        assert_int_equal(find(&read), PL_PREPARE_NOTHING);
        text[i] ^= 0x40; /* no digit stays one */
        scratch_write(path, text, bytes);
        assert_int_equal(find(&read), PL_PREPARE_NOTHING);
        text[i] ^= 0x40;
    }
    free(text);
}

static void a_number_that_cannot_be_is_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *row, *other;
    } rows[] = {
        { "inside 1", "inside 2" },
        { "to_val 1", "to_val 9" },
        { "documents 4", "documents 18446744073709551616" },
        { "documents 4", "documents -4" },
        { "documents 4", "documents " },
    };
    size_t bytes;
    const char *path = scratch_path(&dir, PL_PREPARE_STATE_FILE);
    assert_int_equal(pl_prepare_state_write(&full, dir.folder, &err), PL_OK);
    char *text = scratch_read(path, &bytes);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char changed[2048];
        pl_prepare_state read = { .settings = full.settings };
        const char *at = strstr(text, rows[i].row);
        assert_non_null(at);
        int used = snprintf(changed, sizeof changed, "%.*s%s%s",
                            (int)(at - text), text, rows[i].other,
                            at + strlen(rows[i].row));
        scratch_write(path, changed, (size_t)used);
        assert_int_equal(find(&read), PL_PREPARE_NOTHING);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_written_is_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(that_of_other_settings_is_not_taken,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_damaged_one_is_nothing_or_another,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_number_that_cannot_be_is_nothing,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
