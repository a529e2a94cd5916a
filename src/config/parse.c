/* parse.c: expressions by recursive descent, of bounded depth.
 *
 *     sum      product { (+ | -) product }
 *     product  sign { (* | / | // | %) sign }
 *     sign     (+ | -) sign | power
 *     power    atom [ ** sign ]
 *     atom     number | strings | name | ( sum ) | [ sum, ... ]
 *
 * Every recursion passes through `sign`, which counts the depth. */
#include "config/parse.h"

#include <string.h>

#define ACCEPTED                                                               \
    "a value is made of numbers, strings, True, False, None, names of keys, "  \
    "lists of ints, + - * / // %% ** and parentheses"

pl_status pl_parser_advance(pl_parser *parser, pl_error *err)
{
    return pl_lexer_next(&parser->lexer, &parser->token, err);
}

bool pl_parser_sees(const pl_parser *parser, const char *sign)
{
    return pl_lexer_is(&parser->lexer, parser->token, sign);
}

pl_status pl_parser_refuse(const pl_parser *parser, pl_error *err)
{
    const pl_lexer *lexer = &parser->lexer;
    pl_token token = parser->token;
    size_t bytes = token.end - token.begin;
    if (token.kind == PL_TOKEN_END || token.kind == PL_TOKEN_NEWLINE)
        return pl_lexer_fail(lexer, token.begin, err,
                             "a value is missing here: " ACCEPTED);
    if (pl_parser_sees(parser, "("))
        return pl_lexer_fail(lexer, token.begin, err,
                             "function calls are not evaluated: " ACCEPTED);
    if (pl_parser_sees(parser, "="))
        return pl_lexer_fail(lexer, token.begin, err,
                             "one assignment at a time: write key = value on a "
                             "line of its own");
    if (pl_parser_sees(parser, ","))
        return pl_lexer_fail(lexer, token.begin, err,
                             "a tuple is not accepted: " ACCEPTED);
    return pl_lexer_fail(
        lexer, token.begin, err, "'%.*s' is not accepted here: " ACCEPTED,
        bytes < 30 ? (int)bytes : 30, lexer->text + token.begin);
}

pl_status pl_parser_strings(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_status status = pl_lexer_string(&parser->lexer, parser->token, out,
                                       parser->heap, err);
    if (status == PL_OK)
        status = pl_parser_advance(parser, err);
    while (status == PL_OK && parser->token.kind == PL_TOKEN_STRING) {
        size_t at = parser->token.begin;
        pl_value more, first = *out;
        status = pl_lexer_string(&parser->lexer, parser->token, &more,
                                 parser->heap, err);
        if (status != PL_OK)
            break;
        status = pl_value_combine(out, PL_OP_ADD, &first, &more, parser->heap,
                                  err);
        if (status != PL_OK)
            return pl_lexer_place(&parser->lexer, at, status, err);
        status = pl_parser_advance(parser, err);
    }
    return status;
}

/* ---- names ---- */

/* A key without effect has Python text as its value. */
static pl_status ignored_value(const pl_parser *parser, size_t at, pl_key key,
                               pl_value *out, pl_error *err)
{
    pl_ignored ignored;
    const pl_key_info *row = pl_key_row(key);
    memcpy(&ignored, (const char *)parser->cfg + row->offset, sizeof ignored);
    if (!ignored.literal)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "the value of '%s' is not known: it was set to an "
                             "expression that is not evaluated",
                             row->name);
    pl_parser inner = { .cfg = parser->cfg,
                        .names = PL_NAMES_NONE,
                        .heap = parser->heap };
    pl_status status = pl_lexer_open(&inner.lexer, row->name, ignored.text,
                                     strlen(ignored.text), err);
    if (status == PL_OK)
        status = pl_parser_advance(&inner, err);
    if (status == PL_OK)
        status = pl_parser_expression(&inner, out, err);
    return status;
}

static pl_status unknown_name(const pl_parser *parser, pl_token token,
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
    for (size_t i = 0; i < sizeof python / sizeof *python; i++)
        if (pl_lexer_is(lexer, token, python[i][0]))
            return pl_lexer_fail(lexer, token.begin, err,
                                 "'%s' is not a value in Python: write %s",
                                 python[i][0], python[i][1]);
    pl_key nearest = pl_key_nearest(name, bytes);
    if (nearest != PL_KEY_COUNT)
        return pl_lexer_fail(lexer, token.begin, err,
                             "unknown name '%.*s': did you mean '%s'? (a "
                             "string needs quotes)",
                             shown, name, pl_key_row(nearest)->name);
    return pl_lexer_fail(lexer, token.begin, err,
                         "unknown name '%.*s': a name must be that of a key, a "
                         "string needs quotes",
                         shown, name);
}

static pl_status parse_name(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_token token = parser->token;
    const char *name = parser->lexer.text + token.begin;
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (pl_lexer_is(&parser->lexer, token, "True") ||
        pl_lexer_is(&parser->lexer, token, "False")) {
        *out = pl_value_flag(name[0] == 'T');
        return PL_OK;
    }
    if (pl_lexer_is(&parser->lexer, token, "None")) {
        *out = pl_value_none();
        return PL_OK;
    }
    if (pl_parser_sees(parser, "(") || pl_parser_sees(parser, "."))
        return pl_lexer_fail(&parser->lexer, token.begin, err,
                             "function calls and modules are not evaluated: "
                             "" ACCEPTED);
    pl_key key = pl_key_find(name, token.end - token.begin);
    if (key == PL_KEY_COUNT || parser->names == PL_NAMES_NONE)
        return unknown_name(parser, token, err);
    if (pl_key_row(key)->type == PL_TYPE_IGNORED)
        return ignored_value(parser, token.begin, key, out, err);
    *out = pl_config_get(parser->cfg, key);
    return PL_OK;
}

