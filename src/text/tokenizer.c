/* tokenizer.c: see tokenizer.h. Owns the ids' order and lookup. */
#include "text/tokenizer.h"

#include "base/check.h"
#include "base/utf8.h"

#include <string.h>

pl_tokenizer pl_tokenizer_make_none(void)
{
    return (pl_tokenizer){ .kind = PL_TOKENIZER_NONE,
                           .vocab_size = PL_TOKENIZER_GPT2_VOCAB };
}

pl_tokenizer pl_tokenizer_make_byte(void)
{
    return (pl_tokenizer){ .kind = PL_TOKENIZER_BYTE, .vocab_size = 256 };
}

pl_tokenizer pl_tokenizer_make_bpe(const pl_bpe *bpe)
{
    return (pl_tokenizer){ .kind = PL_TOKENIZER_BPE,
                           .vocab_size = pl_bpe_vocab_size(bpe),
                           .bpe = bpe };
}

const char *pl_tokenizer_kind_name(pl_tokenizer_kind kind)
{
    static const char *const names[] = { [PL_TOKENIZER_NONE] = "none",
                                         [PL_TOKENIZER_CHAR] = "char",
                                         [PL_TOKENIZER_BYTE] = "byte",
                                         [PL_TOKENIZER_BPE] = "bpe" };
    return names[kind];
}

/* Heap sort, since the library's qsort may allocate: lets order[root] sink
 * within order[0..count). */
static void sink(uint32_t *order, size_t root, size_t count,
                 const uint32_t *codes)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && codes[order[child + 1]] > codes[order[child]])
            child++;
        if (codes[order[root]] >= codes[order[child]])
            return;
        uint32_t moved = order[root];
        order[root] = order[child];
        order[child] = moved;
        root = child;
    }
}

static void sort_by_code(uint32_t *order, size_t count, const uint32_t *codes)
{
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    for (size_t root = count / 2; root-- > 0;)
        sink(order, root, count, codes);
    for (size_t end = count; end-- > 1;) {
        uint32_t last = order[0];
        order[0] = order[end];
        order[end] = last;
        sink(order, 0, end, codes);
    }
}

static pl_status check_codes(const uint32_t *codes, const uint32_t *order,
                             size_t count, pl_error *err)
{
    char shown[PL_UTF8_NAME_BYTES];
    for (size_t i = 0; i < count; i++) {
        uint32_t code = codes[order[i]];
        if (!pl_utf8_is_scalar(code))
            return pl_fail(err, PL_E_FORMAT,
                           "token %u of the vocabulary is U+%04X, which is "
                           "no Unicode character",
                           (unsigned)order[i], (unsigned)code);
        if (i > 0 && code == codes[order[i - 1]])
            return pl_fail(err, PL_E_FORMAT,
                           "the vocabulary has %s twice, as tokens %u and %u",
                           pl_utf8_name(code, shown), (unsigned)order[i - 1],
                           (unsigned)order[i]);
    }
    return PL_OK;
}

pl_status pl_tokenizer_make_char(pl_tokenizer *tokenizer, const uint32_t *codes,
                                 size_t count, pl_heap *heap, pl_error *err)
{
    uint32_t *copy, *order;
    if (count == 0 || count > PL_TOKENIZER_MAX_VOCAB)
        return pl_fail(err, PL_E_FORMAT,
                       "a vocabulary has 1 to %d characters, this one %zu",
                       PL_TOKENIZER_MAX_VOCAB, count);
    pl_status status = pl_heap_take(heap, &copy, count, sizeof *copy, err);
    if (!status)
        status = pl_heap_take(heap, &order, count, sizeof *order, err);
    if (status)
        return status;
    memcpy(copy, codes, count * sizeof *copy);
    sort_by_code(order, count, copy);
    status = check_codes(copy, order, count, err);
    if (status)
        return status;
    *tokenizer = (pl_tokenizer){ .kind = PL_TOKENIZER_CHAR,
                                 .vocab_size = (int32_t)count,
                                 .codes = copy,
                                 .order = order };
    return PL_OK;
}

