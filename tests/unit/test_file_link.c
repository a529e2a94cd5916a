/* Tests of base/file at symbolic links: nothing is written through one. */
#include "base/file.h"

#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static char target[1024], path[1024], nowhere[1024];
static const char precious[] = "somebody else's";

/* `link` points to a file of somebody else's, `dangling` to none. */
static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    strcpy(target, scratch_path(&dir, "target"));
    strcpy(nowhere, scratch_path(&dir, "nowhere"));
    strcpy(path, scratch_path(&dir, "link"));
    scratch_write(target, precious, sizeof precious);
    if (symlink("target", path) ||
        symlink("nowhere", scratch_path(&dir, "dangling")))
        return 1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static void assert_untouched(void)
{
    size_t bytes;
    char *text = scratch_read(target, &bytes);
    assert_non_null(text);
    assert_int_equal(bytes, sizeof precious);
    assert_memory_equal(text, precious, bytes);
    free(text);
    assert_false(scratch_has(nowhere));
}

static void assert_says_link(pl_status status)
{
    assert_int_equal(status, PL_E_IO);
    assert_non_null(strstr(err.text, "symbolic link"));
    assert_non_null(strstr(err.text, dir.folder));
    assert_untouched();
}

static void no_file_is_created_through_one(void **state)
{
    (void)state;
    pl_file file;
    assert_says_link(pl_file_create(&file, path, &err));
    assert_int_equal(file.fd, -1);
    assert_says_link(
        pl_file_create(&file, scratch_path(&dir, "dangling"), &err));
}

static void none_is_cut_or_written_on_through_one(void **state)
{
    (void)state;
    pl_file file;
    assert_says_link(pl_file_open_again(&file, path, 3, &err));
    assert_int_equal(file.fd, -1);
}

static void none_is_locked_through_one(void **state)
{
    (void)state;
    pl_file file;
    assert_says_link(pl_file_lock(&file, path, &err));
    assert_says_link(pl_file_lock(&file, scratch_path(&dir, "dangling"), &err));
}

/* A rename puts the file in the link's place. */
static void replacing_one_leaves_its_target(void **state)
{
    (void)state;
    struct stat info;
    assert_int_equal(pl_file_replace(path, "new", 3, &err), PL_OK);
    assert_untouched();
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_int_equal(info.st_size, 3);
}

static void a_temporary_name_is_none_to_write_through(void **state)
{
    (void)state;
    if (symlink("target", scratch_path(&dir, "text.tmp")))
        fail();
    assert_says_link(
        pl_file_replace(scratch_path(&dir, "text"), "new", 3, &err));
    assert_false(scratch_has(scratch_path(&dir, "text")));
}

/* A folder may be elsewhere: that is where the user put it. */
static void folders_and_reading_go_through(void **state)
{
    (void)state;
    pl_file file;
    assert_int_equal(mkdir(scratch_path(&dir, "real"), 0755), 0);
    assert_int_equal(symlink("real", scratch_path(&dir, "folder")), 0);
    assert_int_equal(
        pl_file_create(&file, scratch_path(&dir, "folder/x"), &err), PL_OK);
    assert_int_equal(pl_file_close(&file, &err), PL_OK);
    assert_true(scratch_has(scratch_path(&dir, "real/x")));
    assert_int_equal(pl_file_open_read(&file, path, &err), PL_OK);
    pl_file_abandon(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_file_is_created_through_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(none_is_cut_or_written_on_through_one,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(none_is_locked_through_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(replacing_one_leaves_its_target, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_temporary_name_is_none_to_write_through, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_and_reading_go_through, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
