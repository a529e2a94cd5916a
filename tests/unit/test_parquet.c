/* The parquet reader: files of pyarrow, polars and duckdb byte for byte, lies
 * and damages refused, memory within its limit. tests/golden/make_parquet.py
 * writes the files. */
#include "data/parquet.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define GOLDEN "tests/golden/parquet/"

enum { ROOM_BYTES = 4 << 20, MANY_ROWS = 100000 };

static pl_error err;

/* ---- what is expected ---- */

typedef struct rows {
    char *data;
    size_t bytes, count;
    struct {
        const char *text; /* NULL: a null */
        size_t bytes;
    } row[512];
} rows;

static void load_rows(rows *r, const char *set)
{
    char path[320];
    snprintf(path, sizeof path, GOLDEN "%s.rows", set);
    r->data = scratch_read(path, &r->bytes);
    assert_non_null(r->data);
    r->count = 0;
    for (size_t at = 0; at < r->bytes; r->count++) {
        uint32_t bytes;
        memcpy(&bytes, r->data + at, 4);
        at += 4;
        int is_null = bytes == UINT32_MAX;
        r->row[r->count].text = is_null ? NULL : r->data + at;
        r->row[r->count].bytes = is_null ? 0 : bytes;
        at += r->row[r->count].bytes;
    }
}

/* ---- reading ---- */

typedef struct reader {
    pl_room room;
    pl_unpack unpack;
    pl_parquet parquet;
} reader;

static pl_status open_reader(reader *r, const char *path, const char *column,
                             size_t room_bytes, size_t document_bytes)
{
    memset(&err, 0, sizeof err);
    r->room = pl_room_make(room_bytes);
    pl_unpack_open(&r->unpack, &r->room);
    return pl_parquet_open(&r->parquet, path, column, document_bytes, &r->room,
                           &r->unpack, &err);
}

static void close_reader(reader *r)
{
    pl_parquet_close(&r->parquet);
    pl_unpack_close(&r->unpack);
    assert_int_equal(r->room.taken_bytes, 0);
}

/* From row `first` to the end or an error; -1 if a row differed, else how many
 * were read. */
static long compare(reader *r, const rows *expected, uint64_t first,
                    pl_status *status)
{
    long read = 0, wrong = 0;
    uint64_t next = first, row;
    const char *text;
    size_t bytes;
    for (; read < MANY_ROWS; read++) {
        *status = pl_parquet_next(&r->parquet, &text, &bytes, &row, &err);
        if (*status || !text)
            break;
        for (; next < row && next < expected->count; next++)
            wrong += expected->row[next].text != NULL; /* passed over */
        if (row >= expected->count || row != next || !expected->row[row].text ||
            expected->row[row].bytes != bytes ||
            memcmp(expected->row[row].text, text, bytes) != 0)
            wrong++;
        next = row + 1;
    }
    for (; !*status && next < expected->count; next++)
        wrong += expected->row[next].text != NULL;
    return wrong ? -1 : read;
}

static long count_texts(const rows *r, uint64_t first)
{
    long texts = 0;
    for (size_t i = (size_t)first; i < r->count; i++)
        texts += r->row[i].text != NULL;
    return texts;
}

static void assert_reads(const char *path, const char *column,
                         const rows *expected, uint64_t first)
{
    reader r;
    pl_status status = open_reader(&r, path, column, ROOM_BYTES, ROOM_BYTES);
    if (status)
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(r.parquet.rows, expected->count);
    status = pl_parquet_seek(&r.parquet, first, &err);
    if (status)
        fail_msg("%s, row %llu: %s", path, (unsigned long long)first, err.text);
    long read = compare(&r, expected, first, &status);
    if (status)
        fail_msg("%s: %s", path, err.text);
    if (read != count_texts(expected, first))
        fail_msg("%s from row %llu: %ld rows are as expected of %ld", path,
                 (unsigned long long)first, read, count_texts(expected, first));
    close_reader(&r);
}

static int is_refused(const char *name)
{
    return strstr(name, "lz4") || strstr(name, "brotli");
}

