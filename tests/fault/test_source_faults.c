/* Every system call and every request for memory of a source fails once: the
 * error is clean and nothing stays open. */
#include "base/file.h"
#include "data/source.h"
#include "support/pack.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { MANY = 2000 };

static scratch dir;
static pl_error err;
static long documents;

static int set_up(void **state)
{
    static const char lines[] = "{\"text\":\"one\"}\n{\"text\":\"two\"}\n";
    size_t bytes;
    char *data;
    (void)state;
    scratch_open(&dir);
    assert_int_equal(mkdir(scratch_path(&dir, "sub"), 0755), 0);
    scratch_write(scratch_path(&dir, "a.txt"), "some text", 9);
    data = pack_bytes(PACK_GZIP, lines, strlen(lines), &bytes);
    scratch_write(scratch_path(&dir, "b.jsonl.gz"), data, bytes);
    free(data);
    data = pack_bytes(PACK_ZSTD, lines, strlen(lines), &bytes);
    scratch_write(scratch_path(&dir, "sub/c.jsonl.zst"), data, bytes);
    free(data);
    data = scratch_read("tests/golden/parquet/mixed_groups.parquet", &bytes);
    assert_non_null(data);
    scratch_write(scratch_path(&dir, "sub/d.parquet"), data, bytes);
    free(data);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_arena_fail_at(0);
    scratch_close(&dir);
    return 0;
}

static pl_status read_all(void)
{
    const char *paths[] = { dir.folder };
    const pl_source_options options = { .paths = paths,
                                        .path_count = 1,
                                        .memory_bytes = PL_SOURCE_MIN_BYTES };
    pl_source *source;
    pl_fragment piece;
    memset(&err, 0, sizeof err);
    documents = 0;
    pl_status status = pl_source_open(&source, &options, &err);
    while (!status) {
        status = pl_source_next(source, &piece, &err);
        if (status || !piece.part)
            break;
        documents++;
    }
    pl_source_close(source);
    return status;
}

static void every_system_call_may_fail(void **state)
{
    long nth, all;
    (void)state;
    assert_int_equal(read_all(), PL_OK);
    all = documents;
    for (nth = 1; nth < MANY; nth++) {
        int before = scratch_open_files();
        pl_file_fail_at(nth, EIO);
        pl_status status = read_all();
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        assert_int_equal(scratch_open_files(), before);
        if (status) {
            assert_true(happened);
            assert_int_equal(status, PL_E_IO);
            assert_non_null(strstr(err.text, strerror(EIO)));
            assert_non_null(strstr(err.text, dir.folder));
        } else {
            assert_int_equal(documents, all); /* a close may fail unheard */
        }
        if (!happened)
            break;
    }
    assert_in_range(nth, 60, MANY - 1);
}

static void every_request_for_memory_may_fail(void **state)
{
    long nth;
    int before = scratch_open_files();
    (void)state;
    for (nth = 1; nth < MANY; nth++) {
        pl_arena_fail_at(nth);
        pl_status status = read_all();
        pl_arena_fail_at(0);
        assert_int_equal(scratch_open_files(), before);
        if (!status)
            break;
        assert_int_equal(status, PL_E_MEMORY);
        assert_true(err.text[0] != '\0');
    }
    assert_in_range(nth, 15, MANY - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_system_call_may_fail),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
