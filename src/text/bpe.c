/* bpe.c: makes a vocabulary of its parts; see bpe_model.h for the ideas. Owns
 * the tables that encoding reads. */
#include "text/bpe_model.h"

#include "base/check.h"
#include "base/units.h"

#include <string.h>

static const uint64_t EMPTY = UINT64_MAX;

/* ---- pairs ---- */

static uint64_t pair_key(uint32_t first, uint32_t second)
{
    return (uint64_t)first << PL_BPE_INDEX_BITS | second;
}

/* The slot of a pair, or the empty one where it belongs. */
static size_t pair_slot(const pl_bpe *bpe, uint64_t key)
{
    size_t slot = pl_bpe_mix(key * 0x9e3779b97f4a7c15u) & bpe->pair_mask;
    while (bpe->pairs[slot] != EMPTY &&
           bpe->pairs[slot] >> PL_BPE_INDEX_BITS != key)
        slot = (slot + 1) & bpe->pair_mask;
    return slot;
}

int pl_bpe_compatible(const pl_bpe *bpe, uint32_t first, uint32_t second)
{
    /* A merge across the border counts only below `limit`, the rank of the
     * last one undone: those of equal rank go from left to right. */
    uint32_t limit = UINT32_MAX;
    for (;;) {
        uint64_t pair = bpe->pairs[pair_slot(bpe, pair_key(first, second))];
        uint32_t rank = (uint32_t)(pair & (PL_BPE_MAX_VOCAB - 1));
        if (pair != EMPTY && rank < limit)
            return 0;
        if (first < PL_BPE_BYTES && second < PL_BPE_BYTES)
            return 1;
        if (first > second) {
            limit = first;
            first = bpe->right[first];
        } else {
            limit = second + 1;
            second = bpe->left[second];
        }
    }
}

/* ---- merges ---- */

static pl_status take_tables(pl_bpe *bpe, const pl_bpe_parts *parts,
                             pl_heap *heap, pl_error *err)
{
    /* Each merge that counts makes another token. */
    size_t most = (size_t)parts->vocab_size, ranks, size;
    most = parts->merge_count < most ? parts->merge_count : most;
    ranks = PL_BPE_BYTES + most;
    size = pl_bpe_table_size(most);
    bpe->pair_mask = size - 1;
    pl_status status = pl_heap_take(heap, &bpe->rank_of,
                                    (size_t)parts->vocab_size,
                                    sizeof *bpe->rank_of, err);
    if (!status)
        status = pl_heap_take(heap, &bpe->ids, ranks, sizeof *bpe->ids, err);
    if (!status)
        status = pl_heap_take(heap, &bpe->left, ranks, sizeof *bpe->left, err);
    if (!status)
        status = pl_heap_take(heap, &bpe->right, ranks, sizeof *bpe->right,
                              err);
    if (!status)
        status = pl_heap_take(heap, &bpe->pairs, size, sizeof *bpe->pairs, err);
    if (!status)
        memset(bpe->pairs, 0xff, size * sizeof *bpe->pairs);
    return status;
}

static pl_status add_bytes(pl_bpe *bpe, const pl_bpe_parts *parts,
                           pl_error *err)
{
    int32_t id_of[PL_BPE_BYTES];
    for (unsigned b = 0; b < PL_BPE_BYTES; b++)
        id_of[b] = -1;
    for (int32_t id = 0; id < parts->vocab_size; id++) {
        const pl_bpe_entry *entry = &parts->entries[id];
        bpe->rank_of[id] = PL_BPE_NONE;
        if (pl_bpe_is_merged(entry) && entry->length == 1)
            id_of[(unsigned char)parts->text[entry->offset]] = id;
    }
    for (unsigned b = 0; b < PL_BPE_BYTES; b++) {
        if (id_of[b] < 0)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: the byte 0x%02X has no token, so that not "
                           "every text could be encoded. Is it a byte-level "
                           "vocabulary?",
                           parts->name, b);
        bpe->ids[b] = id_of[b];
        bpe->rank_of[id_of[b]] = b;
        bpe->left[b] = bpe->right[b] = b;
    }
    bpe->rank_count = PL_BPE_BYTES;
    return PL_OK;
}

