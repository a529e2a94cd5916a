/* Documents from files of every kind, in order, in bounded memory, from any
 * place on. */
#include "data/glob.h"
#include "data/source.h"
#include "support/asserts.h"
#include "support/pack.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMORY_BYTES = PL_SOURCE_MIN_BYTES, MAX_PIECES = 400 };

static scratch dir;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

/* ---- helpers ---- */

static const char *put(const char *name, const char *content)
{
    const char *path = scratch_path(&dir, name);
    scratch_write(path, content, strlen(content));
    return path;
}

static const char *put_packed(const char *name, pack_kind kind,
                              const char *content)
{
    const char *path = scratch_path(&dir, name);
    size_t bytes;
    char *data = pack_bytes(kind, content, strlen(content), &bytes);
    scratch_write(path, data, bytes);
    free(data);
    return path;
}

static void put_folder(const char *name)
{
    assert_int_equal(mkdir(scratch_path(&dir, name), 0755), 0);
}

static pl_source_options options_of(const char *const *paths, size_t count)
{
    return (pl_source_options){ .paths = paths,
                                .path_count = count,
                                .memory_bytes = MEMORY_BYTES };
}

static pl_source *open_source(const pl_source_options *options)
{
    pl_source *source;
    memset(&err, 0, sizeof err);
    if (pl_source_open(&source, options, &err))
        fail_msg("%s", err.text);
    return source;
}

/* All documents, each with | behind; a piece that goes on with + instead. */
static const char *read_all(const pl_source_options *options)
{
    static char out[1 << 14];
    pl_source *source = open_source(options);
    pl_fragment piece;
    size_t used = 0;
    while (!pl_source_next(source, &piece, &err) && piece.part) {
        assert_true(used + piece.bytes + 2 < sizeof out);
        memcpy(out + used, piece.text, piece.bytes);
        used += piece.bytes;
        out[used++] = pl_fragment_ends(piece.part) ? '|' : '+';
    }
    out[used] = '\0';
    if (err.status)
        fail_msg("%s", err.text);
    assert_int_equal(pl_source_done_bytes(source),
                     pl_source_files(source)->total_bytes);
    assert_in_range(pl_source_peak_bytes(source), 1, MEMORY_BYTES);
    pl_source_close(source);
    return out;
}

static void assert_documents(const char *path, const char *expected)
{
    const char *paths[] = { path };
    const pl_source_options options = options_of(paths, 1);
    assert_string_equal(read_all(&options), expected);
}

static void assert_refused(const pl_source_options *options, pl_status expected,
                           const char *part)
{
    pl_source *source;
    pl_fragment piece = { .part = PL_FRAGMENT_NONE };
    pl_status status = pl_source_open(&source, options, &err);
    while (!status) {
        status = pl_source_next(source, &piece, &err);
        if (!status && !piece.part)
            fail_msg("no error; expected: %s", part);
    }
    assert_int_equal(status, expected);
    assert_contains(err.text, part);
    pl_source_close(source);
}

static void assert_path_refused(const char *path, pl_status expected,
                                const char *part)
{
    const char *paths[] = { path };
    const pl_source_options options = options_of(paths, 1);
    assert_refused(&options, expected, part);
}

/* ---- kinds ---- */

static const char lines[] = "{\"text\":\"one\"}\n\n{\"text\":\"\"}\n"
                            "{\"text\":null}\n{\"text\":\"t\\u0077o\"}\n";

static void each_kind_is_known_by_its_name(void **state)
{
    (void)state;
    assert_documents(put("a.txt", "some text\n"), "some text\n|");
    assert_documents(put("a", "some text"), "some text|");
    assert_documents(put("a.jsonl", lines), "one|two|");
    assert_documents(put("a.ndjson", lines), "one|two|");
    assert_documents(put("a.json", lines), "one|two|");
    assert_documents(put_packed("a.txt.gz", PACK_GZIP, "packed"), "packed|");
    assert_documents(put_packed("a.TXT.zst", PACK_ZSTD, "packed"), "packed|");
    assert_documents(put_packed("a.jsonl.gz", PACK_GZIP, lines), "one|two|");
    assert_documents(put_packed("a.jsonl.zst", PACK_ZSTD, lines), "one|two|");
    assert_documents(put_packed("a.json.gz", PACK_GZIP, lines), "one|two|");
    assert_documents(put("empty.txt", ""), "");
}

