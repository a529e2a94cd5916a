/* argument.c: settings on the command line. */
#include "config/config.h"
#include "config/parse.h"
#include "config/statement.h"

#include <stdio.h>
#include <string.h>

/* The key of "--key=value", with the parser's lexer set behind the '='. */
static pl_status argument_key(pl_lexer *lexer, unsigned commands, pl_key *out,
                              pl_error *err)
{
    const char *argument = lexer->text;
    if (lexer->bytes < 3 || memcmp(argument, "--", 2) != 0 ||
        argument[2] == '=' || argument[2] == '-') {
        char shown[PL_VALUE_BRIEF_BYTES];
        pl_value whole = pl_value_text(argument);
        pl_value_brief(&whole, shown);
        return pl_fail(err, PL_E_USAGE,
                       "command line: %s is not of the form --key=value",
                       shown);
    }
    const char *equals = memchr(argument, '=', lexer->bytes);
    size_t end = equals ? (size_t)(equals - argument) : lexer->bytes;
    pl_token name = { PL_TOKEN_NAME, 2, end };
    pl_key key = pl_key_find(argument + 2, end - 2);
    if (key == PL_KEY_COUNT) {
        pl_statement_unknown_key(lexer, name, err);
        if (err)
            err->status = PL_E_USAGE;
        return PL_E_USAGE;
    }
    const pl_key_info *row = pl_key_row(key);
    if (!(row->commands & commands)) {
        char readers[PL_COMMANDS_BYTES];
        pl_key_commands(key, readers, sizeof readers);
        return pl_fail(err, PL_E_USAGE,
                       "command line: '--%s' is a key of %s, and has no effect "
                       "on this command",
                       row->name, readers);
    }
    if (!equals) {
        char takes[PL_TAKES_BYTES];
        pl_key_takes(key, takes, sizeof takes);
        if (row->type == PL_TYPE_FLAG)
            return pl_fail(err, PL_E_USAGE,
                           "command line: '%s' has no value: write %s=True",
                           argument, argument);
        return pl_fail(err, PL_E_USAGE,
                       "command line: '%s' has no value: write %s=VALUE, which "
                       "is %s",
                       argument, argument, takes);
    }
    lexer->at = end + 1;
    *out = key;
    return PL_OK;
}

/* A list of texts is told from a text by its first character. */
static bool is_list(const pl_lexer *lexer)
{
    return lexer->at < lexer->bytes &&
           (lexer->text[lexer->at] == '[' || lexer->text[lexer->at] == '(');
}

/* nanoGPT's rule: a literal if it reads as one, otherwise the text itself.
 * Where a string is expected only a string literal counts as one, so that
 * --start=42 is a text. */
static pl_status argument_text(pl_parser *parser, pl_key_type type,
                               pl_value *out, pl_error *err)
{
    const pl_lexer *lexer = &parser->lexer;
    size_t at = lexer->at;
    pl_error trouble;
    pl_status status = pl_parser_advance(parser, &trouble);
    if (status == PL_OK && parser->token.kind == PL_TOKEN_STRING)
        status = pl_parser_strings(parser, out, &trouble);
    else if (status == PL_OK && type == PL_TYPE_IGNORED)
        status = pl_parser_expression(parser, out, &trouble);
    else
        status = PL_E_CONFIG;
    if (status == PL_E_MEMORY)
        return pl_fail(err, status, "%s", trouble.text);
    if (status == PL_OK && parser->token.kind == PL_TOKEN_END &&
        out->kind != PL_VALUE_UNKNOWN)
        return PL_OK;
    const char *text = NULL;
    status = pl_heap_text(parser->heap, &text, lexer->text + at,
                          lexer->bytes - at, err);
    *out = pl_value_text(text);
    return status;
}

/* A value that is not a string: an expression, as in a file. */
static pl_status argument_value(pl_parser *parser, pl_key key, pl_value *out,
                                pl_error *err)
{
    pl_status status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = pl_parser_expression(parser, out, err);
    if (status == PL_OK && parser->token.kind != PL_TOKEN_END)
        status = pl_parser_refuse(parser, err);
    if (status == PL_OK && out->kind == PL_VALUE_UNKNOWN)
        status = pl_fail(err, PL_E_CONFIG, "%s", out->text);
    if (status == PL_E_CONFIG && err) {
        char takes[PL_TAKES_BYTES];
        size_t used = strlen(err->text);
        pl_key_takes(key, takes, sizeof takes);
        snprintf(err->text + used, sizeof err->text - used, "\n%s is %s",
                 pl_key_row(key)->name, takes);
    }
    return status;
}

pl_status pl_config_override(pl_config *cfg, const char *argument,
                             unsigned commands, pl_heap *heap, pl_error *err)
{
    const pl_config_origin origin = { PL_FROM_COMMAND_LINE, NULL, 0, 0 };
    pl_parser parser = { .cfg = cfg,
                         .heap = heap,
                         .heap_begin = heap->taken_bytes };
    pl_key key = PL_KEY_COUNT;
    pl_value value;
    pl_status status = pl_lexer_open(&parser.lexer, NULL, argument,
                                     strlen(argument), err);
    if (status == PL_OK)
        status = argument_key(&parser.lexer, commands, &key, err);
    if (status != PL_OK)
        return status;
    size_t at = parser.lexer.at;
    pl_key_type type = pl_key_row(key)->type;
    bool text = pl_key_is_text(key) || type == PL_TYPE_IGNORED ||
                (type == PL_TYPE_TEXTS && !is_list(&parser.lexer));
    parser.names = text ? PL_NAMES_NONE : PL_NAMES_KEYS;
    status = text ? argument_text(&parser, type, &value, err)
                  : argument_value(&parser, key, &value, err);
    if (status != PL_OK)
        return status;
    status = pl_config_set(cfg, key, &value, origin, heap, err);
    if (status != PL_OK)
        return pl_lexer_place(&parser.lexer, at, status, err);
    return PL_OK;
}
