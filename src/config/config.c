/* config.c: the typed values: defaults, assignment with its checks, origins,
 * and the checks across keys. */
#include "config/config.h"

#include "base/check.h"
#include "base/units.h"
#include "config/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(pl_config *cfg, pl_key key)
{
    return (char *)cfg + pl_key_row(key)->offset;
}

static const void *const_field(const pl_config *cfg, pl_key key)
{
    return (const char *)cfg + pl_key_row(key)->offset;
}

pl_config pl_config_make_default(void)
{
    pl_config cfg;
    memset(&cfg, 0, sizeof cfg);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row(key);
        void *to = field(&cfg, key);
        switch (row->type) {
        case PL_TYPE_INT:
        case PL_TYPE_OPTIONAL:
            *(int64_t *)to = row->standard.whole;
            break;
        case PL_TYPE_FLOAT:
            *(double *)to = row->standard.real;
            break;
        case PL_TYPE_FLAG:
            *(bool *)to = row->standard.flag;
            break;
        case PL_TYPE_TEXT:
            *(const char **)to = row->standard.text;
            break;
        case PL_TYPE_TEXTS:
            *(pl_texts *)to = (pl_texts){ .text = row->standard.text,
                                          .count = 1 };
            break;
        case PL_TYPE_CHOICE:
            *(int *)to = row->standard.choice;
            break;
        case PL_TYPE_DEVICE:
            *(pl_device_wish *)to = (pl_device_wish){
                .kind = (pl_device_choice)row->standard.choice,
                .number = PL_NONE,
                .text = row->choices[row->standard.choice],
            };
            break;
        case PL_TYPE_LEVELS:
            *(pl_checkpointing *)to = (pl_checkpointing){
                .kind = row->standard.flag ? PL_CHECKPOINTING_ON
                                           : PL_CHECKPOINTING_OFF,
            };
            break;
        case PL_TYPE_IGNORED:
            *(pl_ignored *)to = (pl_ignored){ row->standard.text, true };
            break;
        }
    }
    return cfg;
}

/* ---- assignment ---- */

static bool looks_like_number(const char *text)
{
    char *end = NULL;
    strtod(text, &end);
    return end != text && *end == '\0';
}

/* What to write instead of a value of the wrong type, or "". */
static void hint(pl_key key, const pl_value *value, char *text, size_t size)
{
    const pl_key_info *row = pl_key_row(key);
    bool whole = row->type == PL_TYPE_INT || row->type == PL_TYPE_OPTIONAL ||
                 row->type == PL_TYPE_LEVELS;
    text[0] = '\0';
    if (whole && value->kind == PL_VALUE_FLOAT && fabs(value->real) < 1e15 &&
        floor(value->real) == value->real)
        snprintf(text, size, "write %.0f", value->real);
    else if (whole && value->kind == PL_VALUE_FLOAT)
        snprintf(text, size, "// divides to a whole number");
    else if (row->type == PL_TYPE_FLAG && value->kind == PL_VALUE_INT &&
             (value->whole == 0 || value->whole == 1))
        snprintf(text, size, "write %s", value->whole ? "True" : "False");
    else if ((pl_key_is_text(key) || row->type == PL_TYPE_TEXTS) &&
             value->kind != PL_VALUE_NONE)
        snprintf(text, size, "write it in quotes");
    else if (value->kind == PL_VALUE_TEXT &&
             (looks_like_number(value->text) ||
              strcmp(value->text, "True") == 0 ||
              strcmp(value->text, "False") == 0 ||
              strcmp(value->text, "None") == 0))
        snprintf(text, size, "write it without quotes");
}

static pl_status wrong_type(const pl_key_info *row, pl_key key,
                            const pl_value *value, pl_error *err)
{
    char takes[PL_TAKES_BYTES], found[PL_VALUE_BRIEF_BYTES], advice[64];
    pl_key_takes(key, takes, sizeof takes);
    pl_value_brief(value, found);
    hint(key, value, advice, sizeof advice);
    if (value->kind == PL_VALUE_NONE)
        return pl_fail(err, PL_E_CONFIG, "%s is %s, found None", row->name,
                       takes);
    if (advice[0] == '\0')
        return pl_fail(err, PL_E_CONFIG, "%s is %s, found %s, %s", row->name,
                       takes, found, pl_value_kind_name(value->kind));
    return pl_fail(err, PL_E_CONFIG, "%s is %s, found %s, %s: %s", row->name,
                   takes, found, pl_value_kind_name(value->kind), advice);
}

