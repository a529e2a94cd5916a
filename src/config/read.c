/* read.c: the statements of a config file, and arguments. */
#include "config/config.h"
#include "config/parse.h"

#include <stdio.h>
#include <string.h>

static bool at_end(const pl_parser *parser)
{
    return parser->token.kind == PL_TOKEN_END ||
           parser->token.kind == PL_TOKEN_NEWLINE ||
           (parser->lexer.depth == 0 && pl_parser_sees(parser, ";"));
}

/* Uses up whatever is left of the statement; *end is where it ended. */
static pl_status skip_statement(pl_parser *parser, size_t *end, pl_error *err)
{
    pl_status status = PL_OK;
    while (status == PL_OK && !at_end(parser)) {
        *end = parser->token.end;
        status = pl_parser_advance(parser, err);
    }
    return status;
}

static pl_status unknown_key(const pl_lexer *lexer, pl_token token,
                             pl_error *err)
{
    const char *name = lexer->text + token.begin;
    size_t bytes = token.end - token.begin;
    int shown = bytes < 60 ? (int)bytes : 60;
    pl_key nearest = pl_key_nearest(name, bytes);
    if (nearest != PL_KEY_COUNT)
        return pl_lexer_fail(lexer, token.begin, err,
                             "unknown key '%.*s': did you mean '%s'?", shown,
                             name, pl_key_row(nearest)->name);
    return pl_lexer_fail(lexer, token.begin, err,
                         "unknown key '%.*s': no key has a similar name; "
                         "'plimsoll config' lists them all",
                         shown, name);
}

/* ---- values ---- */

/* Tries to evaluate what is ahead up to the statement's end, and
 * goes back if that can't be. *done says which. Only memory can fail. */
static pl_status try_value(pl_parser *parser, pl_value *out, bool *done,
                           pl_error *err)
{
    pl_parser back = *parser;
    pl_error trouble;
    pl_status status = pl_parser_expression(parser, out, &trouble);
    *done = status == PL_OK && at_end(parser);
    if (!*done)
        *parser = back;
    if (status == PL_E_MEMORY)
        return pl_fail(err, status, "%s", trouble.text);
    return PL_OK;
}

/* A key without effect takes any expression. What can be evaluated is, so
 * that later keys may use it; the rest is kept as it is written. */
static pl_status read_ignored(pl_parser *parser, pl_config *cfg, pl_key key,
                              pl_config_origin origin, pl_error *err)
{
    pl_value value;
    bool done = false;
    size_t begin = parser->token.begin, end = begin;
    if (at_end(parser))
        return pl_parser_refuse(parser, err);
    pl_status status = try_value(parser, &value, &done, err);
    if (status != PL_OK)
        return status;
    if (done)
        return pl_config_set(cfg, key, &value, origin, parser->heap, err);
    status = skip_statement(parser, &end, err);
    if (status != PL_OK)
        return status;
    pl_ignored ignored = { NULL, false };
    status = pl_heap_text(parser->heap, &ignored.text,
                          parser->lexer.text + begin, end - begin, err);
    if (status != PL_OK)
        return status;
    memcpy((char *)cfg + pl_key_row(key)->offset, &ignored, sizeof ignored);
    cfg->origin[key] = origin;
    return PL_OK;
}

static pl_status read_value(pl_parser *parser, pl_config *cfg, pl_key key,
                            pl_config_origin origin, pl_error *err)
{
    pl_value value;
    size_t at = parser->token.begin;
    if (pl_key_row(key)->type == PL_TYPE_IGNORED)
        return read_ignored(parser, cfg, key, origin, err);
    pl_status status = pl_parser_expression(parser, &value, err);
    if (status != PL_OK)
        return status;
    if (!at_end(parser))
        return pl_parser_refuse(parser, err);
    status = pl_config_set(cfg, key, &value, origin, parser->heap, err);
    if (status != PL_OK)
        return pl_lexer_place(&parser->lexer, at, status, err);
    return PL_OK;
}

/* ---- statements ---- */

/* Says what is wrong with a statement that begins with a name and doesn't go
 * on with '='. The parser is at what follows the name. */
