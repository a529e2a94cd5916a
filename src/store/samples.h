/* samples.h: the texts that a training writes on its way, in
 * out_dir/samples.jsonl: a line for each, those of one step together.
 *
 *   {"step": 500, "prompt": "Once", "text": " upon a time"}
 *
 * Valid JSON whatever a model writes: bytes that aren't UTF-8 become U+FFFD,
 * and a line that would be too long ends with "cut": true. The file is as
 * step_lines.h says. */
#ifndef PL_STORE_SAMPLES_H
#define PL_STORE_SAMPLES_H

#include "config/config.h"
#include "store/events.h"
#include "store/step_lines.h"

#define PL_SAMPLES_NAME "samples.jsonl"

enum {
    PL_SAMPLES_MOST_PROMPTS = 32,
    PL_SAMPLES_PROMPT_BYTES = 8 * 1024, /* of each at most */
    PL_SAMPLES_MOST_TOKENS = 65536,     /* of max_new_tokens, in a training */
    PL_SAMPLES_LINE_BYTES = 64 * 1024,
    PL_SAMPLES_TEXT_BYTES = 32 * 1024,
};

typedef pl_step_lines pl_samples;

#define PL_SAMPLES_CLOSED PL_STEP_LINES_CLOSED

/* Opens it for a run that goes on at `step`, which has `lines` of them. */
PL_MUST_CHECK pl_status pl_samples_open(pl_samples *samples,
                                        const char *out_dir, uint64_t step,
                                        size_t lines, const pl_log *log,
                                        pl_error *err);

/* Appends one; the line is made in `line`, PL_SAMPLES_LINE_BYTES. */
void pl_samples_add(pl_samples *samples, const char *out_dir,
                    const pl_sample_event *event, char *line);

/* Whether this config's run writes texts at `step`, and how many. */
size_t pl_samples_due(const pl_config *config, uint64_t step);

/* The most bytes of the text of a sample, before it is written as JSON. */
size_t pl_samples_text_bytes(const pl_config *config);

/* The most bytes of the line that a prompt of so many bytes leads to. */
size_t pl_samples_line_bytes(const pl_config *config, size_t prompt_bytes);

/* How large the file can be at the end of a run, and how many lines it has. */
typedef struct pl_samples_most {
    uint64_t bytes, lines;
} pl_samples_most;
pl_samples_most pl_samples_most_bytes(const pl_config *config);

#endif
