/* complete.c: see complete.h. Keys without effect are left out: they are
 * there for old files, nobody needs to be offered them. */
#include "describe/complete.h"

#include "cli/command.h"
#include "describe/sheet.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- what may stand behind "--key=" ---- */

typedef enum place {
    PLACE_NONE,    /* words at most */
    PLACE_PATH,    /* a file or a folder too */
    PLACE_DATASET, /* a folder below data/ */
} place;

static place place_of(pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    if (row->type != PL_TYPE_TEXT)
        return PLACE_NONE;
    switch (key) {
    case PL_KEY_dataset:
        return PLACE_DATASET;
    case PL_KEY_memory: /* texts that name no file */
    case PL_KEY_gpu:
    case PL_KEY_start:
    case PL_KEY_field:
    case PL_KEY_end_of_text:
        return PLACE_NONE;
    default:
        return PLACE_PATH;
    }
}

enum { WORDS_BYTES = 512 };

static void add_word(char words[WORDS_BYTES], const char *word, size_t bytes)
{
    size_t used = strlen(words);
    if (bytes + 2 <= WORDS_BYTES - used)
        snprintf(words + used, WORDS_BYTES - used, "%s%.*s", used ? " " : "",
                 (int)bytes, word);
}

/* Choices, but for those with a number to fill in. */
static void add_choices(char words[WORDS_BYTES], const char *const *choices)
{
    for (; *choices; choices++)
        if (!strchr(*choices, ':'))
            add_word(words, *choices, strlen(*choices));
}

/* The values that the help of a text quotes: 'scratch', '12GB'. */
static void add_quoted(char words[WORDS_BYTES], const char *help)
{
    const char *begin = help;
    while ((begin = strchr(begin, '\''))) {
        size_t bytes = 0;
        int opens = begin == help || begin[-1] == ' ';
        begin++;
        while (isalnum((unsigned char)begin[bytes]) || begin[bytes] == '.')
            bytes++;
        if (opens && bytes && begin[bytes] == '\'') {
            add_word(words, begin, bytes);
            begin += bytes + 1;
        }
    }
}

/* Separated by blanks; letters, digits, '_' and '.' only. */
static void words_of(pl_key key, char words[WORDS_BYTES])
{
    static const char *const flags[] = { "True", "False", NULL };
    const pl_key_info *row = pl_key_row(key);
    words[0] = '\0';
    if (row->type == PL_TYPE_OPTIONAL)
        add_word(words, "None", 4);
    if (row->type == PL_TYPE_FLAG || row->type == PL_TYPE_LEVELS)
        add_choices(words, flags);
    for (int i = 0; row->type == PL_TYPE_LEVELS && i <= PL_MAX_LEVEL; i++) {
        char level[16];
        int bytes = snprintf(level, sizeof level, "%d", i);
        add_word(words, level, (size_t)bytes);
    }
    if (row->choices)
        add_choices(words, row->choices);
    if (row->type == PL_TYPE_TEXT)
        add_quoted(words, row->help);
}

static int offers(const pl_command *command, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    return (row->commands & command->keys) && row->type != PL_TYPE_IGNORED;
}

/* The word that a command's arguments must begin with; its length, or 0. */
static size_t verb_of(const pl_command *command)
{
    const char *at = command->arguments;
    while (islower((unsigned char)*at))
        at++;
    return *at == ' ' || *at == '\0' ? (size_t)(at - command->arguments) : 0;
}

/* `text` between single quotes; `specials` get a backslash, and a quote is
 * written as `quote`. */
static void put_quoted(pl_sheet *out, const char *text, const char *specials,
                       const char *quote)
{
    for (; *text; text++)
        if (*text == '\'')
            pl_sheet_put(out, "%s", quote);
        else
            pl_sheet_put(out, "%s%c", strchr(specials, *text) ? "\\" : "",
                         *text);
}

static const char made[] =
    "# Written by tools/describe from the tables of commands and keys.\n";

/* A flag's own bytes, without the "=" of one that may carry a name. */
static int flag_bytes(const char *flag)
{
    return (int)strcspn(flag, "=");
}

/* ---- bash ---- */

static void put_bash_command(pl_sheet *out, const pl_command *command)
{
    pl_sheet_put(out, "    %s) echo '", command->name);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (offers(command, key))
            pl_sheet_put(out, "--%s= ", pl_key_row(key)->name);
    for (int i = 0; command->flags && command->flags[i]; i++)
        pl_sheet_put(out, "%.*s ", flag_bytes(command->flags[i]),
                     command->flags[i]);
    pl_sheet_put(out, "--help' ;;\n");
}

