/* bpe_pairs.c: see bpe_pairs.h. The priority queue is updated lazily: an entry
 * may have a higher count than its pair has by now, and is corrected when it
 * comes to the top. */
#include "text/bpe_pairs.h"

#include "base/check.h"
#include "base/units.h"
#include "text/bpe_model.h"

#include <string.h>

enum { FIRST_SLOTS = 1 << 12 };

#define LAST 0x7fffffffu /* of those touched */

static size_t home_of(const pl_pairs *p, uint64_t key)
{
    return pl_bpe_mix(key * 0x9e3779b97f4a7c15u) & p->slot_mask;
}

/* The slot of a key, or the empty one where it belongs. */
static size_t slot_of(const pl_pairs *p, uint64_t key)
{
    size_t slot = home_of(p, key);
    while (p->slots[slot] && p->pairs[p->slots[slot]].key != key)
        slot = (slot + 1) & p->slot_mask;
    return slot;
}

/* A list of `bytes` bytes, zeroed, in a new heap: the caller moves what is in
 * the old one and closes it. */
static pl_status take_list(pl_pairs *p, pl_heap *home, void *list, size_t bytes,
                           pl_error *err)
{
    size_t taken = p->pair_heap.taken_bytes + p->slot_heap.taken_bytes +
                   p->queue_heap.taken_bytes;
    if (taken > p->limit_bytes || bytes > p->limit_bytes - taken)
        return pl_fail(err, PL_E_MEMORY,
                       "the pairs need more than the %s they may have",
                       pl_units_bytes(p->limit_bytes).text);
    if (taken + bytes > p->peak_bytes)
        p->peak_bytes = taken + bytes;
    *home = pl_heap_make(bytes);
    return pl_heap_take(home, list, bytes, 1, err);
}

/* Doubles a list of `count` things of `size` bytes. */
static pl_status grow_list(pl_pairs *p, pl_heap *home, void *list,
                           size_t *capacity, size_t count, size_t size,
                           pl_error *err)
{
    void *old, *bigger = NULL;
    pl_heap next;
    size_t wanted = *capacity ? 2 * *capacity : FIRST_SLOTS / 2;
    pl_status status = take_list(p, &next, &bigger, wanted * size, err);
    if (status)
        return status;
    memcpy(&old, list, sizeof old);
    if (count > 0)
        memcpy(bigger, old, count * size);
    memcpy(list, &bigger, sizeof bigger);
    pl_heap_close(home);
    *home = next;
    *capacity = wanted;
    return PL_OK;
}

pl_status pl_pairs_open(pl_pairs *p, uint64_t min_count, size_t limit_bytes,
                        pl_error *err)
{
    *p = (pl_pairs){ .limit_bytes = limit_bytes,
                     .min_count = min_count ? min_count : 1,
                     .pair_count = 1,
                     .slot_mask = FIRST_SLOTS - 1 };
    pl_status status = take_list(p, &p->slot_heap, &p->slots,
                                 FIRST_SLOTS * sizeof *p->slots, err);
    if (!status)
        status = grow_list(p, &p->pair_heap, &p->pairs, &p->pair_capacity, 0,
                           sizeof *p->pairs, err);
    return status;
}

void pl_pairs_close(pl_pairs *p)
{
    pl_heap_close(&p->pair_heap);
    pl_heap_close(&p->slot_heap);
    pl_heap_close(&p->queue_heap);
}

static pl_status grow_slots(pl_pairs *p, pl_error *err)
{
    uint32_t *old = p->slots;
    pl_heap next;
    size_t old_mask = p->slot_mask, size = 2 * (old_mask + 1);
    pl_status status = take_list(p, &next, &p->slots, size * sizeof *p->slots,
                                 err);
    if (status) {
        p->slots = old;
        return status;
    }
    p->slot_mask = size - 1;
    for (size_t i = 0; i <= old_mask; i++)
        if (old[i])
            p->slots[slot_of(p, p->pairs[old[i]].key)] = old[i];
    pl_heap_close(&p->slot_heap);
    p->slot_heap = next;
    return PL_OK;
}

uint32_t pl_pairs_find(const pl_pairs *p, uint64_t key)
{
    return p->slots[slot_of(p, key)];
}

static void touch(pl_pairs *p, uint32_t pair)
{
    if (p->pairs[pair].touched)
        return;
    p->pairs[pair].touched = (p->touched ? p->touched : LAST) & LAST;
    p->touched = pair;
}

void pl_pairs_empty(pl_pairs *p, uint32_t pair)
{
    PL_CHECK(p->pairs[pair].count == 0);
    touch(p, pair);
}

