/* bpe_late.c: merges that happen out of turn; see bpe_model.h.
 *
 * Hugging Face's tokenizers keep all pairs of a piece in a queue and join the
 * one whose merge stands first in the list, the leftmost of equals. In turns
 * that is: find the first merge that some pair has, and go through the piece
 * from left to right. Each pair of this merge is joined; where a token is made
 * that way, or by what follows, and it and a neighbour have a merge that stands
 * no later, these two are next, before anything further right. */
#include "text/bpe_model.h"

#include <string.h>

enum { PLACE_BITS = 24, TWO = 2, FOUR = 4 };

static const uint64_t EMPTY = UINT64_MAX;
static const uint32_t NO_PLACE = UINT32_MAX;

_Static_assert(2 * PL_BPE_INDEX_BITS + PLACE_BITS == 64, "a slot has 64 bits");

static size_t slot_of(const pl_bpe_late *late, uint64_t key)
{
    size_t slot = pl_bpe_mix(key * 0x9e3779b97f4a7c15u) & late->pair_mask;
    while (late->pairs[slot] != EMPTY && late->pairs[slot] >> PLACE_BITS != key)
        slot = (slot + 1) & late->pair_mask;
    return slot;
}

/* The place of the merge of two tokens, NO_PLACE if there is none. */
static uint32_t place_of(const pl_bpe_late *late, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)left << PL_BPE_INDEX_BITS | (uint32_t)right;
    uint64_t found = late->pairs[slot_of(late, key)];
    return found == EMPTY ? NO_PLACE
                          : (uint32_t)(found & ((1u << PLACE_BITS) - 1));
}

pl_status pl_bpe_late_open(pl_bpe *bpe, const pl_bpe_parts *parts,
                           pl_heap *heap, pl_error *err)
{
    pl_bpe_late *late = &bpe->late;
    pl_bpe_merge *merges;
    size_t size = pl_bpe_table_size(parts->merge_count);
    pl_status status = pl_heap_take(heap, &merges, parts->merge_count,
                                    sizeof *merges, err);
    if (!status)
        status = pl_heap_take(heap, &late->pairs, size, sizeof *late->pairs,
                              err);
    if (!status)
        status = pl_heap_take(heap, &late->twos, PL_BPE_LATE_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(heap, &late->fours, PL_BPE_LATE_BYTES, 1, err);
    if (status)
        return status;
    memcpy(merges, parts->merges, parts->merge_count * sizeof *merges);
    memset(late->pairs, 0xff, size * sizeof *late->pairs);
    late->pair_mask = size - 1;
    late->merges = merges;
    late->count = parts->merge_count;
    for (size_t i = 0; i < late->count; i++) {
        uint64_t key = (uint64_t)merges[i].left << PL_BPE_INDEX_BITS |
                       (uint32_t)merges[i].right;
        late->pairs[slot_of(late, key)] = key << PLACE_BITS | i;
    }
    return PL_OK;
}

static unsigned hash_of(const char *text, size_t bytes)
{
    uint32_t word = 0;
    memcpy(&word, text, bytes);
    return word * 0x9e3779b1u >> 16;
}

static int is_set(const uint8_t *bits, unsigned hash)
{
    return bits[hash / 8] >> hash % 8 & 1;
}

void pl_bpe_late_mark(pl_bpe *bpe, int32_t id)
{
    const pl_bpe_entry *entry = &bpe->entries[id];
    const char *text = bpe->text + entry->offset;
    size_t head = entry->length < FOUR ? TWO : FOUR;
    unsigned hash = hash_of(text, head);
    uint8_t *bits = head == TWO ? bpe->late.twos : bpe->late.fours;
    bits[hash / 8] = (uint8_t)(bits[hash / 8] | 1u << hash % 8);
}

int pl_bpe_late_may(const pl_bpe *bpe, const char *text, size_t bytes)
{
    for (size_t at = 0; at + TWO <= bytes; at++)
        if (is_set(bpe->late.twos, hash_of(text + at, TWO)) ||
            (at + FOUR <= bytes &&
             is_set(bpe->late.fours, hash_of(text + at, FOUR))))
            return 1;
    return 0;
}

/* Joins the last of the `used` tokens at the beginning with its neighbours, as
 * long as a merge stands no later than `turn`. *at is the next token. */
static size_t join_around(const pl_bpe_late *late, int32_t *ids, size_t used,
                          size_t *at, size_t count, uint32_t turn)
{
    for (;;) {
        uint32_t left = NO_PLACE, right = NO_PLACE;
        if (used > 1)
            left = place_of(late, ids[used - 2], ids[used - 1]);
        if (*at < count)
            right = place_of(late, ids[used - 1], ids[*at]);
        if (left > turn && right > turn)
            return used;
        if (left <= right)
            ids[--used - 1] = late->merges[left].made;
        else {
            ids[used - 1] = late->merges[right].made;
            ++*at;
        }
    }
}

/* The turn of one merge. Returns how many tokens are left. */
static size_t take_turn(const pl_bpe_late *late, int32_t *ids, size_t count,
                        uint32_t turn)
{
    size_t used = 1, at = 1;
    while (at < count) {
        if (place_of(late, ids[used - 1], ids[at]) != turn) {
            ids[used++] = ids[at++];
            continue;
        }
        ids[used - 1] = late->merges[turn].made;
        at++;
        used = join_around(late, ids, used, &at, count, turn);
    }
    return used;
}

size_t pl_bpe_late_encode(const pl_bpe *bpe, const char *text, size_t bytes,
                          int32_t *ids)
{
    size_t count = bytes;
    for (size_t i = 0; i < bytes; i++)
        ids[i] = bpe->ids[(unsigned char)text[i]];
    for (;;) {
        uint32_t turn = NO_PLACE;
        for (size_t i = 0; i + 1 < count; i++) {
            uint32_t place = place_of(&bpe->late, ids[i], ids[i + 1]);
            turn = place < turn ? place : turn;
        }
        if (turn == NO_PLACE)
            return count;
        count = take_turn(&bpe->late, ids, count, turn);
    }
}