static void parquet_is_known_by_its_content_too(void **state)
{
    const char *golden = "tests/golden/parquet/same_groups.parquet";
    const char *paths[] = { golden, scratch_path(&dir, "no_ending") };
    size_t bytes;
    (void)state;
    char *data = scratch_read(golden, &bytes);
    scratch_write(paths[1], data, bytes);
    free(data);
    const pl_source_options options = options_of(paths, 2);
    const char *all = read_all(&options);
    assert_int_equal(strlen(all), 2 * 300 * strlen("the same line|"));
    assert_memory_equal(all, "the same line|the same line|", 28);
}

static void the_format_and_the_field_can_be_given(void **state)
{
    const char *paths[] = { put("data.bin", "{\"body\":{\"en\":\"x\"}}\n") };
    pl_source_options options = options_of(paths, 1);
    (void)state;
    options.format = PL_SOURCE_JSONL;
    options.field = "body.en";
    assert_string_equal(read_all(&options), "x|");
    options.field = "body.de";
    assert_refused(&options, PL_E_FORMAT, "there is no field \"body.de\"");
}

static void files_keep_the_order_in_which_they_are_given(void **state)
{
    const char *paths[] = { put("b.txt", "B"), put("a.jsonl", lines),
                            put("c.txt", "C") };
    const pl_source_options options = options_of(paths, 3);
    (void)state;
    assert_string_equal(read_all(&options), "B|one|two|C|");
}

/* ---- folders and patterns ---- */

static void make_tree(void)
{
    put_folder("t");
    put_folder("t/sub");
    put_folder("t/sub/deep");
    put("t/b.txt", "b");
    put("t/a.txt", "a");
    put("t/B.txt", "B");
    put("t/.hidden.txt", "hidden");
    put("t/README.md", "readme");
    put("t/info.json", "{\"about\": 1}");
    put("t/sub/x.jsonl", "{\"text\":\"x\"}");
    put("t/sub/deep/y.txt", "y");
    assert_int_equal(symlink("..", scratch_path(&dir, "t/sub/loop")), 0);
    assert_int_equal(symlink("a.txt", scratch_path(&dir, "t/z.txt")), 0);
}

static void a_folder_is_walked_in_the_order_of_names(void **state)
{
    (void)state;
    make_tree();
    assert_documents(scratch_path(&dir, "t"), "B|readme|a|b|y|x|a|");
}

static void a_folder_given_as_text_is_taken_whole(void **state)
{
    const char *paths[1];
    pl_source_options options = options_of(paths, 1);
    (void)state;
    make_tree();
    paths[0] = scratch_path(&dir, "t");
    options.format = PL_SOURCE_TEXT;
    assert_string_equal(read_all(&options), "B|readme|a|b|{\"about\": 1}|y|"
                                            "{\"text\":\"x\"}|a|");
}

static void a_folder_without_text_is_refused(void **state)
{
    (void)state;
    put_folder("e");
    assert_path_refused(scratch_path(&dir, "e"), PL_E_IO, "has no text");
    put("e/x.png", "\x89PNG\r\n\x1a\n");
    assert_path_refused(scratch_path(&dir, "e"), PL_E_IO,
                        "passed over: 1 a PNG image (x.png)");
}

