/* cache.h: PyTorch's caching allocator for CUDA, as a model: sizes, no
 * addresses of anything.
 *
 * What it does with a request: rounds to 512 bytes; takes the smallest free
 * block that is large enough, of the pool for requests up to 1 MiB or of the
 * other; cuts it if the rest is worth keeping; else asks the driver for a
 * segment (2 MiB, 20 MiB, or the size rounded to 2 MiB); when the driver has
 * none left, gives back segments that are wholly free and asks again. With
 * expandable segments a pool is one segment that grows at its end. */
#ifndef PL_EXPLAIN_CACHE_H
#define PL_EXPLAIN_CACHE_H

#include "base/arena.h"

#include <stddef.h>

typedef enum pl_cache_kind {
    PL_CACHE_SEGMENTS, /* PyTorch's default */
    PL_CACHE_EXPANDABLE,
} pl_cache_kind;

typedef struct pl_cache_block {
    size_t bytes;
    size_t before, after;        /* neighbours in the segment; 0: none */
    size_t free_prev, free_next; /* in the list of free blocks of its pool */
    int pool, is_free;
} pl_cache_block;

typedef struct pl_cache {
    pl_cache_kind kind;
    size_t limit_bytes; /* of what is reserved; 0: none */
    size_t reserved_bytes;
    pl_cache_block *blocks; /* 0 is none */
    size_t count, capacity;
    size_t spare;        /* list of unused blocks, by free_next */
    size_t free_head[2]; /* small, large */
    size_t last[2];      /* the end of an expandable segment */
} pl_cache;

/* For at most `capacity` blocks. */
PL_MUST_CHECK pl_status pl_cache_open(pl_cache *cache, pl_cache_kind kind,
                                      size_t limit_bytes, size_t capacity,
                                      pl_heap *heap, pl_error *err);

/* A block for `bytes`. Returns 0 where PyTorch would have raised
 * OutOfMemoryError; the block is made all the same, beyond the limit. */
int pl_cache_take(pl_cache *cache, size_t bytes, size_t *block);
void pl_cache_release(pl_cache *cache, size_t block);

/* The segments of which nothing is used go back to the driver. */
void pl_cache_give_back(pl_cache *cache);

#endif
