/* primary.c: names, brackets, calls and what is looked up in a value. */
#include "config/parse.h"

#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 96 };

/* A value, or a name that is not one yet: a module, a function, a method. */
typedef struct primary {
    pl_value value;
    char path[PATH_BYTES]; /* "os.environ.get"; "" for a value */
    bool method;           /* path is the method of value */
    size_t at;             /* where it begins */
} primary;

static pl_status not_evaluated(pl_parser *parser, const primary *p,
                               pl_value *out, pl_error *err)
{
    pl_error why;
    size_t end = parser->token.begin, bytes = 0;
    const char *text = parser->lexer.text + p->at;
    while (end > p->at && strchr(" \t", parser->lexer.text[end - 1]))
        end--;
    while (p->at + bytes < end && text[bytes] != '\n' && text[bytes] != '\r')
        bytes++;
    pl_status status = pl_fail(&why, PL_E_CONFIG,
                               "'%.*s' is not evaluated, and a key needs its "
                               "value: " PL_ACCEPTED,
                               bytes < 60 ? (int)bytes : 60, text);
    return pl_parser_unknown(parser, p->at, status, &why, out, err);
}

/* ---- names ---- */

/* A key without effect has Python text as its value. */
static pl_status ignored_value(pl_parser *parser, size_t at, pl_key key,
                               pl_value *out, pl_error *err)
{
    pl_ignored ignored;
    const pl_key_info *row = pl_key_row(key);
    memcpy(&ignored, (const char *)parser->cfg + row->offset, sizeof ignored);
    if (!ignored.literal) {
        pl_error why;
        pl_status status = pl_fail(&why, PL_E_CONFIG,
                                   "the value of '%s' is not known: it was set "
                                   "to an expression that is not evaluated",
                                   row->name);
        return pl_parser_unknown(parser, at, status, &why, out, err);
    }
    pl_parser inner = { .cfg = parser->cfg,
                        .names = PL_NAMES_NONE,
                        .heap = parser->heap,
                        .heap_begin = parser->heap_begin };
    pl_status status = pl_lexer_open(&inner.lexer, row->name, ignored.text,
                                     strlen(ignored.text), err);
    if (status == PL_OK)
        status = pl_parser_advance(&inner, err);
    if (status == PL_OK)
        status = pl_parser_expression(&inner, out, err);
    return status;
}

static pl_status unknown_name(pl_parser *parser, pl_token token, pl_value *out,
                              pl_error *err)
{
    static const char *const python[][2] = {
        { "true", "True" },   { "TRUE", "True" },   { "yes", "True" },
        { "false", "False" }, { "FALSE", "False" }, { "no", "False" },
        { "none", "None" },   { "null", "None" },   { "nil", "None" },
    };
    const pl_lexer *lexer = &parser->lexer;
    const char *name = lexer->text + token.begin;
    size_t bytes = token.end - token.begin;
    int shown = bytes < 40 ? (int)bytes : 40;
    pl_key nearest = pl_key_nearest(name, bytes);
    pl_error why = { .status = PL_OK };
    for (size_t i = 0; i < sizeof python / sizeof *python; i++)
        if (pl_lexer_is(lexer, token, python[i][0]))
            pl_fail(&why, PL_E_CONFIG,
                    "'%s' is not a value in Python: write %s", python[i][0],
                    python[i][1]);
    if (why.status == PL_OK && nearest != PL_KEY_COUNT)
        pl_fail(&why, PL_E_CONFIG,
                "unknown name '%.*s': did you mean '%s'? (a string needs "
                "quotes)",
                shown, name, pl_key_row(nearest)->name);
    else if (why.status == PL_OK)
        pl_fail(&why, PL_E_CONFIG,
                "unknown name '%.*s': a name must be that of a key or of a "
                "variable set above, a string needs quotes",
                shown, name);
    return pl_parser_unknown(parser, token.begin, PL_E_CONFIG, &why, out, err);
}

