/* read.c: a config file, statement by statement. */
#include "config/config.h"
#include "config/statement.h"

#include <string.h>

bool pl_statement_ends(const pl_parser *parser)
{
    return parser->token.kind == PL_TOKEN_END ||
           parser->token.kind == PL_TOKEN_NEWLINE ||
           (parser->lexer.depth == 0 && pl_parser_sees(parser, ";"));
}

pl_status pl_statement_skip(pl_parser *parser, size_t *end, pl_error *err)
{
    pl_status status = PL_OK;
    while (status == PL_OK && !pl_statement_ends(parser)) {
        pl_token token = parser->token;
        pl_variable *variable = NULL;
        if (token.kind == PL_TOKEN_NAME)
            variable = pl_scope_find(parser->scope,
                                     parser->lexer.text + token.begin,
                                     token.end - token.begin);
        if (variable)
            variable->used = true;
        if (end)
            *end = token.end;
        status = pl_parser_advance(parser, err);
    }
    return status;
}

pl_status pl_statement_unknown_key(const pl_lexer *lexer, pl_token token,
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
                         "unknown key '%.*s': no key has a similar name, and "
                         "no other value is made of it; 'plimsoll config' "
                         "lists the keys",
                         shown, name);
}

/* ---- statements ---- */

/* assert condition, message: what is known to be false stops. */
static pl_status read_assert(pl_parser *parser, pl_error *err)
{
    pl_value condition;
    size_t at = parser->token.begin;
    pl_status status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = pl_parser_expression(parser, &condition, err);
    if (status != PL_OK)
        return status;
    if (condition.kind != PL_VALUE_UNKNOWN && !pl_value_truth(&condition))
        return pl_lexer_fail(&parser->lexer, at, err,
                             "this assertion does not hold");
    return pl_statement_skip(parser, NULL, err);
}

static bool calls(const pl_parser *parser, const char *name)
{
    const pl_lexer *lexer = &parser->lexer;
    size_t at = parser->token.end;
    while (at < lexer->bytes && lexer->text[at] == ' ')
        at++;
    return pl_parser_sees(parser, name) && at < lexer->bytes &&
           lexer->text[at] == '(';
}

/* One statement, up to its end. */
static pl_status read_statement(pl_parser *parser, pl_config *cfg,
                                const char *origin_name, pl_error *err)
{
    pl_value unused;
    pl_status status = PL_OK;
    if (pl_parser_sees(parser, "import") || pl_parser_sees(parser, "from"))
        return pl_statement_import(parser, cfg, err);
    if (parser->token.kind == PL_TOKEN_STRING)
        status = pl_parser_expression(parser, &unused, err);
    else if (parser->token.kind != PL_TOKEN_NAME)
        return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                             "expected a line key = value");
    else if (calls(parser, "print"))
        return pl_statement_skip(parser, NULL, err);
    else if (calls(parser, "exec"))
        status = pl_statement_exec(parser, cfg, err);
    else if (pl_parser_sees(parser, "assert"))
        return read_assert(parser, err);
    else if (pl_parser_sees(parser, "pass"))
        status = pl_parser_advance(parser, err);
    else
        return pl_statement_assign(parser, cfg, origin_name, err);
    if (status == PL_OK && !pl_statement_ends(parser))
        status = pl_parser_refuse(parser, err);
    return status;
}

static bool at_line_start(const pl_lexer *lexer, size_t at)
{
    return at == 0 || lexer->text[at - 1] == '\n' ||
           lexer->text[at - 1] == '\r';
}

static pl_status read_statements(pl_parser *parser, pl_config *cfg,
                                 const char *origin_name, pl_error *err)
{
    bool fresh_line = true;
    pl_status status = pl_parser_advance(parser, err);
    while (status == PL_OK && parser->token.kind != PL_TOKEN_END) {
        if (parser->token.kind != PL_TOKEN_NEWLINE) {
            size_t at = parser->token.begin;
            if (fresh_line && !at_line_start(&parser->lexer, at))
                return pl_lexer_fail(&parser->lexer, at, err,
                                     "unexpected indentation: lines begin "
                                     "without spaces");
            status = read_statement(parser, cfg, origin_name, err);
            if (status != PL_OK || parser->token.kind == PL_TOKEN_END)
                break;
        }
        fresh_line = parser->token.kind == PL_TOKEN_NEWLINE;
        status = pl_parser_advance(parser, err);
    }
    return status;
}

/* ---- files ---- */

pl_status pl_scope_read(pl_scope *scope, pl_config *cfg, const char *text,
                        size_t bytes, const char *name, pl_heap *heap,
                        pl_error *err)
{
    pl_parser parser = { .cfg = cfg,
                         .names = PL_NAMES_KEYS,
                         .scope = scope,
                         .heap = heap,
                         .heap_begin = heap->taken_bytes };
    const char *origin_name = NULL;
    pl_status status = pl_lexer_open(&parser.lexer, name, text, bytes, err);
    if (status == PL_OK)
        status = pl_heap_text(heap, &origin_name, name, strlen(name), err);
    if (status != PL_OK)
        return status;
    scope->chain[scope->depth++] = origin_name;
    status = read_statements(&parser, cfg, origin_name, err);
    scope->depth--;
    return status;
}

/* A name that nothing uses was meant to be a key. One that looks like a key
 * which was left alone may have been meant to be it: that is said. */
static pl_status check_variables(const pl_scope *scope, const pl_config *cfg,
                                 pl_error *err)
{
    const pl_log *log = scope->host ? scope->host->log : NULL;
    for (const pl_variable *v = scope->first; v; v = v->next) {
        pl_key near = pl_key_nearest(v->name, strlen(v->name));
        if (log && !v->why && !v->module)
            pl_log_say(log, PL_LOG_NOTE, "without effect here: %s", v->name);
        if (!v->why)
            continue;
        if (!v->used)
            return pl_fail(err, PL_E_CONFIG, "%s", v->why);
        if (log && near != PL_KEY_COUNT && strlen(v->name) > 5 &&
            cfg->origin[near].source == PL_FROM_DEFAULT)
            pl_log_say(log, PL_LOG_NOTE,
                       "%s: '%s' is a variable of its own there; '%s', a key, "
                       "is not set",
                       scope->chain[0], v->name, pl_key_row(near)->name);
    }
    return PL_OK;
}

pl_status pl_config_read(pl_config *cfg, const char *text, size_t bytes,
                         const char *name, const pl_config_host *host,
                         pl_heap *heap, pl_error *err)
{
    pl_scope scope = { .host = host };
    pl_status status = pl_scope_read(&scope, cfg, text, bytes, name, heap, err);
    return status == PL_OK ? check_variables(&scope, cfg, err) : status;
}

pl_status pl_config_parse(pl_config *cfg, const char *text, size_t bytes,
                          const char *name, pl_heap *heap, pl_error *err)
{
    return pl_config_read(cfg, text, bytes, name, NULL, heap, err);
}
