/* Long texts in pieces: nothing lost, cut where words begin. */
#include "data/cutter.h"
#include "support/scratch.h"
#include "text/pretok.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;
static const pl_cutter_cuts anywhere = { .at = PL_CUTTER_ANYWHERE };
static const pl_cutter_cuts at_words = { .at = PL_CUTTER_AT_WORDS };

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static void a_cut_stands_between_a_word_and_a_blank(void **state)
{
    (void)state;
    /* The text has one byte more than may be given. */
    assert_int_equal(pl_cutter_cut("one two thr", 10, anywhere), 7);
    assert_int_equal(pl_cutter_cut("one two thr", 7, anywhere), 7);
    assert_int_equal(pl_cutter_cut("one two thr", 6, anywhere), 3);
    assert_int_equal(pl_cutter_cut("one\n\n\ntwo", 8, anywhere), 3);
    assert_int_equal(pl_cutter_cut("one  \t two", 9, anywhere), 3);
    assert_int_equal(
        pl_cutter_cut("a \xE6\x96\x87\xE3\x80\x82\nb", 9, anywhere), 8);
}

static void white_space_of_any_kind_is_not_cut(void **state)
{
    (void)state;
    /* U+3000 and U+00A0 before a blank. */
    assert_int_equal(pl_cutter_cut("a b\xE3\x80\x80 c", 7, anywhere), 1);
    assert_int_equal(pl_cutter_cut("a b\xC2\xA0 c", 6, anywhere), 1);
    /* Half a character is no word. */
    assert_int_equal(pl_cutter_cut("a b\xE3\x80 c", 6, anywhere), 1);
}

static void without_a_word_a_cut_stands_before_a_character(void **state)
{
    (void)state;
    assert_int_equal(pl_cutter_cut("xxxxxxx", 6, anywhere), 6);
    assert_int_equal(pl_cutter_cut("\xE6\x96\x87\xE6\x96\x87\xE6", 5, anywhere),
                     3);
    assert_int_equal(pl_cutter_cut("      ", 5, anywhere), 5);
    /* What isn't UTF-8 is cut somewhere. */
    assert_int_equal(pl_cutter_cut("\x80\x80\x80\x80\x80\x80\x80", 6, anywhere),
                     6);
}

/* The text comes back, in pieces that fit. Returns their number. */
static int read_pieces_cut(const char *text, size_t bytes, size_t buffer_bytes,
                           pl_cutter_cuts cuts)
{
    const char *path = scratch_path(&dir, "t.txt"), *piece;
    static unsigned char packed[64];
    pl_block buffer = { .data = NULL };
    pl_room room = pl_room_make(4096);
    pl_unpack unpack;
    pl_stream stream;
    pl_cutter pieces;
    pl_cutter_more more;
    size_t done = 0, got;
    int count = 0;
    scratch_write(path, text, bytes);
    pl_unpack_open(&unpack, &room);
    assert_int_equal(pl_stream_open(&stream, path, packed, sizeof packed,
                                    &unpack, NULL, NULL, &err),
                     PL_OK);
    pl_cutter_open(&pieces, &stream, &room, &buffer, buffer_bytes - 1, cuts);
    do {
        assert_int_equal(pl_cutter_next(&pieces, &piece, &got, &more, &err),
                         PL_OK);
        assert_true(got <= bytes - done);
        assert_true(got < buffer_bytes || cuts.at == PL_CUTTER_AT_WORDS);
        assert_memory_equal(piece, text + done, got);
        if (more == PL_CUTTER_MORE)
            assert_true(got > 0);
        done += got;
        assert_int_equal(pieces.offset, done);
        count++;
    } while (more == PL_CUTTER_MORE);
    assert_int_equal(done, bytes);
    pl_stream_close(&stream);
    pl_unpack_close(&unpack);
    pl_room_give_back(&room, &buffer);
    return count;
}

