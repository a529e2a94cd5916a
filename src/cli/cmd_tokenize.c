/* cmd_tokenize.c: a pipe of text to token ids, or back. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/data_cli.h"
#include "cli/term.h"
#include "data/cutter.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

enum { BUFFER_BYTES = 1024 * 1024, LINE_BYTES = 32 };
enum { FLAG_DECODE = 1, FLAG_SPECIAL = 2 };

typedef struct pipe_work {
    pl_tokenizer tokenizer;
    pl_bpe_encoder encoder;
    pl_bpe_specials specials;
    pl_ids_choice ids_are;
    pl_file in;
    const char *name;
    char *buffer; /* BUFFER_BYTES + 1 */
    size_t kept;  /* bytes in it that wait */
    int at_end;
    uint64_t offset; /* of the buffer in the input */
    int32_t *ids;    /* `room` */
    size_t room;     /* for a buffer */
    pl_error *err;
} pipe_work;

/* Fills the buffer behind what is kept. */
static pl_status fill(pipe_work *w)
{
    size_t got = 0, room = BUFFER_BYTES - w->kept;
    pl_status status = pl_file_read_some(&w->in, w->buffer + w->kept, room,
                                         &got, w->err);
    w->kept += got;
    w->at_end = got < room;
    return status;
}

static void drop(pipe_work *w, size_t used)
{
    w->kept -= used;
    w->offset += used;
    memmove(w->buffer, w->buffer + used, w->kept);
}

/* ---- encoding ---- */

static void put_ids(const pipe_work *w, const int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t id = (uint32_t)ids[i];
        unsigned char bytes[4] = { (unsigned char)id, (unsigned char)(id >> 8),
                                   (unsigned char)(id >> 16),
                                   (unsigned char)(id >> 24) };
        if (w->ids_are == PL_IDS_TEXT)
            printf("%lu\n", (unsigned long)id);
        else
            fwrite(bytes, 1, w->ids_are == PL_IDS_UINT16 ? 2 : 4, stdout);
    }
}

static pl_status encode_some(pipe_work *w, size_t bytes)
{
    size_t count;
    pl_status status = PL_OK;
    if (w->tokenizer.kind == PL_TOKENIZER_BPE)
        count = pl_bpe_encode(&w->encoder, w->buffer, bytes, w->specials,
                              w->ids);
    else
        status = pl_tokenizer_encode(&w->tokenizer, w->buffer, bytes, w->name,
                                     w->ids, w->room, &count, w->err);
    if (status && w->offset)
        return pl_fail_in(w->err, status, "behind byte %llu of ",
                          (unsigned long long)w->offset);
    if (!status)
        put_ids(w, w->ids, count);
    return status;
}

static pl_status encode_all(pipe_work *w)
{
    pl_cutter_cuts cuts = {
        .at = w->tokenizer.kind == PL_TOKENIZER_BPE ? PL_CUTTER_AT_WORDS
                                                    : PL_CUTTER_ANYWHERE,
        .splitting = pl_tokenizer_splitting(&w->tokenizer)
    };
    do {
        pl_status status = fill(w);
        if (status)
            return status;
        /* A full buffer's last byte shows what follows the cut. */
        size_t bytes = w->at_end ? w->kept
                                 : pl_cutter_cut(w->buffer, w->kept - 1, cuts);
        if (bytes == 0 && w->kept > 0)
            return pl_fail(w->err, PL_E_UNSUPPORTED,
                           "%s, byte %llu: a word of more than %s, which "
                           "can't be cut; `plimsoll prepare` takes such",
                           w->name, (unsigned long long)w->offset,
                           pl_units_exact(BUFFER_BYTES - 16).text);
        status = encode_some(w, bytes);
        if (status)
            return status;
        drop(w, bytes);
    } while (!w->at_end && !ferror(stdout) && !pl_cli_signal());
    return PL_OK;
}

/* ---- decoding ---- */

static pl_status put_token(pipe_work *w, uint64_t id)
{
    char bytes[PL_TOKENIZER_TOKEN_BYTES];
    size_t count;
    if (id > INT32_MAX)
        return pl_fail(w->err, PL_E_FORMAT,
                       "%s: byte %llu: %llu is no token id", w->name,
                       (unsigned long long)w->offset, (unsigned long long)id);
    pl_status status = pl_tokenizer_decode(&w->tokenizer, (int32_t)id, bytes,
                                           &count, w->err);
    if (status)
        return pl_fail_in(w->err, status, "%s: byte %llu: ", w->name,
                          (unsigned long long)w->offset);
    fwrite(bytes, 1, count, stdout);
    return PL_OK;
}

/* A number and the blank behind it; *used is 0 if it isn't all there. */
static pl_status read_number(pipe_work *w, size_t at, size_t *used)
{
    static const char blanks[] = " \n\r\t,";
    const char *text = w->buffer + at;
    size_t left = w->kept - at, skip = 0, digits = 0;
    uint64_t id = 0;
    while (skip < left && memchr(blanks, text[skip], sizeof blanks - 1))
        skip++;
    while (skip + digits < left && text[skip + digits] >= '0' &&
           text[skip + digits] <= '9' && digits < 11)
        id = 10 * id + (uint64_t)(text[skip + digits++] - '0');
    size_t end = skip + digits;
    *used = skip;
    if (end == left && (digits == 0 || !w->at_end))
        return PL_OK;
    if (digits == 0 || digits > 10 ||
        (end < left && !memchr(blanks, text[end], sizeof blanks - 1)))
        return pl_fail(w->err, PL_E_FORMAT,
                       "%s: byte %llu: token ids are whole numbers with blanks "
                       "between them. Binary ones need --ids=uint16 or uint32",
                       w->name, (unsigned long long)(w->offset + at + skip));
    *used = end;
    return put_token(w, id);
}

