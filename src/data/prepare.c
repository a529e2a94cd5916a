/* prepare.c: see prepare.h. Owns the passes over the text and the split;
 * stage.h owns how the result comes into the folder. */
#include "data/prepare.h"

#include "base/check.h"
#include "base/file.h"
#include "base/utf8.h"
#include "data/shard.h"
#include "data/stage.h"
#include "text/meta.h"

#include <string.h>

enum {
    IN_BYTES = 256 * 1024,
    OUT_TOKENS = IN_BYTES,
    CODE_POINTS = 0x110000,
};

typedef enum output { TRAIN, VAL, META, OUTPUTS } output;
static const char *const output_names[OUTPUTS] = { "train.bin", "val.bin",
                                                   "meta.json" };

typedef struct job {
    const pl_prepare_options *options;
    pl_prepare_result *result;
    pl_heap *heap;
    pl_error *err;
    char *in;           /* IN_BYTES of text */
    unsigned char *out; /* OUT_TOKENS tokens as they go to the file */
    size_t out_tokens;
    uint16_t *ids; /* char: by code point; in the first pass 1 = it occurs */
    uint64_t tokens, written_tokens, done_bytes, total_bytes;
    pl_stage stage;
} job;

/* Takes whole tokens from `bytes` bytes of text; *used says how many bytes. It
 * stops early only before a character that is cut off or invalid. */
typedef pl_status feed(job *j, const char *text, size_t bytes, size_t *used);

/* ---- the passes ---- */

static pl_status mark_chars(job *j, const char *text, size_t bytes,
                            size_t *used)
{
    size_t at = 0;
    uint32_t code;
    int length;
    while ((length = pl_utf8_decode(text + at, bytes - at, &code)) > 0) {
        j->ids[code] = 1;
        j->tokens++;
        at += (size_t)length;
    }
    *used = at;
    return PL_OK;
}

static pl_status flush(job *j)
{
    output to = j->written_tokens < j->result->train_tokens ? TRAIN : VAL;
    size_t tokens = j->out_tokens;
    j->out_tokens = 0;
    j->written_tokens += tokens;
    return pl_file_append(&j->stage.files[to], j->out,
                          tokens * PL_SHARD_TOKEN_BYTES, j->err);
}

static pl_status put(job *j, unsigned id)
{
    j->out[2 * j->out_tokens] = (unsigned char)(id & 0xFF);
    j->out[2 * j->out_tokens + 1] = (unsigned char)(id >> 8);
    j->out_tokens++;
    int border = j->written_tokens + j->out_tokens == j->result->train_tokens;
    return j->out_tokens == OUT_TOKENS || border ? flush(j) : PL_OK;
}

static pl_status changed(job *j)
{
    return pl_fail(j->err, PL_E_IO,
                   "the text was changed by someone else while it was read. "
                   "Nothing was changed in %s: try again.",
                   j->options->folder);
}

static pl_status encode_chars(job *j, const char *text, size_t bytes,
                              size_t *used)
{
    size_t at = 0;
    uint32_t code;
    int length;
    while ((length = pl_utf8_decode(text + at, bytes - at, &code)) > 0) {
        unsigned id = j->ids[code];
        /* Characters that the first pass didn't see look like id 0. */
        if (j->result->tokenizer.codes[id] != code)
            return changed(j);
        pl_status status = put(j, id);
        if (status)
            return status;
        at += (size_t)length;
    }
    *used = at;
    return PL_OK;
}

static pl_status encode_bytes(job *j, const char *text, size_t bytes,
                              size_t *used)
{
    pl_status status = PL_OK;
    for (size_t i = 0; !status && i < bytes; i++)
        status = put(j, (unsigned char)text[i]);
    *used = bytes;
    return status;
}

static pl_status report(job *j, size_t bytes)
{
    const pl_prepare_options *options = j->options;
    j->done_bytes += bytes;
    if (options->progress)
        options->progress(options->context, j->done_bytes, j->total_bytes);
    if (options->wish && options->wish(options->context) == PL_PREPARE_STOP)
        return pl_fail(j->err, PL_E_STOPPED,
                       "stopped: nothing was changed in %s", options->folder);
    return PL_OK;
}

