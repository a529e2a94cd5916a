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
#define PL_DEFAULT_TEXTS(value)                                                \
    {                                                                          \
        .text = (value)                                                        \
    }
#define PL_DEFAULT_CHOICE(value)                                               \
    {                                                                          \
        .choice = (value)                                                      \
    }
#define PL_DEFAULT_DEVICE(value)                                               \
    {                                                                          \
        .choice = (value)                                                      \
    }
#define PL_DEFAULT_LEVELS(value)                                               \
    {                                                                          \
        .flag = (value)                                                        \
    }
#define PL_DEFAULT_IGNORED(value)                                              \
    {                                                                          \
        .text = (value)                                                        \
    }

/* The words of each list of choices, in the order of its enum. */
#define PL_CHOICE_WORD(constant, word) [constant] = (word),
#define PL_CHOICE_WORDS(key)                                                   \
    static const char *const words_of_##key[] = { PL_CHOICES_##key(            \
        PL_CHOICE_WORD) NULL };                                                \
    _Static_assert(sizeof(pl_##key##_choice) == sizeof(int),                   \
                   "fields of choices are written as an int");
#define PL_WORDS_INT(key)
#define PL_WORDS_OPTIONAL(key)
#define PL_WORDS_FLOAT(key)
#define PL_WORDS_FLAG(key)
#define PL_WORDS_TEXT(key)
#define PL_WORDS_TEXTS(key)
#define PL_WORDS_CHOICE(key) PL_CHOICE_WORDS(key)
#define PL_WORDS_DEVICE(key) PL_CHOICE_WORDS(key)
#define PL_WORDS_LEVELS(key)
#define PL_WORDS_IGNORED(key)
#define PL_KEY_WORDS(type, key, ...) PL_WORDS_##type(key)
PL_CONFIG_TABLE(PL_KEY_WORDS)
#undef PL_KEY_WORDS

#define PL_LIST_INT(key)      NULL
#define PL_LIST_OPTIONAL(key) NULL
#define PL_LIST_FLOAT(key)    NULL
#define PL_LIST_FLAG(key)     NULL
#define PL_LIST_TEXT(key)     NULL
#define PL_LIST_TEXTS(key)    NULL
#define PL_LIST_CHOICE(key)   words_of_##key
#define PL_LIST_DEVICE(key)   words_of_##key
#define PL_LIST_LEVELS(key)   NULL
#define PL_LIST_IGNORED(key)  NULL

static const pl_key_info rows[PL_KEY_COUNT] = {
#define PL_KEY_ROW(type, key, standard, min, max, effect, commands, group,     \
                   help)                                                       \
    [PL_KEY_##key] = { #key,                                                   \
                       PL_TYPE_##type,                                         \
                       offsetof(pl_config, key),                               \
                       PL_DEFAULT_##type(standard),                            \
                       min,                                                    \
                       max,                                                    \
                       PL_LIST_##type(key),                                    \
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
    [PL_GROUP_SERVER] = "Serving",
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
    [PL_EFFECT_DATA] = { "data", "refused unless it has as many tokens as "
                                 "before, and the same tokenizer" },
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
    return row->type != PL_TYPE_IGNORED && row->group != PL_GROUP_CONSENT &&
           row->group != PL_GROUP_SERVER; /* a token is nobody else's */
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
        { PL_FOR_TRAIN, "train" },       { PL_FOR_TRAIN | PL_FOR_PLAN, "plan" },
        { PL_FOR_TRAIN, "eval" },        { PL_FOR_SAMPLE, "sample" },
        { PL_FOR_PREPARE, "prepare" },   { PL_FOR_TOKENIZER, "tokenizer" },
        { PL_FOR_TOKENIZE, "tokenize" }, { PL_FOR_INSPECT, "inspect" },
        { PL_FOR_EXPLAIN, "explain" },   { PL_FOR_BENCH, "bench" },
        { PL_FOR_EXPORT, "export" },     { PL_FOR_REPORT, "report" },
        { PL_FOR_IMPORT, "import" },     { PL_FOR_LIVE, "live" },
        { PL_FOR_SERVE, "serve" },
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

/* The number behind "cuda:", of up to three digits, or PL_NONE. */
static int number_behind(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    int number = 0;
    if (digits == 0 || digits > 3 || text[digits] != '\0')
        return PL_NONE;
    for (size_t i = 0; i < digits; i++)
        number = 10 * number + (text[i] - '0');
    return number;
}

int pl_key_choice(pl_key key, const char *text, int *number)
{
    const char *const *words = pl_key_row(key)->choices;
    int ignored;
    if (!number)
        number = &ignored;
    *number = PL_NONE;
    for (int i = 0; words && words[i]; i++) {
        const size_t bytes = strlen(words[i]);
        if (bytes > 2 && strcmp(words[i] + bytes - 2, ":N") == 0) {
            if (strncmp(text, words[i], bytes - 1) == 0)
                *number = number_behind(text + bytes - 1);
            if (*number != PL_NONE)
                return i;
        } else if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

bool pl_key_is_text(pl_key key)
{
    const pl_key_type type = pl_key_row(key)->type;
    return type == PL_TYPE_TEXT || type == PL_TYPE_CHOICE ||
           type == PL_TYPE_DEVICE;
}

static size_t choices_text(const char *const *words, char *text, size_t size)
{
    size_t used = 0;
    for (; *words; words++) {
        const char *join = used == 0 ? "" : words[1] ? ", " : " or ";
        size_t room = used < size ? size - used : 0;
        used += (size_t)snprintf(room ? text + used : NULL, room, "%s'%s'",
                                 join, *words);
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
    case PL_TYPE_CHOICE:
    case PL_TYPE_DEVICE:
        return choices_text(row->choices, text, size);
    case PL_TYPE_TEXT:
        return (size_t)snprintf(text, size, "a string");
    case PL_TYPE_TEXTS:
        return (size_t)snprintf(text, size, "a string or a list of strings");
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
