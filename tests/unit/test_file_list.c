/* Names in a folder, and standard input. */
#include "base/file.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static void an_empty_folder_has_no_names(void **state)
{
    pl_heap heap = pl_heap_make(1 << 16);
    const char *const *names;
    size_t count = 7;
    (void)state;
    assert_int_equal(pl_folder_list(dir.folder, &heap, &names, &count, &err),
                     PL_OK);
    assert_int_equal(count, 0);
    pl_heap_close(&heap);
}

static void names_come_in_the_order_of_their_bytes(void **state)
{
    pl_heap heap = pl_heap_make(1 << 20);
    const char *const *names;
    size_t count;
    (void)state;
    for (int i = 0; i < 700; i++) { /* more than one read of the folder */
        char name[64];
        snprintf(name, sizeof name, "%c%d-%s", "aZ\xC3_"[i % 4], i * 37 % 701,
                 i % 3 ? "a-name-of-some-length" : "x");
        scratch_write(scratch_path(&dir, name), "", 0);
    }
    assert_int_equal(pl_folder_list(dir.folder, &heap, &names, &count, &err),
                     PL_OK);
    assert_int_equal(count, 700);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    pl_heap_close(&heap);
}

static void what_is_no_folder_or_does_not_fit_is_refused(void **state)
{
    pl_heap heap = pl_heap_make(200);
    const char *const *names, *path = scratch_path(&dir, "plain");
    size_t count;
    (void)state;
    scratch_write(path, "", 0);
    assert_int_equal(pl_folder_list(path, &heap, &names, &count, &err),
                     PL_E_IO);
    assert_contains(err.text, "plain");
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", i);
        scratch_write(scratch_path(&dir, name), "", 0);
    }
    assert_int_equal(pl_folder_list(dir.folder, &heap, &names, &count, &err),
                     PL_E_MEMORY);
    assert_contains(err.text, "too many files");
    pl_heap_close(&heap);
}

static void closing_standard_input_leaves_it_open(void **state)
{
    int before = scratch_open_files(), own = dup(STDIN_FILENO), ends[2];
    char byte = 0;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "ab", 2), 2);
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    for (int i = 0; i < 3; i++) {
        pl_file file;
        size_t got;
        assert_int_equal(pl_file_open_input(&file, &err), PL_OK);
        assert_int_equal(pl_file_read_some(&file, &byte, 1, &got, &err), PL_OK);
        assert_int_equal(got, i < 2);
        assert_int_equal(byte, i < 1 ? 'a' : 'b');
        pl_file_abandon(&file);
    }
    dup2(own, STDIN_FILENO);
    close(own);
    close(ends[0]);
    assert_int_equal(scratch_open_files(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_folder_has_no_names, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(names_come_in_the_order_of_their_bytes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_no_folder_or_does_not_fit_is_refused, set_up, tear_down),
        cmocka_unit_test(closing_standard_input_leaves_it_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