/* A variable's value, or the reason why it has none, with this place. */
static pl_status variable_value(pl_parser *parser, pl_token token,
                                pl_variable *variable, primary *p,
                                pl_error *err)
{
    variable->used = true;
    p->value = variable->value;
    if (variable->module) {
        snprintf(p->path, sizeof p->path, "%s", variable->module);
        return PL_OK;
    }
    if (p->value.kind != PL_VALUE_UNKNOWN)
        return PL_OK;
    pl_error why;
    const char *reason = variable->value.text;
    size_t bytes = strcspn(reason, "\n");
    pl_status status = pl_fail(
        &why, PL_E_CONFIG, "the value of '%.40s' is not known: %.*s",
        variable->name, bytes < 400 ? (int)bytes : 400, reason);
    return pl_parser_unknown(parser, token.begin, status, &why, &p->value, err);
}

static bool is_keyword(const pl_lexer *lexer, pl_token token)
{
    static const char *const words[] = { "if",     "else", "for",  "lambda",
                                         "await",  "from", "with", "yield",
                                         "import", "and",  "or",   "not",
                                         "in",     "is",   "del",  "async" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (pl_lexer_is(lexer, token, words[i]))
            return true;
    return false;
}

static pl_status parse_name(pl_parser *parser, primary *p, pl_error *err)
{
    const pl_lexer *lexer = &parser->lexer;
    pl_token token = parser->token;
    const char *name = lexer->text + token.begin;
    size_t bytes = token.end - token.begin;
    if (is_keyword(lexer, token))
        return pl_parser_refuse(parser, err);
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (pl_lexer_is(lexer, token, "True") || pl_lexer_is(lexer, token, "False"))
        p->value = pl_value_flag(name[0] == 'T');
    else if (pl_lexer_is(lexer, token, "None"))
        p->value = pl_value_none();
    else if (parser->names == PL_NAMES_NONE)
        return unknown_name(parser, token, &p->value, err);
    else {
        pl_variable *variable = pl_scope_find(parser->scope, name, bytes);
        pl_key key = pl_key_find(name, bytes);
        const bool call = pl_parser_sees(parser, "(");
        if (variable)
            return variable_value(parser, token, variable, p, err);
        if (key != PL_KEY_COUNT && !call) {
            if (pl_key_row(key)->type == PL_TYPE_IGNORED)
                return ignored_value(parser, token.begin, key, &p->value, err);
            p->value = pl_config_get(parser->cfg, key);
            return PL_OK;
        }
        if (pl_call_knows(name, bytes) || (call && bytes < sizeof p->path))
            snprintf(p->path, sizeof p->path, "%.*s", (int)bytes, name);
        else
            return unknown_name(parser, token, &p->value, err);
    }
    return PL_OK;
}

/* ---- lists ---- */

typedef struct items {
    pl_value *values;
    const char **names; /* of a call's arguments */
    size_t count, capacity, names_capacity;
    pl_value unknown; /* the first unknown one */
} items;

static pl_status add_item(pl_parser *parser, items *list, const pl_value *value,
                          pl_token name, pl_error *err)
{
    pl_status status = pl_heap_grow(parser->heap, &list->values,
                                    &list->capacity, list->count + 1,
                                    sizeof *list->values, err);
    if (status == PL_OK)
        status = pl_heap_grow(parser->heap, &list->names, &list->names_capacity,
                              list->count + 1, sizeof *list->names, err);
    if (status != PL_OK)
        return status;
    if (value->kind == PL_VALUE_UNKNOWN &&
        list->unknown.kind != PL_VALUE_UNKNOWN)
        list->unknown = *value;
    list->names[list->count] = NULL;
    list->values[list->count++] = *value;
    if (name.end > name.begin)
        status = pl_heap_text(parser->heap, &list->names[list->count - 1],
                              parser->lexer.text + name.begin,
                              name.end - name.begin, err);
    return status;
}

/* name= of a call's argument, if that is what stands here. */
static pl_status take_argument_name(pl_parser *parser, pl_token *name,
                                    pl_error *err)
{
    pl_parser back = *parser;
    *name = (pl_token){ PL_TOKEN_NAME, 0, 0 };
    if (parser->token.kind != PL_TOKEN_NAME)
        return PL_OK;
    pl_token here = parser->token;
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (!pl_parser_sees(parser, "=")) {
        *parser = back;
        return PL_OK;
    }
    *name = here;
    return pl_parser_advance(parser, err);
}

/* Items up to `closing`, which is used up; the opening one was. */
static pl_status read_items(pl_parser *parser, items *list, const char *closing,
                            bool named, pl_error *err)
{
    pl_status status = PL_OK;
    while (status == PL_OK && !pl_parser_sees(parser, closing)) {
        pl_value item;
        pl_token name = { PL_TOKEN_NAME, 0, 0 };
        if (named)
            status = take_argument_name(parser, &name, err);
        if (status == PL_OK)
            status = pl_parser_expression(parser, &item, err);
        if (status == PL_OK)
            status = add_item(parser, list, &item, name, err);
        if (status != PL_OK || pl_parser_sees(parser, closing))
            break;
        if (!pl_parser_sees(parser, ","))
            return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                                 "expected , or %s here: " PL_ACCEPTED,
                                 closing);
        status = pl_parser_advance(parser, err);
    }
    return status == PL_OK ? pl_parser_advance(parser, err) : status;
}

