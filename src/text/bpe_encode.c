/* bpe_encode.c: text to ids; see bpe_model.h for the ideas. Owns the encoder's
 * memory of pieces. */
#include "text/bpe_model.h"

#include "base/check.h"
#include "text/piece.h"
#include "text/pretok.h"

#include <string.h>

/* ---- one piece ---- */

/* The rank of the longest token at the beginning of the text. */
static uint32_t longest(const pl_bpe *bpe, const char *text, size_t bytes)
{
    uint32_t node = (unsigned char)text[0], best = node;
    for (size_t i = 1; i < bytes; i++) {
        uint64_t key = (uint64_t)node << 8 | (unsigned char)text[i];
        size_t slot = pl_bpe_mix(key * 0x9e3779b97f4a7c15u) & bpe->edge_mask;
        uint64_t edge;
        while ((edge = bpe->edges[slot]) >> 32 != key) {
            if (edge == UINT64_MAX)
                return best;
            slot = (slot + 1) & bpe->edge_mask;
        }
        node = (uint32_t)edge;
        if (bpe->node_rank[node] != PL_BPE_NONE)
            best = bpe->node_rank[node];
    }
    return best;
}

static size_t length_of(const pl_bpe *bpe, uint32_t rank)
{
    return bpe->entries[bpe->ids[rank]].length;
}

/* While a piece is encoded, its ids are ranks, and the bit DEAD of
 * ids[p - 1] says that byte p was found to be a dead end: there are as many
 * ids as bytes. */
#define DEAD ((int32_t)0x40000000)

static uint32_t rank_at(const int32_t *ids, size_t place)
{
    return (uint32_t)(ids[place] & ~DEAD);
}

static size_t encode_piece(const pl_bpe *bpe, const char *text, size_t bytes,
                           int32_t *ids)
{
    size_t at = 0, count = 0;
    uint32_t next = longest(bpe, text, bytes);
    if (length_of(bpe, next) == bytes) { /* then it is the encoding */
        ids[0] = bpe->ids[next];
        return 1;
    }
    memset(ids, 0, bytes * sizeof *ids);
    while (at < bytes) {
        size_t end = at + length_of(bpe, next);
        while (next != PL_BPE_NONE &&
               (ids[end - 1] & DEAD ||
                (count > 0 &&
                 !pl_bpe_go_together(bpe, rank_at(ids, count - 1), next)))) {
            next = bpe->shorter[next];
            end = next == PL_BPE_NONE ? 0 : at + length_of(bpe, next);
        }
        if (next != PL_BPE_NONE) {
            ids[count] = (ids[count] & DEAD) | (int32_t)next;
            count++;
            at = end;
            if (at < bytes)
                next = longest(bpe, text + at, bytes - at);
        } else {
            PL_CHECK(count > 0); /* the first token has every length */
            ids[at - 1] |= DEAD;
            next = rank_at(ids, --count);
            at -= length_of(bpe, next);
        }
    }
    for (size_t i = 0; i < count; i++)
        ids[i] = bpe->ids[rank_at(ids, i)];
    return count;
}

/* ---- the memory of pieces ---- */

enum { SLOT_IDS = 3, WAYS = 2, LINE_BYTES = 64 };

/* Two of them are a line of the processor's cache, and a set. */
struct pl_bpe_slot {
    pl_piece_key key;
    int32_t ids[SLOT_IDS];
    uint32_t count; /* 0: empty */
};

pl_status pl_bpe_encoder_open(pl_bpe_encoder *encoder, const pl_bpe *bpe,
                              size_t cache_bytes, pl_heap *heap, pl_error *err)
{
    size_t sets = 16;
    char *memory;
    while (sets * 2 * LINE_BYTES <= cache_bytes)
        sets *= 2;
    pl_status status = pl_heap_take(heap, &memory, (sets + 1) * LINE_BYTES, 1,
                                    err);
    if (status)
        return status;
    memory += LINE_BYTES - (uintptr_t)memory % LINE_BYTES;
    *encoder = (pl_bpe_encoder){ .bpe = bpe,
                                 .slots = (struct pl_bpe_slot *)(void *)memory,
                                 .set_mask = sets - 1 };
    return PL_OK;
}

static size_t put(const struct pl_bpe_slot *slot, int32_t *ids)
{
    ids[0] = slot->ids[0];
    if (slot->count > 1)
        ids[1] = slot->ids[1];
    if (slot->count > 2)
        ids[2] = slot->ids[2];
    return slot->count;
}

