/* gguf_vocab.c: tokenizers to and from a GGUF's keys tokenizer.ggml.*.
 *
 *   bpe         "gpt2": tokens in the printable characters of GPT-2's files,
 *               and merges.
 *   char, byte  "rwkv", llama.cpp's name for "the longest token that fits":
 *               with one token for each character that is a char tokenizer.
 *               As "gpt2" they would need an end token: llama.cpp takes token
 *               11 for one where there is none, and would stop at whatever
 *               character that is.
 *   none        "none": token ids only.
 *
 * A model's tokens beyond the tokenizer's are named [PAD<id>], as llama.cpp's
 * converter names them. */
#include "base/check.h"
#include "base/utf8.h"
#include "store/weights.h"
#include "text/bpe_draft.h"
#include "text/bpe_json.h"
#include "text/bpe_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* llama.cpp's kinds of tokens. */
typedef enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
} token_type;

enum {
    /* a byte is two at the most, as a printable character */
    NAME_BYTES = 2 * PL_BPE_TOKEN_BYTES + 64,
    MERGE_BYTES = 2 * NAME_BYTES,
};

/* ---- names ---- */

static size_t pad_name(char *name, size_t id)
{
    return (size_t)snprintf(name, NAME_BYTES, "[PAD%zu]", id);
}

static size_t bpe_name(const pl_bpe *bpe, int32_t id, char *name)
{
    const pl_bpe_entry *entry = &bpe->entries[id];
    const char *text = bpe->text + entry->offset;
    size_t used = 0;
    if (pl_bpe_is_added(entry->kind)) {
        memcpy(name, text, entry->length);
        return entry->length;
    }
    for (size_t i = 0; i < entry->length; i++)
        used += (size_t)pl_utf8_encode(pl_bpe_char_of((unsigned char)text[i]),
                                       name + used);
    return used;
}

/* RWKV's way of writing bytes: \xHH, and a backslash before a backslash. */
static size_t escaped(const char *bytes, size_t count, int is_text, char *name)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !is_text)) {
            used += (size_t)snprintf(name + used, 8, "\\x%02x", byte);
            continue;
        }
        if (byte == '\\')
            name[used++] = '\\';
        name[used++] = bytes[i];
    }
    return used;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The way back; 0 bytes where it isn't one. `out` holds as much as `name`. */
static size_t unescaped(const char *name, size_t bytes, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] != '\\') {
            out[used++] = name[i];
            continue;
        }
        if (++i == bytes)
            return 0;
        if (name[i] != 'x') {
            out[used++] = name[i] == 't'   ? '\t'
                          : name[i] == 'n' ? '\n'
                          : name[i] == 'r' ? '\r'
                                           : name[i];
            continue;
        }
        if (bytes - i < 3 || hex(name[i + 1]) < 0 || hex(name[i + 2]) < 0)
            return 0;
        out[used++] = (char)(hex(name[i + 1]) * 16 + hex(name[i + 2]));
        i += 2;
    }
    return used;
}

/* ---- writing ---- */

static size_t name_of(const pl_tokenizer *t, size_t id, char *name)
{
    char bytes[PL_TOKENIZER_TOKEN_BYTES];
    size_t count = 0;
    if (id >= (size_t)t->vocab_size)
        return pad_name(name, id);
    if (t->kind == PL_TOKENIZER_BPE)
        return t->bpe->entries[id].kind == PL_BPE_ABSENT
                   ? pad_name(name, id)
                   : bpe_name(t->bpe, (int32_t)id, name);
    pl_status status = pl_tokenizer_decode(t, (int32_t)id, bytes, &count, NULL);
    PL_CHECK(!status);
    return escaped(bytes, count, t->kind == PL_TOKENIZER_CHAR, name);
}

static token_type type_of(const pl_tokenizer *t, size_t id, size_t end)
{
    if (id == end)
        return TOKEN_CONTROL;
    if (id >= (size_t)t->vocab_size)
        return TOKEN_UNUSED;
    if (t->kind != PL_TOKENIZER_BPE)
        return TOKEN_NORMAL;
    switch ((pl_bpe_token_kind)t->bpe->entries[id].kind) {
    case PL_BPE_SPECIAL:
        return TOKEN_CONTROL;
    case PL_BPE_ADDED:
        return TOKEN_USER_DEFINED;
    case PL_BPE_ABSENT:
        return TOKEN_UNUSED;
    case PL_BPE_ORDINARY:
        break;
    }
    return TOKEN_NORMAL;
}

/* llama.cpp's BPE can't be without an end token. One that is never trained
 * for, a padding's, never comes; of a vocabulary without any it is the last,
 * its rarest. */