static pl_status finish_list(pl_parser *parser, size_t at, const items *list,
                             bool tuple, pl_value *out, pl_error *err)
{
    if (list->unknown.kind == PL_VALUE_UNKNOWN) {
        *out = list->unknown;
        return PL_OK;
    }
    *out = tuple ? pl_value_tuple(list->values, list->count)
                 : pl_value_list(list->values, list->count);
    if (out->nesting <= PL_VALUE_MAX_NESTING &&
        out->weight <= PL_VALUE_MAX_ITEMS)
        return PL_OK;
    pl_error why;
    pl_status status = pl_fail(&why, PL_E_CONFIG,
                               "a list of more than %d items, or %d lists in "
                               "each other",
                               PL_VALUE_MAX_ITEMS, PL_VALUE_MAX_NESTING);
    return pl_parser_unknown(parser, at, status, &why, out, err);
}

pl_status pl_parser_items(pl_parser *parser, pl_value *out, pl_error *err)
{
    const pl_token none = { PL_TOKEN_NAME, 0, 0 };
    size_t at = parser->token.begin;
    items list = { .count = 0 };
    pl_status status = add_item(parser, &list, out, none, err);
    while (status == PL_OK && pl_parser_sees(parser, ",")) {
        status = pl_parser_advance(parser, err);
        if (status != PL_OK || parser->token.kind == PL_TOKEN_NEWLINE ||
            parser->token.kind == PL_TOKEN_END || pl_parser_sees(parser, ")") ||
            pl_parser_sees(parser, ";"))
            break;
        status = pl_parser_expression(parser, out, err);
        if (status == PL_OK)
            status = add_item(parser, &list, out, none, err);
    }
    return status == PL_OK ? finish_list(parser, at, &list, true, out, err)
                           : status;
}

/* ( ... ): a value in brackets, or a tuple. */
static pl_status parse_brackets(pl_parser *parser, pl_value *out, pl_error *err)
{
    size_t at = parser->token.begin;
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (pl_parser_sees(parser, ")") && parser->lexer.text[at + 1] == ')') {
        *out = pl_value_tuple(NULL, 0);
        return pl_parser_advance(parser, err);
    }
    status = pl_parser_expressions(parser, out, err);
    if (status == PL_OK && !pl_parser_sees(parser, ")"))
        status = pl_parser_refuse(parser, err);
    return status == PL_OK ? pl_parser_advance(parser, err) : status;
}

static pl_status parse_atom(pl_parser *parser, primary *p, pl_error *err)
{
    items list = { .count = 0 };
    pl_status status;
    switch (parser->token.kind) {
    case PL_TOKEN_NUMBER:
        status = pl_lexer_number(&parser->lexer, parser->token, &p->value, err);
        return status == PL_OK ? pl_parser_advance(parser, err) : status;
    case PL_TOKEN_STRING:
        return pl_parser_strings(parser, &p->value, err);
    case PL_TOKEN_NAME:
        return parse_name(parser, p, err);
    case PL_TOKEN_SIGN:
        break;
    case PL_TOKEN_NEWLINE:
    case PL_TOKEN_END:
        return pl_parser_refuse(parser, err);
    }
    if (pl_parser_sees(parser, "("))
        return parse_brackets(parser, &p->value, err);
    if (!pl_parser_sees(parser, "["))
        return pl_parser_refuse(parser, err);
    status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = read_items(parser, &list, "]", false, err);
    return status == PL_OK
               ? finish_list(parser, p->at, &list, false, &p->value, err)
               : status;
}