static pl_status wrong_value(const pl_key_info *row, pl_key key,
                             const pl_value *value, pl_error *err)
{
    char takes[PL_TAKES_BYTES], found[PL_VALUE_BRIEF_BYTES];
    pl_key_takes(key, takes, sizeof takes);
    pl_value_brief(value, found);
    return pl_fail(err, PL_E_CONFIG, "%s is %s, found %s", row->name, takes,
                   found);
}

static bool in_range(const pl_key_info *row, int64_t whole)
{
    return (double)whole >= row->min && (double)whole <= row->max;
}

static pl_status set_levels(pl_checkpointing *to, pl_key key,
                            const pl_value *value, pl_error *err)
{
    const pl_key_info *row = pl_key_row(key);
    switch (value->kind) {
    case PL_VALUE_FLAG:
        *to = (pl_checkpointing){ .kind = value->flag ? PL_CHECKPOINTING_ON
                                                      : PL_CHECKPOINTING_OFF };
        return PL_OK;
    case PL_VALUE_INT:
        if (!in_range(row, value->whole))
            return wrong_value(row, key, value, err);
        *to = (pl_checkpointing){ .kind = PL_CHECKPOINTING_LEVEL,
                                  .level = (int)value->whole };
        return PL_OK;
    case PL_VALUE_LIST:
        for (size_t i = 0; i < value->count; i++) {
            char found[PL_VALUE_BRIEF_BYTES];
            pl_value_brief(&value->items[i], found);
            if (value->items[i].kind != PL_VALUE_INT ||
                !in_range(row, value->items[i].whole))
                return pl_fail(err, PL_E_CONFIG,
                               "%s: item %zu of the list is %s, but levels are "
                               "whole numbers from 0 to %d",
                               row->name, i + 1, found, PL_MAX_LEVEL);
        }
        *to = (pl_checkpointing){ .kind = PL_CHECKPOINTING_LIST,
                                  .levels = value->items,
                                  .count = value->count };
        return PL_OK;
    case PL_VALUE_NONE:
    case PL_VALUE_FLOAT:
    case PL_VALUE_TEXT:
    case PL_VALUE_UNKNOWN:
        break;
    }
    return wrong_type(row, key, value, err);
}

static pl_status set_number(void *to, pl_key key, const pl_value *value,
                            pl_error *err)
{
    const pl_key_info *row = pl_key_row(key);
    if (row->type == PL_TYPE_FLOAT) {
        if (value->kind != PL_VALUE_FLOAT && value->kind != PL_VALUE_INT)
            return wrong_type(row, key, value, err);
        double real = value->kind == PL_VALUE_INT ? (double)value->whole
                                                  : value->real;
        if (!(real >= row->min && real < row->max)) /* false for NaN too */
            return wrong_value(row, key, value, err);
        *(double *)to = real;
        return PL_OK;
    }
    if (row->type == PL_TYPE_OPTIONAL && value->kind == PL_VALUE_NONE) {
        *(int64_t *)to = PL_NONE;
        return PL_OK;
    }
    if (value->kind != PL_VALUE_INT)
        return wrong_type(row, key, value, err);
    if (!in_range(row, value->whole))
        return wrong_value(row, key, value, err);
    *(int64_t *)to = value->whole;
    return PL_OK;
}

/* TEXT, CHOICE and DEVICE. */
static pl_status set_text(void *to, pl_key key, const pl_value *value,
                          pl_error *err)
{
    const pl_key_info *row = pl_key_row(key);
    int number;
    if (value->kind != PL_VALUE_TEXT)
        return wrong_type(row, key, value, err);
    if (row->type == PL_TYPE_TEXT) {
        *(const char **)to = value->text;
        return PL_OK;
    }
    const int choice = pl_key_choice(key, value->text, &number);
    if (choice < 0)
        return wrong_value(row, key, value, err);
    if (row->type == PL_TYPE_CHOICE)
        *(int *)to = choice;
    else
        *(pl_device_wish *)to = (pl_device_wish){
            .kind = (pl_device_choice)choice,
            .number = number,
            .text = value->text,
        };
    return PL_OK;
}

