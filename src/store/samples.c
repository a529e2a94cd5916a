/* samples.c: see samples.h. */
#include "store/samples.h"
#include "base/utf8.h"
#include "config/special.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- sizes ---- */

enum {
    FRAME_BYTES = 128,    /* of a line: all but its two texts */
    BYTES_PER_TOKEN = 16, /* of a text, escaped: more is cut off */
    ESCAPED_BYTES = 6,    /* "\u001b", the widest */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

size_t pl_samples_due(const pl_config *config, uint64_t step)
{
    const uint64_t interval = (uint64_t)config->sample_interval;
    if (interval == 0 || step == 0 || step % interval != 0)
        return 0;
    return config->sample_prompts.count;
}

static uint64_t text_room(const pl_config *config)
{
    return (uint64_t)BYTES_PER_TOKEN * (uint64_t)config->max_new_tokens;
}

size_t pl_samples_text_bytes(const pl_config *config)
{
    return (size_t)least(text_room(config), PL_SAMPLES_TEXT_BYTES);
}

size_t pl_samples_line_bytes(const pl_config *config, size_t prompt_bytes)
{
    return (size_t)least(FRAME_BYTES + ESCAPED_BYTES * prompt_bytes +
                             text_room(config),
                         PL_SAMPLES_LINE_BYTES);
}

pl_samples_most pl_samples_most_bytes(const pl_config *config)
{
    const pl_texts *prompts = &config->sample_prompts;
    pl_samples_most most = { 0 };
    if (config->sample_interval == 0)
        return most;
    const uint64_t times = (uint64_t)config->max_iters /
                           (uint64_t)config->sample_interval;
    for (size_t i = 0; i < prompts->count; i++) {
        const size_t bytes = pl_config_prompt_file(config, i)
                                 ? PL_SAMPLES_PROMPT_BYTES
                                 : strlen(pl_texts_at(prompts, i));
        most.bytes += times * pl_samples_line_bytes(config, bytes);
        most.lines += times;
    }
    return most;
}

/* ---- a line ---- */

typedef struct line {
    char *text; /* PL_SAMPLES_LINE_BYTES */
    size_t used, most;
    int cut;
} line;

/* Never a part of it. */
static void put(line *l, const char *text, size_t bytes)
{
    if (l->cut || bytes > l->most - l->used) {
        l->cut = 1;
        return;
    }
    memcpy(l->text + l->used, text, bytes);
    l->used += bytes;
}

static void put_code(line *l, uint32_t code, const char *as, size_t bytes)
{
    static const char short_for[] = "\"\"\\\\\nn\tt\rr";
    char text[ESCAPED_BYTES + 1];
    for (size_t i = 0; i + 1 < sizeof short_for; i += 2)
        if (code == (unsigned char)short_for[i]) {
            const char pair[2] = { '\\', short_for[i + 1] };
            put(l, pair, 2);
            return;
        }
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) {
        snprintf(text, sizeof text, "\\u%04" PRIx32, code);
        put(l, text, ESCAPED_BYTES);
    } else {
        put(l, as, bytes);
    }
}

static void put_string(line *l, const char *text, size_t bytes)
{
    static const char replacement[] = "\xef\xbf\xbd";
    put(l, "\"", 1);
    for (size_t at = 0; at < bytes && !l->cut;) {
        uint32_t code;
        int length = pl_utf8_decode(text + at, bytes - at, &code);
        if (length > 0)
            put_code(l, code, text + at, (size_t)length);
        else
            put(l, replacement, sizeof replacement - 1);
        at += length > 0 ? (size_t)length : 1;
    }
}

/* The ends of both strings have their place in FRAME_BYTES. */
static size_t write_line(char *text, const pl_sample_event *e)
{
    line l = { .text = text, .most = e->line_bytes - FRAME_BYTES };
    int cut = e->is_cut;
    l.used = (size_t)snprintf(text, FRAME_BYTES,
                              "{\"step\": %" PRIu64 ", \"prompt\": ", e->step);
    l.most += l.used;
    put_string(&l, e->prompt, e->prompt_bytes);
    cut |= l.cut;
    l.cut = 0;
    l.most += sizeof "\", \"text\": " - 1;
    put(&l, "\", \"text\": ", sizeof "\", \"text\": " - 1);
    put_string(&l, e->text, e->text_bytes);
    cut |= l.cut;
    l.used += (size_t)snprintf(text + l.used, 32, "\"%s}\n",
                               cut ? ", \"cut\": true" : "");
    return l.used;
}

/* ---- the file ---- */

static void complain(pl_samples *samples, const pl_error *trouble)
{
    if (!samples->in_trouble)
        pl_log_say(samples->log, PL_LOG_WARN,
                   "%s The run goes on; texts are missing in %s until that "
                   "works again",
                   trouble->text, PL_SAMPLES_NAME);
    samples->in_trouble = 1;
}

static pl_status append(pl_samples *samples, const char *out_dir,
                        const char *text, size_t bytes, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = PL_OK;
    if (samples->file.fd < 0) {
        samples->good_bytes = 0;
        status = pl_path_join(path, out_dir, PL_SAMPLES_NAME, err);
        if (!status)
            status = pl_file_create(&samples->file, path, err);
    } else if (pl_file_size(&samples->file) != samples->good_bytes) {
        status = pl_file_cut(&samples->file, samples->good_bytes, err);
    }
    if (!status)
        status = pl_file_append(&samples->file, text, bytes, err);
    if (!status)
        samples->good_bytes += bytes;
    return status;
}

void pl_samples_add(pl_samples *samples, const char *out_dir,
                    const pl_sample_event *event, char *text)
{
    pl_error trouble = { 0 };
    const size_t bytes = write_line(text, event);
    if (append(samples, out_dir, text, bytes, &trouble))
        complain(samples, &trouble);
    else
        samples->in_trouble = 0;
    if (event->index + 1 == event->count)
        samples->step = event->step;
}

void pl_samples_close(pl_samples *samples)
{
    pl_file_abandon(&samples->file);
}

void pl_samples_sync(pl_samples *samples)
{
    pl_error trouble = { 0 };
    if (samples->file.fd >= 0 && pl_file_sync(&samples->file, &trouble))
        complain(samples, &trouble);
}

void pl_samples_follow(pl_samples *samples, const char *out_dir)
{
    char path[PL_PATH_BYTES];
    pl_error trouble = { 0 };
    int there = 0;
    if (samples->file.fd < 0)
        return;
    pl_status status = pl_path_join(path, out_dir, PL_SAMPLES_NAME, &trouble);
    if (!status)
        status = pl_file_is_at(&samples->file, path, &there, &trouble);
    if (!status && there)
        status = pl_path_add(samples->file.path, path, "", &trouble);
    else if (!status)
        pl_file_abandon(&samples->file);
    if (status)
        complain(samples, &trouble);
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

pl_status pl_samples_open(pl_samples *samples, const char *out_dir,
                          uint64_t step, size_t lines, const pl_log *log,
                          pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file file = PL_FILE_CLOSED;
    pl_file_kind kind = PL_FILE_ABSENT;
    found f = { .bytes = 0 };
    *samples = (pl_samples)PL_SAMPLES_CLOSED;
    samples->log = log;
    pl_status status = pl_path_join(path, out_dir, PL_SAMPLES_NAME, err);
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
    if (f.lines > 0 && f.lines >= lines) {
        f.bytes = f.all;
        samples->step = step;
    }
    samples->good_bytes = f.bytes;
    return pl_file_open_again(&samples->file, path, f.bytes, err);
}
