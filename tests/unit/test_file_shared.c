/* Tests of a file that several processes write (base/file). */
#include "base/file.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Neither made nor cut short, and there is nothing to read through it. */
static void what_others_write_to_stays(void **state)
{
    scratch dir;
    pl_file file;
    pl_error err;
    char out[2];
    size_t bytes;
    (void)state;
    scratch_open(&dir);
    const char *path = scratch_path(&dir, "a"), *link = scratch_path(&dir, "b");
    assert_int_equal(pl_file_open_shared(&file, path, &err), PL_E_IO);
    assert_non_null(strstr(err.text, path));
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(pl_file_replace(path, "abcdef", 6, &err), PL_OK);
    assert_int_equal(pl_file_open_shared(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_size(&file), 6);
    assert_int_equal(pl_file_write_at(&file, "XY", 2, 2, &err), PL_OK);
    assert_int_equal(pl_file_pread_exact(&file, out, 2, 0, &err), PL_E_IO);
    assert_int_equal(pl_file_close(&file, &err), PL_OK);
    char *data = scratch_read(path, &bytes);
    assert_int_equal(bytes, 6);
    assert_string_equal(data, "abXYef");
    free(data);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(pl_file_open_shared(&file, link, &err), PL_E_IO);
    scratch_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_write_to_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
