/* task_item.c: an item from its line, in any of the forms that files have. */
#include "data/task.h"
#include "data/task_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    pl_task_item *item;
    const json_t *line;
    const pl_task_line *where;
    pl_heap *heap;
    pl_error *err;
} reader;

static const struct form {
    const char *name, *keys[2];
} forms[] = {
#define FORM(id, kind, name, first, second) { name, { first, second } },
    PL_TASK_FORM_TABLE(FORM)
#undef FORM
};

const char *pl_task_form_name(pl_task_form form)
{
    return forms[form].name;
}

/* ---- messages ---- */

/* Bytes up to the key's name in the line, and one: 1 where it has none. */
static size_t column_of(const pl_task_line *where, const char *key)
{
    char quoted[64];
    const int bytes = snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = memmem(where->text, where->bytes, quoted, (size_t)bytes);
    return at ? (size_t)(at - where->text) + 1 : 1;
}

pl_status pl_task_wrong(const pl_task_line *where, const char *key,
                        pl_error *err, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return pl_fail(err, PL_E_FORMAT, "%s:%zu:%zu: %s", where->path,
                   where->number, column_of(where, key), text);
}

/* ---- forms ---- */

static int has_form(const json_t *line, pl_task_form form)
{
    return json_object_get(line, forms[form].keys[0]) &&
           json_object_get(line, forms[form].keys[1]);
}

pl_status pl_task_form_of(pl_task_form *form, const json_t *line,
                          const pl_task_line *where, pl_error *err)
{
    int found = -1;
    if (!json_is_object(line))
        return pl_task_wrong(where, "", err,
                             "an item of a task is an object: {...}");
    for (int i = 0; i < PL_TASK_FORM_COUNT; i++) {
        if (!has_form(line, (pl_task_form)i))
            continue;
        if (found >= 0 && i == PL_TASK_FORM_LAMBADA)
            continue; /* others may have a "text" beside their own keys */
        if (found >= 0)
            return pl_task_wrong(where, forms[i].keys[0], err,
                                 "the keys are those of a %s task and of a %s "
                                 "task: it is unclear which is meant. Leave "
                                 "out those of one",
                                 forms[found].name, forms[i].name);
        found = i;
    }
    if (found < 0)
        return pl_task_wrong(
            where, "", err,
            "the keys are those of no task that is known. There are: query, "
            "choices, gold; context, continuation; context_options, "
            "continuation, gold; and HellaSwag's, ARC's, PIQA's, WinoGrande's "
            "and LAMBADA's");
    *form = (pl_task_form)found;
    return PL_OK;
}

/* ---- values ---- */

static pl_status keep(const reader *r, const char *text, size_t bytes,
                      pl_task_text *out)
{
    out->bytes = bytes;
    return pl_heap_text(r->heap, &out->text, text, bytes, r->err);
}

static pl_status want_string(const reader *r, const char *key,
                             const json_t **out)
{
    *out = json_object_get(r->line, key);
    if (json_is_string(*out))
        return PL_OK;
    return pl_task_wrong(r->where, key, r->err,
                         *out ? "\"%s\" must be a text"
                              : "\"%s\" is missing: every line has the keys of "
                                "the first",
                         key);
}

static pl_status want_text(const reader *r, const char *key, pl_task_text *out)
{
    const json_t *value;
    pl_status status = want_string(r, key, &value);
    return status ? status
                  : keep(r, json_string_value(value), json_string_length(value),
                         out);
}

/* Room for the item's texts. */
static pl_status make_texts(const reader *r, size_t count)
{
    r->item->count = count;
    return pl_heap_take(r->heap, &r->item->texts, count + 1,
                        sizeof *r->item->texts, r->err);
}

/* The candidates' own texts from a list. */
static pl_status want_list(const reader *r, const char *key, const json_t *list)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count < 2 || count > PL_TASK_MOST_CHOICES)
        return pl_task_wrong(r->where, key, r->err,
                             "\"%s\" must be a list of 2 to %d texts", key,
                             PL_TASK_MOST_CHOICES);
    pl_status status = make_texts(r, count);
    for (size_t i = 0; i < count && !status; i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_string(value))
            return pl_task_wrong(r->where, key, r->err,
                                 "item %zu of \"%s\" must be a text", i + 1,
                                 key);
        status = keep(r, json_string_value(value), json_string_length(value),
                      &r->item->texts[i + 1]);
    }
    return status;
}

/* Which candidate is right: a number from `first` on, or that number as a text.
 */
static pl_status want_gold(const reader *r, const char *key, size_t first)
{
    const json_t *value = json_object_get(r->line, key);
    long long number = -1;
    if (json_is_integer(value))
        number = (long long)json_integer_value(value);
    else if (json_is_string(value) && json_string_length(value) == 1 &&
             *json_string_value(value) >= '0' &&
             *json_string_value(value) <= '9')
        number = *json_string_value(value) - '0';
    if (number < (long long)first ||
        number - (long long)first >= (long long)r->item->count)
        return pl_task_wrong(r->where, key, r->err,
                             "\"%s\" must say which candidate is right, by a "
                             "number from %zu to %zu",
                             key, first, first + r->item->count - 1);
    r->item->gold = (size_t)number - first;
    return PL_OK;
}

