/* room.c: see room.h. */
#include "data/room.h"

#include "base/check.h"
#include "base/units.h"

pl_room pl_room_make(size_t limit_bytes)
{
    return (pl_room){ .limit_bytes = limit_bytes };
}

static size_t left(const pl_room *room)
{
    return room->limit_bytes - room->taken_bytes;
}

void pl_room_want(pl_room *room, const pl_block *block, uint64_t need)
{
    room->wanted_bytes = room->taken_bytes - block->bytes + need;
}

static pl_status none_left(pl_room *room, const pl_block *block, size_t need,
                           const char *what, pl_error *err)
{
    size_t used = room->taken_bytes - block->bytes;
    pl_room_want(room, block, need);
    return pl_fail(err, PL_E_MEMORY,
                   "%s needs %s of memory; of the %s that reading may take %s "
                   "are in use. Give more memory",
                   what, pl_units_bytes(need).text,
                   pl_units_bytes(room->limit_bytes).text,
                   pl_units_bytes(used).text);
}

static pl_status resize(pl_room *room, pl_block *block, size_t bytes,
                        const char *what, pl_error *err)
{
    pl_status status = pl_lump_resize(&block->data, bytes, err);
    if (status)
        return pl_fail_in(err, status, "%s: ", what);
    room->taken_bytes += bytes - block->bytes;
    block->bytes = bytes;
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
        return none_left(room, block, need, what, err);
    /* A little more than asked, so that pages that grow slowly don't ask
     * every time. */
    size_t spare = left(room) - need, more = need / 8;
    return resize(room, block, need + (more < spare ? more : spare), what, err);
}

size_t pl_room_most(const pl_room *room, const pl_block *block)
{
    return block->bytes + left(room);
}

pl_status pl_room_grow(pl_room *room, pl_block *block, size_t need,
                       const char *what, pl_error *err)
{
    size_t most = pl_room_most(room, block);
    size_t wanted = block->bytes + block->bytes / 2;
    if (block->data && need <= block->bytes)
        return PL_OK;
    if (need > most)
        return none_left(room, block, need, what, err);
    if (wanted > most)
        wanted = most;
    return resize(room, block, wanted > need ? wanted : need, what, err);
}

void pl_room_give_back(pl_room *room, pl_block *block)
{
    PL_CHECK(block->bytes <= room->taken_bytes);
    room->taken_bytes -= block->bytes;
    pl_lump_free(block->data);
    *block = (pl_block){ .data = NULL };
}