static void add_merge(pl_bpe *bpe, uint32_t left, uint32_t right, int32_t id)
{
    uint32_t rank = bpe->rank_count++;
    uint64_t key = pair_key(left, right);
    bpe->ids[rank] = id;
    bpe->rank_of[id] = rank;
    bpe->left[rank] = left;
    bpe->right[rank] = right;
    bpe->pairs[pair_slot(bpe, key)] = key << PL_BPE_INDEX_BITS | rank;
}

static pl_status check_merge(const pl_bpe_parts *parts, size_t place,
                             pl_error *err)
{
    const pl_bpe_merge *merge = &parts->merges[place];
    const pl_bpe_entry *left = &parts->entries[merge->left];
    const pl_bpe_entry *right = &parts->entries[merge->right];
    const pl_bpe_entry *made = &parts->entries[merge->made];
    if (pl_bpe_is_merged(left) && pl_bpe_is_merged(right) &&
        pl_bpe_is_merged(made) &&
        left->length + right->length == made->length &&
        memcmp(parts->text + made->offset, parts->text + left->offset,
               left->length) == 0 &&
        memcmp(parts->text + made->offset + left->length,
               parts->text + right->offset, right->length) == 0)
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s: merge %zu joins the tokens %d and %d to token %d, "
                   "which isn't the one after the other",
                   parts->name, place, (int)merge->left, (int)merge->right,
                   (int)merge->made);
}

static pl_status add_merges(pl_bpe *bpe, const pl_bpe_parts *parts,
                            pl_error *err)
{
    for (size_t i = 0; i < parts->merge_count; i++) {
        const pl_bpe_merge *merge = &parts->merges[i];
        pl_status status = check_merge(parts, i, err);
        if (status)
            return status;
        uint32_t left = bpe->rank_of[merge->left];
        uint32_t right = bpe->rank_of[merge->right];
        /* Where two merges make one token, only the first can ever happen:
         * converters write all splits of a token. */
        if (left != PL_BPE_NONE && right != PL_BPE_NONE &&
            bpe->rank_of[merge->made] == PL_BPE_NONE &&
            pl_bpe_compatible(bpe, left, right))
            add_merge(bpe, left, right, merge->made);
    }
    return PL_OK;
}

/* A merge whose parts are made only later happens out of turn, unless its parts
 * are never neighbours. */
static pl_status find_late(pl_bpe *bpe, const pl_bpe_parts *parts,
                           pl_heap *heap, pl_error *err)
{
    for (size_t i = 0; i < parts->merge_count; i++) {
        const pl_bpe_merge *merge = &parts->merges[i];
        uint32_t left = bpe->rank_of[merge->left];
        uint32_t right = bpe->rank_of[merge->right];
        if (left == PL_BPE_NONE || right == PL_BPE_NONE ||
            bpe->rank_of[merge->made] != PL_BPE_NONE ||
            !pl_bpe_compatible(bpe, left, right))
            continue;
        pl_status status = bpe->late.merges
                               ? PL_OK
                               : pl_bpe_late_open(bpe, parts, heap, err);
        if (status)
            return status;
        pl_bpe_late_mark(bpe, merge->made);
    }
    return PL_OK;
}

static pl_status refuse_unmade(const pl_bpe *bpe, const pl_bpe_parts *parts,
                               pl_error *err)
{
    for (int32_t id = 0; id < parts->vocab_size; id++)
        if (parts->entries[id].kind == PL_BPE_ORDINARY &&
            bpe->rank_of[id] == PL_BPE_NONE)
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "%s: token %d can't be made by merging tokens of "
                           "lower rank: a vocabulary that wasn't trained by "
                           "byte-pair encoding isn't supported",
                           parts->name, (int)id);
    return PL_OK;
}

