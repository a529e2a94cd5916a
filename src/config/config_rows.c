/* config_rows.c: the table of keys.h as rows that point into pl_config, and
 * what can be said about a key without a value. Allocates nothing. */
#include "config/keys.h"

#include "base/check.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#define PL_DEFAULT_INT(value)                                                  \
    {                                                                          \
        .whole = (value)                                                       \
    }
#define PL_DEFAULT_OPTIONAL(value)                                             \
    {                                                                          \
        .whole = (value)                                                       \
    }
#define PL_DEFAULT_FLOAT(value)                                                \
    {                                                                          \
        .real = (value)                                                        \
    }
#define PL_DEFAULT_FLAG(value)                                                 \
    {                                                                          \
        .flag = (value)                                                        \
    }
#define PL_DEFAULT_TEXT(value)                                                 \
    {                                                                          \
        .text = (value)                                                        \
    }
#define PL_DEFAULT_LEVELS(value)                                               \
    {                                                                          \
        .flag = (value)                                                        \
    }
#define PL_DEFAULT_IGNORED(value)                                              \
    {                                                                          \
        .text = (value)                                                        \
    }

static const pl_key_info rows[PL_KEY_COUNT] = {
#define PL_KEY_ROW(type, key, standard, min, max, choices, effect, commands,   \
                   group, help)                                                \
    [PL_KEY_##key] = { #key,                                                   \
                       PL_TYPE_##type,                                         \
                       offsetof(pl_config, key),                               \
                       PL_DEFAULT_##type(standard),                            \
                       min,                                                    \
                       max,                                                    \
                       choices,                                                \
                       PL_EFFECT_##effect,                                     \
                       commands,                                               \
                       PL_GROUP_##group,                                       \
                       help },
    PL_CONFIG_TABLE(PL_KEY_ROW)
#undef PL_KEY_ROW
};

static const char *const titles[PL_GROUP_COUNT] = {
    [PL_GROUP_RUN] = "The run",
    [PL_GROUP_DATA] = "Data and batches",
    [PL_GROUP_MODEL] = "Model",
    [PL_GROUP_OPTIMIZER] = "Optimizer",
    [PL_GROUP_EVAL] = "Evaluation",
    [PL_GROUP_MACHINE] = "Machine",
    [PL_GROUP_SAMPLE] = "Sampling",
    [PL_GROUP_PREPARE] = "Preparing text",
    [PL_GROUP_OUTPUT] = "What is written",
    [PL_GROUP_CONSENT] = "Allowed for once",
    [PL_GROUP_IGNORED] = "Without effect",
};

static const struct {
    const char *name, *meaning;
} effects[PL_EFFECT_COUNT] = {
    [PL_EFFECT_CALL] = { "call", "it belongs to the one command that it is "
                                 "given to, and to no run" },
    [PL_EFFECT_SAME] = { "same bits", "the run goes on with the same bits" },
    [PL_EFFECT_EVALUATION] = { "evaluation", "the training goes on with the "
                                             "same bits, its evaluations are "
                                             "others" },
    [PL_EFFECT_NUMBERS] = { "numbers", "the run goes on and is another one "
                                       "from there on, which it says" },
    [PL_EFFECT_TENSORS] = { "tensors", "refused: the weights or moments of the "
                                       "checkpoint are kept in another way" },
    [PL_EFFECT_MODEL] = { "model", "refused: it would be another model" },
    [PL_EFFECT_DATA] = { "data", "refused unless the tokens are the same" },
    [PL_EFFECT_IDENTITY] = { "identity", "refused: it would be another run "
                                         "from its beginning" },
};

const pl_key_info *pl_key_row(pl_key key)
{
    PL_CHECK(key < PL_KEY_COUNT);
    return &rows[key];
}

bool pl_key_is_kept(pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    return row->type != PL_TYPE_IGNORED && row->group != PL_GROUP_CONSENT;
}

const char *pl_key_group_title(pl_key_group group)
{
    PL_CHECK(group < PL_GROUP_COUNT);
    return titles[group];
}

const char *pl_effect_name(pl_effect effect)
{
    PL_CHECK(effect < PL_EFFECT_COUNT);
    return effects[effect].name;
}

const char *pl_effect_meaning(pl_effect effect)
{
    PL_CHECK(effect < PL_EFFECT_COUNT);
    return effects[effect].meaning;
}

