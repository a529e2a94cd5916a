/* Tests of base/file_place: a folder is known again by whatever name. That one
 * is out of reach is tests/cli/full_disk.sh's to see: it takes a mount. */
#include "base/file.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static pl_file folder;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    if (pl_folder_make(scratch_path(&dir, "a"), &err) ||
        pl_folder_open(&folder, scratch_path(&dir, "a"), &err))
        fail_msg("%s", err.text);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_abandon(&folder);
    scratch_close(&dir);
    return 0;
}

static pl_folder_fate fate_at(const char *name, char now[PL_PATH_BYTES])
{
    pl_folder_fate fate;
    now[0] = '\0';
    if (pl_folder_where(&folder, scratch_path(&dir, name), &fate, now, &err))
        fail_msg("%s", err.text);
    return fate;
}

static void a_folder_that_was_moved_is_found(void **state)
{
    (void)state;
    char now[PL_PATH_BYTES];
    assert_int_equal(fate_at("a", now), PL_FOLDER_HERE);
    assert_int_equal(fate_at("a/.", now), PL_FOLDER_HERE);
    assert_int_equal(
        pl_file_rename(scratch_path(&dir, "a"), scratch_path(&dir, "b"), &err),
        PL_OK);
    assert_int_equal(fate_at("a", now), PL_FOLDER_MOVED);
    assert_string_equal(strrchr(now, '/'), "/b");
    /* also where another has its name */
    assert_int_equal(pl_folder_make(scratch_path(&dir, "a"), &err), PL_OK);
    assert_int_equal(fate_at("a", now), PL_FOLDER_MOVED);
    assert_int_equal(fate_at("b", now), PL_FOLDER_HERE);
}

static void a_folder_that_was_removed_is_gone(void **state)
{
    (void)state;
    char now[PL_PATH_BYTES];
    scratch_remove(scratch_path(&dir, "a"));
    assert_int_equal(fate_at("a", now), PL_FOLDER_GONE);
    assert_int_equal(pl_folder_make(scratch_path(&dir, "a"), &err), PL_OK);
    assert_int_equal(fate_at("a", now), PL_FOLDER_GONE);
}

static void a_file_is_where_its_name_is(void **state)
{
    (void)state;
    pl_file file;
    int there = 0;
    const char *path = scratch_path(&dir, "f");
    assert_int_equal(pl_file_create(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_is_at(&file, path, &there, &err), PL_OK);
    assert_true(there);
    remove(path);
    assert_int_equal(pl_file_is_at(&file, path, &there, &err), PL_OK);
    assert_false(there);
    scratch_write(path, "x", 1);
    assert_int_equal(pl_file_is_at(&file, path, &there, &err), PL_OK);
    assert_false(there);
    pl_file_abandon(&file);
}

static void only_a_folder_is_opened_as_one(void **state)
{
    (void)state;
    pl_file other;
    scratch_write(scratch_path(&dir, "f"), "x", 1);
    assert_int_equal(pl_folder_open(&other, scratch_path(&dir, "f"), &err),
                     PL_E_IO);
    assert_int_equal(pl_folder_open(&other, scratch_path(&dir, "none"), &err),
                     PL_E_IO);
    assert_non_null(strstr(err.text, "none"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_folder_that_was_moved_is_found),
        TEST(a_folder_that_was_removed_is_gone),
        TEST(a_file_is_where_its_name_is),
        TEST(only_a_folder_is_opened_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