/* Those that no merge makes, by their bytes. */
static pl_status map_unmade(pl_bpe *bpe, const pl_bpe_parts *parts,
                            pl_heap *heap, pl_error *err)
{
    size_t count = 0;
    for (int32_t id = 0; id < parts->vocab_size; id++)
        count += parts->entries[id].kind == PL_BPE_ORDINARY &&
                 bpe->rank_of[id] == PL_BPE_NONE;
    if (count == 0)
        return PL_OK;
    pl_status status = pl_bpe_map_open(&bpe->whole, bpe->text, bpe->entries,
                                       count, heap, err);
    for (int32_t id = 0; id < parts->vocab_size && !status; id++)
        if (parts->entries[id].kind == PL_BPE_ORDINARY &&
            bpe->rank_of[id] == PL_BPE_NONE)
            pl_bpe_map_add(&bpe->whole, id);
    return status;
}

/* ---- the tree ---- */

typedef struct edge_table {
    uint64_t *edges;
    size_t mask;
} edge_table;

static pl_status open_edges(edge_table *table, size_t count, pl_heap *heap,
                            pl_error *err)
{
    size_t size = pl_bpe_table_size(count);
    table->mask = size - 1;
    pl_status status = pl_heap_take(heap, &table->edges, size,
                                    sizeof *table->edges, err);
    if (!status)
        memset(table->edges, 0xff, size * sizeof *table->edges);
    return status;
}

static uint64_t *edge_of(const edge_table *table, uint64_t key)
{
    size_t slot = pl_bpe_mix(key * 0x9e3779b97f4a7c15u) & table->mask;
    while (table->edges[slot] != EMPTY && table->edges[slot] >> 32 != key)
        slot = (slot + 1) & table->mask;
    return &table->edges[slot];
}

/* Adds a token's path. All shorter tokens are there, so that a node that is
 * missing on the way is no token's: it gets the number *nodes. The last token
 * that was passed is the longest that begins this one. */
static void add_path(pl_bpe *bpe, const edge_table *table, uint32_t rank,
                     uint32_t *nodes)
{
    const pl_bpe_entry *entry = &bpe->entries[bpe->ids[rank]];
    const char *bytes = bpe->text + entry->offset;
    uint32_t node = (unsigned char)bytes[0];
    for (size_t i = 1; i < entry->length; i++) {
        uint64_t key = (uint64_t)node << 8 | (unsigned char)bytes[i];
        uint64_t *edge = edge_of(table, key);
        if (node < bpe->rank_count)
            bpe->shorter[rank] = node;
        if (*edge == EMPTY)
            *edge = key << 32 | (i + 1u == entry->length ? rank : (*nodes)++);
        node = (uint32_t)*edge;
    }
}

/* Adds all, shorter ones first. */
static pl_status add_paths(pl_bpe *bpe, const edge_table *table,
                           uint32_t *nodes, pl_heap *scratch, pl_error *err)
{
    uint32_t heads[PL_BPE_TOKEN_BYTES + 1], *next;
    pl_status status = pl_heap_take(scratch, &next, bpe->rank_count,
                                    sizeof *next, err);
    if (status)
        return status;
    for (size_t length = 0; length <= PL_BPE_TOKEN_BYTES; length++)
        heads[length] = PL_BPE_NONE;
    for (uint32_t rank = 0; rank < bpe->rank_count; rank++) {
        uint16_t length = bpe->entries[bpe->ids[rank]].length;
        bpe->lengths[rank] = length;
        next[rank] = heads[length];
        heads[length] = rank;
        bpe->shorter[rank] = PL_BPE_NONE;
    }
    *nodes = bpe->rank_count;
    for (size_t length = 1; length <= PL_BPE_TOKEN_BYTES; length++)
        for (uint32_t rank = heads[length]; rank != PL_BPE_NONE;
             rank = next[rank])
            add_path(bpe, table, rank, nodes);
    return PL_OK;
}

/* First in a table that surely has room, then in one of the right size: the
 * smaller, the more of it stays in the processor's cache. */
