/* inspect_data.c: tokens, tokenizers and text; see inspect.h. */
#include "base/file.h"
#include "base/utf8.h"
#include "cli/data_cli.h"
#include "cli/inspect.h"
#include "cli/term.h"
#include "data/parquet.h"
#include "data/shard.h"
#include "data/source.h"
#include "text/tokfile.h"

#include <stdio.h>
#include <string.h>

enum {
    CHUNK_TOKENS = 256 * 1024,
    FIRST_TOKENS = 32,
    LONGEST = 5,
    SOURCE_BYTES = 512 * 1024 * 1024,
    SHOWN_BYTES = 60,
};

/* ---- bytes as text ---- */

/* On one line for people, as it is for scripts if it is text. For one call at
 * a time. */
static const char *shown(const pl_inspect *in, const char *text, size_t bytes)
{
    static char out[4 * FIRST_TOKENS * PL_TOKENIZER_TOKEN_BYTES + 16];
    if (in->json && pl_utf8_is_valid(text, bytes) && !memchr(text, 0, bytes))
        snprintf(out, sizeof out, "%.*s", (int)bytes, text);
    else
        pl_inspect_escape(out, sizeof out, text, bytes);
    return out;
}

/* ---- tokens ---- */

/* Reads all of it, which can take a while. */
static pl_status largest_of(const pl_shard *shard, int32_t *ids, int32_t *most,
                            pl_error *err)
{
    pl_cli_pace pace = pl_cli_pace_begin();
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
        if (pl_cli_pace_is_due(&pace))
            pl_term_progress("reading tokens %3.0f %%",
                             100.0 * (double)at / (double)shard->n_tokens);
    }
    pl_term_clear();
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

static pl_status show_first(const pl_inspect *in, const pl_tokenizer *tokenizer,
                            const int32_t *ids, size_t count, pl_error *err)
{
    char text[FIRST_TOKENS * PL_TOKENIZER_TOKEN_BYTES];
    size_t used = 0, bytes;
    if (in->json)
        pl_json_text_open(in->json, "first_ids", '[');
    else
        printf("  begins:");
    for (size_t i = 0; i < count; i++)
        if (in->json)
            pl_json_text_whole(in->json, NULL, (uint64_t)ids[i]);
        else
            printf(" %d", (int)ids[i]);
    if (in->json)
        pl_json_text_close(in->json, ']');
    else
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
    if (in->json)
        pl_json_text_string(in->json, "first_text", shown(in, text, used));
    else
        pl_term_print("  that is: %s\n", shown(in, text, used));
    return PL_OK;
}

static pl_status show_shard(const pl_inspect *in, const char *path,
                            const pl_shard *shard,
                            const pl_tokenizer *tokenizer, int32_t most,
                            const int32_t *ids, size_t count, pl_error *err)
{
    const char *kind = pl_shard_kind_name(shard->kind);
    int known = tokenizer->kind != PL_TOKENIZER_NONE;
    pl_inspect_begin(in, path, "tokens");
    if (in->json) {
        pl_json_text_string(in->json, "format", kind);
        pl_json_text_whole(in->json, "tokens", shard->n_tokens);
        pl_json_text_whole(in->json, "largest_id", (uint64_t)most);
        if (known)
            pl_json_text_whole(in->json, "vocab_size",
                               (uint64_t)tokenizer->vocab_size);
    } else {
        pl_term_print("%s: %s, %s tokens, largest id %d", path, kind,
                      pl_units_count(shard->n_tokens).text, (int)most);
        if (known)
            printf(" of %d", (int)tokenizer->vocab_size);
        printf("\n");
    }
    if (known && most >= tokenizer->vocab_size)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: token id %d is outside the vocabulary of %d: "
                       "they don't belong together",
                       path, (int)most, (int)tokenizer->vocab_size);
    pl_status status = show_first(in, tokenizer, ids, count, err);
    if (in->json)
        pl_json_text_close(in->json, '}');
    return status;
}

pl_status pl_inspect_shard(const pl_inspect *in, const char *path,
                           pl_error *err)
{
    pl_shard shard;
    pl_tokenizer tokenizer;
    int32_t *ids, most = 0;
    pl_status status = pl_heap_take(in->heap, &ids, CHUNK_TOKENS, sizeof *ids,
                                    err);
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
        status = tokenizer_for(&tokenizer, path, in->config, in->heap, err);
    if (!status)
        status = show_shard(in, path, &shard, &tokenizer, most, ids, count,
                            err);
    pl_shard_close(&shard);
    return status;
}

