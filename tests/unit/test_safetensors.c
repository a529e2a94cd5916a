#include "format/safetensors.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;
static pl_safetensors st;
static char path[2 * SCRATCH_PATH_BYTES];

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "m.safetensors"));
    heap = pl_heap_make(64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

/* ---- writing ---- */

enum { MOST_TENSORS = 3, MOST_FLOATS = 1000 };

typedef struct tensors {
    size_t count;
    pl_tensor_info infos[MOST_TENSORS];
    float values[MOST_TENSORS][MOST_FLOATS];
    size_t next[MOST_TENSORS]; /* the byte that is to be asked for */
    size_t largest;            /* request */
    size_t lost;               /* 1 + the one that can't be read; 0: none */
} tensors;

static void describe(void *context, size_t i, pl_tensor_info *info)
{
    const tensors *t = context;
    assert_true(i < t->count);
    *info = t->infos[i];
}

static pl_status yield(void *context, size_t i, size_t at, void *out,
                       size_t bytes, pl_error *error)
{
    tensors *t = context;
    assert_int_equal(at, t->next[i]);
    t->next[i] += bytes;
    t->largest = bytes > t->largest ? bytes : t->largest;
    memcpy(out, (char *)t->values[i] + at, bytes);
    if (i + 1 == t->lost)
        return pl_fail(error, PL_E_UNSUPPORTED, "tensor %zu is lost", i);
    return PL_OK;
}

static size_t elements(const pl_tensor_info *info)
{
    size_t n = 1;
    for (size_t i = 0; i < info->rank; i++)
        n *= info->dims[i];
    return n;
}

static void add(tensors *t, const char *name, size_t rank, size_t rows,
                size_t cols)
{
    pl_tensor_info *info = &t->infos[t->count];
    *info = (pl_tensor_info){ .rank = rank, .dims = { rows, cols, 1, 1 } };
    snprintf(info->name, sizeof info->name, "%s", name);
    for (size_t i = 0; i < elements(info); i++)
        t->values[t->count][i] = (float)(1000 * (t->count + 1) + i);
    t->count++;
}

static tensors make_tensors(void)
{
    tensors t = { .count = 0 };
    add(&t, "wte.weight", 2, 7, 67);
    add(&t, "ln_f.bias", 1, 1, 0);
    add(&t, "h.0.mlp", 3, 8, 9);
    return t;
}

static pl_tensor_source source_of(tensors *t)
{
    return (pl_tensor_source){
        .context = t, .count = t->count, .describe = describe, .read = yield
    };
}

static pl_status write_with(tensors *t, size_t slice_bytes)
{
    const pl_tensor_source source = source_of(t);
    char *slice = malloc(slice_bytes);
    assert_non_null(slice);
    memset(t->next, 0, sizeof t->next);
    t->largest = 0;
    pl_status status = pl_safetensors_write(path, &source, slice, slice_bytes,
                                            &err);
    free(slice);
    return status;
}

static void write_tensors(tensors *t, size_t slice_bytes)
{
    if (write_with(t, slice_bytes))
        fail_msg("%s", err.text);
}

static void open_file(void)
{
    if (pl_safetensors_open(&st, path, &heap, &err))
        fail_msg("%s", err.text);
}

static void what_was_written_is_read_back(void **state)
{
    (void)state;
    tensors t = make_tensors();
    float back[MOST_FLOATS];
    write_tensors(&t, 1 << 16);
    open_file();
    assert_int_equal(st.count, 3);
    for (size_t i = 0; i < t.count; i++) {
        const pl_tensor_info *info = pl_safetensors_find(&st, t.infos[i].name);
        assert_non_null(info);
        assert_string_equal(info->name, t.infos[i].name);
        assert_int_equal(info->dtype, PL_TENSOR_F32);
        assert_int_equal(info->rank, t.infos[i].rank);
        assert_memory_equal(info->dims, t.infos[i].dims,
                            info->rank * sizeof info->dims[0]);
        assert_int_equal(info->bytes, 4 * elements(&t.infos[i]));
        assert_int_equal(
            pl_safetensors_read(&st, info, 0, back, info->bytes, &err), PL_OK);
        assert_memory_equal(back, t.values[i], info->bytes);
    }
    assert_null(pl_safetensors_find(&st, "wte"));
    assert_null(pl_safetensors_find(&st, "__metadata__"));
    pl_safetensors_close(&st);
}

static void a_part_of_a_tensor_is_read(void **state)
{
    (void)state;
    tensors t = make_tensors();
    write_tensors(&t, 1 << 16);
    open_file();
    const pl_tensor_info *info = pl_safetensors_find(&st, "h.0.mlp");
    assert_non_null(info);
    for (size_t at = 0; at <= info->bytes; at += 13) {
        size_t bytes = info->bytes - at < 29 ? info->bytes - at : 29;
        char *out = malloc(bytes + !bytes);
        assert_non_null(out);
        assert_int_equal(pl_safetensors_read(&st, info, at, out, bytes, &err),
                         PL_OK);
        assert_memory_equal(out, (char *)t.values[2] + at, bytes);
        free(out);
    }
    pl_safetensors_close(&st);
}

/* Byte by byte what the format's description says. */
static void a_small_file_has_the_bytes_of_the_format(void **state)
{
    (void)state;
    static const char expected[] =
        "\x90\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"format\":\"pt\"}"
        ",\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
        ",\"b.c\":{\"dtype\":\"F32\",\"shape\":[1,2],"
        "\"data_offsets\":[8,16]}} "
        "\x00\x00\x80\x3F\x00\x00\x00\xC0"  /* 1, -2 */
        "\x00\x00\x00\x3F\x00\x00\xC0\x7F"; /* 0.5, NaN */
    tensors t = { .count = 0 };
    size_t bytes;
    static const uint32_t nan_bits = 0x7FC00000;
    add(&t, "a", 1, 2, 0);
    add(&t, "b.c", 2, 1, 2);
    t.values[0][0] = 1;
    t.values[0][1] = -2;
    t.values[1][0] = 0.5f;
    memcpy(&t.values[1][1], &nan_bits, sizeof nan_bits);
    write_tensors(&t, 1 << 16);
    char *data = scratch_read(path, &bytes);
    assert_int_equal(bytes, sizeof expected - 1);
    assert_memory_equal(data, expected, bytes);
    free(data);
    const pl_tensor_source source = source_of(&t);
    assert_int_equal(pl_safetensors_size(&source), bytes);
}

static void the_data_begins_at_a_multiple_of_eight(void **state)
{
    (void)state;
    unsigned seen = 0;
    for (size_t length = 1; length <= 17; length++) {
        static const char letters[] = "abcdefghijklmnopqr";
        tensors t = { .count = 0 };
        char name[32];
        size_t bytes;
        snprintf(name, sizeof name, "%.*s", (int)length, letters);
        add(&t, name, 1, 3, 0);
        write_tensors(&t, 4);
        char *data = scratch_read(path, &bytes);
        open_file();
        assert_int_equal(st.data_at % 8, 0);
        assert_int_equal(st.data_at + 12, bytes);
        assert_int_equal(data[8], '{');
        size_t last = st.data_at - 1;
        unsigned spaces = 0;
        for (; data[last] == ' '; last--)
            spaces++;
        assert_int_equal(data[last], '}');
        assert_in_range(spaces, 0, 7);
        seen |= 1u << spaces;
        pl_safetensors_close(&st);
        free(data);
    }
    assert_int_equal(seen, 0xFF); /* every padding was needed once */
}

static void slices_of_any_size_write_the_same_bytes(void **state)
{
    (void)state;
    static const size_t slices[] = { 1, 3, 4, 7, 64, 67 * 4, 1 << 16 };
    tensors t = make_tensors();
    size_t expected_bytes, bytes;
    write_tensors(&t, 1 << 20);
    char *expected = scratch_read(path, &expected_bytes);
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++) {
        write_tensors(&t, slices[i]);
        assert_true(t.largest <= slices[i]);
        for (size_t k = 0; k < t.count; k++)
            assert_int_equal(t.next[k], 4 * elements(&t.infos[k]));
        char *data = scratch_read(path, &bytes);
        assert_int_equal(bytes, expected_bytes);
        assert_memory_equal(data, expected, bytes);
        free(data);
    }
    free(expected);
}

