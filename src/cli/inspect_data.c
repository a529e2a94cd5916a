/* inspect_data.c: tokens, tokenizers and text; see inspect.h. */
#include "base/file.h"
#include "base/utf8.h"
#include "cli/data_cli.h"
#include "cli/inspect.h"
#include "cli/term.h"
#include "data/parquet.h"
#include "data/shard.h"
#include "data/source.h"
#include "text/tokenizer_file.h"

#include <stdio.h>
#include <string.h>

enum {
    CHUNK_TOKENS = 256 * 1024,
    FIRST_TOKENS = 32,
    LONGEST = 5,
    SOURCE_BYTES = 512 * 1024 * 1024,
    SHOWN_BYTES = 60,
};

/* ---- tokens ---- */

static pl_status largest_of(const pl_shard *shard, int32_t *ids, int32_t *most,
                            pl_error *err)
{
    *most = 0;
    for (uint64_t at = 0; at < shard->n_tokens;) {
        uint64_t left = shard->n_tokens - at;
        size_t now = left < CHUNK_TOKENS ? (size_t)left : CHUNK_TOKENS;
        pl_status status = pl_shard_read(shard, at, now, ids, INT32_MAX, err);
        if (status)
            return status;
        for (size_t i = 0; i < now; i++)
            if (ids[i] > *most)
                *most = ids[i];
        at += now;
    }
    return PL_OK;
}

/* What --tokenizer names, else what lies beside the file. */
static pl_status tokenizer_for(pl_tokenizer *tokenizer, const char *path,
                               const pl_config *config, pl_heap *heap,
                               pl_error *err)
{
    char folder[PL_PATH_BYTES];
    if (config->origin[PL_KEY_tokenizer].source != PL_FROM_DEFAULT)
        return pl_cli_tokenizer(tokenizer, config, heap, err);
    pl_status status = pl_path_add(folder, path, "", err);
    if (status)
        return status;
    pl_path_cut_to_parent(folder);
    return pl_tokenizer_find(tokenizer, folder, heap, err);
}

static pl_status print_first(const pl_tokenizer *tokenizer, const int32_t *ids,
                             size_t count, pl_error *err)
{
    char text[FIRST_TOKENS * PL_TOKENIZER_TOKEN_BYTES];
    size_t used = 0, bytes;
    printf("  begins:");
    for (size_t i = 0; i < count; i++)
        printf(" %d", (int)ids[i]);
    printf("\n");
    if (tokenizer->kind == PL_TOKENIZER_NONE)
        return PL_OK;
    for (size_t i = 0; i < count; i++) {
        pl_status status = pl_tokenizer_decode(tokenizer, ids[i], text + used,
                                               &bytes, err);
        if (status)
            return status;
        used += bytes;
    }
    printf("  that is: ");
    pl_term_put(text, used);
    printf("\n");
    return PL_OK;
}

pl_status pl_inspect_shard(const char *path, const pl_config *config,
                           pl_heap *heap, pl_error *err)
{
    pl_shard shard;
    pl_tokenizer tokenizer;
    int32_t *ids, most = 0;
    pl_status status = pl_heap_take(heap, &ids, CHUNK_TOKENS, sizeof *ids, err);
    if (!status)
        status = pl_shard_open(&shard, path, err);
    if (status)
        return status;
    status = largest_of(&shard, ids, &most, err);
    size_t count = shard.n_tokens < FIRST_TOKENS ? (size_t)shard.n_tokens
                                                 : FIRST_TOKENS;
    if (!status)
        status = pl_shard_read(&shard, 0, count, ids, INT32_MAX, err);
    if (!status)
        status = tokenizer_for(&tokenizer, path, config, heap, err);
    if (status)
        goto close_shard;
    pl_term_print("%s: %s, %s tokens, largest id %d", path,
                  pl_shard_kind_name(shard.kind),
                  pl_term_count(shard.n_tokens).text, (int)most);
    int known = tokenizer.kind != PL_TOKENIZER_NONE;
    if (known)
        printf(" of %d", (int)tokenizer.vocab_size);
    printf("\n");
    if (known && most >= tokenizer.vocab_size)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: token id %d is outside the vocabulary of %d: "
                         "they don't belong together",
                         path, (int)most, (int)tokenizer.vocab_size);
    else
        status = print_first(&tokenizer, ids, count, err);

close_shard:
    pl_shard_close(&shard);
    return status;
}

/* ---- tokenizers ---- */

