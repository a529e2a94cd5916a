/* bpe_vocab.c: reads vocab.json and merges.txt; see bpe_read.h. Owns the way
 * from printable characters to bytes. */
#include "text/bpe_read.h"

#include "base/units.h"
#include "base/utf8.h"
#include "text/bpe_json.h"

#include <string.h>

/* ---- printable characters ---- */

/* The bytes that are written as `key`; -1 if a character stands for none, or
 * there are more than a token has. */
static long to_bytes(const char *key, size_t bytes,
                     char out[PL_BPE_TOKEN_BYTES])
{
    size_t at = 0, used = 0;
    while (at < bytes) {
        uint32_t code;
        int length = pl_utf8_decode(key + at, bytes - at, &code);
        int byte = length > 0 ? pl_bpe_byte_of(code) : -1;
        if (byte < 0 || used == PL_BPE_TOKEN_BYTES)
            return -1;
        out[used++] = (char)byte;
        at += (size_t)length;
    }
    return (long)used;
}

static pl_status not_bytes(const char *name, const char *what, long long place,
                           const char *key, size_t bytes, pl_error *err)
{
    int shown = bytes < 60 ? (int)bytes : 60;
    shown = (int)pl_utf8_whole_bytes(key, (size_t)shown);
    return pl_fail(err, PL_E_FORMAT,
                   "%s: %s %lld: \"%.*s\" isn't written in byte-level BPE's "
                   "characters (a blank is \"Ġ\"), or is longer than %s",
                   name, what, place, shown, key,
                   pl_units_exact(PL_BPE_TOKEN_BYTES).text);
}

pl_status pl_bpe_json_measure(json_t *vocab, const char *name, int64_t *largest,
                              size_t *text_bytes, pl_error *err)
{
    const char *key;
    json_t *id;
    json_object_foreach(vocab, key, id)
    {
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= PL_BPE_MAX_VOCAB)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: the token \"%.40s\" must have a whole number "
                           "from 0 to %d",
                           name, key, PL_BPE_MAX_VOCAB - 1);
        *largest = value > *largest ? value : *largest;
        *text_bytes += strlen(key);
    }
    return PL_OK;
}

pl_status pl_bpe_json_token(pl_bpe_draft *draft, int64_t id, const char *key,
                            pl_bpe_token_kind kind, pl_error *err)
{
    char bytes[PL_BPE_TOKEN_BYTES];
    long length = to_bytes(key, strlen(key), bytes);
    if (length < 0)
        return not_bytes(draft->name, "token", (long long)id, key, strlen(key),
                         err);
    return pl_bpe_draft_add(draft, id, bytes, (size_t)length, kind, err);
}

void pl_bpe_json_merged(pl_bpe_draft *draft, int64_t id)
{
    pl_bpe_entry *entry = &draft->entries[id];
    const char *text = draft->text + entry->offset;
    for (size_t i = 0; i < entry->length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7F)
            return;
    entry->flags |= PL_BPE_MERGED_TOO;
}

pl_status pl_bpe_json_merge(pl_bpe_draft *draft, size_t place, const char *left,
                            size_t left_bytes, const char *right,
                            size_t right_bytes, pl_error *err)
{
    char one[PL_BPE_TOKEN_BYTES], other[PL_BPE_TOKEN_BYTES];
    long one_bytes = to_bytes(left, left_bytes, one);
    long other_bytes = to_bytes(right, right_bytes, other);
    if (one_bytes < 0)
        return not_bytes(draft->name, "merge", (long long)place, left,
                         left_bytes, err);
    if (other_bytes < 0)
        return not_bytes(draft->name, "merge", (long long)place, right,
                         right_bytes, err);
    return pl_bpe_draft_merge(draft, place, one, (size_t)one_bytes, other,
                              (size_t)other_bytes, err);
}

/* ---- merges.txt ---- */

typedef struct line {
    const char *text;
    size_t bytes;
} line;