static void a_file_without_tensors_is_a_file(void **state)
{
    (void)state;
    tensors t = { .count = 0 };
    write_tensors(&t, 1);
    open_file();
    assert_int_equal(st.count, 0);
    pl_safetensors_close(&st);
}

static void an_old_file_gives_way(void **state)
{
    (void)state;
    static char old[100000];
    tensors t = make_tensors();
    size_t bytes;
    scratch_write(path, old, sizeof old);
    write_tensors(&t, 100);
    const pl_tensor_source source = source_of(&t);
    free(scratch_read(path, &bytes));
    assert_int_equal(bytes, pl_safetensors_size(&source));
}

static void a_folder_that_is_missing_is_an_error(void **state)
{
    (void)state;
    tensors t = make_tensors();
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "no/m.safetensors"));
    assert_int_equal(write_with(&t, 64), PL_E_IO);
    assert_contains(err.text, "no/m.safetensors");
    assert_int_equal(scratch_count(dir.folder), 0);
}

static void a_tensor_that_can_not_be_read_leaves_no_file(void **state)
{
    (void)state;
    tensors t = make_tensors();
    for (t.lost = 1; t.lost <= t.count; t.lost++) {
        assert_int_equal(write_with(&t, 16), PL_E_UNSUPPORTED);
        assert_contains(err.text, "is lost");
        assert_int_equal(scratch_count(dir.folder), 0);
    }
}