/* ---- atoms ---- */

static pl_status parse_list(pl_parser *parser, pl_value *out, pl_error *err)
{
    int64_t *items = NULL;
    size_t count = 0, capacity = 0;
    pl_status status = pl_parser_advance(parser, err);
    while (status == PL_OK && !pl_parser_sees(parser, "]")) {
        size_t at = parser->token.begin;
        pl_value item;
        status = pl_parser_expression(parser, &item, err);
        if (status != PL_OK)
            return status;
        if (item.kind != PL_VALUE_INT)
            return pl_lexer_fail(&parser->lexer, at, err,
                                 "a list holds ints, found %s",
                                 pl_value_kind_name(item.kind));
        status = pl_heap_grow(parser->heap, &items, &capacity, count + 1,
                              sizeof *items, err);
        if (status != PL_OK)
            return status;
        items[count++] = item.whole;
        if (pl_parser_sees(parser, "]"))
            break;
        if (!pl_parser_sees(parser, ","))
            return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                                 "expected , or ] in this list");
        status = pl_parser_advance(parser, err);
    }
    if (status != PL_OK)
        return status;
    *out = pl_value_list(items, count);
    return pl_parser_advance(parser, err);
}

static pl_status parse_atom(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_status status;
    switch (parser->token.kind) {
    case PL_TOKEN_NUMBER:
        status = pl_lexer_number(&parser->lexer, parser->token, out, err);
        return status == PL_OK ? pl_parser_advance(parser, err) : status;
    case PL_TOKEN_STRING:
        return pl_parser_strings(parser, out, err);
    case PL_TOKEN_NAME:
        return parse_name(parser, out, err);
    case PL_TOKEN_SIGN:
        break;
    case PL_TOKEN_NEWLINE:
    case PL_TOKEN_END:
        return pl_parser_refuse(parser, err);
    }
    if (pl_parser_sees(parser, "["))
        return parse_list(parser, out, err);
    if (!pl_parser_sees(parser, "("))
        return pl_parser_refuse(parser, err);
    status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = pl_parser_expression(parser, out, err);
    if (status != PL_OK)
        return status;
    if (!pl_parser_sees(parser, ")"))
        return pl_parser_refuse(parser, err);
    return pl_parser_advance(parser, err);
}

/* ---- operators ---- */

static pl_status combine(pl_parser *parser, size_t at, pl_operator op,
                         pl_value *left, const pl_value *right, pl_error *err)
{
    pl_value a = *left;
    pl_status status = pl_value_combine(left, op, &a, right, parser->heap, err);
    return status == PL_OK ? PL_OK
                           : pl_lexer_place(&parser->lexer, at, status, err);
}

static pl_status parse_sign(pl_parser *parser, pl_value *out, pl_error *err);

static pl_status parse_power(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_value exponent;
    pl_status status = parse_atom(parser, out, err);
    if (status != PL_OK || !pl_parser_sees(parser, "**"))
        return status;
    size_t at = parser->token.begin;
    status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = parse_sign(parser, &exponent, err);
    if (status == PL_OK)
        status = combine(parser, at, PL_OP_POWER, out, &exponent, err);
    return status;
}

static pl_status parse_sign(pl_parser *parser, pl_value *out, pl_error *err)
{
    bool minus = pl_parser_sees(parser, "-");
    size_t at = parser->token.begin;
    pl_status status;
    if (parser->depth == PL_MAX_NESTING)
        return pl_lexer_fail(&parser->lexer, at, err,
                             "an expression nested deeper than %d",
                             PL_MAX_NESTING);
    parser->depth++;
    if (minus || pl_parser_sees(parser, "+")) {
        pl_value operand, negated;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_sign(parser, &operand, err);
        if (status == PL_OK) {
            status = pl_value_negate(&negated, &operand, err);
            if (status == PL_OK && !minus)
                status = pl_value_negate(&negated, &negated, err);
            if (status != PL_OK)
                pl_lexer_place(&parser->lexer, at, status, err);
            else
                *out = negated;
        }
    } else {
        status = parse_power(parser, out, err);
    }
    parser->depth--;
    return status;
}

static pl_status parse_product(pl_parser *parser, pl_value *out, pl_error *err)
{
    static const struct {
        const char *sign;
        pl_operator op;
    } known[] = {
        { "*", PL_OP_MULTIPLY },
        { "/", PL_OP_DIVIDE },
        { "//", PL_OP_FLOOR_DIVIDE },
        { "%", PL_OP_MODULO },
    };
    pl_status status = parse_sign(parser, out, err);
    while (status == PL_OK) {
        size_t at = parser->token.begin, i = 0;
        pl_value right;
        while (i < 4 && !pl_parser_sees(parser, known[i].sign))
            i++;
        if (i == 4)
            break;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_sign(parser, &right, err);
        if (status == PL_OK)
            status = combine(parser, at, known[i].op, out, &right, err);
    }
    return status;
}

pl_status pl_parser_expression(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_status status = parse_product(parser, out, err);
    while (status == PL_OK) {
        size_t at = parser->token.begin;
        bool minus = pl_parser_sees(parser, "-");
        pl_value right;
        if (!minus && !pl_parser_sees(parser, "+"))
            break;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_product(parser, &right, err);
        if (status == PL_OK)
            status = combine(parser, at, minus ? PL_OP_SUBTRACT : PL_OP_ADD,
                             out, &right, err);
    }
    return status;
}
