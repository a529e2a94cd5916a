/* bpe_encode.c: text to token ids; bpe_model.h has the theory.
 *
 *   "low lower"
 *      |  added tokens are found, the text between them is normalized
 *      |  pretok.h cuts the text into pieces
 *   [low] [ lower]
 *      |  pieces of up to 15 bytes are looked up in the encoder's cache
 *      |  others, and what is not cached, are encoded (encode_piece)
 *   " lower" = " low" + "er"
 *
 * encode_piece goes from left to right and takes the longest token that may
 * follow the one before (pl_bpe_compatible: the two are what their bytes would
 * be encoded as). If none does, not even a shorter one, the byte's position is
 * marked as a dead end, the last token is taken back, and the next shorter one
 * is tried there. Each position is marked once, so that the time is linear in
 * the length of the piece. The tokens are those that merging pairs in the order
 * of their ranks would give.
 *
 * The cache is a hash table with sets of two entries, one cache line each: a
 * new piece replaces the second entry, and moves to the first when it is found
 * again. Lookups are made in batches, so that their memory is prefetched. */
#include "text/bpe_model.h"

#include "base/check.h"
#include "text/nfc.h"
#include "text/pretok.h"
#include "text/pretoken_key.h"

#include <string.h>

/* ---- one piece ---- */

/* The rank of the longest token that the text begins with, by the trie. */
static uint32_t longest_token(const pl_bpe *bpe, const char *text, size_t bytes)
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
        if (node < bpe->rank_count)
            best = node;
    }
    return best;
}

/* While a piece is encoded, its ids are ranks, and the bit DEAD of ids[p - 1]
 * says that byte p was found to be a dead end. There is an id for each byte, so
 * that both fit. */
#define DEAD ((int32_t)0x40000000)

static uint32_t rank_at(const int32_t *ids, size_t place)
{
    return (uint32_t)(ids[place] & ~DEAD);
}

/* Of a piece that isn't one token, and begins with `next`. */
static size_t encode_parts(const pl_bpe *bpe, const char *text, size_t bytes,
                           uint32_t next, int32_t *ids)
{
    size_t at = 0, count = 0;
    memset(ids, 0, bytes * sizeof *ids);
    while (at < bytes) {
        size_t end = at + bpe->lengths[next];
        while (next != PL_BPE_NONE &&
               (ids[end - 1] & DEAD ||
                (count > 0 &&
                 !pl_bpe_compatible(bpe, rank_at(ids, count - 1), next)))) {
            next = bpe->shorter[next];
            end = next == PL_BPE_NONE ? 0 : at + bpe->lengths[next];
        }
        if (next != PL_BPE_NONE) {
            ids[count] = (ids[count] & DEAD) | (int32_t)next;
            count++;
            at = end;
            if (at < bytes)
                next = longest_token(bpe, text + at, bytes - at);
        } else {
            PL_CHECK(count > 0); /* the first token has every length */
            ids[at - 1] |= DEAD;
            next = rank_at(ids, --count);
            at -= bpe->lengths[next];
        }
    }
    for (size_t i = 0; i < count; i++)
        ids[i] = bpe->ids[rank_at(ids, i)];
    return count;
}

static size_t encode_piece(const pl_bpe *bpe, const char *text, size_t bytes,
                           int32_t *ids)
{
    uint32_t next = longest_token(bpe, text, bytes);
    if (bpe->lengths[next] == bytes &&
        (!bpe->late.merges || bpe->whole.slots)) { /* then it is the encoding */
        ids[0] = bpe->ids[next];
        return 1;
    }
    if (bpe->whole.slots) {
        int32_t id = pl_bpe_map_find(&bpe->whole, text, bytes);
        if (id >= 0) {
            ids[0] = id;
            return 1;
        }
    }
    if (bpe->late.merges && pl_bpe_late_may(bpe, text, bytes))
        return pl_bpe_late_encode(bpe, text, bytes, ids);
    return encode_parts(bpe, text, bytes, next, ids);
}

/* ---- the cache of pieces ---- */

enum { SLOT_IDS = 6, HALF_IDS = 3, ID_BITS = 20, WAYS = 2, LINE_BYTES = 64 };

