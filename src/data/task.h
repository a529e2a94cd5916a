/* task.h: questions to a model, read from lines of JSON.
 *
 * A task is a file; each line is an item: some candidates, each a context with
 * a continuation, of which one is right. How a file keeps its items (a form) is
 * found from the keys of its first line, and all others must have the same.
 * Owns the texts; knows no tokens and no model. */
#ifndef PL_DATA_TASK_H
#define PL_DATA_TASK_H

#include "base/arena.h"
#include "base/json.h"

#include <stdint.h>

/* What is compared. */
typedef enum pl_task_kind {
    PL_TASK_CHOICE,   /* one context, several continuations */
    PL_TASK_SCHEMA,   /* several contexts, one continuation */
    PL_TASK_LANGUAGE, /* one of each: does the model continue so? */
} pl_task_kind;

/* The forms: X(id, kind, name, the keys that tell it). llm-foundry's come
 * first, then those of single data sets as lm-eval reads them. */
#define PL_TASK_FORM_TABLE(X)                                                  \
    X(QUERY, CHOICE, "multiple choice", "query", "choices")                    \
    X(OPTIONS, SCHEMA, "schema", "context_options", "continuation")            \
    X(CONTEXT, LANGUAGE, "language model", "context", "continuation")          \
    X(HELLASWAG, CHOICE, "HellaSwag", "endings", "label")                      \
    X(ARC, CHOICE, "ARC", "question", "answerKey")                             \
    X(PIQA, CHOICE, "PIQA", "goal", "sol1")                                    \
    X(WINOGRANDE, SCHEMA, "WinoGrande", "sentence", "option1")                 \
    X(LAMBADA, LANGUAGE, "LAMBADA", "text", "text")

typedef enum pl_task_form {
#define PL_TASK_FORM_ENUM(id, kind, name, first, second) PL_TASK_FORM_##id,
    PL_TASK_FORM_TABLE(PL_TASK_FORM_ENUM)
#undef PL_TASK_FORM_ENUM
        PL_TASK_FORM_COUNT
} pl_task_form;

const char *pl_task_form_name(pl_task_form form);
/* "multiple choice", "schema" or "language model". */
const char *pl_task_kind_name(pl_task_kind kind);

typedef struct pl_task_text {
    const char *text; /* with a zero behind it; may hold others */
    size_t bytes;
} pl_task_text;

enum {
    PL_TASK_MOST_CHOICES = 256,
    PL_TASK_MOST_BYTES = 256 * 1024 * 1024, /* of a file */
    PL_TASK_MOST_FILES = 256,
    PL_TASK_MOST_DEPTH = 8,   /* folders inside that which is named */
    PL_TASK_LABEL_BYTES = 64, /* with the zero */
};

typedef struct pl_task_item {
    size_t line;         /* of its file, from 1 */
    size_t count;        /* of candidates: 1 in a language task */
    size_t gold;         /* the right one */
    pl_task_text *texts; /* [count + 1]: what all share, then their own */
} pl_task_item;

/* The two parts of candidate `at`. */
pl_task_text pl_task_context(pl_task_kind kind, const pl_task_item *item,
                             size_t at);
pl_task_text pl_task_continuation(pl_task_kind kind, const pl_task_item *item,
                                  size_t at);

/* How items are asked. */
typedef struct pl_task_manner {
    size_t shots;         /* items that stand before each, with their answers */
    size_t limit;         /* so many items are asked, the first ones; 0: all */
    pl_task_text between; /* a context and its continuation */
    pl_task_text behind;  /* an item that stands before another */
} pl_task_manner;

typedef struct pl_task {
    const char *path;
    char label[PL_TASK_LABEL_BYTES];
    pl_task_form form;
    pl_task_kind kind;
    pl_task_manner manner;
    double chance;       /* of guessing right; 0 in a language task */
    pl_task_item *items; /* those that are asked come first */
    size_t count;        /* of all that were read */
    size_t asked;
} pl_task;

typedef struct pl_tasks {
    pl_task *tasks;
    size_t count;
} pl_tasks;

/* Reads the files that are named, and those of the folders: what their
 * tasks.json lists, in its order, or all *.jsonl by their names, and likewise
 * of the folders in them, which links don't lead to. All memory that stays is
 * `heap`'s. PL_E_FORMAT says file, line and column. */
PL_MUST_CHECK pl_status pl_tasks_read(pl_tasks *tasks, const char *const *paths,
                                      size_t count,
                                      const pl_task_manner *manner,
                                      pl_heap *heap, pl_error *err);

/* The items that stand before item `at`: the first of the file but for itself.
 * `shot` < manner.shots. */
const pl_task_item *pl_task_shot(const pl_task *task, size_t at, size_t shot);

/* ---- for task.c ---- */

/* Where a line is, for messages. */
typedef struct pl_task_line {
    const char *path, *text;
    size_t bytes, number;
} pl_task_line;

/* One item of such a form from its line. */
PL_MUST_CHECK pl_status pl_task_item_read(pl_task_item *item, pl_task_form form,
                                          const json_t *line,
                                          const pl_task_line *where,
                                          pl_heap *heap, pl_error *err);
/* Which form a line has: the one whose keys it has. */
PL_MUST_CHECK pl_status pl_task_form_of(pl_task_form *form, const json_t *line,
                                        const pl_task_line *where,
                                        pl_error *err);
/* "FILE:LINE:COLUMN: " before a message; the column is that of `key`. */
PL_PRINTF(4, 5)
pl_status pl_task_wrong(const pl_task_line *where, const char *key,
                        pl_error *err, const char *fmt, ...);

#endif