static size_t end_of(const pl_weights *w, const pl_log *log)
{
    const pl_tokenizer *t = &w->tokenizer;
    int32_t special = pl_bpe_end_token(t->bpe);
    if (special < 0 && w->end_token >= 0)
        special = w->end_token;
    if (special < 0)
        special = pl_bpe_special_at(t->bpe, 0);
    if (special >= 0)
        return (size_t)special;
    if ((size_t)t->vocab_size < w->shape.V)
        return (size_t)t->vocab_size;
    pl_log_say(log, PL_LOG_WARN,
               "the vocabulary has no special token, and llama.cpp needs one "
               "that ends a text: it gets the last token, %zu, and stops where "
               "the model writes that",
               w->shape.V - 1);
    return w->shape.V - 1;
}

static void put_tokens(pl_gguf_writer *writer, const pl_weights *w, size_t end)
{
    char name[NAME_BYTES];
    pl_gguf_put_array(writer, "tokenizer.ggml.tokens", PL_GGUF_TEXT,
                      w->shape.V);
    for (size_t id = 0; id < w->shape.V; id++)
        pl_gguf_element_text(writer, name, name_of(&w->tokenizer, id, name));
    pl_gguf_put_array(writer, "tokenizer.ggml.token_type", PL_GGUF_I32,
                      w->shape.V);
    for (size_t id = 0; id < w->shape.V; id++)
        pl_gguf_element_i32(writer, (int32_t)type_of(&w->tokenizer, id, end));
}

static void put_merges(pl_gguf_writer *writer, const pl_bpe *bpe)
{
    char text[MERGE_BYTES];
    size_t count = pl_bpe_merge_count(bpe);
    pl_gguf_put_array(writer, "tokenizer.ggml.merges", PL_GGUF_TEXT, count);
    for (size_t i = 0; i < count; i++) {
        pl_bpe_merge merge = pl_bpe_merge_at(bpe, i);
        size_t used = bpe_name(bpe, merge.left, text);
        text[used++] = ' ';
        used += bpe_name(bpe, merge.right, text + used);
        pl_gguf_element_text(writer, text, used);
    }
}

/* ---- how text is cut ---- */

/* llama.cpp's names. It looks whole pieces up before it merges for some, and
 * never normalizes. */
static const struct {
    const char *name;
    pl_splitting splitting;
    pl_bpe_unmade unmade;
} pres[] = {
    { "gpt-2", { PL_PATTERN_GPT2, PL_NORMAL_NONE }, PL_BPE_UNMADE_DECODED },
    { "llama-bpe", { PL_PATTERN_LLAMA3, PL_NORMAL_NONE }, PL_BPE_UNMADE_WHOLE },
    { "qwen2", { PL_PATTERN_QWEN2, PL_NORMAL_NFC }, PL_BPE_UNMADE_DECODED },
    { "smollm", { PL_PATTERN_SMOLLM2, PL_NORMAL_NONE }, PL_BPE_UNMADE_DECODED },
};

enum { PRES = sizeof pres / sizeof *pres };

static const char *put_pre(const pl_bpe *bpe, const pl_log *log)
{
    size_t i = 0;
    while (pres[i].splitting.pattern != bpe->splitting.pattern)
        i++;
    if (bpe->splitting.normal != PL_NORMAL_NONE)
        pl_log_say(
            log, PL_LOG_NOTE,
            "llama.cpp doesn't normalize text to NFC, as this tokenizer "
            "does: it gives other tokens to text that isn't NFC already");
    if (bpe->whole.slots && pres[i].unmade != PL_BPE_UNMADE_WHOLE)
        pl_log_say(log, PL_LOG_WARN,
                   "the vocabulary has tokens that no merge makes, which "
                   "llama.cpp doesn't find with the pattern \"%s\"",
                   pres[i].name);
    return pres[i].name;
}

