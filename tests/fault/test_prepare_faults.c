/* Every system call and every request for memory of a preparation fails once,
 * from the beginning and going on after a stop: what was there stays whole, or
 * the new data is there whole; nothing stays open; the next run succeeds. */
#include "base/file.h"
#include "data/prepare.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum {
    MANY = 3000,
    OLD_BYTES = 1000,
    TEXT_BYTES = 2500000,
    SHARD_TOKENS = 1000000
};

static scratch dir;
static pl_error err;
static char out_folder[SCRATCH_PATH_BYTES + 8];
static char text_path[SCRATCH_PATH_BYTES + 8];
static char *text;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    snprintf(out_folder, sizeof out_folder, "%s/out", dir.folder);
    snprintf(text_path, sizeof text_path, "%s/text", dir.folder);
    text = malloc(TEXT_BYTES);
    assert_non_null(text);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 26);
    scratch_write(text_path, text, TEXT_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_arena_fail_at(0);
    free(text);
    scratch_close(&dir);
    return 0;
}

typedef struct plan {
    double val_fraction;
    uint64_t shard_tokens;
    int stop_at; /* 0: never */
    int loads;   /* handed on */
    uint64_t resumed_bytes;
} plan;

static pl_prepare_wish wish(void *context)
{
    plan *p = context;
    return p->stop_at && p->loads >= p->stop_at ? PL_PREPARE_STOP
                                                : PL_PREPARE_GO_ON;
}

static void progress(void *context, const pl_prepare_progress *seen)
{
    plan *p = context;
    (void)seen;
    p->loads++;
}

static pl_status prepare(plan *p)
{
    const char *paths[] = { text_path };
    pl_tokenizer byte = pl_tokenizer_make_byte();
    pl_prepare_options options = {
        .source = { .paths = paths, .path_count = 1 },
        .folder = out_folder,
        .tokenizer = &byte,
        .end_token = PL_PREPARE_NO_TOKEN,
        .val_fraction = p->val_fraction,
        .shard_tokens = p->shard_tokens,
        .threads = 1,
        .memory_bytes = pl_prepare_min_bytes(1, NULL),
        .wish = wish,
        .progress = progress,
        .context = p,
    };
    pl_prepare_result result;
    pl_heap heap = pl_heap_make(1 << 20);
    memset(&err, 0, sizeof err);
    p->loads = 0;
    pl_status status = pl_prepare(&options, &heap, &result, &err);
    p->resumed_bytes = result.resumed_bytes;
    pl_heap_close(&heap);
    return status;
}

/* The old data: one file for each split, of half as many tokens as the text
 * has bytes. Written here, since waiting for the disk takes most of the time.
 */
static void lay_old(void)
{
    static const char meta[] = "{\"tokenizer\": \"byte\"}";
    scratch_remove(out_folder);
    assert_int_equal(mkdir(out_folder, 0755), 0);
    scratch_write(scratch_path(&dir, "out/train.bin"), text, OLD_BYTES);
    scratch_write(scratch_path(&dir, "out/val.bin"), text, OLD_BYTES);
    scratch_write(scratch_path(&dir, "out/meta.json"), meta, strlen(meta));
}

static size_t bytes_of(const char *name)
{
    size_t bytes;
    char *data = scratch_read(scratch_path(&dir, name), &bytes);
    free(data);
    return data ? bytes : 0;
}

static int is_old(void)
{
    return bytes_of("out/train.bin") == OLD_BYTES &&
           bytes_of("out/val.bin") == OLD_BYTES && bytes_of("out/meta.json") &&
           !bytes_of("out/train_000000.bin") && !bytes_of("out/val_000000.bin");
}

/* Three shards that train, one that validates: all of the text. */
static int is_new(void)
{
    static const char *const names[] = { "out/train_000000.bin",
                                         "out/train_000001.bin",
                                         "out/train_000002.bin",
                                         "out/val_000000.bin" };
    size_t at = 0;
    for (int f = 0; f < 4; f++) {
        size_t size;
        char *data = scratch_read(scratch_path(&dir, names[f]), &size);
        if (!data)
            return 0;
        for (size_t i = 0; i < size; i += 2, at++)
            if (at >= TEXT_BYTES || data[i] != text[at] || data[i + 1])
                fail_msg("%s: token %zu", names[f], i / 2);
        free(data);
    }
    return at == TEXT_BYTES && bytes_of("out/meta.json") &&
           !bytes_of("out/train.bin") && !bytes_of("out/val.bin");
}

typedef enum begin { FROM_THE_BEGINNING, AFTER_A_STOP } begin;

/* Before a fault: the old data, and a stopped run's part if one is wanted. */
static void lay_out(begin from)
{
    plan stopped = { .val_fraction = 0.1,
                     .shard_tokens = SHARD_TOKENS,
                     .stop_at = 1 };
    lay_old();
    if (from == AFTER_A_STOP)
        assert_int_equal(prepare(&stopped), PL_E_STOPPED);
}

/* After a fault the same command succeeds; says whether it went on. */
static int goes_on(void)
{
    plan again = { .val_fraction = 0.1, .shard_tokens = SHARD_TOKENS };
    if (prepare(&again))
        fail_msg("%s", err.text);
    assert_true(is_new());
    assert_int_equal(scratch_count(out_folder), 5);
    return again.resumed_bytes > 0;
}

static void fail_every_call(begin from, int error)
{
    long nth, failures = 0, resumed = 0;
    /* --long fails each, else every other one */
    for (nth = 1; nth < MANY; nth += getenv("PL_TEST_LONG") ? 1 : 2) {
        plan p = { .val_fraction = 0.1, .shard_tokens = SHARD_TOKENS };
        lay_out(from);
        int files = scratch_open_files();
        pl_file_fail_at(nth, error);
        pl_status status = prepare(&p);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        assert_int_equal(scratch_open_files(), files);
        if (status) {
            assert_true(happened);
            assert_int_equal(status, PL_E_IO);
            if (!strstr(err.text, strerror(error)))
                fail_msg("call %ld: %s", nth, err.text);
            if (!is_old() && !is_new())
                fail_msg("call %ld left neither: %s", nth, err.text);
            failures++;
            resumed += goes_on();
        } else {
            assert_true(is_new()); /* what failed needn't be heard of */
        }
        if (!happened)
            break;
    }
    print_message("%ld calls, %ld failures, %ld were gone on from\n", nth - 1,
                  failures, resumed);
    assert_in_range(nth, 60, MANY - 1);
    assert_true(failures > nth / 4);
    assert_true(resumed > failures / 2);
}

static void every_call_of_a_preparation_may_fail(void **state)
{
    (void)state;
    fail_every_call(FROM_THE_BEGINNING, ENOSPC);
}

static void every_call_of_going_on_may_fail(void **state)
{
    (void)state;
    fail_every_call(AFTER_A_STOP, EIO);
}

static void every_request_for_memory_may_fail(void **state)
{
    long nth;
    (void)state;
    lay_old();
    for (nth = 1; nth < MANY; nth++) {
        plan p = { .val_fraction = 0.1, .shard_tokens = SHARD_TOKENS };
        int files = scratch_open_files();
        pl_arena_fail_at(nth);
        pl_status status = prepare(&p);
        pl_arena_fail_at(0);
        assert_int_equal(scratch_open_files(), files);
        if (!status)
            break;
        assert_int_equal(status, PL_E_MEMORY);
        assert_true(is_old());
    }
    assert_true(is_new());
    assert_in_range(nth, 10, MANY - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_of_a_preparation_may_fail),
        cmocka_unit_test(every_call_of_going_on_may_fail),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
