/* charset.c: see charset.h. */
#include "data/charset.h"

#include "base/utf8.h"

#include <string.h>

pl_status pl_charset_open(pl_charset *set, pl_heap *heap, pl_error *err)
{
    return pl_heap_take(heap, &set->ids, PL_CHARSET_CODES, sizeof *set->ids,
                        err);
}

size_t pl_charset_mark(pl_charset *set, const char *text, size_t bytes)
{
    size_t at = 0;
    uint32_t code;
    int length;
    while ((length = pl_utf8_decode(text + at, bytes - at, &code)) > 0) {
        set->ids[code] = 1;
        at += (size_t)length;
    }
    return at;
}

pl_status pl_charset_make(pl_charset *set, pl_tokenizer *tokenizer,
                          pl_heap *heap, pl_error *err)
{
    uint32_t *codes;
    size_t count = 0, used = 0;
    for (uint32_t code = 0; code < PL_CHARSET_CODES; code++)
        count += set->ids[code];
    if (count > PL_TOKENIZER_MAX_VOCAB)
        return pl_fail(err, PL_E_FORMAT,
                       "the text has %zu different characters; 16-bit tokens "
                       "can tell %d apart. Prepare it with --tokenizer=byte",
                       count, PL_TOKENIZER_MAX_VOCAB);
    pl_status status = pl_heap_take(heap, &codes, count, sizeof *codes, err);
    if (status)
        return status;
    for (uint32_t code = 0; code < PL_CHARSET_CODES; code++)
        if (set->ids[code])
            codes[used++] = code;
    status = pl_tokenizer_make_char(tokenizer, codes, count, heap, err);
    if (!status)
        pl_charset_fill(set, tokenizer);
    return status;
}

void pl_charset_fill(pl_charset *set, const pl_tokenizer *tokenizer)
{
    memset(set->ids, 0, PL_CHARSET_BYTES);
    for (int32_t id = 0; id < tokenizer->vocab_size; id++)
        set->ids[tokenizer->codes[id]] = (uint16_t)id;
}

size_t pl_charset_encode(const pl_charset *set, const pl_tokenizer *tokenizer,
                         const char *text, size_t bytes, int32_t *ids,
                         size_t *count)
{
    size_t at = 0, used = 0;
    uint32_t code;
    int length;
    while ((length = pl_utf8_decode(text + at, bytes - at, &code)) > 0) {
        uint16_t id = set->ids[code];
        /* Those that it doesn't have look like id 0. */
        if (tokenizer->codes[id] != code)
            break;
        ids[used++] = id;
        at += (size_t)length;
    }
    *count = used;
    return at;
}