static size_t count_lines(const char *text, size_t bytes)
{
    size_t lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Gives one file to `take`, a buffer at a time; the beginning of a character
 * at a buffer's end waits for the next. */
static pl_status read_file(job *j, const char *path, feed *take)
{
    pl_file file;
    size_t kept = 0, got, used = 0, line = 1;
    uint64_t offset = 0;
    int at_end;
    uint32_t code;
    pl_status status = pl_file_open_read(&file, path, j->err);
    if (status)
        return status;
    do {
        status = pl_file_read_some(&file, j->in + kept, IN_BYTES - kept, &got,
                                   j->err);
        if (status)
            break;
        at_end = got < IN_BYTES - kept;
        size_t bytes = kept + got;
        status = take(j, j->in, bytes, &used);
        if (status)
            break;
        line += count_lines(j->in, used);
        offset += used;
        kept = bytes - used;
        int cut_off = pl_utf8_decode(j->in + used, kept, &code) ==
                      PL_UTF8_CUT_OFF;
        if (kept > 0 && (at_end || !cut_off)) {
            status = pl_fail(j->err, PL_E_FORMAT,
                             "%s: line %zu, byte %llu: 0x%02X is not valid "
                             "UTF-8. Save the text as UTF-8, or prepare it "
                             "with --tokenizer=byte.",
                             path, line, (unsigned long long)offset,
                             (unsigned)(unsigned char)j->in[used]);
            break;
        }
        memmove(j->in, j->in + used, kept);
        status = report(j, got);
    } while (!status && !at_end);
    pl_file_abandon(&file);
    return status;
}

static pl_status read_files(job *j, feed *take)
{
    pl_status status = PL_OK;
    for (size_t i = 0; !status && i < j->options->path_count; i++)
        status = read_file(j, j->options->paths[i], take);
    return status;
}

/* ---- the steps ---- */

static pl_status check_options(const pl_prepare_options *options, pl_error *err)
{
    PL_CHECK(options->tokenizer != PL_TOKENIZER_NONE);
    if (options->path_count == 0)
        return pl_fail(err, PL_E_USAGE, "no text file was given");
    if (!(options->val_fraction > 0.0 && options->val_fraction < 1.0))
        return pl_fail(err, PL_E_USAGE,
                       "val_fraction is %g; it must lie between 0 and 1",
                       options->val_fraction);
    return PL_OK;
}

/* The size of all files; so what can't be opened is found before the work. */
static pl_status measure(job *j)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->options->path_count; i++) {
        pl_file file;
        pl_status status = pl_file_open_read(&file, j->options->paths[i],
                                             j->err);
        if (status)
            return status;
        bytes += pl_file_size(&file);
        pl_file_abandon(&file);
    }
    if (bytes == 0)
        return pl_fail(j->err, PL_E_FORMAT,
                       "%s%s: the text is empty, there is nothing to prepare",
                       j->options->paths[0],
                       j->options->path_count > 1 ? " and the others" : "");
    j->result->text_bytes = bytes;
    return PL_OK;
}

static pl_status take_buffers(job *j)
{
    int is_char = j->options->tokenizer == PL_TOKENIZER_CHAR;
    pl_status status = pl_heap_take(j->heap, &j->in, IN_BYTES, 1, j->err);
    if (!status)
        status = pl_heap_take(j->heap, &j->out, OUT_TOKENS,
                              PL_SHARD_TOKEN_BYTES, j->err);
    if (!status && is_char)
        status = pl_heap_take(j->heap, &j->ids, CODE_POINTS, sizeof *j->ids,
                              j->err);
    return status;
}

/* After the first pass: the characters that occur, ascending, as nanoGPT's
 * sorted(list(set(data))). */
