/* All ids of a set against the vocabulary, once for each file. */
#include "data/shard_check.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* More than is read at once, so that a place in the second read counts. */
enum { TOKENS = 700000, VOCAB = 1000 };

static scratch dir;
static pl_error err;
static pl_heap heap;
static char cache[SCRATCH_PATH_BYTES + 8];
static const char *paths[2];
static char names[2][SCRATCH_PATH_BYTES + 8];

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    heap = pl_heap_make(1 << 20);
    memset(&err, 0, sizeof err);
    snprintf(cache, sizeof cache, "%s/cache", dir.folder);
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%s/%d.bin", dir.folder, i);
        paths[i] = names[i];
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static void write_tokens(const char *path, size_t bad_at, uint16_t bad)
{
    uint16_t *ids = calloc(TOKENS, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = (uint16_t)(i % VOCAB);
    if (bad)
        ids[bad_at] = bad;
    scratch_write(path, (const char *)ids, TOKENS * sizeof *ids);
    free(ids);
}

static uint64_t hash; /* of the last check */

static pl_status check(int count, int32_t vocab, const char *folder)
{
    pl_shard_set set;
    assert_int_equal(pl_shard_set_open(&set, paths, (size_t)count, &heap, &err),
                     PL_OK);
    pl_status status = pl_shard_check(&set, vocab, folder, NULL, &hash, &err);
    pl_shard_set_close(&set);
    return status;
}

static void a_bad_id_is_named_wherever_it_stands(void **state)
{
    static const size_t places[] = { 0, 524287, 524288, TOKENS - 1 };
    (void)state;
    write_tokens(paths[0], 0, 0);
    assert_int_equal(check(1, VOCAB, NULL), PL_OK);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char expected[96];
        write_tokens(paths[1], places[i], VOCAB);
        assert_int_equal(check(2, VOCAB, NULL), PL_E_FORMAT);
        snprintf(expected, sizeof expected,
                 "1.bin: token %zu is 1000, outside the vocabulary of 1000",
                 places[i]);
        assert_contains(err.text, expected);
        assert_int_equal(check(2, VOCAB + 1, NULL), PL_OK);
    }
}

enum { NAME_BYTES = SCRATCH_PATH_BYTES + 64 };

/* Writes into the cache that the largest id of the first file is `largest`. */
static void write_cache(char name[NAME_BYTES], const char *largest)
{
    pl_file file;
    pl_file_stamp stamp;
    char line[256];
    assert_int_equal(pl_file_open_read(&file, paths[0], &err), PL_OK);
    assert_int_equal(pl_file_stamp_of(&file, &stamp, &err), PL_OK);
    pl_file_abandon(&file);
    mkdir(cache, 0700);
    snprintf(name, NAME_BYTES, "%s/tokens-%llx-%llx", cache,
             (unsigned long long)stamp.device, (unsigned long long)stamp.inode);
    int bytes = snprintf(line, sizeof line, "%llu %llu %llu %llu %llu %s",
                         (unsigned long long)stamp.device,
                         (unsigned long long)stamp.inode,
                         (unsigned long long)stamp.size_bytes,
                         (unsigned long long)stamp.modified_ns,
                         (unsigned long long)stamp.changed_ns, largest);
    scratch_write(name, line, (size_t)bytes);
}

/* Puts other bytes under a stamp that says nothing of it, to see whether the
 * file was read: the cache's own line is changed to match. */
static void what_is_remembered_is_not_read_again(void **state)
{
    char name[NAME_BYTES];
    (void)state;
    write_tokens(paths[0], 5, VOCAB); /* bad, and yet... */
    write_cache(name, "999 7\n");
    assert_int_equal(check(1, VOCAB, cache), PL_OK);
    /* A smaller vocabulary asks the file itself. */
    assert_int_equal(check(1, VOCAB - 1, cache), PL_E_FORMAT);
    /* And so does any change. */
    write_tokens(paths[0], 7, VOCAB);
    assert_int_equal(check(1, VOCAB, cache), PL_E_FORMAT);
    assert_contains(err.text, "token 7 is 1000");
    /* Or a cache with other words in it. */
    write_tokens(paths[0], 0, 0);
    scratch_write(name, "\0\xff 1 2\n3", 8);
    assert_int_equal(check(1, VOCAB, cache), PL_OK);
}

/* One token makes another hash, in any file; what is remembered is the same. */
static void tokens_are_known_by_their_hash(void **state)
{
    (void)state;
    write_tokens(paths[0], 0, 0);
    write_tokens(paths[1], 0, 0);
    assert_int_equal(check(2, VOCAB, NULL), PL_OK);
    const uint64_t first = hash;
    assert_int_equal(check(2, VOCAB, cache), PL_OK);
    assert_int_equal(hash, first);
    assert_int_equal(check(2, VOCAB, cache), PL_OK);
    assert_int_equal(hash, first);
    write_tokens(paths[1], TOKENS - 1, 7);
    assert_int_equal(check(2, VOCAB, NULL), PL_OK);
    assert_int_not_equal(hash, first);
    assert_int_equal(check(1, VOCAB, NULL), PL_OK);
    assert_int_not_equal(hash, first);
}

/* 2^32 + 1 would be 1, and -1 the largest there is. */
static void what_is_no_id_is_not_believed(void **state)
{
    static const char *const wrong[] = {
        "4294967297 7\n", "18446744073709551617 7\n",
        "-999 7\n",       "+999 7\n",
        " 999 7\n",       "999x 7\n",
        "999 7",          "\n",
        "999\n",          "999 -7\n",
        "999 7x\n",
    };
    char name[NAME_BYTES];
    (void)state;
    write_tokens(paths[0], 5, VOCAB);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_cache(name, wrong[i]);
        assert_int_equal(check(1, VOCAB, cache), PL_E_FORMAT);
        assert_contains(err.text, "token 5 is 1000");
    }
}

/* A change within one step of the file system's clock would not show. */
static void what_was_just_written_is_not_remembered(void **state)
{
    (void)state;
    write_tokens(paths[0], 0, 0);
    assert_int_equal(check(1, VOCAB, cache), PL_OK);
    assert_int_not_equal(access(cache, F_OK), 0);
}

static void a_stamp_settles_once_time_has_passed(void **state)
{
    pl_file_stamp stamp = { .changed_ns = UINT64_C(1000000000000) };
    (void)state;
    assert_false(pl_file_stamp_settled(&stamp, 1001.0));
    assert_true(pl_file_stamp_settled(&stamp, 1003.0));
    stamp.modified_ns = UINT64_C(2000000000000);
    assert_false(pl_file_stamp_settled(&stamp, 1003.0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_bad_id_is_named_wherever_it_stands),
        TEST(what_is_remembered_is_not_read_again),
        TEST(what_is_no_id_is_not_believed),
        TEST(tokens_are_known_by_their_hash),
        TEST(what_was_just_written_is_not_remembered),
        TEST(a_stamp_settles_once_time_has_passed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
