/* test_file_sync.c: in what order things reach the disk. A file gets its name
 * once the disk has its bytes; then the disk hears of the name. */
#include "base/file.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static pl_error err;
static const char *watched; /* a file that is being put into its place */
static int files_before, files_after, folders_before, folders_after;

/* Stands for the library's: counts what is synced before the watched file has
 * its name, and after. */
int fsync(int fd)
{
    struct stat synced, there;
    int is_there = watched && stat(watched, &there) == 0;
    assert_int_equal(fstat(fd, &synced), 0);
    int is_folder = S_ISDIR(synced.st_mode);
    files_before += !is_folder && !is_there;
    files_after += !is_folder && is_there;
    folders_before += is_folder && !is_there;
    folders_after += is_folder && is_there;
    return (int)syscall(SYS_fsync, fd);
}

static void a_file_has_its_bytes_before_its_name(void **state)
{
    scratch dir;
    (void)state;
    scratch_open(&dir);
    watched = scratch_path(&dir, "final");
    assert_int_equal(pl_file_replace(watched, "text", 4, &err), PL_OK);
    assert_int_equal(files_before, 1);
    assert_int_equal(files_after, 0);
    assert_int_equal(folders_before, 0);
    assert_int_equal(folders_after, 1);
    watched = NULL;
    scratch_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_its_bytes_before_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