static pl_status grow_tree(pl_bpe *bpe, const char *name, pl_heap *heap,
                           pl_error *err)
{
    size_t most = PL_BPE_BYTES;
    uint32_t nodes;
    edge_table wide, tight;
    pl_heap scratch = pl_heap_make(PL_BPE_MAX_NODES * 5 * sizeof *wide.edges);
    for (uint32_t rank = PL_BPE_BYTES; rank < bpe->rank_count; rank++)
        most += bpe->entries[bpe->ids[rank]].length - 1u;
    if (most > PL_BPE_MAX_NODES)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: its tokens have %s together; %s are supported",
                       name, pl_units_exact(most).text,
                       pl_units_exact(PL_BPE_MAX_NODES).text);
    pl_status status = pl_heap_take(heap, &bpe->shorter, bpe->rank_count,
                                    sizeof *bpe->shorter, err);
    if (!status)
        status = pl_heap_take(heap, &bpe->lengths, bpe->rank_count,
                              sizeof *bpe->lengths, err);
    if (!status)
        status = open_edges(&wide, most, &scratch, err);
    if (!status)
        status = add_paths(bpe, &wide, &nodes, &scratch, err);
    if (!status)
        status = open_edges(&tight, nodes, heap, err);
    for (size_t i = 0; !status && i <= wide.mask; i++)
        if (wide.edges[i] != EMPTY)
            *edge_of(&tight, wide.edges[i] >> 32) = wide.edges[i];
    pl_heap_close(&scratch);
    if (status)
        return status;
    bpe->edges = tight.edges;
    bpe->edge_mask = tight.mask;
    return PL_OK;
}

/* ---- special tokens ---- */

/* Whether `a` must be tried before `b`: by first byte, longest first. */
static int comes_before(const pl_bpe *bpe, int32_t a, int32_t b)
{
    const pl_bpe_entry *one = &bpe->entries[a], *other = &bpe->entries[b];
    unsigned char head = (unsigned char)bpe->text[one->offset];
    unsigned char other_head = (unsigned char)bpe->text[other->offset];
    return head != other_head ? head < other_head : one->length > other->length;
}

static int is_of(const pl_bpe *bpe, int32_t id, pl_bpe_look look)
{
    return pl_bpe_is_added(bpe->entries[id].kind) &&
           pl_bpe_look_of(&bpe->entries[id]) == look;
}

static pl_status list_added(pl_bpe *bpe, pl_bpe_look look, const char *name,
                            pl_heap *heap, pl_error *err)
{
    pl_bpe_added *added = &bpe->added[look];
    size_t count = 0;
    for (int32_t id = 0; id < bpe->vocab_size; id++)
        count += (size_t)is_of(bpe, id, look);
    if (count > PL_BPE_MAX_SPECIALS)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: has %zu special and added tokens; %d are supported",
                       name, count, PL_BPE_MAX_SPECIALS);
    pl_status status = pl_heap_take(heap, &added->ids, count + 1,
                                    sizeof *added->ids, err);
    if (status)
        return status;
    for (int32_t id = 0; id < bpe->vocab_size; id++) {
        if (!is_of(bpe, id, look))
            continue;
        size_t place = added->count++;
        added->always += bpe->entries[id].kind == PL_BPE_ADDED;
        for (; place > 0 && comes_before(bpe, id, added->ids[place - 1]);
             place--)
            added->ids[place] = added->ids[place - 1];
        added->ids[place] = id;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t offset = bpe->entries[added->ids[i]].offset;
        added->from[(unsigned char)bpe->text[offset] + 1]++;
    }
    for (size_t b = 0; b < PL_BPE_BYTES; b++)
        added->from[b + 1] = (uint16_t)(added->from[b + 1] + added->from[b]);
    added->head = -1;
    if (count > 0) {
        const pl_bpe_entry *first = &bpe->entries[added->ids[0]];
        const pl_bpe_entry *last = &bpe->entries[added->ids[count - 1]];
        if (bpe->text[first->offset] == bpe->text[last->offset])
            added->head = (unsigned char)bpe->text[first->offset];
    }
    return PL_OK;
}

