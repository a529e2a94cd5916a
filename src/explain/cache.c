/* cache.c: best fit, splitting, merging; see cache.h. */
#include "explain/cache.h"

#include "base/check.h"

enum {
    MIN_BLOCK = 512,
    SMALL_SIZE = 1 << 20, /* the largest request of the small pool */
    SMALL_SEGMENT = 2 << 20,
    LARGE_SEGMENT = 20 << 20,
    OWN_SEGMENT = 10 << 20, /* from here on a segment has the request's size */
    SEGMENT_ROUND = 2 << 20,
};

enum { SMALL, LARGE };

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

pl_status pl_cache_open(pl_cache *cache, pl_cache_kind kind, size_t limit_bytes,
                        size_t capacity, pl_heap *heap, pl_error *err)
{
    *cache = (pl_cache){ .kind = kind,
                         .limit_bytes = limit_bytes,
                         .capacity = capacity };
    return pl_heap_take(heap, &cache->blocks, capacity + 1,
                        sizeof *cache->blocks, err);
}

static size_t new_block(pl_cache *cache, int pool, size_t bytes)
{
    size_t index = cache->spare;
    if (index)
        cache->spare = cache->blocks[index].free_next;
    else
        index = ++cache->count;
    PL_CHECK(index <= cache->capacity);
    cache->blocks[index] = (pl_cache_block){ .bytes = bytes, .pool = pool };
    return index;
}

static void drop_block(pl_cache *cache, size_t index)
{
    cache->blocks[index] = (pl_cache_block){ .free_next = cache->spare };
    cache->spare = index;
}

static void list_free(pl_cache *cache, size_t index)
{
    pl_cache_block *block = &cache->blocks[index];
    block->is_free = 1;
    block->free_prev = 0;
    block->free_next = cache->free_head[block->pool];
    if (block->free_next)
        cache->blocks[block->free_next].free_prev = index;
    cache->free_head[block->pool] = index;
}

static void unlist_free(pl_cache *cache, size_t index)
{
    pl_cache_block *block = &cache->blocks[index];
    if (block->free_prev)
        cache->blocks[block->free_prev].free_next = block->free_next;
    else
        cache->free_head[block->pool] = block->free_next;
    if (block->free_next)
        cache->blocks[block->free_next].free_prev = block->free_prev;
    block->is_free = 0;
}

static size_t best_fit(const pl_cache *cache, int pool, size_t bytes)
{
    size_t best = 0;
    for (size_t i = cache->free_head[pool]; i; i = cache->blocks[i].free_next)
        if (cache->blocks[i].bytes >= bytes &&
            (!best || cache->blocks[i].bytes < cache->blocks[best].bytes))
            best = i;
    return best;
}

/* Of an expandable segment any page can go; what is left of the block no
 * longer touches what came after it. */
static void unmap(pl_cache *cache, size_t index)
{
    pl_cache_block *block = &cache->blocks[index];
    int pool = block->pool;
    size_t page = pool == SMALL ? SMALL_SEGMENT : LARGE_SEGMENT;
    size_t gone = block->bytes / page * page;
    if (gone == 0)
        return;
    if (block->after)
        cache->blocks[block->after].before = 0;
    block->after = 0;
    block->bytes -= gone;
    cache->reserved_bytes -= gone;
    if (block->bytes)
        return;
    if (block->before)
        cache->blocks[block->before].after = 0;
    if (cache->last[pool] == index)
        cache->last[pool] = block->before;
    unlist_free(cache, index);
    drop_block(cache, index);
}

void pl_cache_give_back(pl_cache *cache)
{
    for (int pool = SMALL; pool <= LARGE; pool++)
        for (size_t i = cache->free_head[pool], next; i; i = next) {
            const pl_cache_block *block = &cache->blocks[i];
            next = block->free_next;
            if (cache->kind == PL_CACHE_EXPANDABLE) {
                unmap(cache, i);
            } else if (!block->before && !block->after) {
                cache->reserved_bytes -= block->bytes;
                unlist_free(cache, i);
                drop_block(cache, i);
            }
        }
}

