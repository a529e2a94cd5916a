/* meta.c: see meta.h. Owns the keys of meta.json. */
#include "text/meta.h"

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

static pl_status check_keys(json_t *root, const char *name, pl_error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, "tokenizer") != 0 && strcmp(key, "vocab_size") != 0 &&
            strcmp(key, "characters") != 0)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: unknown key \"%.40s\": it has \"tokenizer\", "
                           "\"vocab_size\" and, for char, \"characters\"",
                           name, key);
    }
    return PL_OK;
}

static pl_status read_codes(json_t *list, uint32_t *codes, const char *name,
                            pl_error *err)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        const char *text = json_string_value(item);
        size_t bytes = json_string_length(item);
        int length = text ? pl_utf8_decode(text, bytes, &codes[i]) : 0;
        if (length <= 0 || (size_t)length != bytes)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: entry %zu of \"characters\" must be a string "
                           "of exactly one character",
                           name, i);
    }
    return PL_OK;
}

static pl_status read_char(pl_tokenizer *tokenizer, json_t *root,
                           json_int_t vocab_size, const char *name,
                           pl_heap *heap, pl_error *err)
{
    json_t *list = json_object_get(root, "characters");
    size_t count = json_array_size(list);
    uint32_t *codes;
    if (!json_is_array(list))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: the char tokenizer needs \"characters\", a list "
                       "of strings of one character each",
                       name);
    if (vocab_size < 0 || count != (size_t)vocab_size)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"vocab_size\" is %" JSON_INTEGER_FORMAT
                       ", but \"characters\" has %zu entries",
                       name, vocab_size, count);
    pl_heap scratch = pl_heap_make(PL_JSON_MAX_VALUES * sizeof *codes);
    pl_status status = pl_heap_take(&scratch, &codes, count, sizeof *codes,
                                    err);
    if (!status)
        status = read_codes(list, codes, name, err);
    if (!status) {
        status = pl_tokenizer_make_char(tokenizer, codes, count, heap, err);
        if (status)
            pl_fail_in(err, status, "%s: ", name);
    }
    pl_heap_close(&scratch);
    return status;
}

static pl_status read_root(pl_tokenizer *tokenizer, json_t *root,
                           const char *name, pl_heap *heap, pl_error *err)
{
    if (!json_is_object(root))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: must hold one JSON object: {\"tokenizer\": ...}",
                       name);
    pl_status status = check_keys(root, name, err);
    if (status)
        return status;
    const char *kind = json_string_value(json_object_get(root, "tokenizer"));
    json_t *size = json_object_get(root, "vocab_size");
    if (!kind || (strcmp(kind, "char") != 0 && strcmp(kind, "byte") != 0))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"tokenizer\" must be \"char\" or \"byte\"", name);
    if (!json_is_integer(size))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"vocab_size\" must be there, a whole number",
                       name);
    if (!strcmp(kind, "char"))
        return read_char(tokenizer, root, json_integer_value(size), name, heap,
                         err);
    if (json_integer_value(size) != 256 || json_object_get(root, "characters"))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: the byte tokenizer has a \"vocab_size\" of 256 "
                       "and no \"characters\"",
                       name);
    *tokenizer = pl_tokenizer_make_byte();
    return PL_OK;
}

pl_status pl_meta_read(pl_tokenizer *tokenizer, const char *text, size_t bytes,
                       const char *name, pl_heap *heap, pl_error *err)
{
    json_t *root;
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (status)
        return status;
    status = read_root(tokenizer, root, name, heap, err);
    json_decref(root);
    return status;
}

/* ---- writing ---- */

enum { HEAD_BYTES = 80, ITEM_BYTES = 10 }; /* ITEM: "\u001f", and ", " */

/* Appends `code` as a JSON string, returns the bytes. */
static size_t put_item(char *out, uint32_t code)
{
    char bare[PL_UTF8_MAX_BYTES];
    if (code == '\n')
        return (size_t)snprintf(out, ITEM_BYTES, "\"\\n\"");
    if (code == '\t')
        return (size_t)snprintf(out, ITEM_BYTES, "\"\\t\"");
    if (code == '"' || code == '\\')
        return (size_t)snprintf(out, ITEM_BYTES, "\"\\%c\"", (char)code);
    if (code < 0x20 || code == 0x7F)
        return (size_t)snprintf(out, ITEM_BYTES, "\"\\u%04x\"", (unsigned)code);
    int length = pl_utf8_encode(code, bare);
    return (size_t)snprintf(out, ITEM_BYTES, "\"%.*s\"", length, bare);
}

pl_status pl_meta_write(const pl_tokenizer *tokenizer, pl_heap *heap,
                        const char **text, size_t *bytes, pl_error *err)
{
    PL_CHECK(tokenizer->kind == PL_TOKENIZER_CHAR ||
             tokenizer->kind == PL_TOKENIZER_BYTE);
    int is_char = tokenizer->kind == PL_TOKENIZER_CHAR;
    size_t items = is_char ? (size_t)tokenizer->vocab_size : 0, used;
    char *out;
    pl_status status = pl_heap_take(heap, &out, HEAD_BYTES + items * ITEM_BYTES,
                                    1, err);
    if (status)
        return status;
    used = (size_t)snprintf(
        out, HEAD_BYTES, "{\"tokenizer\": \"%s\", \"vocab_size\": %d",
        pl_tokenizer_kind_name(tokenizer->kind), (int)tokenizer->vocab_size);
    for (size_t i = 0; i < items; i++) {
        const char *before = i ? ", " : ", \"characters\": [";
        size_t length = strlen(before);
        memcpy(out + used, before, length);
        used += length;
        used += put_item(out + used, tokenizer->codes[i]);
    }
    const char *end = is_char ? "]}\n" : "}\n";
    memcpy(out + used, end, strlen(end) + 1);
    *text = out;
    *bytes = used + strlen(end);
    return PL_OK;
}
