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
    const int64_t interval = config->sample_interval;
    if (interval == 0 || step == 0 || !pl_config_is_due(config, interval, step))
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

void pl_samples_add(pl_samples *samples, const char *out_dir,
                    const pl_sample_event *event, char *text)
{
    const size_t bytes = write_line(text, event);
    pl_step_lines_add(samples, out_dir, PL_SAMPLES_NAME, text, bytes);
    if (event->index + 1 == event->count)
        samples->step = event->step;
}

pl_status pl_samples_open(pl_samples *samples, const char *out_dir,
                          uint64_t step, size_t lines, const pl_log *log,
                          pl_error *err)
{
    return pl_step_lines_open(samples, out_dir, PL_SAMPLES_NAME, step, lines,
                              log, err);
}
