/* room.h: the memory that reading may take, in blocks that can be given back.
 *
 * A pl_heap is given back as a whole; a reader meets pages and documents of
 * every size and must not keep what it no longer needs. A block is a heap of
 * its own, and the room counts them all against one limit. */
#ifndef PL_DATA_ROOM_H
#define PL_DATA_ROOM_H

#include "base/arena.h"

#include <stddef.h>

typedef struct pl_room {
    size_t limit_bytes;
    size_t taken_bytes;
    size_t peak_bytes; /* the most that was ever taken */
} pl_room;

/* Zeroed: it holds nothing. */
typedef struct pl_block {
    pl_heap heap;
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

/* The same, but the first `keep` bytes stay. Grows by doubling where there is
 * room for that, else by what is needed. On failure the block is as it was. */
PL_MUST_CHECK pl_status pl_room_grow(pl_room *room, pl_block *block,
                                     size_t keep, size_t need, const char *what,
                                     pl_error *err);

/* Empties the block. */
void pl_room_give_back(pl_room *room, pl_block *block);

#endif
