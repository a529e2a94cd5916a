/* tokfile_hf.c: a char or byte tokenizer as Hugging Face's tokenizers reads
 * one (tokfile.h): a BPE without merges, so that every character, or
 * every byte, stays a token of its own. */
#include "text/tokfile.h"

#include "base/check.h"
#include "base/utf8.h"
#include "text/bpe_model.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 1024, ITEM_BYTES = 32 };

static const char head[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n"
    "\"added_tokens\":[],\n\"normalizer\":null,\n";
static const char char_steps[] = "\"pre_tokenizer\":null,\n\"post_processor\":"
                                 "null,\n\"decoder\":{\"type\":\"Fuse\"},\n";
static const char byte_steps[] =
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
    "\"trim_offsets\":true,\"use_regex\":false},\n\"post_processor\":null,\n"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
    "\"trim_offsets\":true,\"use_regex\":false},\n";
static const char model[] =
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
    "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"
    "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n"
    "\"vocab\":{";

/* "x":id, the character escaped where JSON wants it. */
static size_t put_item(char *out, uint32_t code, int32_t id)
{
    char bare[PL_UTF8_MAX_BYTES];
    const char *before = id ? "," : "";
    if (code == '"' || code == '\\')
        return (size_t)snprintf(out, ITEM_BYTES, "%s\"\\%c\":%d", before,
                                (char)code, (int)id);
    if (code < 0x20 || code == 0x7F)
        return (size_t)snprintf(out, ITEM_BYTES, "%s\"\\u%04x\":%d", before,
                                (unsigned)code, (int)id);
    int length = pl_utf8_encode(code, bare);
    return (size_t)snprintf(out, ITEM_BYTES, "%s\"%.*s\":%d", before, length,
                            bare, (int)id);
}

pl_status pl_tokenizer_write_hf(const pl_tokenizer *tokenizer, pl_heap *heap,
                                pl_tokenizer_text *out, pl_error *err)
{
    const int is_char = tokenizer->kind == PL_TOKENIZER_CHAR;
    char *text;
    *out = (pl_tokenizer_text){ 0 };
    if (!is_char && tokenizer->kind != PL_TOKENIZER_BYTE)
        return PL_OK;
    size_t items = (size_t)tokenizer->vocab_size,
           room = HEAD_BYTES + items * ITEM_BYTES;
    pl_status status = pl_heap_take(heap, &text, room, 1, err);
    if (status)
        return status;
    int used = snprintf(text, HEAD_BYTES, "%s%s%s", head,
                        is_char ? char_steps : byte_steps, model);
    PL_CHECK(used > 0 && used < HEAD_BYTES - 32);
    size_t bytes = (size_t)used;
    for (size_t i = 0; i < items; i++)
        bytes += put_item(text + bytes,
                          is_char ? tokenizer->codes[i]
                                  : pl_bpe_char_of((unsigned char)i),
                          (int32_t)i);
    bytes += (size_t)snprintf(text + bytes, room - bytes,
                              "},\n\"merges\":[]}}\n");
    *out = (pl_tokenizer_text){ PL_TOKENIZER_JSON, text, bytes };
    return PL_OK;
}
