/* Bytes of files, plain, gzip and zstd: the same whatever the buffers are; cut
 * or damaged ones refused; memory within its limit. */
#include "data/stream.h"
#include "support/asserts.h"
#include "support/pack.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <snappy-c.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 70000, ROOM_BYTES = 4 << 20 };

static scratch dir;
static pl_error err;
static char text[TEXT_BYTES];

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    for (size_t i = 0; i < TEXT_BYTES; i++)
        text[i] = (char)("the line on the hull "[i % 21] ^ (i % 97 == 0));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

typedef struct result {
    pl_status status;
    char *data; /* of `capacity` */
    size_t bytes;
} result;

static unsigned char buffer[1 << 16];

/* Reads the file in requests of `step` bytes, after passing over `skip`. */
static result read_stream(const char *path, size_t buffer_bytes, size_t step,
                          uint64_t skip, size_t room_bytes)
{
    pl_room room = pl_room_make(room_bytes);
    pl_unpack unpack;
    pl_stream stream;
    unsigned char scratch_bytes[100];
    size_t capacity = 3 * TEXT_BYTES, got = 1;
    result r = { .data = malloc(capacity) };
    assert_non_null(r.data);
    memset(&err, 0, sizeof err);
    pl_unpack_open(&unpack, &room);
    r.status = pl_stream_open(&stream, path, buffer, buffer_bytes, &unpack,
                              NULL, NULL, &err);
    if (r.status)
        goto close_unpack;
    r.status = pl_stream_skip(&stream, skip, scratch_bytes,
                              sizeof scratch_bytes, &err);
    while (!r.status && got > 0) {
        size_t want = capacity - r.bytes < step ? capacity - r.bytes : step;
        r.status = pl_stream_read(&stream, r.data + r.bytes, want, &got, &err);
        r.bytes += r.status ? 0 : got;
    }
    if (!r.status)
        assert_int_equal(pl_stream_used_bytes(&stream),
                         pl_file_size(&stream.file));
    pl_stream_close(&stream);
close_unpack:
    pl_unpack_close(&unpack);
    assert_int_equal(room.taken_bytes, 0);
    return r;
}

static void assert_reads(const char *path, size_t buffer_bytes, size_t step,
                         uint64_t skip)
{
    result r = read_stream(path, buffer_bytes, step, skip, ROOM_BYTES);
    if (r.status)
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(r.bytes, TEXT_BYTES - skip);
    assert_memory_equal(r.data, text + skip, r.bytes);
    free(r.data);
}

static void assert_refused(const char *path, pl_status status, const char *part)
{
    int files = scratch_open_files();
    result r = read_stream(path, 4096, 1000, 0, ROOM_BYTES);
    assert_int_equal(scratch_open_files(), files);
    if (r.status != status)
        fail_msg("%s: %s", path, pl_status_name(r.status));
    assert_contains(err.text, path);
    assert_contains(err.text, part);
    free(r.data);
}

static const char *write_packed(pack_kind kind, size_t parts)
{
    const char *path = scratch_path(&dir, kind == PACK_GZIP ? "t.gz" : "t.zst");
    char *all = malloc(3 * TEXT_BYTES);
    size_t bytes = 0, each = TEXT_BYTES / parts;
    assert_non_null(all);
    for (size_t i = 0; i < parts; i++) {
        size_t packed, part = i + 1 < parts ? each : TEXT_BYTES - i * each;
        char *data = pack_bytes(kind, text + i * each, part, &packed);
        memcpy(all + bytes, data, packed);
        bytes += packed;
        free(data);
    }
    scratch_write(path, all, bytes);
    free(all);
    return path;
}

static void assert_reads_all_ways(const char *path)
{
    assert_reads(path, sizeof buffer, 1 << 20, 0);
    assert_reads(path, 16, 1, 0);
    assert_reads(path, 17, 1000, 0);
    assert_reads(path, 4096, 77, 12345);
    assert_reads(path, 4096, 77, TEXT_BYTES);
}

static void a_plain_file_is_read(void **state)
{
    const char *path = scratch_path(&dir, "t.txt");
    (void)state;
    scratch_write(path, text, TEXT_BYTES);
    assert_reads_all_ways(path);
}

static void packed_files_are_read(void **state)
{
    (void)state;
    assert_reads_all_ways(write_packed(PACK_GZIP, 1));
    assert_reads_all_ways(write_packed(PACK_ZSTD, 1));
}

static void several_members_or_frames_are_one_stream(void **state)
{
    (void)state;
    assert_reads_all_ways(write_packed(PACK_GZIP, 7));
    assert_reads_all_ways(write_packed(PACK_ZSTD, 7));
}

static void zeros_behind_gzip_are_padding_and_other_bytes_are_not(void **state)
{
    size_t bytes;
    const char *path = write_packed(PACK_GZIP, 2);
    char *data = scratch_read(path, &bytes);
    (void)state;
    data = realloc(data, bytes + 300);
    assert_non_null(data);
    memset(data + bytes, 0, 300);
    scratch_write(path, data, bytes + 300);
    assert_reads_all_ways(path);
    data[bytes + 299] = 1;
    scratch_write(path, data, bytes + 300);
    assert_refused(path, PL_E_FORMAT, "follows the end");
    memcpy(data + bytes, "text", 4);
    scratch_write(path, data, bytes + 4);
    assert_refused(path, PL_E_FORMAT, "follows the end");
    memcpy(data + bytes, "\x1f\x8b\x08", 3);
    scratch_write(path, data, bytes + 3);
    assert_refused(path, PL_E_FORMAT, "cut off");
    free(data);
}

