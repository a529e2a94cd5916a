/* token_bytes.c: see token_bytes.h. */
#include "train/token_bytes.h"

_Static_assert((int)PL_TOKENIZER_TOKEN_BYTES <= (int)UINT16_MAX,
               "the longest token can be counted");

static int is_known(const pl_tokenizer *tokenizer)
{
    return tokenizer->kind != PL_TOKENIZER_NONE;
}

size_t pl_token_bytes_room(const pl_tokenizer *tokenizer)
{
    return is_known(tokenizer)
               ? (size_t)tokenizer->vocab_size * sizeof(uint16_t)
               : 0;
}

pl_status pl_token_bytes_make(pl_token_bytes *bytes,
                              const pl_tokenizer *tokenizer, pl_heap *heap,
                              pl_error *err)
{
    char text[PL_TOKENIZER_TOKEN_BYTES];
    uint16_t *of = NULL;
    pl_status status = PL_OK;
    *bytes = (pl_token_bytes){ .of = NULL };
    if (!is_known(tokenizer))
        return PL_OK;
    bytes->count = (size_t)tokenizer->vocab_size;
    status = pl_heap_take(heap, &of, bytes->count, sizeof *of, err);
    for (int32_t id = 0; id < tokenizer->vocab_size && !status; id++) {
        size_t length = 0;
        status = pl_tokenizer_decode(tokenizer, id, text, &length, err);
        of[id] = (uint16_t)length;
    }
    for (size_t i = 0; !status && tokenizer->kind == PL_TOKENIZER_BPE &&
                       pl_bpe_special_at(tokenizer->bpe, i) >= 0;
         i++)
        of[pl_bpe_special_at(tokenizer->bpe, i)] = 0;
    bytes->of = of;
    return status;
}
