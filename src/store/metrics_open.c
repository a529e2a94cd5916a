/* metrics_open.c: the metrics of a run that is resumed. What metrics.jsonl has
 * is compared with the checkpoint's copy: it stays where it has every line of
 * that, is completed where it ends too early, and is replaced where it is
 * another's. */
#include "store/metrics.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE_BYTES = 16 * PL_METRICS_LINE_BYTES };

/* ---- the lines of a file ---- */

typedef struct reader {
    pl_file file;
    char piece[PIECE_BYTES];
    size_t used, at; /* of the piece */
    uint64_t offset; /* of its first byte */
} reader;

/* The next line, with its line feed; *line NULL where no whole one is left, or
 * it is too long to be ours. It may be changed in place. */
static pl_status next_line(reader *r, char **line, size_t *bytes, pl_error *err)
{
    *line = NULL;
    char *end = memchr(r->piece + r->at, '\n', r->used - r->at);
    if (!end) {
        uint64_t left;
        memmove(r->piece, r->piece + r->at, r->used - r->at);
        r->used -= r->at;
        r->offset += r->at;
        r->at = 0;
        left = pl_file_size(&r->file) - r->offset - r->used;
        size_t want = sizeof r->piece - r->used;
        if (left < want)
            want = (size_t)left;
        pl_status status = pl_file_pread_exact(&r->file, r->piece + r->used,
                                               want, r->offset + r->used, err);
        if (status)
            return status;
        r->used += want;
        end = memchr(r->piece, '\n', r->used);
    }
    if (!end)
        return PL_OK;
    *line = r->piece + r->at;
    *bytes = (size_t)(end + 1 - *line);
    r->at += *bytes;
    if (*bytes > PL_METRICS_LINE_BYTES)
        *line = NULL;
    return PL_OK;
}

static int is_past(const pl_metrics_past *past, const pl_thin_line *line)
{
    return line->step < past->step ||
           (line->step == past->step && past->evaluated &&
            line->kind == PL_THIN_EVAL);
}

/* ---- the copy ---- */

/* The first versions copied every line, and had no hash of them. */
static int is_thinned(const pl_metrics_past *past)
{
    return past->chain.text[0] != '\0';
}

/* Takes one line of the copy over. `whole`: it is a copy of every line. */
static int take_line(pl_thin *thin, const char *text, size_t bytes, int whole,
                     const pl_thin_line *line, uint64_t *evals)
{
    *evals += line->kind == PL_THIN_EVAL;
    if (whole)
        pl_thin_add(thin, text, bytes);
    else
        return *evals <= PL_THIN_MOST_LINES &&
               pl_thin_put_back(thin, text, bytes);
    return 1;
}

static pl_status read_copy(reader *r, pl_thin *thin,
                           const pl_metrics_past *past, pl_error *err)
{
    const int whole = !is_thinned(past);
    pl_thin_line last = { 0 }, line;
    uint64_t evals = 0;
    for (uint64_t number = 1;; number++, last = line) {
        char *text;
        size_t bytes;
        pl_status status = next_line(r, &text, &bytes, err);
        if (status || (!text && r->offset + r->at == pl_file_size(&r->file)))
            return status;
        if (!text || bytes > PL_THIN_LINE_BYTES ||
            !pl_thin_read_line(text, bytes, &line) || !is_past(past, &line) ||
            (number > 1 && !pl_thin_is_before(&last, &line)) ||
            !take_line(thin, text, bytes, whole, &line, &evals))
            return pl_fail(err, PL_E_FORMAT,
                           "%s: line %" PRIu64 " is none that can stand there: "
                           "the file was changed. To go on from the checkpoint "
                           "before, move this one away",
                           r->file.path, number);
    }
}

pl_status pl_metrics_open_thin(pl_metrics *metrics, const char *folder,
                               const pl_metrics_past *past, pl_heap *heap,
                               pl_error *err)
{
    char path[PL_PATH_BYTES];
    reader r = { .file = PL_FILE_CLOSED };
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = pl_thin_make(&metrics->thin, heap, err);
    if (status || !past)
        return status;
    if (is_thinned(past))
        pl_thin_resume(&metrics->thin, past->step, past->evals, past->lines,
                       &past->chain);
    status = pl_path_join(path, folder, PL_METRICS_NAME, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status || kind == PL_FILE_ABSENT) /* it had no lines */
        return status;
    status = pl_file_open_read(&r.file, path, err);
    if (!status)
        status = read_copy(&r, &metrics->thin, past, err);
    pl_file_abandon(&r.file);
    return status;
}