/* ---- tokenizers ---- */

/* The longest tokens, the first of equals; how many. */
static size_t find_longest(const pl_bpe *bpe, int32_t best[LONGEST])
{
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
    return count;
}

static void show_longest(const pl_inspect *in, const pl_bpe *bpe)
{
    int32_t best[LONGEST];
    size_t count = find_longest(bpe, best);
    if (in->json)
        pl_json_text_open(in->json, "longest", '[');
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        const char *text = pl_bpe_token(bpe, best[i], &bytes);
        size_t some = bytes < SHOWN_BYTES ? bytes : SHOWN_BYTES;
        if (in->json)
            pl_json_text_string(in->json, NULL, shown(in, text, some));
        else
            pl_term_print("  %s %6d, %3zu bytes: %s%s\n",
                          i ? "       " : "longest", (int)best[i], bytes,
                          shown(in, text, some),
                          bytes > SHOWN_BYTES ? "..." : "");
    }
    if (in->json)
        pl_json_text_close(in->json, ']');
}

static void show_specials(const pl_inspect *in, const pl_bpe *bpe)
{
    if (in->json)
        pl_json_text_open(in->json, "special", '{');
    for (size_t i = 0; pl_bpe_special_at(bpe, i) >= 0; i++) {
        size_t bytes;
        int32_t id = pl_bpe_special_at(bpe, i);
        const char *text = pl_bpe_token(bpe, id, &bytes);
        if (in->json)
            pl_json_text_whole(in->json, shown(in, text, bytes), (uint64_t)id);
        else
            pl_term_print("  special %6d: %s\n", (int)id,
                          shown(in, text, bytes));
    }
    if (in->json)
        pl_json_text_close(in->json, '}');
}

static void show_characters(const pl_inspect *in, const pl_tokenizer *tokenizer)
{
    char text[256 * PL_UTF8_MAX_BYTES];
    size_t used = 0;
    for (int32_t id = 0; id < tokenizer->vocab_size && id < 256; id++)
        used += (size_t)pl_utf8_encode(tokenizer->codes[id], text + used);
    if (in->json)
        pl_json_text_string(in->json, "characters", shown(in, text, used));
    else
        pl_term_print("  characters: %s\n", shown(in, text, used));
}

static void show_tokenizer(const pl_inspect *in, const char *path,
                           const pl_tokenizer *tokenizer)
{
    const char *kind = pl_tokenizer_kind_name(tokenizer->kind);
    int is_bpe = tokenizer->kind == PL_TOKENIZER_BPE;
    size_t model = pl_tokenizer_model_vocab(tokenizer);
    pl_inspect_begin(in, path, "tokenizer");
    if (in->json) {
        pl_json_text_string(in->json, "tokenizer", kind);
        pl_json_text_whole(in->json, "vocab_size",
                           (uint64_t)tokenizer->vocab_size);
        pl_json_text_whole(in->json, "model_vocab_size", model);
    } else {
        pl_term_print("%s: %s tokenizer, %d tokens\n", path, kind,
                      (int)tokenizer->vocab_size);
    }
    if (tokenizer->kind == PL_TOKENIZER_CHAR)
        show_characters(in, tokenizer);
    if (is_bpe && in->json)
        pl_json_text_whole(in->json, "merges",
                           pl_bpe_merge_count(tokenizer->bpe));
    else if (is_bpe)
        printf("  %zu merges; a model has %zu tokens for it\n",
               pl_bpe_merge_count(tokenizer->bpe), model);
    if (is_bpe) {
        show_specials(in, tokenizer->bpe);
        show_longest(in, tokenizer->bpe);
    }
    if (in->json)
        pl_json_text_close(in->json, '}');
}

pl_status pl_inspect_tokenizer(const pl_inspect *in, const char *path,
                               pl_error *err)
{
    pl_tokenizer tokenizer;
    pl_status status = pl_tokenizer_load(&tokenizer, path, in->heap, err);
    if (!status)
        show_tokenizer(in, path, &tokenizer);
    return status;
}

pl_status pl_inspect_tokenizer_of(const pl_inspect *in, const char *folder,
                                  pl_error *err)
{
    pl_tokenizer tokenizer;
    pl_status status = pl_tokenizer_find(&tokenizer, folder, in->heap, err);
    if (!status && tokenizer.kind != PL_TOKENIZER_NONE)
        show_tokenizer(in, folder, &tokenizer);
    return status;
}

