/* step_lines.c: see step_lines.h. */
#include "store/step_lines.h"

#include <inttypes.h>
#include <string.h>

static void complain(pl_step_lines *lines, const char *name,
                     const pl_error *trouble)
{
    if (!lines->in_trouble)
        pl_log_say(lines->log, PL_LOG_WARN,
                   "%s. The run goes on; lines are missing in %s until that "
                   "works again",
                   trouble->text, name);
    lines->in_trouble = 1;
}

static pl_status append(pl_step_lines *lines, const char *out_dir,
                        const char *name, const char *text, size_t bytes,
                        pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = PL_OK;
    if (lines->file.fd < 0) {
        lines->good_bytes = 0;
        status = pl_path_join(path, out_dir, name, err);
        if (!status)
            status = pl_file_create(&lines->file, path, err);
    } else if (pl_file_size(&lines->file) != lines->good_bytes) {
        status = pl_file_resize(&lines->file, lines->good_bytes, err);
    }
    if (!status)
        status = pl_file_append(&lines->file, text, bytes, err);
    if (!status)
        lines->good_bytes += bytes;
    return status;
}

void pl_step_lines_add(pl_step_lines *lines, const char *out_dir,
                       const char *name, const char *text, size_t bytes)
{
    pl_error trouble = { 0 };
    if (append(lines, out_dir, name, text, bytes, &trouble))
        complain(lines, name, &trouble);
    else
        lines->in_trouble = 0;
}

void pl_step_lines_close(pl_step_lines *lines)
{
    pl_file_abandon(&lines->file);
}

void pl_step_lines_sync(pl_step_lines *lines, const char *name)
{
    pl_error trouble = { 0 };
    if (lines->file.fd >= 0 && pl_file_sync(&lines->file, &trouble))
        complain(lines, name, &trouble);
}

void pl_step_lines_follow(pl_step_lines *lines, const char *out_dir,
                          const char *name)
{
    char path[PL_PATH_BYTES];
    pl_error trouble = { 0 };
    int there = 0;
    if (lines->file.fd < 0)
        return;
    pl_status status = pl_path_join(path, out_dir, name, &trouble);
    if (!status)
        status = pl_file_is_at(&lines->file, path, &there, &trouble);
    if (!status && there)
        status = pl_path_add(lines->file.path, path, "", &trouble);
    else if (!status)
        pl_file_abandon(&lines->file);
    if (status)
        complain(lines, name, &trouble);
}

/* ---- going on ---- */

enum { PIECE_BYTES = 4096, HEAD_BYTES = 32 };

/* What was found so far, from the beginning of the file. */
typedef struct found {
    uint64_t bytes;  /* whole lines before the step */
    uint64_t all;    /* and with those of the step */
    size_t lines;    /* of the step */
    uint64_t before; /* the step of the line before */
    char head[HEAD_BYTES];
    size_t used;   /* of the head */
    uint64_t line; /* bytes of the line so far */
} found;

/* The step of a line that begins like ours. */
static int read_head(const found *f, uint64_t *step)
{
    static const char head[] = "{\"step\": ";
    size_t at = sizeof head - 1;
    *step = 0;
    if (f->used < HEAD_BYTES || memcmp(f->head, head, at) != 0)
        return 0;
    for (; at < HEAD_BYTES && f->head[at] >= '0' && f->head[at] <= '9'; at++)
        *step = 10 * *step + (uint64_t)(f->head[at] - '0');
    return at > sizeof head - 1 && at < HEAD_BYTES && f->head[at] == ',';
}

/* 0: this line is behind the step, or none of ours. */
static int take_line(found *f, uint64_t step)
{
    uint64_t own;
    if (!read_head(f, &own) || own < f->before || own > step)
        return 0;
    f->all += f->line;
    if (own < step)
        f->bytes = f->all;
    else
        f->lines++;
    f->before = own;
    f->used = 0;
    f->line = 0;
    return 1;
}

static pl_status look(pl_file *file, uint64_t step, found *f, pl_error *err)
{
    char piece[PIECE_BYTES];
    size_t bytes;
    for (;;) {
        pl_status status = pl_file_read_some(file, piece, sizeof piece, &bytes,
                                             err);
        if (status || bytes == 0)
            return status;
        for (size_t i = 0; i < bytes; i++) {
            f->line++;
            if (f->used < HEAD_BYTES)
                f->head[f->used++] = piece[i];
            if (piece[i] == '\n' && !take_line(f, step))
                return PL_OK;
        }
    }
}

pl_status pl_step_lines_open(pl_step_lines *lines, const char *out_dir,
                             const char *name, uint64_t step, size_t count,
                             const pl_log *log, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file file = PL_FILE_CLOSED;
    pl_file_kind kind = PL_FILE_ABSENT;
    found f = { .bytes = 0 };
    *lines = (pl_step_lines)PL_STEP_LINES_CLOSED;
    lines->log = log;
    pl_status status = pl_path_join(path, out_dir, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status || kind == PL_FILE_ABSENT)
        return status;
    status = pl_file_open_read(&file, path, err);
    if (!status)
        status = look(&file, step, &f, err);
    pl_file_abandon(&file);
    if (status)
        return status;
    if (f.lines > 0 && f.lines >= count) {
        f.bytes = f.all;
        lines->step = step;
    }
    lines->good_bytes = f.bytes;
    return pl_file_open_again(&lines->file, path, f.bytes, err);
}