static size_t encode_known(pl_bpe_encoder *encoder, const char *text,
                           size_t bytes, size_t readable, int32_t *ids)
{
    pl_piece_key key = pl_piece_key_of(text, bytes, readable);
    size_t set = pl_piece_hash(key) & encoder->set_mask;
    struct pl_bpe_slot *slots = &encoder->slots[set * WAYS];
    for (int way = 0; way < WAYS; way++)
        if (pl_piece_same(slots[way].key, key))
            return put(&slots[way], ids);
    size_t count = encode_piece(encoder->bpe, text, bytes, ids);
    if (count <= SLOT_IDS) {
        slots[1] = slots[0];
        slots[0] = (struct pl_bpe_slot){ .key = key, .count = (uint32_t)count };
        memcpy(slots[0].ids, ids, count * sizeof *ids);
    }
    return count;
}

static size_t encode_text(pl_bpe_encoder *encoder, const char *text,
                          size_t bytes, int32_t *ids)
{
    size_t at = 0, count = 0;
    while (at < bytes) {
        size_t length = pl_pretok_next(text + at, bytes - at);
        if (length <= PL_PIECE_SHORT_BYTES)
            count += encode_known(encoder, text + at, length, bytes - at,
                                  ids + count);
        else
            count += encode_piece(encoder->bpe, text + at, length, ids + count);
        at += length;
    }
    return count;
}

static size_t encode_text_plain(const pl_bpe *bpe, const char *text,
                                size_t bytes, int32_t *ids)
{
    size_t at = 0, count = 0;
    while (at < bytes) {
        size_t length = pl_pretok_next(text + at, bytes - at);
        count += encode_piece(bpe, text + at, length, ids + count);
        at += length;
    }
    return count;
}

/* ---- special tokens ---- */

/* The special token at `at`, or -1. */
static int32_t special_at(const pl_bpe *bpe, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bpe->special_count; i++) {
        const pl_bpe_entry *entry = &bpe->entries[bpe->specials[i]];
        if (entry->length <= bytes &&
            memcmp(bpe->text + entry->offset, text, entry->length) == 0)
            return bpe->specials[i];
    }
    return -1;
}

/* Where the next special token begins, `bytes` if there is none; *id is it. */
static size_t find_special(const pl_bpe *bpe, const char *text, size_t bytes,
                           int32_t *id)
{
    for (size_t at = 0; bpe->special_count > 0 && at < bytes; at++) {
        if (bpe->special_head >= 0) {
            const char *found = memchr(text + at, bpe->special_head,
                                       bytes - at);
            if (!found)
                break;
            at = (size_t)(found - text);
        }
        *id = special_at(bpe, text + at, bytes - at);
        if (*id >= 0)
            return at;
    }
    return bytes;
}

typedef size_t text_fn(void *context, const char *text, size_t bytes,
                       int32_t *ids);

static size_t with_specials(const pl_bpe *bpe, text_fn *encode, void *context,
                            const char *text, size_t bytes,
                            pl_bpe_specials specials, int32_t *ids)
{
    size_t at = 0, count = 0;
    if (specials == PL_BPE_SPECIALS_AS_TEXT)
        return encode(context, text, bytes, ids);
    while (at < bytes) {
        int32_t id = -1;
        size_t before = find_special(bpe, text + at, bytes - at, &id);
        count += encode(context, text + at, before, ids + count);
        at += before;
        if (at < bytes) {
            ids[count++] = id;
            at += bpe->entries[id].length;
        }
    }
    return count;
}

static size_t call_encoder(void *context, const char *text, size_t bytes,
                           int32_t *ids)
{
    return encode_text(context, text, bytes, ids);
}

static size_t call_plain(void *context, const char *text, size_t bytes,
                         int32_t *ids)
{
    const pl_bpe *const *bpe = context;
    return encode_text_plain(*bpe, text, bytes, ids);
}

size_t pl_bpe_encode(pl_bpe_encoder *encoder, const char *text, size_t bytes,
                     pl_bpe_specials specials, int32_t *ids)
{
    return with_specials(encoder->bpe, call_encoder, encoder, text, bytes,
                         specials, ids);
}

size_t pl_bpe_encode_plain(const pl_bpe *bpe, const char *text, size_t bytes,
                           pl_bpe_specials specials, int32_t *ids)
{
    return with_specials(bpe, call_plain, &bpe, text, bytes, specials, ids);
}
