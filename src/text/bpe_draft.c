/* bpe_draft.c: see bpe_draft.h. */
#include "text/bpe_draft.h"

#include "base/check.h"
#include "base/units.h"
#include "text/bpe_read.h"

#include <string.h>

pl_status pl_bpe_draft_open(pl_bpe_draft *draft, const char *name,
                            int64_t vocab_size, size_t text_capacity,
                            size_t merge_capacity, pl_heap *heap, pl_error *err)
{
    *draft = (pl_bpe_draft){ .name = name,
                             .heap = heap,
                             .scratch = pl_heap_make(PL_BPE_HEAP_BYTES),
                             .text_capacity = text_capacity,
                             .merge_capacity = merge_capacity };
    if (vocab_size < PL_BPE_BYTES || vocab_size > PL_BPE_MAX_VOCAB)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: has ids up to %lld; a byte-level vocabulary has "
                       "%d to %d tokens",
                       name, (long long)vocab_size - 1, PL_BPE_BYTES,
                       PL_BPE_MAX_VOCAB);
    draft->vocab_size = (int32_t)vocab_size;
    pl_status status = pl_heap_take(heap, &draft->text, text_capacity, 1, err);
    if (!status)
        status = pl_heap_take(heap, &draft->entries, (size_t)vocab_size,
                              sizeof *draft->entries, err);
    if (!status)
        status = pl_heap_take(&draft->scratch, &draft->merges, merge_capacity,
                              sizeof *draft->merges, err);
    if (!status)
        status = pl_bpe_map_open(&draft->map, draft->text, draft->entries,
                                 (size_t)vocab_size, &draft->scratch, err);
    return status;
}

pl_status pl_bpe_draft_add(pl_bpe_draft *draft, int64_t id, const char *bytes,
                           size_t length, pl_bpe_token_kind kind, pl_error *err)
{
    if (id < 0 || id >= draft->vocab_size)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: a token has the id %lld; ids go from 0 to %d",
                       draft->name, (long long)id, PL_BPE_MAX_VOCAB - 1);
    pl_bpe_entry *entry = &draft->entries[id];
    if (entry->kind != PL_BPE_ABSENT)
        return pl_fail(err, PL_E_FORMAT, "%s: two tokens have the id %lld",
                       draft->name, (long long)id);
    if (length == 0 || length > PL_BPE_TOKEN_BYTES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: token %lld has %s; 1 to %d are possible",
                       draft->name, (long long)id, pl_units_exact(length).text,
                       PL_BPE_TOKEN_BYTES);
    PL_CHECK(length <= draft->text_capacity - draft->text_bytes);
    entry->offset = (uint32_t)draft->text_bytes;
    entry->length = (uint16_t)length;
    entry->kind = (uint8_t)kind;
    memcpy(draft->text + draft->text_bytes, bytes, length);
    draft->text_bytes += length;
    int32_t before = pl_bpe_map_add(&draft->map, (int32_t)id);
    if (before >= 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: the tokens %d and %lld have the same text",
                       draft->name, (int)before, (long long)id);
    return PL_OK;
}

static pl_status unknown(const pl_bpe_draft *draft, size_t place,
                         const char *text, size_t bytes, pl_error *err)
{
    char hex[3 * 16 + sizeof " ..."] = "";
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < bytes && i < 16; i++) {
        unsigned char byte = (unsigned char)text[i];
        hex[3 * i] = ' ';
        hex[3 * i + 1] = digits[byte >> 4];
        hex[3 * i + 2] = digits[byte & 15];
        hex[3 * i + 3] = '\0';
    }
    if (bytes > 16)
        memcpy(hex + 3 * 16, " ...", sizeof " ...");
    return pl_fail(err, PL_E_FORMAT,
                   "%s: merge %zu names a token that the vocabulary doesn't "
                   "have: %s,%s",
                   draft->name, place, pl_units_exact(bytes).text, hex);
}

pl_status pl_bpe_draft_merge(pl_bpe_draft *draft, size_t place,
                             const char *left, size_t left_bytes,
                             const char *right, size_t right_bytes,
                             pl_error *err)
{
    char made[2 * PL_BPE_TOKEN_BYTES];
    pl_bpe_merge merge;
    if (left_bytes + right_bytes > PL_BPE_TOKEN_BYTES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: merge %zu makes a token of %s; %d are possible",
                       draft->name, place,
                       pl_units_exact(left_bytes + right_bytes).text,
                       PL_BPE_TOKEN_BYTES);
    memcpy(made, left, left_bytes);
    memcpy(made + left_bytes, right, right_bytes);
    merge.left = pl_bpe_map_find(&draft->map, left, left_bytes);
    merge.right = pl_bpe_map_find(&draft->map, right, right_bytes);
    merge.made = pl_bpe_map_find(&draft->map, made, left_bytes + right_bytes);
    if (merge.left < 0)
        return unknown(draft, place, left, left_bytes, err);
    if (merge.right < 0)
        return unknown(draft, place, right, right_bytes, err);
    if (merge.made < 0)
        return unknown(draft, place, made, left_bytes + right_bytes, err);
    PL_CHECK(draft->merge_count < draft->merge_capacity);
    draft->merges[draft->merge_count++] = merge;
    return PL_OK;
}

pl_status pl_bpe_draft_finish(pl_bpe_draft *draft, pl_bpe_unmade unmade,
                              pl_bpe **bpe, pl_error *err)
{
    pl_bpe_parts parts = {
        .name = draft->name,
        .text = draft->text,
        .entries = draft->entries,
        .vocab_size = draft->vocab_size,
        .merges = draft->merges,
        .merge_count = draft->merge_count,
        .unmade = unmade,
        .splitting = draft->splitting,
    };
    return pl_bpe_make(bpe, &parts, draft->heap, err);
}

void pl_bpe_draft_close(pl_bpe_draft *draft)
{
    pl_heap_close(&draft->scratch);
}