static pl_status read_binary(pipe_work *w, size_t at, size_t *used)
{
    const unsigned char *text = (const unsigned char *)w->buffer + at;
    size_t width = w->ids_are == PL_IDS_UINT16 ? 2 : 4;
    uint64_t id = 0;
    *used = 0;
    if (w->kept - at < width)
        return w->at_end && w->kept > at
                   ? pl_fail(w->err, PL_E_FORMAT,
                             "%s ends within a token of %s", w->name,
                             pl_units_exact(width).text)
                   : PL_OK;
    for (size_t i = 0; i < width; i++)
        id |= (uint64_t)text[i] << 8 * i;
    *used = width;
    return put_token(w, id);
}

static pl_status decode_all(pipe_work *w)
{
    do {
        pl_status status = fill(w);
        size_t at = 0, used = 1;
        while (!status && used > 0 && at < w->kept) {
            status = w->ids_are == PL_IDS_TEXT ? read_number(w, at, &used)
                                               : read_binary(w, at, &used);
            at += used;
        }
        if (status)
            return status;
        drop(w, at);
    } while (!w->at_end && !ferror(stdout) && !pl_cli_signal());
    return PL_OK;
}

/* ---- all of it ---- */

static pl_status open_input(pipe_work *w, size_t path_count)
{
    pl_file_kind kind;
    int ready;
    if (path_count == 0)
        return pl_file_open_input(&w->in, w->err);
    pl_status status = pl_file_look(w->name, &kind, w->err);
    if (status)
        return status;
    if (kind != PL_FILE_OTHER)
        return pl_file_open_read(&w->in, w->name, w->err);
    status = pl_file_open_once(&w->in, w->name, w->err);
    return status ? status : pl_file_wait(&w->in, -1, &ready, w->err);
}

static pl_status open_work(pipe_work *w, const pl_cli_args *args, pl_heap *heap)
{
    pl_status status = pl_cli_tokenizer(&w->tokenizer, &args->config, heap,
                                        w->err);
    w->ids_are = args->config.ids;
    if (!status && w->ids_are == PL_IDS_UINT16 &&
        w->tokenizer.vocab_size > 65536)
        status = pl_fail(w->err, PL_E_CONFIG,
                         "a vocabulary of %d doesn't fit 16 bits: --ids=uint32",
                         (int)w->tokenizer.vocab_size);
    if (!status)
        status = pl_heap_take(heap, &w->buffer, BUFFER_BYTES + 1, 1, w->err);
    if (!status)
        w->room = pl_tokenizer_most_ids(&w->tokenizer, BUFFER_BYTES);
    if (!status)
        status = pl_heap_take(heap, &w->ids, w->room, sizeof *w->ids, w->err);
    if (!status && w->tokenizer.kind == PL_TOKENIZER_BPE)
        status = pl_bpe_encoder_open(&w->encoder, w->tokenizer.bpe,
                                     PL_BPE_CACHE_BYTES, heap, w->err);
    if (status)
        return status;
    w->name = args->path_count ? args->paths[0] : "standard input";
    return open_input(w, args->path_count);
}

static pl_status run_tokenize(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pipe_work w = { .err = err,
                    .specials = args->flags & FLAG_SPECIAL
                                    ? PL_BPE_SPECIALS_FOUND
                                    : PL_BPE_SPECIALS_AS_TEXT };
    if (args->path_count > 1)
        return pl_fail(err, PL_E_USAGE, "tokenize takes one file, not %zu",
                       args->path_count);
    if (args->path_count == 1 && strcmp(args->paths[0], "-") == 0)
        args->path_count = 0;
    pl_status status = open_work(&w, args, heap);
    if (status)
        return status;
    status = args->flags & FLAG_DECODE ? decode_all(&w) : encode_all(&w);
    pl_file_abandon(&w.in);
    return status;
}

static const char *const flags[] = { "--decode", "--special", NULL };

const pl_command pl_command_tokenize = {
    .name = "tokenize",
    .arguments = "--tokenizer=PATH [--decode] [FILE]",
    .summary = "a pipe of text to token ids, or back",
    .text = "Reads standard input or a file, writes ids, one on a line, or "
            "binary. Any bytes\ncome back as they were.\n"
            "--decode takes ids and writes text. --special finds special "
            "tokens\n(<|endoftext|>) in the text; otherwise they are text "
            "like any other.\n\n"
            "  plimsoll tokenize --tokenizer=data/bpe <mine.txt | sort -n | "
            "uniq -c\n"
            "  plimsoll tokenize --tokenizer=gpt2 --decode --ids=uint16 "
            "data/owt/val.bin\n",
    .keys = PL_FOR_TOKENIZE,
    .flags = flags,
    .run = run_tokenize,
};