static void a_file_that_is_cut_off_is_refused_wherever(void **state)
{
    size_t bytes;
    (void)state;
    for (int kind = PACK_GZIP; kind <= PACK_ZSTD; kind++) {
        const char *path = write_packed((pack_kind)kind, 1);
        char *data = scratch_read(path, &bytes);
        scratch_write(path, data, 2);
        assert_refused(path, PL_E_FORMAT, "its name says");
        for (size_t cut = 4; cut < bytes; cut += 1 + cut / 16) {
            scratch_write(path, data, cut);
            assert_refused(path, PL_E_FORMAT, "cut off");
        }
        scratch_write(path, data, 0);
        assert_refused(path, PL_E_FORMAT, "is empty");
        free(data);
    }
}

static void damaged_data_is_refused(void **state)
{
    size_t bytes;
    (void)state;
    for (int kind = PACK_GZIP; kind <= PACK_ZSTD; kind++) {
        const char *path = write_packed((pack_kind)kind, 1);
        char *data = scratch_read(path, &bytes);
        for (size_t at = 20; at < bytes; at += bytes / 20) {
            data[at] = (char)(data[at] ^ 0x55);
            scratch_write(path, data, bytes);
            result r = read_stream(path, 4096, 1000, 0, ROOM_BYTES);
            int right = r.bytes == TEXT_BYTES &&
                        !memcmp(r.data, text, TEXT_BYTES);
            /* zstd has no checksum here, so that it may not see it. */
            assert_true(r.status || kind == PACK_ZSTD || right);
            free(r.data);
            data[at] = (char)(data[at] ^ 0x55);
        }
        free(data);
    }
}

static void a_name_that_lies_is_refused(void **state)
{
    const char *path = scratch_path(&dir, "lie.gz");
    (void)state;
    scratch_write(path, text, 100);
    assert_refused(path, PL_E_FORMAT, "its name says gzip");
}

static void unpacking_takes_no_more_than_its_room(void **state)
{
    const char *path = write_packed(PACK_ZSTD, 1);
    (void)state;
    result r = read_stream(path, 4096, 1000, 0, 200000);
    assert_int_equal(r.status, PL_E_MEMORY);
    assert_contains(err.text, "Give more memory");
    free(r.data);
    r = read_stream(write_packed(PACK_GZIP, 1), 4096, 1000, 0, 5000);
    assert_int_equal(r.status, PL_E_MEMORY);
    free(r.data);
}

static void skipping_past_the_end_is_refused(void **state)
{
    result r = read_stream(write_packed(PACK_GZIP, 1), 4096, 1000,
                           TEXT_BYTES + 1, ROOM_BYTES);
    (void)state;
    assert_int_equal(r.status, PL_E_FORMAT);
    assert_contains(err.text, "was changed since");
    free(r.data);
    const char *path = scratch_path(&dir, "t.txt");
    scratch_write(path, text, 10);
    r = read_stream(path, 4096, 1000, 11, ROOM_BYTES);
    assert_int_equal(r.status, PL_E_FORMAT);
    assert_contains(err.text, "was changed since");
    free(r.data);
}

/* ---- blocks ---- */

static void assert_block(pl_codec codec, const char *packed, size_t bytes)
{
    pl_room room = pl_room_make(ROOM_BYTES);
    pl_unpack unpack;
    unsigned char out[1100];
    pl_unpack_open(&unpack, &room);
    for (size_t size = 0; size < sizeof out; size += 50) {
        memset(out, 7, sizeof out);
        pl_status status = pl_unpack_block(&unpack, codec,
                                           (const unsigned char *)packed, bytes,
                                           out, size, &err);
        assert_int_equal(status, size == 1000 ? PL_OK : PL_E_FORMAT);
        if (!status)
            assert_memory_equal(out, text, 1000);
        for (size_t i = size; i < sizeof out; i++)
            assert_int_equal(out[i], 7);
    }
    pl_unpack_close(&unpack);
    assert_int_equal(room.taken_bytes, 0);
}

static void a_block_unpacks_to_exactly_its_size(void **state)
{
    size_t bytes, half;
    char both[3000], snappy[3000];
    (void)state;
    assert_block(PL_CODEC_NONE, text, 1000);
    char *zstd = pack_bytes(PACK_ZSTD, text, 1000, &bytes);
    assert_block(PL_CODEC_ZSTD, zstd, bytes);
    free(zstd);
    /* Two members are one block too. */
    char *first = pack_bytes(PACK_GZIP, text, 400, &half);
    char *second = pack_bytes(PACK_GZIP, text + 400, 600, &bytes);
    memcpy(both, first, half);
    memcpy(both + half, second, bytes);
    assert_block(PL_CODEC_GZIP, both, half + bytes);
    free(first);
    free(second);
    bytes = sizeof snappy;
    assert_int_equal(snappy_compress(text, 1000, snappy, &bytes), SNAPPY_OK);
    assert_block(PL_CODEC_SNAPPY, snappy, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_file_is_read),
        cmocka_unit_test(packed_files_are_read),
        cmocka_unit_test(several_members_or_frames_are_one_stream),
        cmocka_unit_test(zeros_behind_gzip_are_padding_and_other_bytes_are_not),
        cmocka_unit_test(a_file_that_is_cut_off_is_refused_wherever),
        cmocka_unit_test(damaged_data_is_refused),
        cmocka_unit_test(a_name_that_lies_is_refused),
        cmocka_unit_test(unpacking_takes_no_more_than_its_room),
        cmocka_unit_test(skipping_past_the_end_is_refused),
        cmocka_unit_test(a_block_unpacks_to_exactly_its_size),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