static pl_status make_vocabulary(job *j)
{
    uint32_t *codes;
    size_t count = 0, i = 0;
    for (uint32_t code = 0; code < CODE_POINTS; code++)
        count += j->ids[code];
    if (count > PL_TOKENIZER_MAX_VOCAB)
        return pl_fail(j->err, PL_E_FORMAT,
                       "the text has %zu different characters; 16-bit tokens "
                       "can tell %d apart. Prepare it with --tokenizer=byte.",
                       count, PL_TOKENIZER_MAX_VOCAB);
    pl_status status = pl_heap_take(j->heap, &codes, count, sizeof *codes,
                                    j->err);
    if (status)
        return status;
    for (uint32_t code = 0; code < CODE_POINTS; code++)
        if (j->ids[code]) {
            j->ids[code] = (uint16_t)i;
            codes[i++] = code;
        }
    return pl_tokenizer_make_char(&j->result->tokenizer, codes, count, j->heap,
                                  j->err);
}

static pl_status find_vocabulary(job *j)
{
    if (j->options->tokenizer == PL_TOKENIZER_BYTE) {
        j->total_bytes = j->result->text_bytes;
        j->tokens = j->result->text_bytes;
        j->result->tokenizer = pl_tokenizer_make_byte();
        return PL_OK;
    }
    j->total_bytes = 2 * j->result->text_bytes;
    pl_status status = read_files(j, mark_chars);
    return status ? status : make_vocabulary(j);
}

static pl_status split(job *j)
{
    /* Python's int(n * 0.9), in the same double arithmetic. */
    double share = 1.0 - j->options->val_fraction;
    uint64_t train = (uint64_t)((double)j->tokens * share);
    if (train == 0 || train >= j->tokens)
        return pl_fail(j->err, PL_E_FORMAT,
                       "the text has %llu tokens: too few to keep a share of "
                       "%g for validation. Give more text.",
                       (unsigned long long)j->tokens, j->options->val_fraction);
    j->result->train_tokens = train;
    j->result->val_tokens = j->tokens - train;
    return PL_OK;
}

static pl_status check_disk(job *j, size_t meta_bytes)
{
    uint64_t free_bytes, need;
    need = j->tokens * PL_SHARD_TOKEN_BYTES + meta_bytes;
    pl_status status = pl_disk_free_bytes(j->options->folder, &free_bytes,
                                          j->err);
    if (!status && free_bytes < need)
        return pl_fail(j->err, PL_E_IO,
                       "%s: the tokens need %llu bytes, its disk has %llu "
                       "left. Free some space or choose another folder.",
                       j->options->folder, (unsigned long long)need,
                       (unsigned long long)free_bytes);
    return status;
}

static pl_status write_all(job *j)
{
    const char *meta;
    size_t meta_bytes;
    int is_char = j->options->tokenizer == PL_TOKENIZER_CHAR;
    pl_status status = pl_meta_write(&j->result->tokenizer, j->heap, &meta,
                                     &meta_bytes, j->err);
    if (!status)
        status = check_disk(j, meta_bytes);
    if (!status)
        status = pl_folder_make(j->options->folder, j->err);
    if (!status)
        status = pl_stage_open(&j->stage, j->options->folder, output_names,
                               OUTPUTS, j->err);
    if (status)
        return status;
    status = read_files(j, is_char ? encode_chars : encode_bytes);
    if (!status)
        status = flush(j);
    if (!status && j->written_tokens != j->tokens)
        status = changed(j);
    if (!status)
        status = pl_file_append(&j->stage.files[META], meta, meta_bytes,
                                j->err);
    if (status)
        goto discard_stage;
    return pl_stage_commit(&j->stage, j->err);

discard_stage:
    pl_stage_discard(&j->stage);
    return status;
}

pl_status pl_prepare(const pl_prepare_options *options, pl_heap *heap,
                     pl_prepare_result *result, pl_error *err)
{
    job j = { .options = options, .result = result, .heap = heap, .err = err };
    pl_status status = check_options(options, err);
    if (!status)
        status = measure(&j);
    if (!status)
        status = take_buffers(&j);
    if (!status)
        status = find_vocabulary(&j);
    if (!status)
        status = split(&j);
    if (!status)
        status = write_all(&j);
    return status;
}
