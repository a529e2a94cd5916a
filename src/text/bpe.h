/* bpe.h: byte-level byte-pair encoding in GPT-2's manner.
 *
 * A text is normalized, if the vocabulary wants it (text/nfc.h), and cut into
 * pieces (text/pretok.h). A piece begins as one token for
 * each byte; then, of all neighbours that the list of merges has, those with
 * the lowest place in it are joined, the leftmost first, until none is left.
 * Every text is encodable, valid UTF-8 or not, and decoding gives its bytes
 * back, as they are normalized.
 *
 * A pl_bpe is made once (text/bpe_read.h, text/bpe_train.h) and then never
 * changed, so threads may share it. A pl_bpe_encoder, which remembers pieces,
 * belongs to one thread. Encoding takes no memory and can't fail; its time is
 * linear in the text, whatever the text is, but for pieces that a vocabulary
 * like Llama 3's merges out of turn (text/bpe_model.h). */
#ifndef PL_TEXT_BPE_H
#define PL_TEXT_BPE_H

#include "base/arena.h"
#include "base/status.h"
#include "text/pretok.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PL_BPE_MAX_VOCAB = 1 << 20,
    PL_BPE_TOKEN_BYTES = 512, /* the longest token */
    PL_BPE_BYTES = 256,       /* tokens that every vocabulary has */
    /* Ids that there must be room for, for each byte that is normalized: these
     * are used for what the text becomes, too. */
    PL_BPE_NORMAL_IDS = 4,
};

typedef struct pl_bpe pl_bpe;

/* ---- what a vocabulary has ---- */

/* The largest id + 1. */
int32_t pl_bpe_vocab_size(const pl_bpe *bpe);

/* The bytes of a token, *bytes of them, in memory of the vocabulary's. NULL if
 * no token has this id: ids may have gaps. */
const char *pl_bpe_token(const pl_bpe *bpe, int32_t id, size_t *bytes);

/* How it makes pieces of a text. */
pl_splitting pl_bpe_splitting(const pl_bpe *bpe);

/* The id of the special or added token with this text, -1 if there is none. */
int32_t pl_bpe_special(const pl_bpe *bpe, const char *text);

/* The special and added tokens, from 0 up to the first -1. */
int32_t pl_bpe_special_at(const pl_bpe *bpe, size_t place);

/* The token that ends a text by its usual names, <|endoftext|> and Llama 3's
 * <|end_of_text|>; -1 if it has none. */
int32_t pl_bpe_end_token(const pl_bpe *bpe);

/* How many merges it has. */
size_t pl_bpe_merge_count(const pl_bpe *bpe);

/* ---- encoding ---- */

typedef enum pl_bpe_specials {
    PL_BPE_SPECIALS_AS_TEXT, /* "<|endoftext|>" is text like any other; added
                              * tokens that aren't special are found */
    PL_BPE_SPECIALS_FOUND,   /* ... is the special token; where several begin
                              * at one place, the longest */
} pl_bpe_specials;

typedef struct pl_bpe_encoder {
    const pl_bpe *bpe;
    struct pl_bpe_slot *slots; /* the pieces it remembers */
    size_t set_mask;
} pl_bpe_encoder;

enum { PL_BPE_CACHE_BYTES = 4 * 1024 * 1024 }; /* a good size */

/* An encoder that remembers as many pieces as fit into `cache_bytes` (at least
 * 1024 bytes are used; a power of two is used fully). That is all the memory
 * it ever takes. It may be copied but not used by two threads at once. Give
 * the heap's memory back after its last use. */
PL_MUST_CHECK pl_status pl_bpe_encoder_open(pl_bpe_encoder *encoder,
                                            const pl_bpe *bpe,
                                            size_t cache_bytes, pl_heap *heap,
                                            pl_error *err);

/* How many ids there must be room for, to encode `bytes` bytes. */
size_t pl_bpe_most_ids(const pl_bpe *bpe, size_t bytes);

/* Encodes `bytes` bytes of `text` and returns the number of ids. `ids` must
 * have room for pl_bpe_most_ids: what lies behind those that are returned is
 * used as scratch. The ids don't depend on what was encoded before. */
size_t pl_bpe_encode(pl_bpe_encoder *encoder, const char *text, size_t bytes,
                     pl_bpe_specials specials, int32_t *ids);

/* The same without an encoder, slower. */
size_t pl_bpe_encode_plain(const pl_bpe *bpe, const char *text, size_t bytes,
                           pl_bpe_specials specials, int32_t *ids);

#endif