_Static_assert(PL_BPE_MAX_VOCAB <= 1 << ID_BITS, "an id fits into its bits");

/* An entry of the cache. Two of them are a set, and a line of the processor's
 * cache. */
struct pl_bpe_slot {
    pl_pretoken_key key;
    /* Three ids of 20 bits in each, the first one lowest. The upper four bits
     * of `ids` have the number of ids: 0 if the slot is empty. */
    uint64_t ids, more;
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
    const int32_t mask = PL_BPE_MAX_VOCAB - 1;
    size_t count = slot->ids >> (HALF_IDS * ID_BITS);
    uint64_t half = slot->ids;
    ids[0] = (int32_t)half & mask;
    for (size_t i = 1; i < count; i++) {
        half = i == HALF_IDS ? slot->more : half >> ID_BITS;
        ids[i] = (int32_t)half & mask;
    }
    return count;
}

static struct pl_bpe_slot pack(pl_pretoken_key key, const int32_t *ids,
                               size_t count)
{
    uint64_t half[2] = { (uint64_t)count << (HALF_IDS * ID_BITS), 0 };
    for (size_t i = 0; i < count; i++)
        half[i / HALF_IDS] |= (uint64_t)ids[i] << (i % HALF_IDS * ID_BITS);
    return (struct pl_bpe_slot){ .key = key, .ids = half[0], .more = half[1] };
}

/* Pieces whose slots are being prefetched. */
enum { PENDING = 16 };

typedef struct pending {
    const char *text;
    size_t bytes;
    pl_pretoken_key key;
    struct pl_bpe_slot *set;
} pending;

static size_t encode_pending(const pl_bpe *bpe, const pending *w, int32_t *ids)
{
    if (w->bytes > PL_PRETOKEN_SHORT_BYTES)
        return encode_piece(bpe, w->text, w->bytes, ids);
    if (pl_pretoken_same(w->set[0].key, w->key))
        return put(&w->set[0], ids);
    if (pl_pretoken_same(w->set[1].key, w->key)) {
        /* Seen twice: pieces that are seen once can't replace it any more. */
        struct pl_bpe_slot hit = w->set[1];
        w->set[1] = w->set[0];
        w->set[0] = hit;
        return put(&hit, ids);
    }
    size_t count = encode_piece(bpe, w->text, w->bytes, ids);
    if (count <= SLOT_IDS)
        w->set[1] = pack(w->key, ids, count);
    return count;
}

static size_t encode_text(pl_bpe_encoder *encoder, const char *text,
                          size_t bytes, int32_t *ids)
{
    pending row[PENDING];
    pl_pretok_fn *next = pl_pretok_of(encoder->bpe->splitting.pattern);
    size_t at = 0, count = 0;
    while (at < bytes) {
        size_t pieces = 0;
        for (; pieces < PENDING && at < bytes; pieces++) {
            pending *w = &row[pieces];
            w->text = text + at;
            w->bytes = next(text + at, bytes - at);
            if (w->bytes <= PL_PRETOKEN_SHORT_BYTES) {
                w->key = pl_pretoken_key_of(w->text, w->bytes, bytes - at);
                size_t set = pl_pretoken_hash(w->key) & encoder->set_mask;
                w->set = &encoder->slots[set * WAYS];
                __builtin_prefetch(w->set);
            }
            at += w->bytes;
        }
        for (size_t i = 0; i < pieces; i++)
            count += encode_pending(encoder->bpe, &row[i], ids + count);
    }
    return count;
}

static size_t encode_text_plain(const pl_bpe *bpe, const char *text,
                                size_t bytes, int32_t *ids)
{
    pl_pretok_fn *next = pl_pretok_of(bpe->splitting.pattern);
    size_t at = 0, count = 0;
    while (at < bytes) {
        size_t length = next(text + at, bytes - at);
        count += encode_piece(bpe, text + at, length, ids + count);
        at += length;
    }
    return count;
}

/* ---- added tokens ---- */

typedef struct job {
    const pl_bpe *bpe;
    pl_bpe_encoder *encoder; /* NULL: none */
    pl_bpe_specials specials;
} job;