static void put_bash_key(pl_sheet *out, pl_key key)
{
    static const char *const places[] = {
        [PLACE_NONE] = "none",
        [PLACE_PATH] = "path",
        [PLACE_DATASET] = "dataset",
    };
    char words[WORDS_BYTES];
    words_of(key, words);
    if (words[0] || place_of(key))
        pl_sheet_put(out, "    %s) echo '%s%s%s' ;;\n", pl_key_row(key)->name,
                     places[place_of(key)], words[0] ? " " : "", words);
}

static void write_bash(const char *folder, const char *templates)
{
    pl_sheet out;
    pl_sheet_open(&out, folder, "bash-completion/completions/plimsoll",
                  PL_SHEET_PLAIN);
    pl_sheet_put(&out, "# bash completion for plimsoll\n%s\n", made);
    pl_sheet_put(&out, "_plimsoll_commands()\n{\n    echo '");
    for (int i = 0; pl_commands[i]; i++)
        pl_sheet_put(&out, "%s%s", i ? " " : "", pl_commands[i]->name);
    pl_sheet_put(&out, "'\n}\n\n# COMMAND: its keys and flags\n"
                       "_plimsoll_options()\n{\n    case $1 in\n");
    for (int i = 0; pl_commands[i]; i++)
        put_bash_command(&out, pl_commands[i]);
    pl_sheet_put(&out, "    esac\n}\n\n# KEY: whether a path or a dataset may "
                       "be its value, and the words that may\n"
                       "_plimsoll_values()\n{\n    case $1 in\n");
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        put_bash_key(&out, key);
    pl_sheet_put(&out, "    esac\n}\n\n# COMMAND: the word that follows it, "
                       "if there is one\n"
                       "_plimsoll_verb()\n{\n    case $1 in\n");
    for (int i = 0; pl_commands[i]; i++)
        if (verb_of(pl_commands[i]))
            pl_sheet_put(&out, "    %s) echo '%.*s' ;;\n", pl_commands[i]->name,
                         (int)verb_of(pl_commands[i]),
                         pl_commands[i]->arguments);
    pl_sheet_put(&out, "    esac\n}\n\n# COMMAND: whether it reads configs\n"
                       "_plimsoll_reads_configs()\n{\n    case $1 in\n");
    for (int i = 0; pl_commands[i]; i++)
        if (pl_commands[i]->reads_configs)
            pl_sheet_put(&out, "    %s) return 0 ;;\n", pl_commands[i]->name);
    pl_sheet_put(&out, "    esac\n    return 1\n}\n\n");
    pl_sheet_copy(&out, templates, "completion.bash");
    pl_sheet_close(&out);
}

/* ---- zsh ---- */

/* A row of _arguments: --key=-[help]:key:what may follow. */
static void put_zsh_key(pl_sheet *out, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    char words[WORDS_BYTES];
    words_of(key, words);
    pl_sheet_put(out, "  %s '--%s=-[", row->name, row->name);
    put_quoted(out, row->help, "[]:\\", "'\\''");
    pl_sheet_put(out, "]:%s:", row->name);
    if (place_of(key) == PLACE_PATH)
        pl_sheet_put(out, " _plimsoll_path %s", words);
    else if (place_of(key) == PLACE_DATASET)
        pl_sheet_put(out, " _plimsoll_dataset");
    else if (words[0])
        pl_sheet_put(out, "(%s)", words);
    else
        pl_sheet_put(out, " ");
    pl_sheet_put(out, "'\n");
}

static void put_zsh_command(pl_sheet *out, const pl_command *command)
{
    size_t verb = verb_of(command);
    pl_sheet_put(out, "  %s)\n    keys=(", command->name);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (offers(command, key))
            pl_sheet_put(out, "%s ", pl_key_row(key)->name);
    pl_sheet_put(out, ")\n    rows=(");
    for (int i = 0; command->flags && command->flags[i]; i++)
        pl_sheet_put(out, "%.*s ", flag_bytes(command->flags[i]),
                     command->flags[i]);
    if (verb)
        pl_sheet_put(out, "'1:what:(%.*s)' ", (int)verb, command->arguments);
    pl_sheet_put(out, "'*:file:%s')\n    ;;\n",
                 command->reads_configs ? "_files -g \"*.py\"" : "_files");
}