static void patterns_match_as_in_a_shell(void **state)
{
    static const struct {
        const char *pattern, *name;
        int is;
    } rows[] = {
        { "*.txt", "a.txt", 1 },
        { "*.txt", "a.txt.gz", 0 },
        { "*", ".a", 0 },
        { ".*", ".a", 1 },
        { "a*b*c", "aXbXbYc", 1 },
        { "a*b*c", "aXbXbY", 0 },
        { "?", "\xC3\xA9", 1 },
        { "?", "ab", 0 },
        { "[a-c]x", "bx", 1 },
        { "[!a-c]x", "bx", 0 },
        { "[^a-c]x", "dx", 1 },
        { "[]x]", "]", 1 },
        { "[a", "[a", 1 },
        { "[a-]", "-", 1 },
        { "**", "abc", 1 },
        { "", "", 1 },
        { "*[0-9].txt", "a7.txt", 1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (pl_glob_matches(rows[i].pattern, strlen(rows[i].pattern),
                            rows[i].name) != rows[i].is)
            fail_msg("%s and %s", rows[i].pattern, rows[i].name);
}

static void a_pattern_names_files(void **state)
{
    (void)state;
    make_tree();
    assert_documents(scratch_path(&dir, "t/*.txt"), "B|a|b|a|");
    assert_documents(scratch_path(&dir, "t/*/x.jsonl"), "x|");
    assert_documents(scratch_path(&dir, "t/[ab].*"), "a|b|");
    assert_documents(scratch_path(&dir, "t/**/*.txt"), "B|a|b|a|y|");
    assert_documents(scratch_path(&dir, "t/s*"), "y|x|");
    assert_path_refused(scratch_path(&dir, "t/*.pq"), PL_E_IO,
                        "no file matches");
    assert_path_refused(scratch_path(&dir, "absent.txt"), PL_E_IO,
                        "absent.txt");
    /* A file of that very name comes first. */
    put("t/[ab].txt", "itself");
    assert_documents(scratch_path(&dir, "t/[ab].txt"), "itself|");
}

/* ---- long texts ---- */

static char *long_text(size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + i / 7 % 26);
    text[bytes] = '\0';
    return text;
}

static void a_text_larger_than_memory_comes_in_pieces(void **state)
{
    size_t bytes = 3 * MEMORY_BYTES, done = 0;
    char *text = long_text(bytes), where[PL_SOURCE_WHERE_BYTES];
    const char *paths[] = { put_packed("long.txt.zst", PACK_ZSTD, text) };
    const pl_source_options options = options_of(paths, 1);
    pl_source *source = open_source(&options);
    pl_fragment piece;
    (void)state;
    do {
        assert_int_equal(pl_source_next(source, &piece, &err), PL_OK);
        assert_int_equal(pl_fragment_begins(piece.part), done == 0);
        assert_memory_equal(piece.text, text + done, piece.bytes);
        done += piece.bytes;
    } while (!pl_fragment_ends(piece.part));
    assert_int_equal(done, bytes);
    pl_source_where(source, where);
    assert_contains(where, "long.txt.zst, byte 1");
    assert_int_equal(pl_source_next(source, &piece, &err), PL_OK);
    assert_int_equal(piece.part, PL_FRAGMENT_NONE);
    assert_in_range(pl_source_peak_bytes(source), 1, MEMORY_BYTES);
    pl_source_close(source);
    free(text);
}

/* ---- limits ---- */

static void a_document_above_the_limit_is_named(void **state)
{
    char *text = long_text(2000), *json = malloc(3000);
    const char *paths[] = { scratch_path(&dir, "big.jsonl") };
    pl_source_options options = options_of(paths, 1);
    (void)state;
    assert_non_null(json);
    snprintf(json, 3000, "{\"text\":\"ok\"}\n{\"text\":\"%s\"}\n", text);
    put("big.jsonl", json);
    options.document_bytes = 1000;
    assert_refused(&options, PL_E_FORMAT, "big.jsonl, line 2: its document");
    paths[0] = "tests/golden/parquet/mixed_groups.parquet";
    assert_refused(&options, PL_E_FORMAT,
                   "mixed_groups.parquet, row 53: its document");
    free(text);
    free(json);
}

static void wrong_uses_are_refused(void **state)
{
    const char *paths[] = { put("a.txt", "a"), "-", "-" };
    pl_source_options options = options_of(paths, 1);
    (void)state;
    options.memory_bytes = MEMORY_BYTES - 1;
    assert_refused(&options, PL_E_MEMORY, "at least");
    options = options_of(paths, 0);
    assert_refused(&options, PL_E_USAGE, "no text file was given");
    options = options_of(paths, 3);
    assert_refused(&options, PL_E_USAGE, "can be read once only");
    options = options_of(paths + 1, 1);
    options.format = PL_SOURCE_PARQUET;
    assert_refused(&options, PL_E_UNSUPPORTED, "standard input");
    assert_path_refused(put("a.parquet.gz", "a"), PL_E_UNSUPPORTED,
                        "Unpack it first");
}

/* ---- places ---- */

typedef struct read_piece {
    char *text;
    size_t bytes;
    pl_fragment_part part;
    pl_source_place before;
} read_piece;

static size_t read_pieces(pl_source *source, read_piece *out)
{
    size_t count = 0;
    pl_fragment piece;
    for (;; count++) {
        assert_in_range(count, 0, MAX_PIECES - 1);
        out[count].before = pl_source_tell(source);
        if (pl_source_next(source, &piece, &err))
            fail_msg("%s", err.text);
        if (!piece.part)
            return count;
        out[count].bytes = piece.bytes;
        out[count].part = piece.part;
        out[count].text = malloc(piece.bytes);
        assert_non_null(out[count].text);
        memcpy(out[count].text, piece.text, piece.bytes);
    }
}

static void assert_goes_on(const pl_source_options *options,
                           const read_piece *expected, size_t count)
{
    pl_source *source = open_source(options);
    pl_fragment piece;
    if (pl_source_seek(source, expected[0].before, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++) {
        if (pl_source_next(source, &piece, &err))
            fail_msg("%s", err.text);
        assert_int_equal(piece.part, expected[i].part);
        assert_int_equal(piece.bytes, expected[i].bytes);
        assert_memory_equal(piece.text, expected[i].text, piece.bytes);
    }
    assert_int_equal(pl_source_next(source, &piece, &err), PL_OK);
    assert_int_equal(piece.part, PL_FRAGMENT_NONE);
    pl_source_close(source);
}

static void reading_goes_on_from_every_place(void **state)
{
    static read_piece pieces[MAX_PIECES];
    char *text = long_text(5 * PL_SOURCE_PIECE_BYTES / 2);
    const char *paths[] = { put("long.txt", text),
                            put_packed("long.txt.gz", PACK_GZIP, text),
                            put("a.jsonl", lines),
                            put_packed("b.jsonl.zst", PACK_ZSTD, lines),
                            "tests/golden/parquet/mixed_groups.parquet",
                            "tests/golden/parquet/mixed_pages_v2.parquet",
                            put("end.txt", "end") };
    const pl_source_options options = options_of(paths, 7);
    pl_source *source = open_source(&options);
    size_t count = read_pieces(source, pieces);
    (void)state;
    assert_in_range(count, 100, MAX_PIECES - 1);
    pl_source_close(source);
    for (size_t i = 0; i <= count; i++)
        assert_goes_on(&options, pieces + i, count - i);
    for (size_t i = 0; i < count; i++)
        free(pieces[i].text);
    free(text);
}

static void a_place_of_another_list_is_refused(void **state)
{
    const char *paths[] = { put("a.txt", "some text") };
    const pl_source_options options = options_of(paths, 1);
    pl_source *source = open_source(&options);
    (void)state;
    assert_int_equal(
        pl_source_seek(source, (pl_source_place){ .file = 2 }, &err),
        PL_E_USAGE);
    assert_int_equal(
        pl_source_seek(source, (pl_source_place){ .offset = 99 }, &err),
        PL_E_FORMAT);
    assert_contains(err.text, "changed since");
    pl_source_close(source);
}

static void the_identity_shows_other_files_or_sizes(void **state)
{
    const char *paths[] = { put("a.txt", "a"), put("b.txt", "b") };
    pl_source_options options = options_of(paths, 2);
    pl_source *source = open_source(&options);
    uint64_t first = pl_source_identity(source);
    (void)state;
    pl_source_close(source);
    source = open_source(&options);
    assert_true(pl_source_identity(source) == first);
    pl_source_close(source);
    put("b.txt", "bb");
    source = open_source(&options);
    assert_true(pl_source_identity(source) != first);
    pl_source_close(source);
}

/* ---- standard input ---- */

static void standard_input_is_read_and_unpacked(void **state)
{
    const char *paths[] = { "-" };
    pl_source_options options = options_of(paths, 1);
    char where[PL_SOURCE_WHERE_BYTES];
    size_t bytes;
    int ends[2], own = dup(STDIN_FILENO);
    pl_fragment piece;
    (void)state;
    char *data = pack_bytes(PACK_GZIP, lines, strlen(lines), &bytes);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], data, bytes), bytes);
    close(ends[1]);
    assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    options.format = PL_SOURCE_JSONL;
    pl_source *source = open_source(&options);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pl_source_next(source, &piece, &err), PL_OK);
        assert_int_equal(piece.bytes, 3);
        assert_memory_equal(piece.text, i ? "two" : "one", 3);
    }
    pl_source_where(source, where);
    assert_string_equal(where, "standard input, line 5");
    assert_int_equal(pl_source_seek(source, pl_source_tell(source), &err),
                     PL_E_USAGE);
    pl_source_close(source);
    dup2(own, STDIN_FILENO);
    close(own);
    close(ends[0]);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_kind_is_known_by_its_name, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(parquet_is_known_by_its_content_too,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_format_and_the_field_can_be_given,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            files_keep_the_order_in_which_they_are_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_folder_is_walked_in_the_order_of_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_given_as_text_is_taken_whole,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_without_text_is_refused,
                                        set_up, tear_down),
        cmocka_unit_test(patterns_match_as_in_a_shell),
        cmocka_unit_test_setup_teardown(a_pattern_names_files, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_text_larger_than_memory_comes_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_document_above_the_limit_is_named,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_uses_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(reading_goes_on_from_every_place,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_place_of_another_list_is_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_identity_shows_other_files_or_sizes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(standard_input_is_read_and_unpacked,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