static void a_row_without_a_tensor_is_left_out(void **state)
{
    (void)state;
    tensors t = make_tensors();
    const size_t all = t.count;
    t.infos[1].rank = 0;
    assert_int_equal(write_with(&t, 64), PL_OK);
    assert_int_equal(pl_safetensors_open(&st, path, &heap, &err), PL_OK);
    assert_int_equal(st.count, all - 1);
    assert_null(pl_safetensors_find(&st, t.infos[1].name));
    pl_safetensors_close(&st);
}

static void write_it(void *context)
{
    tensors *t = context;
    const pl_tensor_source source = source_of(t);
    char slice[64];
    if (pl_safetensors_write(path, &source, slice,
                             t->largest ? sizeof slice : 0, &err))
        _exit(3);
}

static void impossible_tensors_are_bugs(void **state)
{
    (void)state;
    tensors t = { .largest = 1 };
    add(&t, "a", 1, 1, 0);
    t.infos[0].rank = PL_TENSOR_MAX_RANK + 1;
    assert_dies(write_it, &t, "rank");
    t.infos[0].rank = 1;
    t.largest = 0;
    assert_dies(write_it, &t, "slice_bytes");
}

static void read_outside(void *context)
{
    const uint64_t *range = context;
    char out[64];
    if (pl_safetensors_read(&st, &st.tensors[0], range[0], out,
                            (size_t)range[1], &err))
        _exit(3);
}

static void reading_outside_a_tensor_is_a_bug(void **state)
{
    (void)state;
    tensors t = { .count = 0 };
    uint64_t ranges[][2] = {
        { 0, 13 }, { 12, 1 }, { 13, 0 }, { UINT64_MAX, 2 }
    };
    add(&t, "a", 1, 3, 0);
    add(&t, "b", 1, 3, 0);
    write_tensors(&t, 64);
    open_file();
    for (size_t i = 0; i < 4; i++)
        assert_dies(read_outside, ranges[i], "info->bytes");
    pl_safetensors_close(&st);
}

/* ---- files that were damaged ---- */