/* ---- llm-foundry's ---- */

static pl_status read_query(const reader *r)
{
    const char *gold = json_object_get(r->line, "gold") ? "gold" : "label";
    pl_status status = want_list(r, "choices",
                                 json_object_get(r->line, "choices"));
    if (!status)
        status = want_text(r, "query", &r->item->texts[0]);
    return status ? status : want_gold(r, gold, 0);
}

static pl_status read_options(const reader *r)
{
    pl_status status = want_list(r, "context_options",
                                 json_object_get(r->line, "context_options"));
    if (!status)
        status = want_text(r, "continuation", &r->item->texts[0]);
    return status ? status : want_gold(r, "gold", 0);
}

static pl_status read_context(const reader *r)
{
    pl_status status = make_texts(r, 1);
    if (!status)
        status = want_text(r, "context", &r->item->texts[0]);
    return status ? status : want_text(r, "continuation", &r->item->texts[1]);
}

/* ---- of single data sets ---- */

/* Puts texts together: each of `parts`, NULL is the end. */
static pl_status join(const reader *r, const char *const *parts,
                      const size_t *bytes, char **out, size_t *all)
{
    *all = 0;
    for (size_t i = 0; parts[i]; i++)
        *all += bytes[i];
    pl_status status = pl_heap_take(r->heap, out, *all + 1, 1, r->err);
    for (size_t i = 0, at = 0; !status && parts[i]; at += bytes[i++])
        memcpy(*out + at, parts[i], bytes[i]);
    return status;
}

/* "activity_label: ctx_a Ctx_b", or "ctx" where it isn't kept in parts. */
static pl_status join_hellaswag(const reader *r, char **text, size_t *bytes)
{
    const json_t *label = json_object_get(r->line, "activity_label"), *a, *b;
    const char *parts[6] = { "", "" };
    size_t lengths[6] = { 0 }, second = 0;
    int at = 0;
    pl_status status;
    if (json_is_string(label)) {
        parts[0] = json_string_value(label);
        lengths[0] = json_string_length(label);
        parts[1] = ": ";
        lengths[1] = 2;
    }
    at = 2;
    if (!json_object_get(r->line, "ctx_a")) {
        status = want_string(r, "ctx", &a);
        if (status)
            return status;
        parts[at] = json_string_value(a);
        lengths[at] = json_string_length(a);
        return join(r, parts, lengths, text, bytes);
    }
    status = want_string(r, "ctx_a", &a);
    if (!status)
        status = want_string(r, "ctx_b", &b);
    if (status)
        return status;
    parts[at] = json_string_value(a);
    lengths[at++] = json_string_length(a);
    parts[at] = " ";
    lengths[at++] = 1;
    parts[at] = json_string_value(b);
    lengths[at] = second = json_string_length(b);
    status = join(r, parts, lengths, text, bytes);
    if (!status)
        pl_task_text_capitalize(*text + *bytes - second, second);
    return status;
}

/* `text` has room for a zero. */
static pl_task_text clean(char *text, size_t bytes)
{
    const size_t left = pl_task_text_clean(text, bytes);
    text[left] = '\0';
    return (pl_task_text){ text, left };
}

static pl_status read_hellaswag(const reader *r)
{
    pl_task_item *item = r->item;
    char *text;
    size_t bytes;
    pl_status status = want_list(r, "endings",
                                 json_object_get(r->line, "endings"));
    if (!status)
        status = join_hellaswag(r, &text, &bytes);
    if (status)
        return status;
    item->texts[0] = clean(text, bytes);
    for (size_t i = 1; i <= item->count && !status; i++) {
        const pl_task_text ending = item->texts[i];
        status = pl_heap_take(r->heap, &text, ending.bytes + 1, 1, r->err);
        if (status)
            return status;
        memcpy(text, ending.text, ending.bytes);
        item->texts[i] = clean(text, ending.bytes);
    }
    return want_gold(r, "label", 0);
}

/* "Question: ...\nAnswer:" */
static pl_status read_question(const reader *r, const char *key)
{
    static const char head[] = "Question: ", tail[] = "\nAnswer:";
    const json_t *question;
    char *text;
    size_t all;
    pl_status status = want_string(r, key, &question);
    if (status)
        return status;
    const size_t bytes = json_string_length(question);
    const char *parts[] = { head, json_string_value(question), tail, NULL };
    const size_t lengths[] = { sizeof head - 1, bytes, sizeof tail - 1 };
    status = join(r, parts, lengths, &text, &all);
    r->item->texts[0] = (pl_task_text){ text, all };
    return status;
}

