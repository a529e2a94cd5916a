/* prepare_first.c: see prepare_parts.h. */
#include "data/prepare_parts.h"

#include <stdio.h>
#include <string.h>

pl_status pl_prepare_changed(pl_prepare_job *j)
{
    j->state = (pl_prepare_state){ 0 }; /* no place to go on from */
    return pl_fail(j->err, PL_E_IO,
                   "the text was changed by someone else while it was read. "
                   "Nothing was changed in %s: try again",
                   j->options->folder);
}

pl_status pl_prepare_report(pl_prepare_job *j, uint64_t done_bytes,
                            const pl_crew_tally *tally)
{
    const pl_prepare_options *options = j->options;
    uint64_t passes = options->tokenizer ? 1 : 2;
    pl_prepare_progress progress = {
        .done_bytes = j->first_done + done_bytes,
        .total_bytes = j->from_input ? 0 : passes * j->total_bytes,
        .text_bytes = tally->text_bytes,
        .documents = tally->documents,
        .tokens = j->outs[0].n_tokens + j->outs[1].n_tokens,
        .new_bytes = tally->text_bytes - j->result->resumed_bytes,
    };
    /* A file that grew meanwhile. */
    if (progress.total_bytes && progress.done_bytes > progress.total_bytes)
        progress.done_bytes = progress.total_bytes;
    if (options->progress)
        options->progress(options->context, &progress);
    if (options->wish && options->wish(options->context) == PL_PREPARE_STOP)
        return pl_fail(j->err, PL_E_STOPPED, "stopped");
    return PL_OK;
}

/* ---- the characters ---- */

static size_t count_lines(const char *text, size_t bytes)
{
    size_t lines = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    return lines;
}

static pl_status invalid(const pl_prepare_job *j, const pl_fragment *piece,
                         size_t at, uint64_t lines, uint64_t offset)
{
    char where[PL_SOURCE_WHERE_BYTES];
    pl_source_where(j->source, where);
    /* Of a text file the name alone: the place follows. */
    char *comma = strrchr(where, ',');
    if (comma && pl_source_last_format(j->source) == PL_SOURCE_TEXT)
        *comma = '\0';
    return pl_fail(j->err, PL_E_FORMAT,
                   "%s: line %llu, byte %llu: 0x%02X is not valid UTF-8. Save "
                   "the text as UTF-8, or prepare it with --tokenizer=byte",
                   where,
                   (unsigned long long)lines + count_lines(piece->text, at) + 1,
                   (unsigned long long)offset + at,
                   (unsigned)(unsigned char)piece->text[at]);
}

/* The first pass. */
static pl_status mark_all(pl_prepare_job *j)
{
    pl_crew_tally tally = { 0 };
    uint64_t lines = 0, offset = 0;
    for (;;) {
        pl_fragment piece;
        pl_status status = pl_source_next(j->source, &piece, j->err);
        if (status || piece.part == PL_FRAGMENT_NONE)
            return status;
        if (pl_fragment_begins(piece.part)) {
            lines = offset = 0;
            tally.documents++;
        }
        size_t valid = pl_charset_mark(&j->charset, piece.text, piece.bytes);
        if (valid < piece.bytes)
            return invalid(j, &piece, valid, lines, offset);
        if (pl_source_last_format(j->source) != PL_SOURCE_TEXT)
            (void)pl_charset_mark(&j->charset, "\n", 1);
        lines += count_lines(piece.text, piece.bytes);
        offset += piece.bytes;
        j->seen_bytes += piece.bytes;
        tally.text_bytes = j->seen_bytes;
        status = pl_prepare_report(j, pl_source_done_bytes(j->source), &tally);
        if (status)
            return status;
    }
}

pl_status pl_prepare_vocabulary(pl_prepare_job *j)
{
    if (j->options->tokenizer)
        return PL_OK;
    if (j->from_input)
        return pl_fail(j->err, PL_E_USAGE,
                       "--tokenizer=char reads the text twice, first to find "
                       "its characters, and standard input or a pipe can be "
                       "read once. "
                       "Name a file, or use --tokenizer=byte or a BPE");
    pl_status status = pl_charset_open(&j->charset, &j->scratch, j->err);
    if (!status)
        status = mark_all(j);
    if (status)
        return status;
    if (j->seen_bytes == 0)
        return pl_fail(j->err, PL_E_FORMAT,
                       "the text is empty, there is nothing to prepare");
    j->first_done = j->total_bytes;
    return pl_charset_make(&j->charset, &j->result->tokenizer, j->heap, j->err);
}

/* ---- settings ---- */

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ from[i]) * 0x100000001b3u;
    return hash;
}

uint64_t pl_prepare_settings(const pl_prepare_job *j)
{
    const pl_prepare_options *o = j->options;
    char text[256];
    int bytes = snprintf(
        text, sizeof text, "1 %016llx %d %.17g %d %llu %zu %llu",
        (unsigned long long)pl_source_identity(j->source), (int)o->kind,
        o->val_fraction, (int)o->end_token, (unsigned long long)o->shard_tokens,
        o->source.document_bytes, (unsigned long long)j->seen_bytes);
    uint64_t hash = mix(0xcbf29ce484222325u, text, (size_t)bytes);
    return mix(hash, j->file.text, j->file.bytes);
}
