/* room.c: see room.h. */
#include "data/room.h"

#include "base/check.h"

#include <string.h>

pl_room pl_room_make(size_t limit_bytes)
{
    return (pl_room){ .limit_bytes = limit_bytes };
}

static size_t left(const pl_room *room)
{
    return room->limit_bytes - room->taken_bytes;
}

static pl_status none_left(const pl_room *room, size_t need, const char *what,
                           pl_error *err)
{
    return pl_fail(err, PL_E_MEMORY,
                   "%s needs %zu bytes of memory; of the %zu that reading may "
                   "take %zu are in use. Give more memory.",
                   what, need, room->limit_bytes, room->taken_bytes);
}

static pl_status fill(pl_room *room, pl_block *block, size_t bytes,
                      const char *what, pl_error *err)
{
    PL_CHECK(!block->data);
    if (bytes > left(room))
        return none_left(room, bytes, what, err);
    block->heap = pl_heap_make(bytes);
    pl_status status = pl_heap_take(&block->heap, &block->data, bytes, 1, err);
    if (status) {
        block->data = NULL;
        return pl_fail_in(err, status, "%s: ", what);
    }
    block->bytes = bytes;
    room->taken_bytes += bytes;
    if (room->peak_bytes < room->taken_bytes)
        room->peak_bytes = room->taken_bytes;
    return PL_OK;
}

pl_status pl_room_take(pl_room *room, pl_block *block, size_t need,
                       const char *what, pl_error *err)
{
    if (block->data && need <= block->bytes)
        return PL_OK;
    pl_room_give_back(room, block);
    if (need > left(room))
        return none_left(room, need, what, err);
    /* A little more than asked, so that pages that grow slowly don't ask
     * every time. */
    size_t spare = left(room) - need, more = need / 8;
    return fill(room, block, need + (more < spare ? more : spare), what, err);
}

pl_status pl_room_grow(pl_room *room, pl_block *block, size_t keep, size_t need,
                       const char *what, pl_error *err)
{
    pl_block grown = { .data = NULL };
    PL_CHECK(keep <= block->bytes);
    if (block->data && need <= block->bytes)
        return PL_OK;
    size_t twice = 2 * block->bytes;
    size_t wanted = twice > need && twice <= left(room) ? twice : need;
    pl_status status = fill(room, &grown, wanted, what, err);
    if (status)
        return status;
    if (keep > 0)
        memcpy(grown.data, block->data, keep);
    pl_room_give_back(room, block);
    *block = grown;
    return PL_OK;
}

void pl_room_give_back(pl_room *room, pl_block *block)
{
    PL_CHECK(block->bytes <= room->taken_bytes);
    room->taken_bytes -= block->bytes;
    pl_heap_close(&block->heap);
    *block = (pl_block){ .data = NULL };
}
