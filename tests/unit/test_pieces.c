/* Long texts in pieces: nothing lost, cut where words begin. */
#include "data/pieces.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;

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
    assert_int_equal(pl_pieces_cut("one two thr", 10), 7);
    assert_int_equal(pl_pieces_cut("one two thr", 7), 7);
    assert_int_equal(pl_pieces_cut("one two thr", 6), 3);
    assert_int_equal(pl_pieces_cut("one\n\n\ntwo", 8), 3);
    assert_int_equal(pl_pieces_cut("one  \t two", 9), 3);
    assert_int_equal(pl_pieces_cut("a \xE6\x96\x87\xE3\x80\x82\nb", 9), 8);
}

static void white_space_of_any_kind_is_not_cut(void **state)
{
    (void)state;
    /* U+3000 and U+00A0 before a blank. */
    assert_int_equal(pl_pieces_cut("a b\xE3\x80\x80 c", 7), 1);
    assert_int_equal(pl_pieces_cut("a b\xC2\xA0 c", 6), 1);
    /* Half a character is no word. */
    assert_int_equal(pl_pieces_cut("a b\xE3\x80 c", 6), 1);
}

static void without_a_word_a_cut_stands_before_a_character(void **state)
{
    (void)state;
    assert_int_equal(pl_pieces_cut("xxxxxxx", 6), 6);
    assert_int_equal(pl_pieces_cut("\xE6\x96\x87\xE6\x96\x87\xE6", 5), 3);
    assert_int_equal(pl_pieces_cut("      ", 5), 5);
    /* What isn't UTF-8 is cut somewhere. */
    assert_int_equal(pl_pieces_cut("\x80\x80\x80\x80\x80\x80\x80", 6), 6);
}

/* The text comes back, in pieces that fit. Returns their number. */
static int read_pieces(const char *text, size_t bytes, size_t buffer_bytes)
{
    const char *path = scratch_path(&dir, "t.txt"), *piece;
    static unsigned char packed[64];
    static char buffer[4096];
    pl_room room = pl_room_make(0);
    pl_unpack unpack;
    pl_stream stream;
    pl_pieces pieces;
    pl_pieces_more more;
    size_t done = 0, got;
    int count = 0;
    scratch_write(path, text, bytes);
    pl_unpack_open(&unpack, &room);
    assert_int_equal(
        pl_stream_open(&stream, path, packed, sizeof packed, &unpack, &err),
        PL_OK);
    pl_pieces_open(&pieces, &stream, buffer, buffer_bytes);
    do {
        assert_int_equal(pl_pieces_next(&pieces, &piece, &got, &more, &err),
                         PL_OK);
        assert_true(got < buffer_bytes && got <= bytes - done);
        assert_memory_equal(piece, text + done, got);
        if (more == PL_PIECES_MORE)
            assert_true(got > 0);
        done += got;
        assert_int_equal(pieces.offset, done);
        count++;
    } while (more == PL_PIECES_MORE);
    assert_int_equal(done, bytes);
    pl_stream_close(&stream);
    pl_unpack_close(&unpack);
    return count;
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
        cmocka_unit_test(pieces_make_up_the_text_at_every_length),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
