/* room.h: the memory that reading files may take: an allocator with a limit.
 *
 * A pl_heap is given back as a whole. But a reader meets pages and documents of
 * every size, and must not keep what it no longer needs. So a room gives blocks
 * that can be given back one by one: each is a lump of its own (base/arena.h),
 * and the room counts them all against one limit. */
#ifndef PL_DATA_ROOM_H
#define PL_DATA_ROOM_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pl_room {
    size_t limit_bytes;
    size_t taken_bytes;
    size_t peak_bytes; /* the most that was ever taken */
    /* The limit with which the last request that was refused would have been
     * granted; 0: none was. */
    uint64_t wanted_bytes;
} pl_room;

/* Zeroed: it holds nothing. */
typedef struct pl_block {
    unsigned char *data;
    size_t bytes;
} pl_block;

pl_room pl_room_make(size_t limit_bytes);

/* Makes the block hold at least `need` bytes; what was in it may be lost.
 * PL_E_MEMORY where the room has no more, with `what` in the message ("the
 * page"); the block is then empty. */
PL_MUST_CHECK pl_status pl_room_take(pl_room *room, pl_block *block,
                                     size_t need, const char *what,
                                     pl_error *err);

/* The same, but what is in it stays. Grows by half, or to all that is left
 * where that is less, so that many small steps take linear time. On failure
 * the block is as it was. */
PL_MUST_CHECK pl_status pl_room_grow(pl_room *room, pl_block *block,
                                     size_t need, const char *what,
                                     pl_error *err);
/* How large the block could become. */
size_t pl_room_most(const pl_room *room, const pl_block *block);
/* Notes that the block would have had to hold `need` bytes. */
void pl_room_want(pl_room *room, const pl_block *block, uint64_t need);

/* Empties the block. */
void pl_room_give_back(pl_room *room, pl_block *block);

#endif