/* Calls `act` for each file that can be read. */
static void for_every_file(void (*act)(const char *path, const rows *expected))
{
    DIR *folder = opendir(GOLDEN);
    struct dirent *entry;
    int files = 0;
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char path[512], set[256];
        rows expected;
        if (!strstr(entry->d_name, ".parquet") || is_refused(entry->d_name))
            continue;
        snprintf(path, sizeof path, GOLDEN "%s", entry->d_name);
        snprintf(set, sizeof set, "%s", entry->d_name);
        *strchr(set, '_') = '\0';
        load_rows(&expected, set);
        act(path, &expected);
        free(expected.data);
        files++;
    }
    closedir(folder);
    assert_in_range(files, 50, 100);
}

/* ---- files of others ---- */

static void read_whole(const char *path, const rows *expected)
{
    assert_reads(path, "text", expected, 0);
}

static void every_file_is_read_byte_for_byte(void **state)
{
    (void)state;
    for_every_file(read_whole);
}

static void read_from_every_row(const char *path, const rows *expected)
{
    for (uint64_t row = 0; row <= expected->count; row++)
        assert_reads(path, "text", expected, row);
}

static void reading_can_begin_at_every_row(void **state)
{
    (void)state;
    for_every_file(read_from_every_row);
}

static void a_column_inside_a_struct_is_named_by_its_path(void **state)
{
    rows expected;
    (void)state;
    load_rows(&expected, "mixed");
    expected.row[3].text = NULL;
    assert_reads(GOLDEN "mixed_nested.parquet", "meta.text", &expected, 0);
    free(expected.data);
}

/* ---- refusals ---- */

static void assert_refused(const char *name, const char *column,
                           pl_status expected, const char *part)
{
    reader r;
    char path[512];
    snprintf(path, sizeof path, GOLDEN "%s", name);
    assert_int_equal(open_reader(&r, path, column, ROOM_BYTES, ROOM_BYTES),
                     expected);
    assert_contains(err.text, name);
    assert_contains(err.text, part);
    close_reader(&r);
}

static void a_column_that_is_not_there_lists_those_that_are(void **state)
{
    (void)state;
    assert_refused("mixed_groups.parquet", "content", PL_E_FORMAT,
                   "there is no column \"content\". Its string columns: text, "
                   "id.");
    assert_refused("mixed_groups.parquet", "score", PL_E_FORMAT,
                   "there are no strings in the column \"score\"");
    assert_refused("mixed_nested.parquet", "meta", PL_E_FORMAT,
                   "meta.text, text");
}

static void a_column_of_lists_is_refused(void **state)
{
    (void)state;
    assert_refused("mixed_nested.parquet", "tags.list.element",
                   PL_E_UNSUPPORTED, "inside a list");
}

static void a_compression_that_is_not_read_is_named(void **state)
{
    (void)state;
    assert_refused("mixed_lz4.parquet", "text", PL_E_UNSUPPORTED, "LZ4");
    assert_refused("mixed_brotli.parquet", "text", PL_E_UNSUPPORTED, "BROTLI");
}

static void other_files_are_told_from_parquet(void **state)
{
    (void)state;
    assert_refused("mixed.rows", "text", PL_E_FORMAT, "isn't a parquet file");
    assert_refused("none.rows", "text", PL_E_FORMAT, "too few");
}

static void a_document_above_the_limit_is_named(void **state)
{
    reader r;
    const char *text;
    size_t bytes;
    uint64_t row;
    pl_status status;
    (void)state;
    assert_int_equal(open_reader(&r, GOLDEN "mixed_plain_zstd_v1.parquet",
                                 "text", ROOM_BYTES, 1000),
                     PL_OK);
    do
        status = pl_parquet_next(&r.parquet, &text, &bytes, &row, &err);
    while (!status && text);
    assert_int_equal(status, PL_E_FORMAT);
    assert_contains(err.text, "mixed_plain_zstd_v1.parquet, row 53: its "
                              "document has ");
    close_reader(&r);
}

static void a_page_above_the_memory_is_named(void **state)
{
    reader r;
    const char *text;
    size_t bytes;
    uint64_t row;
    (void)state;
    assert_int_equal(open_reader(&r, GOLDEN "mixed_plain_none_v1.parquet",
                                 "text", 1000, 1000),
                     PL_OK);
    assert_int_equal(pl_parquet_next(&r.parquet, &text, &bytes, &row, &err),
                     PL_E_MEMORY);
    assert_contains(err.text, "row group 0, column \"text\", page 0");
    assert_contains(err.text, "Give more memory");
    close_reader(&r);
}