size_t pl_key_commands(pl_key key, char *text, size_t size)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        { PL_FOR_TRAIN, "train" },       { PL_FOR_TRAIN, "plan" },
        { PL_FOR_TRAIN, "eval" },        { PL_FOR_SAMPLE, "sample" },
        { PL_FOR_PREPARE, "prepare" },   { PL_FOR_TOKENIZER, "tokenizer" },
        { PL_FOR_TOKENIZE, "tokenize" }, { PL_FOR_INSPECT, "inspect" },
        { PL_FOR_EXPLAIN, "explain" },   { PL_FOR_BENCH, "bench" },
        { PL_FOR_EXPORT, "export" },     { PL_FOR_IMPORT, "import" },
    };
    enum { COUNT = sizeof names / sizeof names[0] };
    unsigned commands = pl_key_row(key)->commands;
    size_t used = 0, left = 0;
    for (int i = 0; i < COUNT; i++)
        left += (commands & names[i].bit) != 0;
    for (int i = 0; i < COUNT; i++) {
        if (!(commands & names[i].bit))
            continue;
        const char *join = used == 0 ? "" : left == 1 ? " and " : ", ";
        size_t room = used < size ? size - used : 0;
        used += (size_t)snprintf(room ? text + used : NULL, room, "%s%s", join,
                                 names[i].name);
        left--;
    }
    return used;
}

pl_key pl_key_find(const char *name, size_t bytes)
{
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (strlen(rows[key].name) == bytes &&
            memcmp(rows[key].name, name, bytes) == 0)
            return key;
    return PL_KEY_COUNT;
}

/* ---- choices ---- */

/* The word at `*at` in a list of choices; false at the end. */
static bool next_word(const char **at, const char **word, size_t *bytes)
{
    *at += strspn(*at, " ");
    *word = *at;
    *bytes = strcspn(*at, " ");
    *at += *bytes;
    return *bytes > 0;
}

bool pl_key_allows(pl_key key, const char *text)
{
    const char *at = pl_key_row(key)->choices, *word;
    size_t bytes;
    if (!at)
        return true;
    while (next_word(&at, &word, &bytes)) {
        if (strlen(text) == bytes && memcmp(text, word, bytes) == 0)
            return true;
        if (bytes > 2 && memcmp(word + bytes - 2, ":N", 2) == 0 &&
            strncmp(text, word, bytes - 1) == 0) {
            size_t digits = strspn(text + bytes - 1, "0123456789");
            if (digits > 0 && digits < 4 && text[bytes - 1 + digits] == '\0')
                return true;
        }
    }
    return false;
}

static size_t choices_text(const char *choices, char *text, size_t size)
{
    const char *word;
    size_t bytes, used = 0;
    while (next_word(&choices, &word, &bytes)) {
        bool last = choices[strspn(choices, " ")] == '\0';
        const char *join = used == 0 ? "" : last ? " or " : ", ";
        size_t room = used < size ? size - used : 0;
        used += (size_t)snprintf(room ? text + used : NULL, room, "%s'%.*s'",
                                 join, (int)bytes, word);
    }
    return used;
}

size_t pl_key_takes(pl_key key, char *text, size_t size)
{
    const pl_key_info *row = pl_key_row(key);
    switch (row->type) {
    case PL_TYPE_INT:
        return (size_t)snprintf(text, size, "a whole number from %.0f to %.0f",
                                row->min, row->max);
    case PL_TYPE_OPTIONAL:
        return (size_t)snprintf(text, size,
                                "None or a whole number from %.0f to %.0f",
                                row->min, row->max);
    case PL_TYPE_FLOAT:
        if (isinf(row->max))
            return (size_t)snprintf(text, size, "a number, at least %.0f",
                                    row->min);
        return (size_t)snprintf(text, size,
                                "a number, at least %.0f and below %.0f",
                                row->min, row->max);
    case PL_TYPE_FLAG:
        return (size_t)snprintf(text, size, "True or False");
    case PL_TYPE_TEXT:
        if (row->choices)
            return choices_text(row->choices, text, size);
        return (size_t)snprintf(text, size, "a string");
    case PL_TYPE_LEVELS:
        return (size_t)snprintf(text, size,
                                "True, False, a level from 0 to %d, or a list "
                                "of levels, one per layer",
                                PL_MAX_LEVEL);
    case PL_TYPE_IGNORED:
        break;
    }
    return (size_t)snprintf(text, size, "anything");
}