static void write_zsh(const char *folder, const char *templates)
{
    pl_sheet out;
    pl_sheet_open(&out, folder, "zsh/site-functions/_plimsoll", PL_SHEET_PLAIN);
    pl_sheet_put(&out,
                 "#compdef plimsoll\n%s\n"
                 "typeset -gA _plimsoll_keys\n_plimsoll_keys=(\n",
                 made);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_row(key)->type != PL_TYPE_IGNORED)
            put_zsh_key(&out, key);
    pl_sheet_put(&out, ")\n\ntypeset -ga _plimsoll_commands\n"
                       "_plimsoll_commands=(\n");
    for (int i = 0; pl_commands[i]; i++) {
        pl_sheet_put(&out, "  '%s:", pl_commands[i]->name);
        put_quoted(&out, pl_commands[i]->summary, ":\\", "'\\''");
        pl_sheet_put(&out, "'\n");
    }
    pl_sheet_put(&out, ")\n\n# COMMAND: its keys, and what else it takes\n"
                       "_plimsoll_takes() {\n  case $1 in\n");
    for (int i = 0; pl_commands[i]; i++)
        put_zsh_command(&out, pl_commands[i]);
    pl_sheet_put(&out, "  *)\n    return 1\n    ;;\n  esac\n}\n\n");
    pl_sheet_copy(&out, templates, "completion.zsh");
    pl_sheet_close(&out);
}

/* ---- fish ---- */

static void put_fish(pl_sheet *out, const char *text)
{
    pl_sheet_put(out, "'");
    put_quoted(out, text, "\\", "\\'");
    pl_sheet_put(out, "'");
}

/* The commands that `key` is offered with, as the condition of a row. */
static void put_fish_condition(pl_sheet *out, const char *function, pl_key key)
{
    pl_sheet_put(out, "complete -c plimsoll -n '%s", function);
    for (int i = 0; pl_commands[i]; i++)
        if (offers(pl_commands[i], key))
            pl_sheet_put(out, " %s", pl_commands[i]->name);
    pl_sheet_put(out, "'");
}

static void put_fish_key(pl_sheet *out, pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    char words[WORDS_BYTES];
    words_of(key, words);
    put_fish_condition(out, "__plimsoll_key", key);
    pl_sheet_put(out, " -a --%s= -d ", row->name);
    put_fish(out, row->help);
    pl_sheet_put(out, "\n");
    put_fish_condition(out, "__plimsoll_value", key);
    pl_sheet_put(out, " -l %s %s", row->name,
                 place_of(key) == PLACE_PATH ? "-r -F" : "-x");
    if (place_of(key) == PLACE_DATASET)
        pl_sheet_put(out, " -a '(__plimsoll_datasets)'");
    else if (words[0])
        pl_sheet_put(out, " -a '%s'", words);
    pl_sheet_put(out, "\n");
}

static void put_fish_command(pl_sheet *out, const pl_command *command)
{
    const char *name = command->name;
    size_t verb = verb_of(command);
    pl_sheet_put(out, "complete -c plimsoll -n '__plimsoll_at 1' -a %s -d ",
                 name);
    put_fish(out, command->summary);
    pl_sheet_put(out, "\n");
    if (verb)
        pl_sheet_put(out,
                     "complete -c plimsoll -n '__plimsoll_in %s; and "
                     "__plimsoll_at 2' -a %.*s\n",
                     name, (int)verb, command->arguments);
    if (command->reads_configs)
        pl_sheet_put(out,
                     "complete -c plimsoll -n '__plimsoll_in %s' -k -a "
                     "'(__plimsoll_configs)'\n",
                     name);
    else
        pl_sheet_put(out, "complete -c plimsoll -n '__plimsoll_in %s' -F\n",
                     name);
    for (int i = 0; command->flags && command->flags[i]; i++)
        pl_sheet_put(
            out, "complete -c plimsoll -n '__plimsoll_in %s' -l %.*s\n", name,
            flag_bytes(command->flags[i]) - 2, command->flags[i] + 2);
}

static void write_fish(const char *folder, const char *templates)
{
    pl_sheet out;
    pl_sheet_open(&out, folder, "fish/vendor_completions.d/plimsoll.fish",
                  PL_SHEET_PLAIN);
    pl_sheet_put(&out, "# fish completion for plimsoll\n%s\n", made);
    pl_sheet_copy(&out, templates, "completion.fish");
    pl_sheet_put(&out, "\n");
    for (int i = 0; pl_commands[i]; i++)
        put_fish_command(&out, pl_commands[i]);
    for (pl_key key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_row(key)->type != PL_TYPE_IGNORED)
            put_fish_key(&out, key);
    pl_sheet_close(&out);
}

void pl_complete_write(const char *folder, const char *templates)
{
    write_bash(folder, templates);
    write_zsh(folder, templates);
    write_fish(folder, templates);
}