pl_status pl_bpe_make(pl_bpe **out, const pl_bpe_parts *parts, pl_heap *heap,
                      pl_error *err)
{
    pl_bpe *bpe;
    PL_CHECK(parts->vocab_size > 0 && parts->vocab_size <= PL_BPE_MAX_VOCAB);
    if (parts->merge_count > PL_BPE_MAX_VOCAB - PL_BPE_BYTES)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: has %zu merges; %d are supported", parts->name,
                       parts->merge_count, PL_BPE_MAX_VOCAB - PL_BPE_BYTES);
    pl_status status = pl_heap_take(heap, &bpe, 1, sizeof *bpe, err);
    if (status)
        return status;
    bpe->vocab_size = parts->vocab_size;
    bpe->entries = parts->entries;
    bpe->text = parts->text;
    bpe->splitting = parts->splitting;
    status = take_tables(bpe, parts, heap, err);
    if (!status)
        status = add_bytes(bpe, parts, err);
    if (!status)
        status = add_merges(bpe, parts, err);
    if (!status)
        status = find_late(bpe, parts, heap, err);
    if (!status && parts->unmade == PL_BPE_UNMADE_REFUSED)
        status = refuse_unmade(bpe, parts, err);
    if (!status && parts->unmade == PL_BPE_UNMADE_WHOLE)
        status = map_unmade(bpe, parts, heap, err);
    if (!status)
        status = grow_tree(bpe, parts->name, heap, err);
    for (int look = 0; look < PL_BPE_LOOKS && !status; look++)
        status = list_added(bpe, (pl_bpe_look)look, parts->name, heap, err);
    if (!status)
        *out = bpe;
    return status;
}

/* ---- what it has ---- */

int32_t pl_bpe_vocab_size(const pl_bpe *bpe)
{
    return bpe->vocab_size;
}

const char *pl_bpe_token(const pl_bpe *bpe, int32_t id, size_t *bytes)
{
    if (id < 0 || id >= bpe->vocab_size ||
        bpe->entries[id].kind == PL_BPE_ABSENT)
        return NULL;
    *bytes = bpe->entries[id].length;
    return bpe->text + bpe->entries[id].offset;
}

int32_t pl_bpe_special(const pl_bpe *bpe, const char *text)
{
    size_t length = strlen(text);
    int32_t id;
    for (size_t i = 0; (id = pl_bpe_special_at(bpe, i)) >= 0; i++) {
        const pl_bpe_entry *entry = &bpe->entries[id];
        if (entry->length == length &&
            memcmp(bpe->text + entry->offset, text, length) == 0)
            return id;
    }
    return -1;
}

int32_t pl_bpe_special_at(const pl_bpe *bpe, size_t place)
{
    for (size_t look = 0; look < PL_BPE_LOOKS; look++) {
        if (place < bpe->added[look].count)
            return bpe->added[look].ids[place];
        place -= bpe->added[look].count;
    }
    return -1;
}

int32_t pl_bpe_end_token(const pl_bpe *bpe)
{
    int32_t id = pl_bpe_special(bpe, "<|endoftext|>");
    return id >= 0 ? id : pl_bpe_special(bpe, "<|end_of_text|>");
}

size_t pl_bpe_merge_count(const pl_bpe *bpe)
{
    return bpe->late.merges ? bpe->late.count : bpe->rank_count - PL_BPE_BYTES;
}

pl_bpe_merge pl_bpe_merge_at(const pl_bpe *bpe, size_t place)
{
    size_t rank = PL_BPE_BYTES + place;
    if (bpe->late.merges)
        return bpe->late.merges[place];
    return (pl_bpe_merge){ bpe->ids[bpe->left[rank]],
                           bpe->ids[bpe->right[rank]], bpe->ids[rank] };
}

pl_splitting pl_bpe_splitting(const pl_bpe *bpe)
{
    return bpe->splitting;
}

size_t pl_bpe_most_ids(const pl_bpe *bpe, size_t bytes)
{
    return bpe->splitting.normal == PL_NORMAL_NONE ? bytes
                                                   : PL_BPE_NORMAL_IDS * bytes;
}