/* ---- text ---- */

static pl_status show_parquet(const pl_inspect *in, const char *path,
                              pl_error *err)
{
    static pl_parquet parquet;
    pl_room room = pl_room_make(SOURCE_BYTES);
    pl_unpack unpack;
    pl_unpack_open(&unpack, &room);
    pl_status status = pl_parquet_open(&parquet, path, in->config->field,
                                       SOURCE_BYTES, &room, &unpack, err);
    if (!status && in->json) {
        pl_json_text_whole(in->json, "rows", parquet.rows);
        pl_json_text_whole(in->json, "row_groups", parquet.group_count);
        pl_json_text_string(in->json, "string_columns", parquet.string_columns);
    } else if (!status) {
        pl_term_print("%s: parquet, %s rows in %s row groups\n"
                      "  string columns: %s\n",
                      path, pl_units_count(parquet.rows).text,
                      pl_units_count(parquet.group_count).text,
                      parquet.string_columns);
    }
    if (!status)
        pl_parquet_close(&parquet);
    pl_unpack_close(&unpack);
    return status;
}

/* What all documents of a file are together. */
typedef struct tally {
    pl_source_format format;
    uint64_t documents, bytes;
    int is_text; /* no piece has a byte that isn't UTF-8 */
    char first[SHOWN_BYTES];
    size_t first_bytes;
} tally;

static pl_status read_source(tally *t, const char *path, const char *field,
                             pl_error *err)
{
    pl_source *source;
    pl_fragment piece;
    pl_cli_pace pace = pl_cli_pace_begin();
    pl_source_options options = { .paths = &path,
                                  .path_count = 1,
                                  .field = field,
                                  .memory_bytes = SOURCE_BYTES };
    *t = (tally){ .format = PL_SOURCE_TEXT, .is_text = 1 };
    pl_status status = pl_source_open(&source, &options, err);
    if (status)
        return status;
    for (;;) {
        status = pl_source_next(source, &piece, err);
        if (status || piece.part == PL_FRAGMENT_NONE)
            break;
        if (t->bytes == 0) {
            t->first_bytes = piece.bytes < SHOWN_BYTES ? piece.bytes
                                                       : SHOWN_BYTES;
            memcpy(t->first, piece.text, t->first_bytes);
        }
        t->is_text = t->is_text && pl_utf8_is_valid(piece.text, piece.bytes);
        t->documents += pl_fragment_begins(piece.part) ? 1 : 0;
        t->bytes += piece.bytes;
        if (pl_cli_pace_is_due(&pace))
            pl_term_progress("reading %s of text, %s documents",
                             pl_units_bytes(t->bytes).text,
                             pl_units_count(t->documents).text);
    }
    pl_term_clear();
    if (t->documents)
        t->format = pl_source_last_format(source);
    pl_source_close(source);
    return status;
}

pl_status pl_inspect_source(const pl_inspect *in, const char *path,
                            pl_error *err)
{
    static const char *const formats[] = { "", "text", "JSON lines",
                                           "parquet" };
    tally t;
    pl_status status = read_source(&t, path, in->config->field, err);
    if (status)
        return status;
    const char *format = t.is_text ? formats[t.format] : "not UTF-8 text";
    const char *begins = shown(in, t.first,
                               pl_utf8_whole_bytes(t.first, t.first_bytes));
    pl_inspect_begin(in, path, "text");
    if (t.format == PL_SOURCE_PARQUET)
        status = show_parquet(in, path, err);
    if (status)
        return status;
    if (in->json) {
        pl_json_text_string(in->json, "format", format);
        pl_json_text_whole(in->json, "documents", t.documents);
        pl_json_text_whole(in->json, "bytes", t.bytes);
        pl_json_text_string(in->json, "begins", begins);
        pl_json_text_close(in->json, '}');
        return PL_OK;
    }
    pl_term_print("%s: %s, %s document%s, %s bytes%s\n", path, format,
                  pl_units_count(t.documents).text, t.documents == 1 ? "" : "s",
                  pl_units_count(t.bytes).text, t.is_text ? " of text" : "");
    if (t.bytes > 0)
        pl_term_print("  begins: %s\n", begins);
    return PL_OK;
}