/* Refused with a message, or a table whose tensors lie inside the file. */
static void judge(pl_status status, uint64_t file_bytes)
{
    if (status) {
        assert_true(status == PL_E_FORMAT || status == PL_E_MEMORY);
        assert_int_equal(err.status, status);
        assert_true(err.text[0] != '\0');
        return;
    }
    uint64_t total = 0;
    for (size_t i = 0; i < st.count; i++) {
        const pl_tensor_info *info = &st.tensors[i];
        char out[64];
        total += info->bytes;
        assert_true(info->rank <= PL_TENSOR_MAX_RANK);
        assert_true(info->bytes % elements(info) == 0 || !elements(info));
        assert_true(info->bytes <= sizeof out);
        assert_true(st.data_at + info->offset + info->bytes <= file_bytes);
        assert_int_equal(
            pl_safetensors_read(&st, info, 0, out, (size_t)info->bytes, &err),
            PL_OK);
    }
    assert_int_equal(st.data_at + total, file_bytes);
    pl_safetensors_close(&st);
}

static char *write_small(size_t *bytes)
{
    tensors t = { .count = 0 };
    add(&t, "a", 1, 2, 0);
    add(&t, "b.c", 2, 1, 2);
    write_tensors(&t, 64);
    return scratch_read(path, bytes);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    char *data = write_small(&bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        scratch_write(path, data, cut);
        memset(&err, 0, sizeof err);
        assert_int_equal(pl_safetensors_open(&st, path, &heap, &err),
                         PL_E_FORMAT);
        assert_contains(err.text, "m.safetensors");
        pl_heap_close(&heap);
    }
    char *longer = calloc(bytes + 1, 1);
    assert_non_null(longer);
    memcpy(longer, data, bytes);
    scratch_write(path, longer, bytes + 1);
    assert_int_equal(pl_safetensors_open(&st, path, &heap, &err), PL_E_FORMAT);
    assert_contains(err.text, "the tensors cover 16 bytes, the file has 17");
    free(longer);
    free(data);
}

static void every_changed_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    static const char corners[] = "\0\x01\x7F\x80\xFF 0129-.eE\"\\[]{},:";
    size_t bytes;
    char *data = write_small(&bytes);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    setvbuf(file, NULL, _IONBF, 0);
    for (size_t at = 0; at < bytes - 16; at++)
        for (size_t i = 0; i < 8 + sizeof corners - 1; i++) {
            char changed = corners[i < 8 ? 0 : i - 8];
            if (i < 8)
                changed = (char)(data[at] ^ 1 << i);
            assert_int_equal(pwrite(fileno(file), &changed, 1, (off_t)at), 1);
            memset(&err, 0, sizeof err);
            judge(pl_safetensors_open(&st, path, &heap, &err), bytes);
            pl_heap_close(&heap);
            assert_int_equal(pwrite(fileno(file), data + at, 1, (off_t)at), 1);
        }
    fclose(file);
    free(data);
}

static void a_file_that_shrinks_while_open_is_an_error(void **state)
{
    (void)state;
    size_t bytes;
    char out[8];
    free(write_small(&bytes));
    open_file();
    assert_int_equal(truncate(path, (off_t)bytes - 1), 0);
    assert_int_equal(pl_safetensors_read(&st, &st.tensors[0], 0, out, 8, &err),
                     PL_OK);
    assert_int_equal(pl_safetensors_read(&st, &st.tensors[1], 0, out, 8, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "too short");
    pl_safetensors_close(&st);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read_back),
        TEST(a_part_of_a_tensor_is_read),
        TEST(a_small_file_has_the_bytes_of_the_format),
        TEST(the_data_begins_at_a_multiple_of_eight),
        TEST(slices_of_any_size_write_the_same_bytes),
        TEST(a_file_without_tensors_is_a_file),
        TEST(an_old_file_gives_way),
        TEST(a_folder_that_is_missing_is_an_error),
        TEST(a_tensor_that_can_not_be_read_leaves_no_file),
        TEST(a_row_without_a_tensor_is_left_out),
        TEST(impossible_tensors_are_bugs),
        TEST(reading_outside_a_tensor_is_a_bug),
        TEST(every_truncation_is_refused),
        TEST(every_changed_byte_is_refused_or_harmless),
        TEST(a_file_that_shrinks_while_open_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
