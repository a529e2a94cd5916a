/* Tests of base/file at the limits of the process. */
#include "base/file.h"

#include "support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static struct rlimit files, bytes;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    signal(SIGXFSZ, SIG_IGN);
    return getrlimit(RLIMIT_NOFILE, &files) || getrlimit(RLIMIT_FSIZE, &bytes);
}

static int tear_down(void **state)
{
    (void)state;
    setrlimit(RLIMIT_NOFILE, &files);
    setrlimit(RLIMIT_FSIZE, &bytes);
    scratch_close(&dir);
    return 0;
}

static struct rlimit lower(const struct rlimit *had, rlim_t to)
{
    return (struct rlimit){ .rlim_cur = to, .rlim_max = had->rlim_max };
}

static void a_file_beyond_its_limit_is_an_error_that_names_it(void **state)
{
    (void)state;
    static const char data[100] = { 0 };
    pl_file file;
    assert_int_equal(pl_file_create(&file, scratch_path(&dir, "file"), &err),
                     PL_OK);
    struct rlimit low = lower(&bytes, 150);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(pl_file_limit_bytes(), 150);
    assert_int_equal(pl_file_append(&file, data, sizeof data, &err), PL_OK);
    pl_status status = pl_file_append(&file, data, sizeof data, &err);
    setrlimit(RLIMIT_FSIZE, &bytes);
    assert_int_equal(status, PL_E_IO);
    assert_non_null(strstr(err.text, "ulimit -f"));
    pl_file_discard(&file);
    if (bytes.rlim_cur == RLIM_INFINITY)
        assert_true(pl_file_limit_bytes() == UINT64_MAX);
}

/* The descriptor that would be next: all below it are taken. */
static int next_descriptor(const pl_file *file)
{
    int fd = dup(file->fd);
    close(fd);
    return fd;
}

static void as_many_files_as_may_be_open_are_spare(void **state)
{
    (void)state;
    pl_file file;
    assert_int_equal(pl_file_create(&file, scratch_path(&dir, "file"), &err),
                     PL_OK);
    int next = next_descriptor(&file);
    struct rlimit low = lower(&files, (rlim_t)next + 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(pl_file_spare(&file, 3, &err), PL_OK);
    assert_int_equal(next_descriptor(&file), next); /* given back */
    assert_int_equal(pl_file_spare(&file, 5, &err), PL_E_IO);
    assert_int_equal(next_descriptor(&file), next);
    setrlimit(RLIMIT_NOFILE, &files);
    char want[80];
    snprintf(want, sizeof want,
             "needs %d open files at once, and this process may have %d",
             next + 5, next + 3);
    assert_non_null(strstr(err.text, want));
    assert_non_null(strstr(err.text, "ulimit -n"));
    pl_file_abandon(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_file_beyond_its_limit_is_an_error_that_names_it, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(as_many_files_as_may_be_open_are_spare,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
