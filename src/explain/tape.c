/* tape.c: the running totals. */
#include "explain/tape.h"

#include "base/check.h"

#include <string.h>

static const char *const names[PL_ITEM_COUNT] = {
#define PL_ITEM_NAME(id, name, key) [id] = name,
    PL_ITEM_TABLE(PL_ITEM_NAME)
#undef PL_ITEM_NAME
};

static const char *const keys[PL_ITEM_COUNT] = {
#define PL_ITEM_KEY(id, name, key) [id] = key,
    PL_ITEM_TABLE(PL_ITEM_KEY)
#undef PL_ITEM_KEY
};

const char *pl_item_name(pl_item item)
{
    PL_CHECK(item < PL_ITEM_COUNT);
    return names[item];
}

const char *pl_item_key(pl_item item)
{
    PL_CHECK(item < PL_ITEM_COUNT);
    return keys[item];
}

pl_status pl_tape_open(pl_tape *tape, size_t capacity, size_t limit_bytes,
                       pl_cache *cache, pl_heap *heap, pl_error *err)
{
    *tape = (pl_tape){ .capacity = capacity,
                       .limit_bytes = limit_bytes,
                       .cache = cache,
                       .line = "" };
    pl_status status = pl_heap_take(heap, &tape->slots, capacity + 1,
                                    sizeof *tape->slots, err);
    if (!status)
        status = pl_heap_take(heap, &tape->free_slots, capacity,
                              sizeof *tape->free_slots, err);
    for (size_t i = 0; i < capacity && !status; i++)
        tape->free_slots[tape->free_count++] = capacity - i;
    return status;
}

static void note_peak(pl_tape *tape, const char *name)
{
    pl_tape_peak *peak = &tape->peaks[tape->phase];
    size_t reserved = tape->cache ? tape->cache->reserved_bytes
                                  : tape->live_bytes;
    if (reserved > peak->reserved_bytes)
        peak->reserved_bytes = reserved;
    if (tape->live_bytes <= peak->live_bytes)
        return;
    peak->live_bytes = tape->live_bytes;
    memcpy(peak->items, tape->items, sizeof peak->items);
    peak->line = tape->line;
    peak->name = name;
}

void pl_tape_begin(pl_tape *tape, pl_tape_phase phase)
{
    if (tape->cache && tape->failures[tape->phase].happened)
        pl_cache_give_back(tape->cache);
    tape->phase = phase;
    note_peak(tape, "");
}

static void note_failure(pl_tape *tape, const char *name, size_t bytes)
{
    pl_tape_failure *failure = &tape->failures[tape->phase];
    if (failure->happened)
        return;
    *failure = (pl_tape_failure){
        .happened = 1,
        .phase = tape->phase,
        .line = tape->line,
        .name = name,
        .wanted_bytes = bytes,
        .live_bytes = tape->live_bytes,
        .reserved_bytes = tape->cache ? tape->cache->reserved_bytes
                                      : tape->live_bytes,
    };
}

/* The replay goes on after a failure, as if there were room: the peaks are
 * asked for all the same. */
pl_taken pl_tape_take(pl_tape *tape, pl_item item, const char *name,
                      size_t bytes)
{
    if (bytes == 0)
        return 0;
    PL_CHECK(tape->free_count > 0);
    pl_taken held = tape->free_slots[--tape->free_count];
    pl_tape_slot *slot = &tape->slots[held];
    *slot = (pl_tape_slot){ name, item, bytes, 0 };
    if (tape->cache) {
        if (!pl_cache_take(tape->cache, bytes, &slot->block))
            note_failure(tape, name, bytes);
    } else if (tape->limit_bytes &&
               tape->live_bytes + bytes > tape->limit_bytes) {
        note_failure(tape, name, bytes);
    }
    tape->live_bytes += bytes;
    tape->items[item] += bytes;
    note_peak(tape, name);
    if (tape->watch)
        tape->watch(tape->context, tape, 1, name, bytes);
    return held;
}

void pl_tape_release(pl_tape *tape, pl_taken *held)
{
    pl_taken index = *held;
    *held = 0;
    if (index == 0)
        return;
    pl_tape_slot *slot = &tape->slots[index];
    PL_CHECK(slot->bytes > 0 && tape->items[slot->item] >= slot->bytes);
    if (tape->cache)
        pl_cache_release(tape->cache, slot->block);
    tape->live_bytes -= slot->bytes;
    tape->items[slot->item] -= slot->bytes;
    if (tape->watch)
        tape->watch(tape->context, tape, -1, slot->name, slot->bytes);
    *slot = (pl_tape_slot){ 0 };
    tape->free_slots[tape->free_count++] = index;
}

void pl_tape_relabel(pl_tape *tape, pl_taken held, pl_item item)
{
    if (held == 0)
        return;
    pl_tape_slot *slot = &tape->slots[held];
    PL_CHECK(slot->bytes > 0);
    tape->items[slot->item] -= slot->bytes;
    tape->items[item] += slot->bytes;
    slot->item = item;
}