static pl_status refuse_statement(const pl_parser *parser, pl_token name,
                                  pl_error *err)
{
    const pl_lexer *lexer = &parser->lexer;
    const char *text = lexer->text + name.begin;
    size_t bytes = name.end - name.begin;
    int shown = bytes < 40 ? (int)bytes : 40;
    size_t at = parser->token.begin, wide = parser->token.end - at;
    if (parser->token.kind == PL_TOKEN_SIGN && wide > 1 &&
        lexer->text[at + wide - 1] == '=' && !pl_parser_sees(parser, "==") &&
        !strchr("!<>:", lexer->text[at]))
        return pl_lexer_fail(lexer, at, err,
                             "'%.*s' is not accepted: write %.*s = %.*s %.*s "
                             "...",
                             (int)wide, lexer->text + at, shown, text, shown,
                             text, (int)wide - 1, lexer->text + at);
    if (pl_parser_sees(parser, ":") && pl_key_find(text, bytes) != PL_KEY_COUNT)
        return pl_lexer_fail(lexer, at, err,
                             "an annotation is not accepted: write %.*s = ...",
                             shown, text);
    if (pl_parser_sees(parser, "("))
        return pl_lexer_fail(lexer, name.begin, err,
                             "function calls are not evaluated: a config is a "
                             "list of lines key = value");
    return pl_lexer_fail(lexer, name.begin, err,
                         "'%.*s' does not begin a line key = value, which is "
                         "all that a config has (beside comments and imports, "
                         "which are skipped)",
                         shown, text);
}

static pl_status read_assignment(pl_parser *parser, pl_config *cfg,
                                 const char *origin_name, pl_error *err)
{
    pl_token name = parser->token;
    pl_config_origin origin = { PL_FROM_FILE, origin_name, 0, 0 };
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (!pl_parser_sees(parser, "="))
        return refuse_statement(parser, name, err);
    pl_key key = pl_key_find(parser->lexer.text + name.begin,
                             name.end - name.begin);
    if (key == PL_KEY_COUNT)
        return unknown_key(&parser->lexer, name, err);
    pl_lexer_locate(&parser->lexer, name.begin, &origin.line, &origin.column);
    status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    return read_value(parser, cfg, key, origin, err);
}

/* One statement, up to its end. */
static pl_status read_statement(pl_parser *parser, pl_config *cfg,
                                const char *origin_name, pl_error *err)
{
    size_t end;
    pl_value unused;
    if (pl_parser_sees(parser, "import") || pl_parser_sees(parser, "from"))
        return skip_statement(parser, &end, err);
    if (parser->token.kind == PL_TOKEN_STRING) {
        pl_status status = pl_parser_expression(parser, &unused, err);
        if (status == PL_OK && !at_end(parser))
            status = pl_parser_refuse(parser, err);
        return status;
    }
    if (parser->token.kind != PL_TOKEN_NAME)
        return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                             "expected a line key = value");
    return read_assignment(parser, cfg, origin_name, err);
}

static bool at_line_start(const pl_lexer *lexer, size_t at)
{
    return at == 0 || lexer->text[at - 1] == '\n' ||
           lexer->text[at - 1] == '\r';
}

pl_status pl_config_parse(pl_config *cfg, const char *text, size_t bytes,
                          const char *name, pl_heap *heap, pl_error *err)
{
    pl_parser parser = { .cfg = cfg, .names = PL_NAMES_KEYS, .heap = heap };
    const char *origin_name = NULL;
    pl_status status = pl_lexer_open(&parser.lexer, name, text, bytes, err);
    if (status == PL_OK)
        status = pl_heap_text(heap, &origin_name, name, strlen(name), err);
    if (status == PL_OK)
        status = pl_parser_advance(&parser, err);
    bool fresh_line = true;
    while (status == PL_OK && parser.token.kind != PL_TOKEN_END) {
        if (parser.token.kind != PL_TOKEN_NEWLINE) {
            if (fresh_line && !at_line_start(&parser.lexer, parser.token.begin))
                return pl_lexer_fail(&parser.lexer, parser.token.begin, err,
                                     "unexpected indentation: lines begin "
                                     "without spaces");
            status = read_statement(&parser, cfg, origin_name, err);
            if (status != PL_OK || parser.token.kind == PL_TOKEN_END)
                break;
        }
        fresh_line = parser.token.kind == PL_TOKEN_NEWLINE;
        status = pl_parser_advance(&parser, err);
    }
    return status;
}

/* ---- arguments ---- */

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
        unknown_key(lexer, name, err);
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
        return pl_fail(
            err, PL_E_USAGE, "command line: '%s' has no value: write %s=%s%s%s",
            argument, argument, row->type == PL_TYPE_FLAG ? "True" : "VALUE",
            row->type == PL_TYPE_FLAG ? "" : ", which is ",
            row->type == PL_TYPE_FLAG ? "" : takes);
    }
    lexer->at = end + 1;
    *out = key;
    return PL_OK;
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
    if (status == PL_OK && parser->token.kind == PL_TOKEN_END)
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
    pl_parser parser = { .cfg = cfg, .heap = heap };
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
    bool text = type == PL_TYPE_TEXT || type == PL_TYPE_IGNORED;
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