/* {"text": [...], "label": [...]}, of which answerKey is one. */
static pl_status read_arc(const reader *r)
{
    const json_t *choices = json_object_get(r->line, "choices"),
                 *labels = json_object_get(choices, "label"), *key;
    pl_status status = want_list(r, "choices",
                                 json_object_get(choices, "text"));
    if (!status)
        status = read_question(r, "question");
    if (!status)
        status = want_string(r, "answerKey", &key);
    if (status)
        return status;
    for (size_t i = 0; i < r->item->count; i++) {
        const json_t *label = json_array_get(labels, i);
        if (json_is_string(label) &&
            json_string_length(label) == json_string_length(key) &&
            memcmp(json_string_value(label), json_string_value(key),
                   json_string_length(key)) == 0) {
            r->item->gold = i;
            return PL_OK;
        }
    }
    return pl_task_wrong(r->where, "answerKey", r->err,
                         "\"answerKey\" must be one of the labels of "
                         "\"choices\"");
}

static pl_status read_piqa(const reader *r)
{
    pl_status status = make_texts(r, 2);
    if (!status)
        status = read_question(r, "goal");
    if (!status)
        status = want_text(r, "sol1", &r->item->texts[1]);
    if (!status)
        status = want_text(r, "sol2", &r->item->texts[2]);
    if (!status && !json_object_get(r->line, "label"))
        return pl_task_wrong(r->where, "goal", r->err,
                             "\"label\" is missing. PIQA's own files keep "
                             "labels apart: put each (0 or 1) into its line");
    return status ? status : want_gold(r, "label", 0);
}

/* The sentence up to its blank with each option, and what is behind it. */
static pl_status read_winogrande(const reader *r)
{
    static const char *const options[] = { "option1", "option2" };
    const json_t *sentence, *option;
    pl_status status = make_texts(r, 2);
    if (!status)
        status = want_string(r, "sentence", &sentence);
    if (status)
        return status;
    const char *text = json_string_value(sentence);
    const size_t bytes = json_string_length(sentence);
    const char *blank = memchr(text, '_', bytes);
    if (!blank)
        return pl_task_wrong(r->where, "sentence", r->err,
                             "\"sentence\" has no blank, which is a \"_\"");
    for (int i = 0; i < 2 && !status; i++) {
        char *joined;
        size_t all;
        status = want_string(r, options[i], &option);
        if (status)
            return status;
        const char *parts[] = { text, json_string_value(option), NULL };
        const size_t lengths[] = { (size_t)(blank - text),
                                   json_string_length(option) };
        status = join(r, parts, lengths, &joined, &all);
        r->item->texts[i + 1] = (pl_task_text){ joined, all };
    }
    if (status)
        return status;
    size_t rest = bytes - (size_t)(blank + 1 - text);
    const size_t head = pl_task_text_head(blank + 1, rest);
    rest -= head;
    rest -= pl_task_text_tail(blank + 1 + head, rest);
    status = keep(r, blank + 1 + head, rest, &r->item->texts[0]);
    return status ? status : want_gold(r, "answer", 1);
}

/* The last word of a text, and what is before it. */
static pl_status read_lambada(const reader *r)
{
    const json_t *value;
    pl_status status = make_texts(r, 1);
    if (!status)
        status = want_string(r, "text", &value);
    if (status)
        return status;
    const char *text = json_string_value(value);
    const size_t bytes = json_string_length(value);
    const char *blank = memrchr(text, ' ', bytes);
    if (!blank)
        return pl_task_wrong(r->where, "text", r->err,
                             "\"text\" is one word: there is nothing to go on "
                             "from");
    status = keep(r, text, (size_t)(blank - text), &r->item->texts[0]);
    return status ? status
                  : keep(r, blank + 1, bytes - (size_t)(blank + 1 - text),
                         &r->item->texts[1]);
}

pl_status pl_task_item_read(pl_task_item *item, pl_task_form form,
                            const json_t *line, const pl_task_line *where,
                            pl_heap *heap, pl_error *err)
{
    static pl_status (*const reads[])(const reader *) = {
        [PL_TASK_FORM_QUERY] = read_query,
        [PL_TASK_FORM_OPTIONS] = read_options,
        [PL_TASK_FORM_CONTEXT] = read_context,
        [PL_TASK_FORM_HELLASWAG] = read_hellaswag,
        [PL_TASK_FORM_ARC] = read_arc,
        [PL_TASK_FORM_PIQA] = read_piqa,
        [PL_TASK_FORM_WINOGRANDE] = read_winogrande,
        [PL_TASK_FORM_LAMBADA] = read_lambada,
    };
    const reader r = { item, line, where, heap, err };
    if (!json_is_object(line))
        return pl_task_wrong(where, "", err,
                             "an item of a task is an object: {...}");
    *item = (pl_task_item){ .line = where->number };
    return reads[form](&r);
}