static pl_status set_texts(pl_texts *to, pl_key key, const pl_value *value,
                           pl_error *err)
{
    const pl_key_info *row = pl_key_row(key);
    if (value->kind == PL_VALUE_TEXT) {
        *to = (pl_texts){ .text = value->text, .count = 1 };
        return PL_OK;
    }
    if (value->kind != PL_VALUE_LIST)
        return wrong_type(row, key, value, err);
    if (value->count == 0)
        return pl_fail(err, PL_E_CONFIG, "%s: the list is empty", row->name);
    for (size_t i = 0; i < value->count; i++) {
        char found[PL_VALUE_BRIEF_BYTES];
        pl_value_brief(&value->items[i], found);
        if (value->items[i].kind != PL_VALUE_TEXT)
            return pl_fail(err, PL_E_CONFIG,
                           "%s: item %zu of the list is %s, which is no string",
                           row->name, i + 1, found);
    }
    *to = (pl_texts){ .list = value->items, .count = value->count };
    return PL_OK;
}

const char *pl_texts_at(const pl_texts *texts, size_t at)
{
    PL_CHECK(at < texts->count);
    return texts->list ? texts->list[at].text : texts->text;
}

static pl_status set_ignored(pl_ignored *to, const pl_value *value,
                             pl_heap *heap, pl_error *err)
{
    char *text = NULL;
    size_t bytes = pl_value_write(value, NULL, 0);
    if (bytes > PL_CONFIG_MAX_BYTES)
        return pl_fail(err, PL_E_CONFIG, "the value would be longer than %s",
                       pl_units_exact(PL_CONFIG_MAX_BYTES).text);
    pl_status status = pl_heap_take(heap, &text, bytes + 1, 1, err);
    if (status != PL_OK)
        return status;
    pl_value_write(value, text, bytes + 1);
    *to = (pl_ignored){ text, true };
    return PL_OK;
}

/* The defaults of the family, of keys that nobody has set. */
static void follow_architecture(pl_config *cfg)
{
    const pl_config standard = pl_config_make_default();
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        pl_error err;
        if (!pl_family_has(key) || pl_config_was_set(cfg, key))
            continue;
        const pl_value own = pl_config_get(&standard, key),
                       *theirs = pl_family_default(key, cfg->architecture);
        pl_config_call_default(cfg, key);
        PL_CHECK(pl_config_set(cfg, key, theirs ? theirs : &own,
                               cfg->origin[key], NULL, &err) == PL_OK);
    }
}

pl_status pl_config_set(pl_config *cfg, pl_key key, const pl_value *value,
                        pl_config_origin origin, pl_heap *heap, pl_error *err)
{
    const pl_key_info *row = pl_key_row(key);
    void *to = field(cfg, key);
    pl_status status = PL_OK;
    switch (row->type) {
    case PL_TYPE_INT:
    case PL_TYPE_OPTIONAL:
    case PL_TYPE_FLOAT:
        status = set_number(to, key, value, err);
        break;
    case PL_TYPE_FLAG:
        if (value->kind == PL_VALUE_FLAG)
            *(bool *)to = value->flag;
        else
            status = wrong_type(row, key, value, err);
        break;
    case PL_TYPE_TEXT:
    case PL_TYPE_CHOICE:
    case PL_TYPE_DEVICE:
        status = set_text(to, key, value, err);
        break;
    case PL_TYPE_TEXTS:
        status = set_texts(to, key, value, err);
        break;
    case PL_TYPE_LEVELS:
        status = set_levels(to, key, value, err);
        break;
    case PL_TYPE_IGNORED:
        status = set_ignored(to, value, heap, err);
        break;
    }
    if (status == PL_OK)
        cfg->origin[key] = origin;
    if (status == PL_OK && key == PL_KEY_architecture)
        follow_architecture(cfg);
    return status;
}

/* ---- asking ---- */

bool pl_config_was_set(const pl_config *cfg, pl_key key)
{
    return cfg->origin[key].source >= PL_FROM_FILE;
}

void pl_config_call_default(pl_config *cfg, pl_key key)
{
    const bool follows = cfg->architecture != PL_ARCHITECTURE_GPT2 &&
                         pl_family_has(key);
    cfg->origin[key] = (pl_config_origin){ .source = follows
                                                         ? PL_FROM_ARCHITECTURE
                                                         : PL_FROM_DEFAULT };
}

static pl_value levels_value(const pl_checkpointing *from)
{
    switch (from->kind) {
    case PL_CHECKPOINTING_LEVEL:
        return pl_value_int(from->level);
    case PL_CHECKPOINTING_LIST:
        return pl_value_list(from->levels, from->count);
    case PL_CHECKPOINTING_OFF:
    case PL_CHECKPOINTING_ON:
        break;
    }
    return pl_value_flag(from->kind == PL_CHECKPOINTING_ON);
}