pl_status pl_vocab_put(pl_gguf_writer *writer, const pl_weights *weights,
                       const pl_log *log, pl_error *err)
{
    const pl_tokenizer *t = &weights->tokenizer;
    if (weights->shape.V > UINT32_MAX)
        return pl_fail(err, PL_E_UNSUPPORTED, "%zu tokens are too many",
                       weights->shape.V);
    if (t->kind == PL_TOKENIZER_NONE) {
        pl_log_say(log, PL_LOG_WARN,
                   "there is no tokenizer beside the weights, so llama.cpp "
                   "will know token ids only. With tokenizer.json copied into "
                   "%s it would know text",
                   weights->path);
        pl_gguf_put_text(writer, "tokenizer.ggml.model", "none");
        return PL_OK;
    }
    if (t->kind != PL_TOKENIZER_BPE) {
        pl_gguf_put_text(writer, "tokenizer.ggml.model", "rwkv");
        pl_gguf_put_text(writer, "tokenizer.ggml.pre", "default");
        put_tokens(writer, weights, SIZE_MAX);
        pl_gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", 0);
        return PL_OK;
    }
    size_t end = end_of(weights, log);
    pl_gguf_put_text(writer, "tokenizer.ggml.model", "gpt2");
    pl_gguf_put_text(writer, "tokenizer.ggml.pre", put_pre(t->bpe, log));
    put_tokens(writer, weights, end);
    put_merges(writer, t->bpe);
    pl_gguf_put_u32(writer, "tokenizer.ggml.bos_token_id", (uint32_t)end);
    pl_gguf_put_u32(writer, "tokenizer.ggml.eos_token_id", (uint32_t)end);
    pl_gguf_put_bool(writer, "tokenizer.ggml.add_bos_token", 0);
    return PL_OK;
}

/* ---- reading ---- */

typedef struct names {
    pl_gguf_walk texts;
    size_t count;
    int32_t *types; /* NULL: all are normal */
} names;

static pl_status begin_names(names *n, pl_weights *w, pl_heap *heap,
                             pl_error *err)
{
    pl_gguf_walk walk;
    *n = (names){ 0 };
    if (pl_gguf_find_key(&w->gguf, "tokenizer.ggml.token_type")) {
        pl_status status = pl_gguf_walk_begin(
            &walk, &w->gguf, "tokenizer.ggml.token_type", PL_GGUF_I32, err);
        if (!status && walk.left != w->shape.V)
            status = pl_fail(err, PL_E_FORMAT,
                             "%s: %" PRIu64
                             " types of tokens for a model of %zu",
                             w->path, walk.left, w->shape.V);
        if (!status)
            status = pl_heap_take(heap, &n->types, w->shape.V, sizeof *n->types,
                                  err);
        for (size_t id = 0; id < w->shape.V && !status; id++)
            status = pl_gguf_walk_i32(&walk, &n->types[id], err);
        if (status)
            return status;
    }
    pl_status status = pl_gguf_walk_begin(
        &n->texts, &w->gguf, "tokenizer.ggml.tokens", PL_GGUF_TEXT, err);
    if (!status && n->texts.left != w->shape.V)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: %" PRIu64 " tokens for a model of %zu", w->path,
                         n->texts.left, w->shape.V);
    n->count = w->shape.V;
    return status;
}

static token_type type_at(const names *n, size_t id)
{
    return n->types ? (token_type)n->types[id] : TOKEN_NORMAL;
}

/* The next text of a list, which must be one: messages quote it. */
static pl_status next_text(pl_gguf_walk *walk, char *out, size_t capacity,
                           size_t *bytes, pl_error *err)
{
    pl_status status = pl_gguf_walk_text(walk, out, capacity, bytes, err);
    if (!status && pl_utf8_text_bytes(out, *bytes) != *bytes)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: key %s: element %" PRIu64
                         " is not valid UTF-8 text",
                         pl_path_shown(walk->cursor.file->path),
                         walk->key->name, walk->key->count - walk->left - 1);
    return status;
}

static pl_status read_tokens(pl_bpe_draft *draft, names *n, pl_error *err)
{
    char name[NAME_BYTES];
    size_t bytes;
    pl_status status = PL_OK;
    for (size_t id = 0; id < n->count && !status; id++) {
        token_type type = type_at(n, id);
        status = next_text(&n->texts, name, sizeof name, &bytes, err);
        if (status || type == TOKEN_UNUSED)
            continue;
        if (type == TOKEN_CONTROL || type == TOKEN_USER_DEFINED) {
            status = pl_bpe_draft_add(
                draft, (int64_t)id, name, bytes,
                type == TOKEN_CONTROL ? PL_BPE_SPECIAL : PL_BPE_ADDED, err);
            if (!status)
                pl_bpe_json_merged(draft, (int64_t)id);
            continue;
        }
        status = pl_bpe_json_token(draft, (int64_t)id, name, PL_BPE_ORDINARY,
                                   err);
    }
    return status;
}

static pl_status read_merges(pl_bpe_draft *draft, const pl_weights *w,
                             pl_error *err)
{
    char text[MERGE_BYTES];
    size_t bytes;
    pl_gguf_walk walk;
    pl_status status = pl_gguf_walk_begin(
        &walk, &w->gguf, "tokenizer.ggml.merges", PL_GGUF_TEXT, err);
    for (size_t i = 0; !status && walk.left > 0; i++) {
        status = next_text(&walk, text, sizeof text, &bytes, err);
        if (status)
            break;
        const char *space = memchr(text, ' ', bytes);
        if (!space)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: merge %zu is not two tokens with a space "
                           "between them",
                           w->path, i);
        size_t left = (size_t)(space - text);
        status = pl_bpe_json_merge(draft, i, text, left, space + 1,
                                   bytes - left - 1, err);
    }
    return status;
}

