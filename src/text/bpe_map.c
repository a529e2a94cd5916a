/* bpe_map.c: tokens by their bytes; see bpe_model.h. */
#include "text/bpe_model.h"

#include <string.h>

size_t pl_bpe_table_size(size_t count)
{
    size_t size = 16;
    while (size < 2 * count)
        size *= 2;
    return size;
}

static uint64_t hash_of(const char *bytes, size_t length)
{
    uint64_t hash = length * 0x9e3779b97f4a7c15u, word;
    size_t at = 0;
    for (; length - at >= 8; at += 8) {
        memcpy(&word, bytes + at, 8);
        hash = pl_bpe_mix(hash ^ word) * 0x9e3779b97f4a7c15u;
    }
    word = 0;
    memcpy(&word, bytes + at, length - at);
    return pl_bpe_mix(hash ^ word);
}

pl_status pl_bpe_map_open(pl_bpe_map *map, const char *text,
                          const pl_bpe_entry *entries, size_t count,
                          pl_heap *heap, pl_error *err)
{
    size_t size = pl_bpe_table_size(count);
    *map = (pl_bpe_map){ .text = text, .entries = entries, .mask = size - 1 };
    return pl_heap_take(heap, &map->slots, size, sizeof *map->slots, err);
}

/* The slot that has these bytes, or the empty one where they belong. */
static size_t slot_of(const pl_bpe_map *map, const char *bytes, size_t length)
{
    size_t slot = hash_of(bytes, length) & map->mask;
    for (; map->slots[slot]; slot = (slot + 1) & map->mask) {
        const pl_bpe_entry *entry = &map->entries[map->slots[slot] - 1];
        if (entry->length == length &&
            memcmp(map->text + entry->offset, bytes, length) == 0)
            break;
    }
    return slot;
}

int32_t pl_bpe_map_find(const pl_bpe_map *map, const char *bytes, size_t length)
{
    return (int32_t)map->slots[slot_of(map, bytes, length)] - 1;
}

int32_t pl_bpe_map_add(pl_bpe_map *map, int32_t id)
{
    const pl_bpe_entry *entry = &map->entries[id];
    size_t slot = slot_of(map, map->text + entry->offset, entry->length);
    int32_t before = (int32_t)map->slots[slot] - 1;
    map->slots[slot] = (uint32_t)id + 1;
    return before;
}
