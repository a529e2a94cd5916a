/* shape_json.c: see shape_json.h. */
#include "store/shape_json.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 256 };

static const char *const *words_of(pl_shape_field field, pl_shape_file file)
{
    const pl_shape_info *row = pl_shape_row(field);
    return row->in[file].words[0] ? row->in[file].words : row->words;
}

/* ---- writing ---- */

void pl_shape_json_put(pl_json_text *j, const pl_shape *shape,
                       pl_shape_field field, pl_shape_file file)
{
    const pl_shape_info *row = pl_shape_row(field);
    const char *name = row->in[file].name;
    char word[TEXT_BYTES];
    if (!name || name[0] == '\0')
        return;
    if (row->kind == PL_SHAPE_REAL) {
        pl_json_text_real(j, name, pl_shape_number(shape, field));
        return;
    }
    const size_t value = pl_shape_get(shape, field);
    if (row->kind == PL_SHAPE_SIZE) {
        pl_json_text_whole(j, name, value);
        return;
    }
    snprintf(word, sizeof word, "%s", words_of(field, file)[value]);
    word[strcspn(word, "|")] = '\0';
    if (row->kind == PL_SHAPE_CHOICE)
        pl_json_text_string(j, name, word);
    else
        pl_json_text_raw(j, name, strcmp(word, "True") == 0 ? "true" : "false");
}

/* ---- reading ---- */

/* Whether `word` is one of `several`, "a|b|c". */
static int is_among(const char *several, const char *word)
{
    const size_t bytes = strlen(word);
    while (*several) {
        size_t length = strcspn(several, "|");
        if (length == bytes && memcmp(several, word, bytes) == 0)
            return 1;
        several += length + (several[length] == '|');
    }
    return 0;
}

/* "gelu" or "gelu_new": the first names of all values. */
static void list_words(const char *const *words, char text[TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < PL_SHAPE_MAX_WORDS && words[i]; i++) {
        if (words[i][0] == '\0')
            continue;
        int n = snprintf(text + used, TEXT_BYTES - used, "%s\"%.*s\"",
                         used ? " or " : "", (int)strcspn(words[i], "|"),
                         words[i]);
        if (n < 0 || (size_t)n >= TEXT_BYTES - used)
            return;
        used += (size_t)n;
    }
}

static pl_status refuse_word(const json_t *value, const char *const *words,
                             const char *entry, const char *name, pl_error *err)
{
    char accepted[TEXT_BYTES], found[PL_JSON_BRIEF_BYTES];
    list_words(words, accepted);
    pl_json_brief(value, found);
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"%s\" is %s, which Plimsoll doesn't compute. Expected "
                   "%s",
                   name, entry, found, accepted);
}

static pl_status read_flag(const json_t *value, pl_shape *shape,
                           pl_shape_field field, pl_shape_file file,
                           const char *name, pl_error *err)
{
    const char *const *words = words_of(field, file);
    const char *entry = pl_shape_row(field)->in[file].name;
    if (!json_is_boolean(value))
        return pl_fail(err, PL_E_FORMAT, "%s: \"%s\" must be true or false",
                       name, entry);
    for (size_t i = 0; i < PL_SHAPE_MAX_WORDS && words[i]; i++)
        if (strcmp(words[i], json_is_true(value) ? "True" : "False") == 0) {
            pl_shape_set(shape, field, (double)i);
            return PL_OK;
        }
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"%s\" is %s, which Plimsoll doesn't compute in such a "
                   "model. Expected %s",
                   name, entry, json_is_true(value) ? "true" : "false",
                   json_is_true(value) ? "false" : "true");
}

static pl_status read_word(const json_t *value, pl_shape *shape,
                           pl_shape_field field, pl_shape_file file,
                           const char *name, pl_error *err)
{
    const char *const *words = words_of(field, file);
    const char *entry = pl_shape_row(field)->in[file].name,
               *word = json_string_value(value);
    char accepted[TEXT_BYTES];
    for (size_t i = 0; word && i < PL_SHAPE_MAX_WORDS && words[i]; i++)
        if (is_among(words[i], word)) {
            pl_shape_set(shape, field, (double)i);
            return PL_OK;
        }
    if (file != PL_IN_STATE && word)
        return refuse_word(value, words, entry, name, err);
    list_words(words, accepted);
    return pl_fail(err, PL_E_FORMAT, "%s: \"%s\" must be %s", name, entry,
                   accepted);
}

static pl_status read_size(const json_t *value, pl_shape *shape,
                           pl_shape_field field, pl_shape_file file,
                           const char *name, pl_error *err)
{
    const pl_shape_info *row = pl_shape_row(field);
    const double most = pl_key_row(row->key)->max;
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        (uint64_t)json_integer_value(value) > (uint64_t)most)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"%s\" must be a whole number from 1 to %.0f", name,
                       row->in[file].name, most);
    pl_shape_set(shape, field, (double)json_integer_value(value));
    return PL_OK;
}

/* In the range of the key; but 0 is none that a norm can add. */
static pl_status read_real(const json_t *value, pl_shape *shape,
                           pl_shape_field field, pl_shape_file file,
                           const char *name, pl_error *err)
{
    const pl_shape_info *row = pl_shape_row(field);
    const double least = pl_key_row(row->key)->min,
                 most = pl_key_row(row->key)->max,
                 number = json_number_value(value);
    if (!json_is_number(value) || !(number >= least && number < most) ||
        (field == PL_SHAPE_norm_eps && number <= 0.0))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"%s\" must be a number from %g to below %g", name,
                       row->in[file].name, least, most);
    pl_shape_set(shape, field, number);
    return PL_OK;
}

pl_status pl_shape_json_read(const json_t *object, pl_shape *shape,
                             pl_shape_field field, pl_shape_file file,
                             const char *name, pl_error *err)
{
    const pl_shape_info *row = pl_shape_row(field);
    const pl_shape_entry *entry = &row->in[file];
    const int is_there = entry->name && entry->name[0] != '\0';
    const json_t *value = is_there ? json_object_get(object, entry->name)
                                   : NULL;
    const int absent = !value || json_is_null(value);
    if (absent && entry->absent == PL_SHAPE_DERIVED)
        return PL_OK;
    if (absent && entry->absent != PL_SHAPE_NEEDED) {
        pl_shape_set(shape, field, entry->absent);
        return PL_OK;
    }
    switch (row->kind) {
    case PL_SHAPE_REAL:
        return read_real(value, shape, field, file, name, err);
    case PL_SHAPE_FLAG:
        return read_flag(value, shape, field, file, name, err);
    case PL_SHAPE_CHOICE:
        return read_word(value, shape, field, file, name, err);
    case PL_SHAPE_SIZE:
        break;
    }
    return read_size(value, shape, field, file, name, err);
}