/* ---- what follows a value ---- */

static pl_status parse_dot(pl_parser *parser, primary *p, pl_error *err)
{
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (parser->token.kind != PL_TOKEN_NAME)
        return pl_parser_refuse(parser, err);
    size_t bytes = parser->token.end - parser->token.begin;
    size_t used = strlen(p->path);
    const char *name = parser->lexer.text + parser->token.begin;
    p->method = used == 0;
    snprintf(p->path + used, sizeof p->path - used, "%s%.*s", used ? "." : "",
             bytes < PATH_BYTES ? (int)bytes : PATH_BYTES, name);
    return pl_parser_advance(parser, err);
}

static pl_status parse_call(pl_parser *parser, primary *p, pl_error *err)
{
    items list = { .count = 0 };
    pl_error why;
    pl_status status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = read_items(parser, &list, ")", true, err);
    if (status != PL_OK)
        return status;
    if (p->value.kind == PL_VALUE_UNKNOWN && (p->method || !p->path[0])) {
        p->path[0] = '\0';
        p->method = false;
        return PL_OK;
    }
    if (list.unknown.kind == PL_VALUE_UNKNOWN) {
        p->value = list.unknown;
    } else if (!p->path[0]) {
        status = not_evaluated(parser, p, &p->value, err);
    } else {
        const pl_value self = p->value;
        const pl_call call = { p->path, p->method ? &self : NULL, list.values,
                               list.names, list.count };
        status = pl_call_evaluate(&call, parser->scope, &p->value, parser->heap,
                                  &why);
        if (status == PL_E_CONFIG && !why.text[0])
            status = not_evaluated(parser, p, &p->value, err);
        else if (status != PL_OK)
            status = pl_parser_unknown(parser, p->at, status, &why, &p->value,
                                       err);
    }
    p->path[0] = '\0';
    p->method = false;
    return status;
}

static pl_status parse_index(pl_parser *parser, primary *p, pl_error *err)
{
    pl_value index;
    pl_error why;
    size_t at = parser->token.begin;
    pl_status status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = pl_parser_expressions(parser, &index, err);
    if (status == PL_OK && !pl_parser_sees(parser, "]"))
        status = pl_parser_refuse(parser, err);
    if (status == PL_OK)
        status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (strcmp(p->path, "os.environ") == 0) {
        const pl_call call = { "os.environ[]", NULL, &index, NULL, 1 };
        status = index.kind == PL_VALUE_UNKNOWN
                     ? PL_OK
                     : pl_call_evaluate(&call, parser->scope, &p->value,
                                        parser->heap, &why);
    } else if (p->path[0]) {
        status = not_evaluated(parser, p, &p->value, err);
        p->path[0] = '\0';
        p->method = false;
        return status;
    } else if (p->value.kind != PL_VALUE_UNKNOWN &&
               index.kind != PL_VALUE_UNKNOWN) {
        const pl_value sequence = p->value;
        status = pl_value_index(&p->value, &sequence, &index, parser->heap,
                                &why);
    }
    p->path[0] = '\0';
    if (index.kind == PL_VALUE_UNKNOWN && p->value.kind != PL_VALUE_UNKNOWN)
        p->value = index;
    return status == PL_OK
               ? PL_OK
               : pl_parser_unknown(parser, at, status, &why, &p->value, err);
}

pl_status pl_parser_primary(pl_parser *parser, pl_value *out, pl_error *err)
{
    primary p = { .at = parser->token.begin };
    pl_status status = parse_atom(parser, &p, err);
    while (status == PL_OK) {
        if (pl_parser_sees(parser, "."))
            status = parse_dot(parser, &p, err);
        else if (pl_parser_sees(parser, "("))
            status = parse_call(parser, &p, err);
        else if (pl_parser_sees(parser, "["))
            status = parse_index(parser, &p, err);
        else
            break;
    }
    if (status == PL_OK && p.path[0] && p.value.kind != PL_VALUE_UNKNOWN &&
        (p.method || !pl_call_constant(p.path, &p.value)))
        status = not_evaluated(parser, &p, &p.value, err);
    *out = p.value;
    return status;
}