static void seeking_behind_the_end_is_refused(void **state)
{
    reader r;
    (void)state;
    assert_int_equal(open_reader(&r, GOLDEN "same_groups.parquet", "text",
                                 ROOM_BYTES, ROOM_BYTES),
                     PL_OK);
    assert_int_equal(pl_parquet_seek(&r.parquet, 301, &err), PL_E_FORMAT);
    assert_contains(err.text, "has 300 rows");
    close_reader(&r);
}

/* ---- damage ---- */

typedef enum content { ANY_CONTENT, RIGHT_CONTENT } content;

/* An error with a message, or rows: the right ones where that is asked. */
static void read_damaged(const char *path, const rows *expected, content want,
                         const char *what, size_t at)
{
    reader r;
    pl_status status = open_reader(&r, path, "text", ROOM_BYTES, ROOM_BYTES);
    long read = 0;
    if (!status)
        read = compare(&r, expected, 0, &status);
    if (status && err.text[0] == '\0')
        fail_msg("%s %zu: an error without a message", what, at);
    if (read == -1 && !status && want == RIGHT_CONTENT)
        fail_msg("%s %zu: wrong rows, and no error", what, at);
    assert_in_range(r.room.peak_bytes, 0, ROOM_BYTES);
    close_reader(&r);
}

/* The file that the reader sees: in memory, since it is written often. */
static void put(int fd, const char *data, size_t bytes)
{
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(pwrite(fd, data, bytes, 0), bytes);
}

static void damage(const char *name, const char *set, content want)
{
    rows expected;
    size_t bytes;
    char path[512];
    static const unsigned char flips[] = { 0x01, 0x02, 0x10, 0x80, 0xFF };
    snprintf(path, sizeof path, GOLDEN "%s", name);
    load_rows(&expected, set);
    char *data = scratch_read(path, &bytes);
    int fd = memfd_create("damaged", MFD_CLOEXEC);
    assert_non_null(data);
    assert_true(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (size_t cut = 0; cut < bytes; cut++) {
        put(fd, data, cut);
        read_damaged(path, &expected, RIGHT_CONTENT, "cut to", cut);
    }
    for (size_t at = 0; at < bytes; at++)
        for (size_t f = 0; f < sizeof flips; f++) {
            data[at] = (char)(data[at] ^ flips[f]);
            put(fd, data, bytes);
            read_damaged(path, &expected, want, "flipped", at);
            data[at] = (char)(data[at] ^ flips[f]);
        }
    close(fd);
    free(data);
    free(expected.data);
}

static void a_damaged_file_is_an_error_or_read(void **state)
{
    (void)state;
    damage("nulls_v1.parquet", "nulls", ANY_CONTENT);
    damage("mixed_dict_snappy_v1.parquet", "mixed", ANY_CONTENT);
    damage("mixed_delta_zstd_v2.parquet", "mixed", ANY_CONTENT);
    damage("mixed_duckdb_v2.parquet", "mixed", ANY_CONTENT);
    damage("full_required_v2.parquet", "full", ANY_CONTENT);
    damage("mixed_length_zstd_v1.parquet", "mixed", ANY_CONTENT);
}

static void checksums_show_what_is_damaged(void **state)
{
    (void)state;
    damage("mixed_checksum.parquet", "mixed", RIGHT_CONTENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_is_read_byte_for_byte),
        cmocka_unit_test(reading_can_begin_at_every_row),
        cmocka_unit_test(a_column_inside_a_struct_is_named_by_its_path),
        cmocka_unit_test(a_column_that_is_not_there_lists_those_that_are),
        cmocka_unit_test(a_column_of_lists_is_refused),
        cmocka_unit_test(a_compression_that_is_not_read_is_named),
        cmocka_unit_test(other_files_are_told_from_parquet),
        cmocka_unit_test(a_document_above_the_limit_is_named),
        cmocka_unit_test(a_page_above_the_memory_is_named),
        cmocka_unit_test(seeking_behind_the_end_is_refused),
        cmocka_unit_test(a_damaged_file_is_an_error_or_read),
        cmocka_unit_test(checksums_show_what_is_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
