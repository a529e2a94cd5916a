/* live_files.c: what live.h reads of a run's folder. A file may grow, be cut or
 * go away at any time: what can't be read is not there. */
#include "web/live_parts.h"

#include "store/outdir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which files ---- */

/* A link is no plain file: it could lead anywhere. */
static int is_plain(const char *path, pl_file_kind wanted)
{
    pl_file_kind kind;
    return pl_file_look_at(path, &kind, NULL) == PL_OK && kind == wanted;
}

int pl_live_file(const pl_live_run *run, const char *name, pl_file *file)
{
    char path[PL_PATH_BYTES];
    return pl_path_join(path, run->folder, name, NULL) == PL_OK &&
           is_plain(path, PL_FILE_PLAIN) &&
           pl_file_open_read(file, path, NULL) == PL_OK;
}

int pl_live_saved(const pl_live_run *run, const char *name,
                  char path[PL_PATH_BYTES])
{
    char link[PL_PATH_BYTES], target[PL_PATH_BYTES], folder[PL_PATH_BYTES];
    uint64_t step;
    return pl_path_join(link, run->folder, PL_OUTDIR_LATEST, NULL) == PL_OK &&
           pl_link_read(link, target, NULL) == PL_OK &&
           pl_outdir_step_of(target, &step) &&
           pl_path_join(folder, run->folder, target, NULL) == PL_OK &&
           is_plain(folder, PL_FILE_FOLDER) &&
           pl_path_join(path, folder, name, NULL) == PL_OK &&
           is_plain(path, PL_FILE_PLAIN);
}

long pl_live_read_whole(pl_live *live, const char *path)
{
    size_t bytes;
    if (!is_plain(path, PL_FILE_PLAIN) ||
        pl_file_read_into(path, live->out, PL_LIVE_OUT_BYTES, &bytes, NULL))
        return -1;
    return (long)bytes;
}

/* ---- lines ---- */

enum {
    HEAD_BYTES = 256,                /* of the answer's first line */
    MOST_SCANNED = 16 * 1024 * 1024, /* in one answer: some milliseconds */
};

/* Whether a line of metrics.jsonl is wanted: evaluations always are, and
 * updates that were skipped. */
static int is_wanted(const char *line, size_t bytes, uint64_t every)
{
    static const char begin[] = "{\"step\": ", loss[] = ", \"loss\": ",
                      skipped[] = "\"skipped\": 1";
    char *end;
    if (every <= 1 || bytes < sizeof begin + sizeof loss ||
        memcmp(line, begin, sizeof begin - 1) != 0)
        return 1;
    uint64_t step = strtoull(line + sizeof begin - 1, &end, 10);
    return strncmp(end, loss, sizeof loss - 1) != 0 || step % every == 0 ||
           memmem(line, bytes, skipped, sizeof skipped - 1) != NULL;
}

typedef struct scan {
    pl_live *live;
    const pl_file *file;
    uint64_t size, every;
    uint64_t next; /* the beginning of a line: all before it is done */
    size_t used;   /* of live->out */
    int is_full;
} scan;

/* The lines of the piece in live->in, from `first` on; where they end. */
static size_t take_lines(scan *s, size_t first, size_t bytes)
{
    const char *in = s->live->in;
    size_t at = first;
    while (at < bytes) {
        const char *end = memchr(in + at, '\n', bytes - at);
        if (!end)
            break;
        size_t n = (size_t)(end - (in + at)) + 1;
        if (is_wanted(in + at, n, s->every)) {
            if (n > PL_LIVE_OUT_BYTES - s->used) {
                s->is_full = 1;
                break;
            }
            memcpy(s->live->out + s->used, in + at, n);
            s->used += n;
        }
        at += n;
    }
    return at;
}

/* A line that is longer than any of ours is passed over, as soon as its end is
 * found. */
static void scan_lines(scan *s)
{
    const uint64_t begin = s->next;
    int is_long = 0;
    for (uint64_t at = begin; !s->is_full && at < s->size;) {
        const uint64_t left = s->size - at;
        const size_t n = left < PL_LIVE_IN_BYTES - 1 ? (size_t)left
                                                     : PL_LIVE_IN_BYTES - 1;
        if (at - begin > MOST_SCANNED ||
            pl_file_pread_exact(s->file, s->live->in, n, at, NULL) != PL_OK)
            return;            /* enough, or it was cut meanwhile */
        s->live->in[n] = '\0'; /* where strtoull ends */
        const char *end = is_long ? memchr(s->live->in, '\n', n) : NULL;
        const size_t first = end ? (size_t)(end - s->live->in) + 1 : 0;
        const size_t done = is_long && !end ? 0 : take_lines(s, first, n);
        if (done == 0 && n < PL_LIVE_IN_BYTES - 1)
            return; /* a line that is still being written */
        is_long = done == 0 && !s->is_full;
        at += done ? done : n;
        if (done)
            s->next = at;
    }
}

/* Where to begin: at a line, or at the beginning if it is another file than the
 * one that was asked about. */
static uint64_t find_beginning(const pl_file *file, uint64_t size,
                               const pl_live_lines *wish, char *memory)
{
    uint64_t from = wish->from;
    char before;
    if (wish->tail && wish->tail < size) {
        size_t n = wish->tail < PL_LIVE_IN_BYTES ? (size_t)wish->tail
                                                 : PL_LIVE_IN_BYTES;
        from = size - wish->tail;
        if (pl_file_pread_exact(file, memory, n, from, NULL) != PL_OK)
            return 0;
        const char *end = memchr(memory, '\n', n);
        return end ? from + (uint64_t)(end - memory) + 1 : 0;
    }
    if (wish->tail || from > size || from == 0)
        return 0;
    if (pl_file_pread_exact(file, &before, 1, from - 1, NULL) != PL_OK ||
        before != '\n')
        return 0;
    return from;
}

size_t pl_live_read_lines(pl_live *live, const pl_live_run *run,
                          const pl_live_lines *wish)
{
    char head[HEAD_BYTES + 1];
    pl_file file;
    pl_file_stamp stamp = { 0 };
    scan s = { .live = live, .every = wish->every, .used = HEAD_BYTES };
    uint64_t from = 0;
    if (pl_live_file(run, wish->name, &file)) {
        s.file = &file;
        if (pl_file_stamp_of(&file, &stamp, NULL) == PL_OK) {
            s.size = stamp.size_bytes;
            s.next = from = find_beginning(&file, s.size, wish, live->in);
            scan_lines(&s);
        }
        pl_file_abandon(&file);
    }
    int n = snprintf(head, sizeof head,
                     "{\"file\": \"%" PRIu64 ".%" PRIu64
                     "\", \"from\": %" PRIu64 ", \"next\": %" PRIu64
                     ", \"bytes\": %" PRIu64 "}",
                     stamp.device, stamp.inode, from, s.next, s.size);
    memset(live->out, ' ', HEAD_BYTES);
    memcpy(live->out, head, (size_t)n);
    live->out[HEAD_BYTES - 1] = '\n';
    return s.used;
}