/* The added token with which the text begins, or -1. */
static int32_t added_at(const pl_bpe *bpe, const pl_bpe_added *added,
                        const char *text, size_t bytes)
{
    const uint16_t *from = &added->from[(unsigned char)text[0]];
    for (size_t i = from[0]; i < from[1]; i++) {
        const pl_bpe_entry *entry = &bpe->entries[added->ids[i]];
        if (entry->length <= bytes &&
            memcmp(bpe->text + entry->offset, text, entry->length) == 0)
            return added->ids[i];
    }
    return -1;
}

/* Where the next added token begins, `bytes` if there is none; *id is it. What
 * is text for this job is passed over as a whole. */
static size_t find_added(const job *j, const pl_bpe_added *added,
                         const char *text, size_t bytes, int32_t *id)
{
    const pl_bpe *bpe = j->bpe;
    for (size_t at = 0; at < bytes;) {
        if (added->head >= 0) {
            const char *found = memchr(text + at, added->head, bytes - at);
            if (!found)
                break;
            at = (size_t)(found - text);
        }
        *id = added_at(bpe, added, text + at, bytes - at);
        if (*id < 0)
            at++;
        else if (j->specials == PL_BPE_SPECIALS_AS_TEXT &&
                 bpe->entries[*id].kind == PL_BPE_SPECIAL)
            at += bpe->entries[*id].length;
        else
            return at;
    }
    return bytes;
}

static size_t encode_look(const job *j, pl_bpe_look look, const char *text,
                          size_t bytes, int32_t *ids);

/* What is between two added tokens. Where it has to be normalized, the result
 * is put to the end of the ids' room, 13 bytes of every 16, and its scratch
 * before that. The ids that are written never reach it: of n bytes up to some
 * place there are at most n, 4 n bytes, and n is at most 3 for each byte. */
static size_t encode_between(const job *j, pl_bpe_look look, const char *text,
                             size_t bytes, int32_t *ids)
{
    const size_t before = PL_BPE_NORMAL_IDS * sizeof *ids - PL_NFC_GROWTH;
    if (bytes == 0)
        return 0;
    if (look == PL_BPE_LOOK_NORMALIZED)
        return j->encoder ? encode_text(j->encoder, text, bytes, ids)
                          : encode_text_plain(j->bpe, text, bytes, ids);
    if (j->bpe->splitting.normal == PL_NORMAL_NFC &&
        !pl_nfc_quick(text, bytes)) {
        char *room = (char *)ids, *out = room + before * bytes;
        char *first = out - PL_NFC_GROWTH * bytes;
        size_t length = pl_nfc_write(text, bytes, first);
        memmove(out, first, length);
        text = out;
        bytes = length;
    }
    return encode_look(j, PL_BPE_LOOK_NORMALIZED, text, bytes, ids);
}

static size_t encode_look(const job *j, pl_bpe_look look, const char *text,
                          size_t bytes, int32_t *ids)
{
    const pl_bpe_added *added = &j->bpe->added[look];
    size_t at = 0, count = 0;
    if (added->count == 0 ||
        (j->specials == PL_BPE_SPECIALS_AS_TEXT && added->always == 0))
        return encode_between(j, look, text, bytes, ids);
    while (at < bytes) {
        int32_t id = -1;
        size_t before = find_added(j, added, text + at, bytes - at, &id);
        count += encode_between(j, look, text + at, before, ids + count);
        at += before;
        if (at < bytes) {
            ids[count++] = id;
            at += j->bpe->entries[id].length;
        }
    }
    return count;
}

size_t pl_bpe_encode(pl_bpe_encoder *encoder, const char *text, size_t bytes,
                     pl_bpe_specials specials, int32_t *ids)
{
    job j = { encoder->bpe, encoder, specials };
    return encode_look(&j, PL_BPE_LOOK_RAW, text, bytes, ids);
}

size_t pl_bpe_encode_plain(const pl_bpe *bpe, const char *text, size_t bytes,
                           pl_bpe_specials specials, int32_t *ids)
{
    job j = { bpe, NULL, specials };
    return encode_look(&j, PL_BPE_LOOK_RAW, text, bytes, ids);
}