static int has_room(pl_cache *cache, size_t bytes)
{
    if (!cache->limit_bytes ||
        cache->reserved_bytes + bytes <= cache->limit_bytes)
        return 1;
    pl_cache_give_back(cache);
    return cache->reserved_bytes + bytes <= cache->limit_bytes;
}

/* A free block of at least `bytes` at the end of the pool's one segment. */
static size_t expand(pl_cache *cache, int pool, size_t bytes, int *ok)
{
    size_t page = pool == SMALL ? SMALL_SEGMENT : LARGE_SEGMENT;
    size_t end = cache->last[pool];
    size_t have = end && cache->blocks[end].is_free ? cache->blocks[end].bytes
                                                    : 0;
    size_t more = round_up(bytes - have, page);
    *ok = has_room(cache, more);
    end = cache->last[pool]; /* it may have been given back just now */
    cache->reserved_bytes += more;
    if (end && cache->blocks[end].is_free) {
        cache->blocks[end].bytes += more;
        return end;
    }
    size_t index = new_block(cache, pool, more);
    cache->blocks[index].before = end;
    if (end)
        cache->blocks[end].after = index;
    cache->last[pool] = index;
    list_free(cache, index);
    return index;
}

static size_t new_segment(pl_cache *cache, int pool, size_t bytes, int *ok)
{
    if (cache->kind == PL_CACHE_EXPANDABLE)
        return expand(cache, pool, bytes, ok);
    size_t segment = pool == SMALL         ? SMALL_SEGMENT
                     : bytes < OWN_SEGMENT ? LARGE_SEGMENT
                                           : round_up(bytes, SEGMENT_ROUND);
    *ok = has_room(cache, segment);
    cache->reserved_bytes += segment;
    size_t index = new_block(cache, pool, segment);
    list_free(cache, index);
    return index;
}

static void split(pl_cache *cache, size_t index, size_t bytes)
{
    int pool = cache->blocks[index].pool;
    size_t rest = cache->blocks[index].bytes - bytes;
    int worth = pool == SMALL || cache->kind == PL_CACHE_EXPANDABLE
                    ? rest >= MIN_BLOCK
                    : rest > SMALL_SIZE;
    if (!worth)
        return;
    size_t tail = new_block(cache, pool, rest);
    pl_cache_block *block = &cache->blocks[index];
    cache->blocks[tail].before = index;
    cache->blocks[tail].after = block->after;
    if (block->after)
        cache->blocks[block->after].before = tail;
    if (cache->last[pool] == index)
        cache->last[pool] = tail;
    block->after = tail;
    block->bytes = bytes;
    list_free(cache, tail);
}

int pl_cache_take(pl_cache *cache, size_t bytes, size_t *block)
{
    int ok = 1;
    bytes = round_up(bytes, MIN_BLOCK);
    int pool = bytes <= SMALL_SIZE ? SMALL : LARGE;
    size_t index = best_fit(cache, pool, bytes);
    if (!index)
        index = new_segment(cache, pool, bytes, &ok);
    unlist_free(cache, index);
    split(cache, index, bytes);
    *block = index;
    return ok;
}

/* `index` swallows the free block after it. */
static void swallow(pl_cache *cache, size_t index)
{
    pl_cache_block *block = &cache->blocks[index];
    size_t next = block->after;
    if (!next || !cache->blocks[next].is_free)
        return;
    unlist_free(cache, next);
    block->bytes += cache->blocks[next].bytes;
    block->after = cache->blocks[next].after;
    if (block->after)
        cache->blocks[block->after].before = index;
    if (cache->last[block->pool] == next)
        cache->last[block->pool] = index;
    drop_block(cache, next);
}

void pl_cache_release(pl_cache *cache, size_t index)
{
    size_t before = cache->blocks[index].before;
    swallow(cache, index);
    if (before && cache->blocks[before].is_free) {
        cache->blocks[index].is_free = 1;
        list_free(cache, index);
        swallow(cache, before);
    } else {
        list_free(cache, index);
    }
}
