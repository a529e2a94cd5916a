/* bpe_write.c: writes Hugging Face's files; see bpe_read.h. */
#include "text/bpe_read.h"

#include "base/check.h"
#include "base/utf8.h"
#include "text/bpe_model.h"
#include "text/bpe_steps.h"

#include <stdio.h>
#include <string.h>

/* Text of a known largest size. */
typedef struct sheet {
    char *text;
    size_t bytes, capacity;
} sheet;

static pl_status open_sheet(sheet *s, size_t capacity, pl_heap *heap,
                            pl_error *err)
{
    *s = (sheet){ .capacity = capacity };
    return pl_heap_take(heap, &s->text, capacity, 1, err);
}

static void put_bytes(sheet *s, const char *text, size_t bytes)
{
    PL_CHECK(bytes < s->capacity - s->bytes);
    memcpy(s->text + s->bytes, text, bytes);
    s->bytes += bytes;
}

static void put(sheet *s, const char *text)
{
    put_bytes(s, text, strlen(text));
}

static void put_number(sheet *s, int32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", (int)number);
    put(s, text);
}

/* What stands in a JSON string for a character. */
static void put_escaped(sheet *s, const char *character, size_t bytes)
{
    char text[8];
    unsigned char first = (unsigned char)character[0];
    if (first == '"' || first == '\\')
        put(s, "\\");
    if (first < 0x20) {
        snprintf(text, sizeof text, "\\u%04x", (unsigned)first);
        put(s, text);
    } else {
        put_bytes(s, character, bytes);
    }
}

typedef enum setting { PLAIN, IN_JSON } setting;

static void put_token(sheet *s, const pl_bpe *bpe, int32_t id, setting where)
{
    const pl_bpe_entry *entry = &bpe->entries[id];
    const char *text = bpe->text + entry->offset;
    for (size_t i = 0; i < entry->length; i++) {
        char character[PL_UTF8_MAX_BYTES];
        int bytes = pl_utf8_encode(pl_bpe_char_of((unsigned char)text[i]),
                                   character);
        if (pl_bpe_is_added(entry->kind))
            put_escaped(s, text + i, 1);
        else if (where == IN_JSON)
            put_escaped(s, character, (size_t)bytes);
        else
            put_bytes(s, character, (size_t)bytes);
    }
}

/* Room for every token once: a byte has at most 6 as "\u0000". */
static size_t room(const pl_bpe *bpe)
{
    size_t bytes = 4096;
    for (int32_t id = 0; id < bpe->vocab_size; id++)
        bytes += 6 * (size_t)bpe->entries[id].length + 24;
    return bytes;
}

/* Room for the merges: a token's two parts have its bytes. */
static size_t merge_room(const pl_bpe *bpe)
{
    size_t bytes = 4096, count = pl_bpe_merge_count(bpe);
    for (size_t i = 0; i < count; i++) {
        pl_bpe_merge merge = pl_bpe_merge_at(bpe, i);
        bytes += 6 * (size_t)bpe->entries[merge.made].length + 24;
    }
    return bytes;
}

static void put_vocab(sheet *s, const pl_bpe *bpe)
{
    const char *before = "{\"";
    for (int32_t id = 0; id < bpe->vocab_size; id++) {
        if (bpe->entries[id].kind == PL_BPE_ABSENT)
            continue;
        put(s, before);
        put_token(s, bpe, id, IN_JSON);
        put(s, "\":");
        put_number(s, id);
        before = ",\"";
    }
    put(s, "}");
}

static void put_merges(sheet *s, const pl_bpe *bpe, setting where,
                       const char *between)
{
    for (size_t i = 0; i < pl_bpe_merge_count(bpe); i++) {
        pl_bpe_merge merge = pl_bpe_merge_at(bpe, i);
        if (i > 0)
            put(s, between);
        put_token(s, bpe, merge.left, where);
        put(s, " ");
        put_token(s, bpe, merge.right, where);
    }
}

static void put_added(sheet *s, const pl_bpe *bpe)
{
    const char *before = "";
    for (int32_t id = 0; id < bpe->vocab_size; id++) {
        const pl_bpe_entry *entry = &bpe->entries[id];
        if (!pl_bpe_is_added(entry->kind))
            continue;
        put(s, before);
        put(s, "{\"id\":");
        put_number(s, id);
        put(s, ",\"content\":\"");
        put_token(s, bpe, id, IN_JSON);
        put(s, "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
               "\"normalized\":");
        put(s, entry->flags & PL_BPE_NORMALIZED ? "true" : "false");
        put(s, entry->kind == PL_BPE_SPECIAL ? ",\"special\":true}"
                                             : ",\"special\":false}");
        before = ",";
    }
}

pl_status pl_bpe_write_json(const pl_bpe *bpe, pl_heap *heap, const char **text,
                            size_t *bytes, pl_error *err)
{
    char steps[PL_BPE_STEPS_BYTES];
    size_t added = bpe->added[0].count + bpe->added[1].count;
    size_t merges = pl_bpe_merge_count(bpe);
    sheet s;
    pl_status status = open_sheet(&s, room(bpe) + merge_room(bpe) + 160 * added,
                                  heap, err);
    if (status)
        return status;
    put(&s, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
            "\"added_tokens\":[");
    put_added(&s, bpe);
    put(&s, "],\n");
    put(&s, pl_bpe_steps_text(bpe->splitting, steps));
    put(&s, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":"
            "null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":"
            "null,\"fuse_unk\":false,\"byte_fallback\":false,"
            "\"ignore_merges\":");
    put(&s, bpe->whole.slots ? "true" : "false");
    put(&s, ",\n\"vocab\":");
    put_vocab(&s, bpe);
    put(&s, ",\n\"merges\":[");
    if (merges > 0)
        put(&s, "\"");
    put_merges(&s, bpe, IN_JSON, "\",\"");
    put(&s, merges > 0 ? "\"]}}\n" : "]}}\n");
    *text = s.text;
    *bytes = s.bytes;
    return PL_OK;
}

pl_status pl_bpe_write_vocab(const pl_bpe *bpe, pl_heap *heap,
                             const char **text, size_t *bytes, pl_error *err)
{
    sheet s;
    pl_status status = open_sheet(&s, room(bpe), heap, err);
    if (status)
        return status;
    put_vocab(&s, bpe);
    put(&s, "\n");
    *text = s.text;
    *bytes = s.bytes;
    return PL_OK;
}

pl_status pl_bpe_write_merges(const pl_bpe *bpe, pl_heap *heap,
                              const char **text, size_t *bytes, pl_error *err)
{
    sheet s;
    pl_status status = open_sheet(&s, merge_room(bpe), heap, err);
    if (status)
        return status;
    put(&s, "#version: 0.2\n");
    put_merges(&s, bpe, PLAIN, "\n");
    put(&s, "\n");
    *text = s.text;
    *bytes = s.bytes;
    return PL_OK;
}
