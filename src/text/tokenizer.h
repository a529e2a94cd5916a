/* tokenizer.h: text to token ids and back.
 *
 * Four kinds:
 *   char  one token per Unicode code point of a fixed list; the id is the
 *         place in the list. prepare sorts it, as nanoGPT's
 *         sorted(list(set(data))) does; a list read from a file may have any
 *         order.
 *   byte  one token per byte, 256 of them.
 *   bpe   byte-level byte-pair encoding (text/bpe.h), such as GPT-2's.
 *   none  token ids without a way to text: GPT-2's, whose vocabulary nanoGPT
 *         pads to 50304.
 *
 * A value: its lists live in the heap that was given. Opens no file. */
#ifndef PL_TEXT_TOKENIZER_H
#define PL_TEXT_TOKENIZER_H

#include "base/arena.h"
#include "base/status.h"
#include "text/bpe.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_tokenizer_kind {
    PL_TOKENIZER_NONE,
    PL_TOKENIZER_CHAR,
    PL_TOKENIZER_BYTE,
    PL_TOKENIZER_BPE,
} pl_tokenizer_kind;

enum {
    PL_TOKENIZER_MAX_VOCAB = 65536, /* of char: ids are stored in 16 bits */
    PL_TOKENIZER_GPT2_VOCAB = 50304,
    PL_TOKENIZER_TOKEN_BYTES = PL_BPE_TOKEN_BYTES, /* the longest token */
};

typedef struct pl_tokenizer {
    pl_tokenizer_kind kind;
    int32_t vocab_size;
    const uint32_t *codes; /* char: code point of each id; else NULL */
    const uint32_t *order; /* char: the ids, by ascending code point */
    const pl_bpe *bpe;     /* bpe; else NULL */
} pl_tokenizer;

pl_tokenizer pl_tokenizer_make_none(void);
pl_tokenizer pl_tokenizer_make_byte(void);
/* `bpe` must live as long as the tokenizer. */
pl_tokenizer pl_tokenizer_make_bpe(const pl_bpe *bpe);

/* A char tokenizer of codes[0..count), copied to `heap`. PL_E_FORMAT if there
 * are none, more than fit, one isn't a scalar value, or one stands twice. */
PL_MUST_CHECK pl_status pl_tokenizer_make_char(pl_tokenizer *tokenizer,
                                               const uint32_t *codes,
                                               size_t count, pl_heap *heap,
                                               pl_error *err);

/* "char", "byte", "bpe" or "none". */
const char *pl_tokenizer_kind_name(pl_tokenizer_kind kind);

/* The id of a code point in a char tokenizer, -1 if it has none. */
int32_t pl_tokenizer_id_of(const pl_tokenizer *tokenizer, uint32_t code);

/* How many ids there must be room for, to encode `bytes` bytes. */
size_t pl_tokenizer_most_ids(const pl_tokenizer *tokenizer, size_t bytes);

/* How bpe makes pieces of a text; others have none, and this is GPT-2's. */
pl_splitting pl_tokenizer_splitting(const pl_tokenizer *tokenizer);

/* Encodes all of `text`. A `capacity` of pl_tokenizer_most_ids always suffices;
 * less may be an error. An unknown character or invalid UTF-8
 * is PL_E_FORMAT with the character, its byte offset and line in `name` (a
 * path, or "--start"). A kind without text is PL_E_UNSUPPORTED. bpe finds
 * special tokens in the text, as nanoGPT's sample.py lets tiktoken do; for
 * much text a pl_bpe_encoder is several times as fast. */
PL_MUST_CHECK pl_status pl_tokenizer_encode(const pl_tokenizer *tokenizer,
                                            const char *text, size_t bytes,
                                            const char *name, int32_t *ids,
                                            size_t capacity, size_t *count,
                                            pl_error *err);

/* One token's bytes, *bytes of them, without a zero: so that text can be shown
 * as it is made. A byte or bpe token may be a part of a character only; an id
 * in a gap of bpe's ids has no bytes. */
PL_MUST_CHECK pl_status pl_tokenizer_decode(const pl_tokenizer *tokenizer,
                                            int32_t id,
                                            char out[PL_TOKENIZER_TOKEN_BYTES],
                                            size_t *bytes, pl_error *err);

#endif