static pl_value texts_value(const pl_texts *from)
{
    return from->list ? pl_value_list(from->list, from->count)
                      : pl_value_text(from->text);
}

const char *pl_config_word(const pl_config *cfg, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    const void *from = const_field(cfg, key);
    PL_CHECK(pl_key_is_text(key));
    if (row->type == PL_TYPE_CHOICE)
        return row->choices[*(const int *)from];
    return row->type == PL_TYPE_DEVICE ? ((const pl_device_wish *)from)->text
                                       : *(const char *const *)from;
}

pl_value pl_config_get(const pl_config *cfg, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    const void *from = const_field(cfg, key);
    switch (row->type) {
    case PL_TYPE_OPTIONAL:
        if (*(const int64_t *)from == PL_NONE)
            return pl_value_none();
        return pl_value_int(*(const int64_t *)from);
    case PL_TYPE_INT:
        return pl_value_int(*(const int64_t *)from);
    case PL_TYPE_FLOAT:
        return pl_value_float(*(const double *)from);
    case PL_TYPE_FLAG:
        return pl_value_flag(*(const bool *)from);
    case PL_TYPE_TEXT:
    case PL_TYPE_CHOICE:
    case PL_TYPE_DEVICE:
        return pl_value_text(pl_config_word(cfg, key));
    case PL_TYPE_TEXTS:
        return texts_value(from);
    case PL_TYPE_LEVELS:
        return levels_value(from);
    case PL_TYPE_IGNORED:
        break;
    }
    return pl_value_text(((const pl_ignored *)from)->text);
}

size_t pl_config_value_text(const pl_config *cfg, pl_key key, char *text,
                            size_t size)
{
    pl_value value = pl_config_get(cfg, key);
    if (pl_key_row(key)->type == PL_TYPE_IGNORED)
        return (size_t)snprintf(text, size, "%s", value.text);
    return pl_value_write(&value, text, size);
}

static bool same(const pl_value *a, const pl_value *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case PL_VALUE_NONE:
    case PL_VALUE_UNKNOWN:
        return true;
    case PL_VALUE_FLAG:
        return a->flag == b->flag;
    case PL_VALUE_INT:
        return a->whole == b->whole;
    case PL_VALUE_FLOAT:
        return a->real == b->real;
    case PL_VALUE_TEXT:
        return strcmp(a->text, b->text) == 0;
    case PL_VALUE_LIST:
        break;
    }
    bool all = a->count == b->count;
    for (size_t i = 0; i < a->count && all; i++)
        all = same(&a->items[i], &b->items[i]);
    return all;
}

bool pl_config_same_value(const pl_config *a, const pl_config *b, pl_key key)
{
    const pl_value one = pl_config_get(a, key), other = pl_config_get(b, key);
    return same(&one, &other);
}

pl_effect pl_config_difference(const pl_config *a, const pl_config *b)
{
    pl_effect effect = PL_EFFECT_CALL;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_row(key)->effect > effect &&
            !pl_config_same_value(a, b, key))
            effect = pl_key_row(key)->effect;
    return effect;
}

size_t pl_config_origin_text(const pl_config *cfg, pl_key key, char *text,
                             size_t size)
{
    PL_CHECK(key < PL_KEY_COUNT);
    const pl_config_origin *origin = &cfg->origin[key];
    if (origin->source == PL_FROM_FILE && origin->line == 0)
        return (size_t)snprintf(text, size, "%s", origin->name);
    if (origin->source == PL_FROM_FILE)
        return (size_t)snprintf(text, size, "%s:%d:%d", origin->name,
                                origin->line, origin->column);
    if (origin->source == PL_FROM_ARCHITECTURE)
        return (size_t)snprintf(text, size, "architecture '%s'",
                                pl_config_word(cfg, PL_KEY_architecture));
    if (origin->source == PL_FROM_DEPTH)
        return (size_t)snprintf(text, size, "depth %lld",
                                (long long)cfg->depth);
    if (origin->source == PL_FROM_MINUTES)
        return (size_t)snprintf(text, size, "max_minutes %g", cfg->max_minutes);
    return (size_t)snprintf(text, size, "%s",
                            origin->source == PL_FROM_DEFAULT ? "default"
                                                              : "command line");
}

size_t pl_config_without_effect(const pl_config *cfg, pl_key out[PL_KEY_COUNT])
{
    size_t count = 0;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_row(key)->type == PL_TYPE_IGNORED &&
            cfg->origin[key].source != PL_FROM_DEFAULT)
            out[count++] = key;
    return count;
}
