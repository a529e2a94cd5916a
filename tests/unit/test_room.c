/* Blocks that are counted against one limit and can be given back. */
#include "data/room.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;

static void what_is_given_back_can_be_taken_again(void **state)
{
    pl_room room = pl_room_make(1000);
    pl_block block = { .data = NULL };
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(pl_room_take(&room, &block, 900, "it", &err), PL_OK);
        memset(block.data, i, 900);
        pl_room_give_back(&room, &block);
        assert_int_equal(room.taken_bytes, 0);
    }
    assert_in_range(room.peak_bytes, 900, 1000);
}

static void a_block_that_suffices_stays(void **state)
{
    pl_room room = pl_room_make(10000);
    pl_block block = { .data = NULL };
    (void)state;
    assert_int_equal(pl_room_take(&room, &block, 900, "it", &err), PL_OK);
    const unsigned char *before = block.data;
    assert_int_equal(pl_room_take(&room, &block, 900, "it", &err), PL_OK);
    assert_ptr_equal(block.data, before);
    pl_room_give_back(&room, &block);
}

static void the_limit_holds_for_all_blocks_together(void **state)
{
    pl_room room = pl_room_make(1000);
    pl_block a = { .data = NULL }, b = { .data = NULL };
    (void)state;
    assert_int_equal(pl_room_take(&room, &a, 600, "the page", &err), PL_OK);
    assert_int_equal(pl_room_take(&room, &b, 600, "the page", &err),
                     PL_E_MEMORY);
    assert_contains(err.text, "the page needs 600 B");
    assert_null(b.data);
    assert_int_equal(room.wanted_bytes, a.bytes + 600);
    /* To replace it and to grow it, its own bytes count as free. */
    assert_int_equal(pl_room_grow(&room, &a, 1001, "it", &err), PL_E_MEMORY);
    assert_int_equal(room.wanted_bytes, 1001);
    assert_in_range(a.bytes, 600, 999);
    assert_int_equal(pl_room_grow(&room, &a, 900, "it", &err), PL_OK);
    assert_int_equal(pl_room_take(&room, &a, 1000, "it", &err), PL_OK);
    assert_int_equal(pl_room_take(&room, &a, SIZE_MAX, "it", &err),
                     PL_E_MEMORY);
    pl_room_give_back(&room, &a);
    assert_int_equal(room.taken_bytes, 0);
}

static void growing_keeps_what_was_there(void **state)
{
    pl_room room = pl_room_make(100000);
    pl_block block = { .data = NULL };
    (void)state;
    for (size_t bytes = 1; bytes < 5000; bytes += 7) {
        assert_int_equal(pl_room_grow(&room, &block, bytes, "it", &err), PL_OK);
        for (size_t i = bytes > 7 ? bytes - 7 : 0; i < bytes; i++)
            block.data[i] = (unsigned char)(i * 31);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(block.data[i], (unsigned char)(i * 31));
    }
    pl_room_give_back(&room, &block);
}

/* However little is asked for each time, and however near the end is. */
static void growing_byte_by_byte_takes_few_steps(void **state)
{
    pl_room room = pl_room_make(1000000);
    pl_block block = { .data = NULL };
    size_t steps = 0, before = 0;
    (void)state;
    for (size_t bytes = 1; bytes <= 1000000; bytes++) {
        assert_int_equal(pl_room_grow(&room, &block, bytes, "it", &err), PL_OK);
        steps += block.bytes != before;
        before = block.bytes;
    }
    assert_in_range(steps, 2, 50);
    pl_room_give_back(&room, &block);
    assert_int_equal(room.taken_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_given_back_can_be_taken_again),
        cmocka_unit_test(a_block_that_suffices_stays),
        cmocka_unit_test(the_limit_holds_for_all_blocks_together),
        cmocka_unit_test(growing_keeps_what_was_there),
        cmocka_unit_test(growing_byte_by_byte_takes_few_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