/* The longest tokens, the first of equals. */
static void print_longest(const pl_bpe *bpe)
{
    int32_t best[LONGEST];
    size_t lengths[LONGEST], count = 0;
    for (int32_t id = 0; id < pl_bpe_vocab_size(bpe); id++) {
        size_t bytes, at;
        if (!pl_bpe_token(bpe, id, &bytes))
            continue;
        for (at = count; at > 0 && bytes > lengths[at - 1]; at--)
            if (at < LONGEST) {
                best[at] = best[at - 1];
                lengths[at] = lengths[at - 1];
            }
        if (at < LONGEST) {
            best[at] = id;
            lengths[at] = bytes;
            count += count < LONGEST;
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        const char *text = pl_bpe_token(bpe, best[i], &bytes);
        printf("  %s %6d, %3zu bytes: ", i ? "       " : "longest",
               (int)best[i], bytes);
        pl_term_put(text, bytes < SHOWN_BYTES ? bytes : SHOWN_BYTES);
        printf(bytes > SHOWN_BYTES ? "...\n" : "\n");
    }
}

static void print_tokenizer(const char *path, const pl_tokenizer *tokenizer)
{
    pl_term_print("%s: %s tokenizer, %d tokens", path,
                  pl_tokenizer_kind_name(tokenizer->kind),
                  (int)tokenizer->vocab_size);
    if (tokenizer->kind == PL_TOKENIZER_CHAR) {
        printf("\n  characters: ");
        for (int32_t id = 0; id < tokenizer->vocab_size && id < 256; id++) {
            char text[PL_UTF8_MAX_BYTES];
            int bytes = pl_utf8_encode(tokenizer->codes[id], text);
            pl_term_put(text, (size_t)bytes);
        }
    }
    printf("\n");
    if (tokenizer->kind != PL_TOKENIZER_BPE)
        return;
    printf("  %zu merges; a model has %zu tokens for it\n",
           pl_bpe_merge_count(tokenizer->bpe),
           pl_tokenizer_model_vocab(tokenizer));
    for (size_t i = 0; pl_bpe_special_at(tokenizer->bpe, i) >= 0; i++) {
        size_t bytes;
        int32_t id = pl_bpe_special_at(tokenizer->bpe, i);
        const char *text = pl_bpe_token(tokenizer->bpe, id, &bytes);
        printf("  special %6d: ", (int)id);
        pl_term_put(text, bytes);
        printf("\n");
    }
    print_longest(tokenizer->bpe);
}

pl_status pl_inspect_tokenizer(const char *path, pl_heap *heap, pl_error *err)
{
    pl_tokenizer tokenizer;
    pl_status status = pl_tokenizer_load(&tokenizer, path, heap, err);
    if (!status)
        print_tokenizer(path, &tokenizer);
    return status;
}

pl_status pl_inspect_tokenizer_of(const char *folder, const pl_config *config,
                                  pl_heap *heap, pl_error *err)
{
    pl_tokenizer tokenizer;
    (void)config;
    pl_status status = pl_tokenizer_find(&tokenizer, folder, heap, err);
    if (!status && tokenizer.kind != PL_TOKENIZER_NONE)
        print_tokenizer(folder, &tokenizer);
    return status;
}

/* ---- text ---- */

static pl_status print_parquet(const char *path, const pl_config *config,
                               pl_error *err)
{
    static pl_parquet parquet;
    pl_room room = pl_room_make(SOURCE_BYTES);
    pl_unpack unpack;
    pl_unpack_open(&unpack, &room);
    pl_status status = pl_parquet_open(&parquet, path, config->field,
                                       SOURCE_BYTES, &room, &unpack, err);
    if (!status) {
        pl_term_print("%s: parquet, %s rows in %s row groups\n"
                      "  string columns: %s\n",
                      path, pl_term_count(parquet.rows).text,
                      pl_term_count(parquet.group_count).text,
                      parquet.string_columns);
        pl_parquet_close(&parquet);
    }
    pl_unpack_close(&unpack);
    return status;
}

pl_status pl_inspect_source(const char *path, const pl_config *config,
                            pl_heap *heap, pl_error *err)
{
    static const char *const formats[] = { "", "text", "JSON lines",
                                           "parquet" };
    pl_source *source;
    pl_piece piece;
    uint64_t documents = 0, bytes = 0;
    char first[SHOWN_BYTES];
    size_t first_bytes = 0;
    pl_source_options options = { .paths = &path,
                                  .path_count = 1,
                                  .field = config->field,
                                  .memory_bytes = SOURCE_BYTES };
    (void)heap;
    pl_status status = pl_source_open(&source, &options, err);
    if (status)
        return status;
    for (;;) {
        status = pl_source_next(source, &piece, err);
        if (status || piece.part == PL_PIECE_NONE)
            break;
        if (bytes == 0) {
            first_bytes = piece.bytes < SHOWN_BYTES ? piece.bytes : SHOWN_BYTES;
            memcpy(first, piece.text, first_bytes);
        }
        documents += pl_piece_begins(piece.part) ? 1 : 0;
        bytes += piece.bytes;
    }
    pl_source_format format = documents ? pl_source_last_format(source)
                                        : PL_SOURCE_TEXT;
    pl_source_close(source);
    if (!status && format == PL_SOURCE_PARQUET)
        status = print_parquet(path, config, err);
    if (status)
        return status;
    pl_term_print("%s: %s, %s document%s, %s bytes of text\n", path,
                  formats[format], pl_term_count(documents).text,
                  documents == 1 ? "" : "s", pl_term_count(bytes).text);
    printf("  begins: ");
    pl_term_put(first, pl_utf8_whole_bytes(first, first_bytes));
    printf("\n");
    return PL_OK;
}