static int read_pieces(const char *text, size_t bytes, size_t buffer_bytes)
{
    return read_pieces_cut(text, bytes, buffer_bytes, anywhere);
}

/* The words of a text are those of its pieces, however small they are, and
 * however long the words. */
static void a_cut_never_changes_a_word(void **state)
{
    static const char *const bits[] = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                                        "   ",
                                        "\xC3\xA9",
                                        "12",
                                        "\n\n",
                                        "'re",
                                        "!?",
                                        "\xE3\x80\x80",
                                        "\xFF",
                                        "b",
                                        " ",
                                        "'",
                                        "ll",
                                        "  c" };
    enum { BITS = sizeof bits / sizeof bits[0] };
    unsigned seed = 1;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        char text[600] = "";
        for (int i = 0; i < 12; i++) {
            seed = seed * 1103515245u + 12345u;
            strcat(text, bits[(seed >> 16) % BITS]);
        }
        size_t bytes = strlen(text);
        for (size_t part = 1; part < bytes; part++) {
            pl_cutter_cuts cuts = { .splitting.pattern =
                                        (pl_pattern)(part % PL_PATTERN_COUNT) };
            size_t cut = pl_cutter_cut(text, part, cuts), at = 0;
            while (at < cut)
                at += pl_pretok_next(cuts.splitting.pattern, text + at,
                                     bytes - at);
            assert_int_equal(at, cut);
        }
        if (bytes)
            (void)read_pieces_cut(text, bytes, 8, at_words);
    }
}

static void a_word_that_does_not_fit_is_refused(void **state)
{
    char text[5000];
    pl_room room = pl_room_make(4096);
    pl_block buffer = { .data = NULL };
    static unsigned char packed[64];
    const char *path = scratch_path(&dir, "t.txt"), *piece;
    pl_unpack unpack;
    pl_stream stream;
    pl_cutter pieces;
    pl_cutter_more more;
    size_t got;
    (void)state;
    memset(text, 'x', sizeof text);
    scratch_write(path, text, sizeof text);
    pl_unpack_open(&unpack, &room);
    assert_int_equal(pl_stream_open(&stream, path, packed, sizeof packed,
                                    &unpack, NULL, NULL, &err),
                     PL_OK);
    pl_cutter_open(&pieces, &stream, &room, &buffer, 7, at_words);
    assert_int_equal(pl_cutter_next(&pieces, &piece, &got, &more, &err),
                     PL_E_MEMORY);
    assert_non_null(strstr(err.text, "t.txt, byte 0: a word without an end"));
    pl_stream_close(&stream);
    pl_unpack_close(&unpack);
    pl_room_give_back(&room, &buffer);
}

static void a_text_that_fits_is_one_piece(void **state)
{
    (void)state;
    assert_int_equal(read_pieces("one two", 7, 8), 1);
    assert_int_equal(read_pieces("one two", 7, 100), 1);
    assert_int_equal(read_pieces("", 0, 8), 1);
    assert_int_equal(read_pieces("one two", 7, 7), 2);
}

static void pieces_make_up_the_text_at_every_length(void **state)
{
    char text[300];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "ab c\xC3\xA9 \n\n x\xFF  yz"[i * i % 17];
    for (size_t bytes = 0; bytes <= sizeof text; bytes++)
        for (size_t buffer = 5; buffer < 80; buffer += 3)
            (void)read_pieces(text, bytes, buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_stands_between_a_word_and_a_blank),
        cmocka_unit_test(white_space_of_any_kind_is_not_cut),
        cmocka_unit_test(without_a_word_a_cut_stands_before_a_character),
        cmocka_unit_test(a_text_that_fits_is_one_piece),
        cmocka_unit_test(a_cut_never_changes_a_word),
        cmocka_unit_test(a_word_that_does_not_fit_is_refused),
        cmocka_unit_test(pieces_make_up_the_text_at_every_length),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