static line next_line(const pl_bpe_text *in, size_t *at)
{
    line each = { .text = in->text + *at };
    const char *stop = memchr(each.text, '\n', in->bytes - *at);
    each.bytes = stop ? (size_t)(stop - each.text) : in->bytes - *at;
    *at += each.bytes + (stop != NULL);
    if (each.bytes > 0 && each.text[each.bytes - 1] == '\r')
        each.bytes--;
    return each;
}

static size_t count_lines(const pl_bpe_text *in)
{
    size_t count = 1;
    for (size_t i = 0; i < in->bytes; i++)
        count += in->text[i] == '\n';
    return count;
}

static pl_status add_merges(pl_bpe_draft *draft, const pl_bpe_text *in,
                            pl_error *err)
{
    const char *vocab_name = draft->name;
    pl_status status = PL_OK;
    draft->name = in->name;
    for (size_t at = 0, number = 1; !status && at < in->bytes; number++) {
        line each = next_line(in, &at);
        const char *blank = memchr(each.text, ' ', each.bytes);
        if (each.bytes == 0 || (number == 1 && each.bytes >= 8 &&
                                memcmp(each.text, "#version", 8) == 0))
            continue;
        if (!blank)
            return pl_fail(err, PL_E_FORMAT,
                           "%s:%zu: a line has two tokens with a blank "
                           "between them, as in \"t h\"",
                           in->name, number);
        size_t left = (size_t)(blank - each.text);
        status = pl_bpe_json_merge(draft, number, each.text, left, blank + 1,
                                   each.bytes - left - 1, err);
    }
    draft->name = vocab_name;
    return status;
}

/* ---- both ---- */

/* "<|this|>", which no merge makes. */
static void mark_specials(pl_bpe_draft *draft)
{
    for (int32_t id = 0; id < draft->vocab_size; id++) {
        pl_bpe_entry *entry = &draft->entries[id];
        const char *text = draft->text + entry->offset;
        if (entry->kind == PL_BPE_ORDINARY && entry->length > 4 &&
            memcmp(text, "<|", 2) == 0 &&
            memcmp(text + entry->length - 2, "|>", 2) == 0)
            entry->kind = PL_BPE_SPECIAL;
    }
    for (size_t i = 0; i < draft->merge_count; i++)
        draft->entries[draft->merges[i].made].kind = PL_BPE_ORDINARY;
}

static pl_status read_both(pl_bpe **bpe, json_t *root, const char *name,
                           const pl_bpe_text *merges, pl_heap *heap,
                           pl_error *err)
{
    int64_t largest = -1;
    size_t text_bytes = 0;
    const char *key;
    json_t *id;
    pl_bpe_draft draft;
    if (!json_is_object(root))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: must hold one JSON object: {\"token\": id, ...}",
                       name);
    pl_status status = pl_bpe_json_measure(root, name, &largest, &text_bytes,
                                           err);
    if (status)
        return status;
    status = pl_bpe_draft_open(&draft, name, largest + 1, text_bytes,
                               count_lines(merges), heap, err);
    if (status)
        goto close_draft;
    json_object_foreach(root, key, id)
    {
        status = pl_bpe_json_token(&draft, json_integer_value(id), key,
                                   PL_BPE_ORDINARY, err);
        if (status)
            goto close_draft;
    }
    status = add_merges(&draft, merges, err);
    if (status)
        goto close_draft;
    mark_specials(&draft);
    status = pl_bpe_draft_finish(&draft, PL_BPE_UNMADE_DECODED, bpe, err);

close_draft:
    pl_bpe_draft_close(&draft);
    return status;
}

pl_status pl_bpe_read_vocab(pl_bpe **bpe, const pl_bpe_text *vocab,
                            const pl_bpe_text *merges, pl_heap *heap,
                            pl_error *err)
{
    json_t *root;
    pl_status status = pl_json_parse(vocab->text, vocab->bytes, vocab->name,
                                     &root, err);
    if (status)
        return status;
    status = read_both(bpe, root, vocab->name, merges, heap, err);
    json_decref(root);
    return status;
}