int32_t pl_tokenizer_id_of(const pl_tokenizer *tokenizer, uint32_t code)
{
    PL_CHECK(tokenizer->kind == PL_TOKENIZER_CHAR);
    size_t low = 0, high = (size_t)tokenizer->vocab_size;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t id = tokenizer->order[middle];
        if (tokenizer->codes[id] == code)
            return (int32_t)id;
        if (tokenizer->codes[id] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static size_t line_at(const char *text, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset; i++)
        line += text[i] == '\n';
    return line;
}

static pl_status encode_chars(const pl_tokenizer *tokenizer, const char *text,
                              size_t bytes, const char *name, int32_t *ids,
                              size_t capacity, size_t *count, pl_error *err)
{
    char shown[PL_UTF8_NAME_BYTES];
    size_t used = 0;
    for (size_t at = 0; at < bytes; used++) {
        uint32_t code;
        int length = pl_utf8_decode(text + at, bytes - at, &code);
        if (length <= 0)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: line %zu, byte %zu: 0x%02X is not valid "
                           "UTF-8. Save the text as UTF-8, or use a model "
                           "with the byte tokenizer",
                           name, line_at(text, at), at,
                           (unsigned)(unsigned char)text[at]);
        int32_t id = pl_tokenizer_id_of(tokenizer, code);
        if (id < 0)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: line %zu, byte %zu: the vocabulary of %d "
                           "characters has no %s. Leave it out: the model "
                           "knows only characters of its training text",
                           name, line_at(text, at), at,
                           (int)tokenizer->vocab_size,
                           pl_utf8_name(code, shown));
        if (used == capacity)
            return pl_fail(err, PL_E_USAGE,
                           "%s: more than the %zu tokens that there is room "
                           "for. Give a shorter text",
                           name, capacity);
        ids[used] = id;
        at += (size_t)length;
    }
    *count = used;
    return PL_OK;
}

size_t pl_tokenizer_most_ids(const pl_tokenizer *tokenizer, size_t bytes)
{
    return tokenizer->kind == PL_TOKENIZER_BPE
               ? pl_bpe_most_ids(tokenizer->bpe, bytes)
               : bytes;
}

pl_splitting pl_tokenizer_splitting(const pl_tokenizer *tokenizer)
{
    return tokenizer->kind == PL_TOKENIZER_BPE
               ? pl_bpe_splitting(tokenizer->bpe)
               : (pl_splitting){ 0 };
}

pl_status pl_tokenizer_encode(const pl_tokenizer *tokenizer, const char *text,
                              size_t bytes, const char *name, int32_t *ids,
                              size_t capacity, size_t *count, pl_error *err)
{
    if (tokenizer->kind == PL_TOKENIZER_CHAR)
        return encode_chars(tokenizer, text, bytes, name, ids, capacity, count,
                            err);
    if (tokenizer->kind == PL_TOKENIZER_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: text can't be turned into tokens here: the data "
                       "has GPT-2's token ids and no meta.json or meta.pkl "
                       "with a vocabulary",
                       name);
    const size_t most = pl_tokenizer_most_ids(tokenizer, bytes);
    if (most > capacity)
        return pl_fail(err, PL_E_USAGE,
                       "%s: up to %zu tokens are more than the %zu that "
                       "there is room for. Give a shorter text",
                       name, most, capacity);
    if (tokenizer->kind == PL_TOKENIZER_BPE) {
        *count = pl_bpe_encode_plain(tokenizer->bpe, text, bytes,
                                     PL_BPE_SPECIALS_FOUND, ids);
        return PL_OK;
    }
    for (size_t i = 0; i < bytes; i++)
        ids[i] = (unsigned char)text[i];
    *count = bytes;
    return PL_OK;
}

pl_status pl_tokenizer_decode(const pl_tokenizer *tokenizer, int32_t id,
                              char out[PL_TOKENIZER_TOKEN_BYTES], size_t *bytes,
                              pl_error *err)
{
    if (tokenizer->kind == PL_TOKENIZER_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "tokens can't be turned into text here: the data has "
                       "GPT-2's token ids and no meta.json or meta.pkl with a "
                       "vocabulary");
    if (id < 0 || id >= tokenizer->vocab_size)
        return pl_fail(err, PL_E_FORMAT,
                       "token %d is outside the vocabulary of %d", (int)id,
                       (int)tokenizer->vocab_size);
    if (tokenizer->kind == PL_TOKENIZER_BYTE) {
        out[0] = (char)id;
        *bytes = 1;
        return PL_OK;
    }
    if (tokenizer->kind == PL_TOKENIZER_BPE) {
        const char *token = pl_bpe_token(tokenizer->bpe, id, bytes);
        if (token)
            memcpy(out, token, *bytes);
        else
            *bytes = 0;
        return PL_OK;
    }
    *bytes = (size_t)pl_utf8_encode(tokenizer->codes[id], out);
    return PL_OK;
}