pl_status pl_pairs_get(pl_pairs *p, uint64_t key, uint32_t *pair, pl_error *err)
{
    pl_status status = PL_OK;
    *pair = pl_pairs_find(p, key);
    if (*pair)
        return PL_OK;
    if (2 * (p->live_count + 1) > p->slot_mask)
        status = grow_slots(p, err);
    if (!status && !p->free && p->pair_count == p->pair_capacity)
        status = grow_list(p, &p->pair_heap, &p->pairs, &p->pair_capacity,
                           p->pair_count, sizeof *p->pairs, err);
    if (status)
        return status;
    if (p->free) {
        *pair = p->free;
        p->free = p->pairs[p->free].head;
    } else {
        *pair = (uint32_t)p->pair_count++;
    }
    p->pairs[*pair] = (pl_pair){ .key = key };
    p->slots[slot_of(p, key)] = *pair;
    p->live_count++;
    touch(p, *pair);
    return PL_OK;
}

/* Takes a pair out, so that there are never more than places. */
static void drop(pl_pairs *p, uint32_t pair)
{
    size_t hole = slot_of(p, p->pairs[pair].key), slot = hole;
    PL_CHECK(p->slots[hole] == pair);
    /* What comes behind and belongs at or before the hole moves into it. */
    for (;;) {
        slot = (slot + 1) & p->slot_mask;
        if (!p->slots[slot])
            break;
        size_t home = home_of(p, p->pairs[p->slots[slot]].key);
        if (((slot - home) & p->slot_mask) >= ((slot - hole) & p->slot_mask)) {
            p->slots[hole] = p->slots[slot];
            hole = slot;
        }
    }
    p->slots[hole] = 0;
    p->pairs[pair].head = p->free;
    p->free = pair;
    p->live_count--;
}

/* ---- the queue ---- */

static int comes_first(pl_pair_wait a, pl_pair_wait b)
{
    return a.count != b.count ? a.count > b.count : a.key < b.key;
}

static void sink(pl_pair_wait *queue, size_t count, size_t root)
{
    pl_pair_wait moved = queue[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            break;
        if (child + 1 < count && comes_first(queue[child + 1], queue[child]))
            child++;
        if (!comes_first(queue[child], moved))
            break;
        queue[root] = queue[child];
        root = child;
    }
    queue[root] = moved;
}

static void rise(pl_pair_wait *queue, size_t place)
{
    pl_pair_wait moved = queue[place];
    while (place > 0 && comes_first(moved, queue[(place - 1) / 2])) {
        queue[place] = queue[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    queue[place] = moved;
}

/* Takes out what has become too rare, so that the queue grows with the pairs
 * there are and not with those there were. */
static void sweep(pl_pairs *p)
{
    size_t kept = 0;
    for (size_t i = 0; i < p->queue_count; i++) {
        uint32_t pair = pl_pairs_find(p, p->queue[i].key);
        if (pair && p->pairs[pair].count >= p->min_count)
            p->queue[kept++] = p->queue[i];
        else if (pair)
            p->pairs[pair].queued = 0;
    }
    p->queue_count = kept;
    for (size_t root = kept / 2; root-- > 0;)
        sink(p->queue, kept, root);
}

static pl_status make_room(pl_pairs *p, pl_error *err)
{
    if (p->queue_count < p->queue_capacity)
        return PL_OK;
    sweep(p);
    if (p->queue_count < p->queue_capacity / 4 * 3)
        return PL_OK;
    return grow_list(p, &p->queue_heap, &p->queue, &p->queue_capacity,
                     p->queue_count, sizeof *p->queue, err);
}

pl_status pl_pairs_settle(pl_pairs *p, pl_error *err)
{
    uint32_t pair = p->touched;
    p->touched = 0;
    while (pair != 0 && pair != LAST) {
        pl_pair *each = &p->pairs[pair];
        uint32_t next = each->touched;
        each->touched = 0;
        if (each->head == PL_PAIR_NOWHERE) {
            drop(p, pair);
        } else if (!each->queued && each->count >= p->min_count) {
            pl_status status = make_room(p, err);
            if (status)
                return status;
            each->queued = 1;
            p->queue[p->queue_count] = (pl_pair_wait){ each->count, each->key };
            rise(p->queue, p->queue_count++);
        }
        pair = next;
    }
    return PL_OK;
}

void pl_pairs_put_back(pl_pairs *p, uint32_t pair)
{
    const pl_pair *each = &p->pairs[pair];
    PL_CHECK(p->queue_count < p->queue_capacity && each->queued);
    p->queue[p->queue_count] = (pl_pair_wait){ each->count, each->key };
    rise(p->queue, p->queue_count++);
}

uint32_t pl_pairs_next(pl_pairs *p)
{
    while (p->queue_count > 0) {
        uint32_t pair = pl_pairs_find(p, p->queue[0].key);
        uint64_t count = pair ? p->pairs[pair].count : 0;
        if (count >= p->min_count && count < p->queue[0].count) {
            p->queue[0].count = count;
            sink(p->queue, p->queue_count, 0);
            continue;
        }
        p->queue[0] = p->queue[--p->queue_count];
        if (p->queue_count > 0)
            sink(p->queue, p->queue_count, 0);
        if (count >= p->min_count)
            return pair;
    }
    return 0;
}
