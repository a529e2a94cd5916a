/* metrics_thin.c: see metrics_thin.h. */
#include "store/metrics_thin.h"
#include "base/check.h"

#include <ctype.h>
#include <string.h>

void pl_thin_begin(pl_thin *thin)
{
    *thin = (pl_thin){ .used = 0 };
    memset(thin->chain.text, '0', PL_HASH_TEXT_BYTES - 1);
}

pl_status pl_thin_make(pl_thin *thin, pl_heap *heap, pl_error *err)
{
    pl_thin_begin(thin);
    return pl_heap_take(heap, &thin->text, PL_THIN_BYTES, 1, err);
}

/* ---- lines ---- */

static int begins(const char *text, size_t bytes, const char *with)
{
    size_t want = strlen(with);
    return bytes >= want && memcmp(text, with, want) == 0;
}

int pl_thin_read_line(const char *text, size_t bytes, pl_thin_line *line)
{
    static const char head[] = "{\"step\": ";
    enum { MOST_DIGITS = 19 };
    size_t at = sizeof head - 1, digits = 0;
    if (!begins(text, bytes, head) || text[bytes - 1] != '\n')
        return 0;
    line->step = 0;
    while (digits <= MOST_DIGITS && isdigit((unsigned char)text[at])) {
        line->step = 10 * line->step + (uint64_t)(text[at++] - '0');
        digits++;
    }
    if (digits == 0 || digits > MOST_DIGITS)
        return 0;
    if (begins(text + at, bytes - at, ", \"loss\": "))
        line->kind = PL_THIN_UPDATE;
    else if (begins(text + at, bytes - at, ", \"train_loss\": "))
        line->kind = PL_THIN_EVAL;
    else
        return 0;
    return 1;
}

int pl_thin_is_before(const pl_thin_line *a, const pl_thin_line *b)
{
    return a->step != b->step ? a->step < b->step : a->kind < b->kind;
}

size_t pl_thin_drop_time(char *text, size_t bytes)
{
    static const char time[] = ", \"step_ms\"";
    char *cut = memmem(text, bytes, time, sizeof time - 1);
    if (!cut)
        return bytes;
    memcpy(cut, "}\n", 2);
    return (size_t)(cut - text) + 2;
}

void pl_thin_chain(pl_hash_text *chain, const char *text, size_t bytes)
{
    pl_hash hash;
    pl_hash_begin(&hash);
    pl_hash_add(&hash, chain->text, PL_HASH_TEXT_BYTES - 1);
    pl_hash_add(&hash, text, bytes);
    *chain = pl_hash_end(&hash);
}

/* ---- thinning ---- */

/* Every 2^shift-th of `count` is kept. */
static unsigned shift_of(uint64_t count)
{
    unsigned shift = 0;
    while (count > (uint64_t)PL_THIN_MOST_LINES << shift)
        shift++;
    return shift;
}

static int is_multiple(uint64_t number, unsigned shift)
{
    return (number & (((uint64_t)1 << shift) - 1)) == 0;
}

/* Drops what one more line of a kind makes superfluous: the evaluations that
 * are there are those whose number is a multiple of 2^had_evals. */
static void drop_superfluous(pl_thin *thin, unsigned had_evals)
{
    const unsigned updates = shift_of(thin->updates);
    const unsigned evals = shift_of(thin->evals);
    size_t used = 0;
    uint64_t eval = 0;
    for (size_t at = 0; at < thin->used;) {
        const char *from = thin->text + at;
        const char *end = memchr(from, '\n', thin->used - at);
        size_t bytes = (size_t)(end + 1 - from);
        pl_thin_line line;
        int keep = pl_thin_read_line(from, bytes, &line);
        if (keep && line.kind == PL_THIN_UPDATE)
            keep = is_multiple(line.step, updates);
        else if (keep)
            keep = is_multiple(eval++ << had_evals, evals);
        if (keep) {
            memmove(thin->text + used, from, bytes);
            used += bytes;
        }
        at += bytes;
    }
    thin->used = used;
}

void pl_thin_add(pl_thin *thin, const char *text, size_t bytes)
{
    const unsigned had_updates = shift_of(thin->updates),
                   had_evals = shift_of(thin->evals);
    pl_thin_line line;
    PL_CHECK(bytes <= PL_THIN_LINE_BYTES &&
             pl_thin_read_line(text, bytes, &line));
    pl_thin_chain(&thin->chain, text, bytes);
    thin->lines++;
    if (line.kind == PL_THIN_UPDATE)
        thin->updates = line.step + 1;
    else
        thin->evals++;
    if (shift_of(thin->updates) != had_updates ||
        shift_of(thin->evals) != had_evals)
        drop_superfluous(thin, had_evals);
    if (line.kind == PL_THIN_UPDATE
            ? !is_multiple(line.step, shift_of(thin->updates))
            : !is_multiple(thin->evals - 1, shift_of(thin->evals)))
        return;
    PL_CHECK(thin->used + bytes <= PL_THIN_BYTES);
    memcpy(thin->text + thin->used, text, bytes);
    thin->used += bytes;
}

void pl_thin_resume(pl_thin *thin, uint64_t updates, uint64_t evals,
                    uint64_t lines, const pl_hash_text *chain)
{
    thin->used = 0;
    thin->updates = updates;
    thin->evals = evals;
    thin->lines = lines;
    thin->chain = *chain;
}

int pl_thin_put_back(pl_thin *thin, const char *text, size_t bytes)
{
    pl_thin_line line;
    if (bytes > PL_THIN_BYTES - thin->used || bytes > PL_THIN_LINE_BYTES ||
        !pl_thin_read_line(text, bytes, &line) ||
        (line.kind == PL_THIN_UPDATE &&
         !is_multiple(line.step, shift_of(thin->updates))))
        return 0;
    memcpy(thin->text + thin->used, text, bytes);
    thin->used += bytes;
    return 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t pl_thin_most_bytes(uint64_t updates, uint64_t evals)
{
    return PL_THIN_LINE_BYTES * (least(updates, PL_THIN_MOST_LINES) +
                                 least(evals, PL_THIN_MOST_LINES));
}
