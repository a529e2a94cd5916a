#include "data/publish.h"

#include "base/file.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static char from[SCRATCH_PATH_BYTES + 16];

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    snprintf(from, sizeof from, "%s/part", dir.folder);
    return mkdir(from, 0755);
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    scratch_close(&dir);
    return 0;
}

static void lay(const char *name)
{
    scratch_write(scratch_path(&dir, name), name, strlen(name));
}

/* Whether a file is there, with what `lay` wrote as `was`. */
static int holds(const char *name, const char *was)
{
    char *data = scratch_read(scratch_path(&dir, name), NULL);
    int same = data && strcmp(data, was) == 0;
    free(data);
    return same;
}

static void new_data_takes_the_place_of_all_old_data(void **state)
{
    (void)state;
    lay("train.bin");
    lay("val_000000.bin");
    lay("train_000001.bin");
    lay("meta.json");
    lay("notes.txt");   /* not ours */
    lay("train_1.bin"); /* nor these */
    lay("train_000001.bin~");
    lay("part/train_000000.bin");
    lay("part/val.bin");
    lay("part/tokenizer.json");
    lay("part/state"); /* goes with the folder */
    assert_int_equal(pl_publish(dir.folder, from, &err), PL_OK);
    assert_true(holds("train_000000.bin", "part/train_000000.bin"));
    assert_true(holds("val.bin", "part/val.bin"));
    assert_true(holds("tokenizer.json", "part/tokenizer.json"));
    assert_true(holds("notes.txt", "notes.txt"));
    assert_true(holds("train_1.bin", "train_1.bin"));
    assert_true(holds("train_000001.bin~", "train_000001.bin~"));
    assert_int_equal(scratch_count(dir.folder), 6);
}

static void what_a_crash_set_aside_goes_with_the_next_data(void **state)
{
    (void)state;
    assert_int_equal(mkdir(scratch_path(&dir, PL_PUBLISH_OLD), 0755), 0);
    lay(PL_PUBLISH_OLD "/train.bin");
    lay("part/train.bin");
    assert_int_equal(pl_publish(dir.folder, from, &err), PL_OK);
    assert_true(holds("train.bin", "part/train.bin"));
    assert_int_equal(scratch_count(dir.folder), 1);
}

static void a_failure_puts_everything_back(void **state)
{
    (void)state;
    static const char *const names[] = { "train.bin", "val.bin", "meta.json" };
    int failures = 0;
    for (long nth = 1; nth < 1000; nth++) {
        char path[64];
        scratch_remove(from);
        assert_int_equal(mkdir(from, 0755), 0);
        for (int i = 0; i < 3; i++) {
            lay(names[i]);
            snprintf(path, sizeof path, "part/%s", names[i]);
            lay(path);
        }
        lay("part/state");
        pl_file_fail_at(nth, EIO);
        pl_status status = pl_publish(dir.folder, from, &err);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "part/%s", names[i]);
            assert_true(holds(names[i], status ? names[i] : path));
            if (status)
                assert_true(holds(path, path));
        }
        if (status)
            assert_true(holds("part/state", "part/state"));
        failures += status != PL_OK;
        scratch_remove(scratch_path(&dir, PL_PUBLISH_OLD));
        if (!happened)
            break;
    }
    assert_true(failures > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            new_data_takes_the_place_of_all_old_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_a_crash_set_aside_goes_with_the_next_data, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_puts_everything_back, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