static pl_status read_bpe(pl_weights *w, size_t pre, pl_heap *heap,
                          pl_error *err)
{
    names n;
    pl_bpe *bpe;
    pl_bpe_draft draft;
    const pl_gguf_key *merges = pl_gguf_find_key(&w->gguf,
                                                 "tokenizer.ggml.merges");
    pl_status status = begin_names(&n, w, heap, err);
    if (status)
        return status;
    size_t room = (size_t)(w->gguf.data_at - n.texts.key->at);
    status = pl_bpe_draft_open(&draft, w->path, (int64_t)n.count, room,
                               merges ? (size_t)merges->count : 0, heap, err);
    draft.splitting = pres[pre].splitting;
    if (!status)
        status = read_tokens(&draft, &n, err);
    if (!status)
        status = read_merges(&draft, w, err);
    if (!status)
        status = pl_bpe_draft_finish(&draft, pres[pre].unmade, &bpe, err);
    pl_bpe_draft_close(&draft);
    if (!status)
        w->tokenizer = pl_tokenizer_make_bpe(bpe);
    return status;
}

/* One character each, or the 256 bytes in their order. */
static pl_status read_chars(pl_weights *w, const pl_log *log, pl_heap *heap,
                            pl_error *err)
{
    names n;
    uint32_t *codes;
    size_t chars = 0, bytes_in_order = 0, count = 0;
    char name[NAME_BYTES], text[NAME_BYTES];
    pl_status status = begin_names(&n, w, heap, err);
    if (!status)
        status = pl_heap_take(heap, &codes, n.count, sizeof *codes, err);
    for (size_t id = 0; id < n.count && !status; id++) {
        size_t bytes;
        status = pl_gguf_walk_text(&n.texts, name, sizeof name, &bytes, err);
        if (status || type_at(&n, id) == TOKEN_UNUSED)
            continue;
        bytes = unescaped(name, bytes, text);
        count++;
        bytes_in_order += bytes == 1 && id == (unsigned char)text[0];
        if (id == chars && bytes > 0 &&
            pl_utf8_decode(text, bytes, &codes[id]) == (int)bytes)
            chars++;
    }
    if (status)
        return status;
    if (count == 256 && bytes_in_order == 256) {
        w->tokenizer = pl_tokenizer_make_byte();
        return PL_OK;
    }
    if (count > 0 && chars == count)
        return pl_tokenizer_make_char(&w->tokenizer, codes, chars, heap, err);
    pl_log_say(log, PL_LOG_WARN,
               "%s: its tokens are more than single characters or bytes: the "
               "tokenizer is left out",
               w->path);
    return PL_OK;
}

pl_status pl_vocab_read(pl_weights *weights, const pl_log *log, pl_heap *heap,
                        pl_error *err)
{
    char model[64] = "none", pre[64] = "";
    const pl_gguf *gguf = &weights->gguf;
    int64_t end = -1;
    pl_status status = PL_OK;
    if (pl_gguf_find_key(gguf, "tokenizer.ggml.model"))
        status = pl_gguf_want_text(gguf, "tokenizer.ggml.model", model,
                                   sizeof model, err);
    if (!status && pl_gguf_find_key(gguf, "tokenizer.ggml.pre"))
        status = pl_gguf_want_text(gguf, "tokenizer.ggml.pre", pre, sizeof pre,
                                   err);
    if (!status && pl_gguf_find_key(gguf, "tokenizer.ggml.eos_token_id"))
        status = pl_gguf_want_whole(gguf, "tokenizer.ggml.eos_token_id", 0,
                                    (int64_t)weights->shape.V - 1, &end, err);
    weights->end_token = (int32_t)end;
    if (status || strcmp(model, "none") == 0)
        return status;
    if (strcmp(model, "rwkv") == 0)
        return read_chars(weights, log, heap, err);
    for (size_t i = 0; i < PRES && strcmp(model, "gpt2") == 0; i++)
        if (strcmp(pre, pres[i].name) == 0 || pre[0] == '\0')
            return read_bpe(weights, i, heap, err);
    pl_log_say(log, PL_LOG_WARN,
               "%s: its tokenizer is of kind %s %s, which isn't read: only the "
               "weights are taken",
               weights->path, model, pre);
    return PL_OK;
}