/* ---- metrics.jsonl ---- */

/* What metrics.jsonl has of the past. */
typedef struct found {
    uint64_t lines, bytes; /* from its beginning, in order */
    pl_hash_text chain;    /* of them */
    size_t copied;         /* so much of the copy is among them */
    int is_other;          /* a line of the copy is missing between them */
} found;

/* Whether a line, without its time, goes on with what was found. */
static int goes_on(found *f, const pl_thin *thin, const char *text,
                   size_t bytes, const pl_thin_line *line)
{
    const char *copy = thin->text + f->copied;
    const char *end = memchr(copy, '\n', thin->used - f->copied);
    pl_thin_line next;
    if (!end)
        return 1;
    size_t want = (size_t)(end + 1 - copy);
    if (want == bytes && memcmp(copy, text, bytes) == 0)
        f->copied += bytes;
    else if (!pl_thin_read_line(copy, want, &next) ||
             !pl_thin_is_before(line, &next))
        f->is_other = 1;
    return !f->is_other;
}

static pl_status look_at_lines(reader *r, const pl_thin *thin,
                               const pl_metrics_past *past, found *f,
                               pl_error *err)
{
    pl_thin_line last = { 0 }, line;
    pl_thin empty;
    pl_thin_begin(&empty);
    *f = (found){ .chain = empty.chain };
    for (;; last = line) {
        char *text;
        size_t bytes, timeless;
        pl_status status = next_line(r, &text, &bytes, err);
        if (status || !text || !pl_thin_read_line(text, bytes, &line) ||
            !is_past(past, &line) ||
            (f->lines > 0 && !pl_thin_is_before(&last, &line)))
            return status;
        timeless = pl_thin_drop_time(text, bytes);
        if (!goes_on(f, thin, text, timeless, &line))
            return PL_OK;
        pl_thin_chain(&f->chain, text, timeless);
        f->lines++;
        f->bytes += bytes;
    }
}

static pl_status look(const pl_metrics *metrics, const char *path,
                      const pl_metrics_past *past, found *f, pl_error *err)
{
    reader r = { .file = PL_FILE_CLOSED };
    pl_status status = pl_file_open_read(&r.file, path, err);
    if (!status)
        status = look_at_lines(&r, &metrics->thin, past, f, err);
    pl_file_abandon(&r.file);
    if (f->is_other) /* all of it comes from the copy */
        *f = (found){ .is_other = 1 };
    return status;
}

/* Appends what the copy has behind what was found. Killed meanwhile, the file
 * ends too early and the next start goes on with it. */
static pl_status complete(pl_metrics *metrics, const found *f, pl_error *err)
{
    const pl_thin *thin = &metrics->thin;
    metrics->good_bytes = f->bytes + thin->used - f->copied;
    return pl_file_append(&metrics->file, thin->text + f->copied,
                          thin->used - f->copied, err);
}

static void say(const pl_metrics *metrics, const pl_metrics_past *past,
                const found *f, const char *path)
{
    const pl_thin *thin = &metrics->thin;
    uint64_t added = 0;
    for (size_t at = f->copied; at < thin->used; at++)
        added += thin->text[at] == '\n';
    if (f->lines == thin->lines &&
        memcmp(f->chain.text, thin->chain.text, PL_HASH_TEXT_BYTES) == 0)
        return;
    pl_log_say(metrics->log, PL_LOG_NOTE,
               "%s %s the %" PRIu64 " lines up to iteration %" PRIu64
               ": it has %" PRIu64 " now%s",
               path, f->is_other ? "was not the file with" : "had not all of",
               thin->lines, past->step, f->lines + added,
               added ? ", completed from the checkpoint's copy, which is "
                       "thinned out in a long run"
                     : "");
}

pl_status pl_metrics_open_lines(pl_metrics *metrics, const char *path,
                                const pl_metrics_past *past, pl_error *err)
{
    found f = { .lines = 0 };
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = PL_OK;
    if (past)
        status = pl_file_look(path, &kind, err);
    if (!status && kind != PL_FILE_ABSENT)
        status = look(metrics, path, past, &f, err);
    if (status)
        return status;
    if (kind == PL_FILE_ABSENT || f.is_other)
        status = pl_file_create(&metrics->file, path, err);
    else
        status = pl_file_open_again(&metrics->file, path, f.bytes, err);
    if (!status)
        status = complete(metrics, &f, err);
    if (!status && past)
        say(metrics, past, &f, path);
    return status;
}
