/* parse.c: expressions by recursive descent, of bounded depth.
 *
 *     expression  or [ if or else expression ]
 *     or          and { or and },  and  not { and not },  not  [not] comparison
 *     comparison  binary { (< | == | in | is | ...) binary }
 *     binary      sign { (| ^ & << >> + - * / // %) sign }, by precedence
 *     sign        (+ | - | ~) sign | power
 *     power       primary [ ** sign ]
 *     primary     atom { . name | ( arguments ) | [ index ] }
 *     atom        number | strings | name | ( ... ) | [ ... ]
 *
 * Every recursion passes through `sign` or an `else`, which count the depth.
 * Both sides of `if`, `and` and `or` are evaluated: nothing here has effects,
 * and what fails is an unknown value that nobody needs. */
#include "config/parse.h"
#include "base/units.h"

#include <string.h>

/* Of values that one expression or file makes. */
enum { MAX_SPENT_BYTES = 8 << 20 };

pl_status pl_parser_advance(pl_parser *parser, pl_error *err)
{
    /* a file that computes without end ends here */
    if (parser->heap->taken_bytes - parser->heap_begin > MAX_SPENT_BYTES)
        return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                             "the values so far take more than %s",
                             pl_units_bytes(MAX_SPENT_BYTES).text);
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
                             "a value is missing here: " PL_ACCEPTED);
    if (pl_parser_sees(parser, "="))
        return pl_lexer_fail(lexer, token.begin, err,
                             "only names can be assigned to: write key = value "
                             "on a line of its own");
    return pl_lexer_fail(
        lexer, token.begin, err, "'%.*s' is not accepted here: " PL_ACCEPTED,
        bytes < 30 ? (int)bytes : 30, lexer->text + token.begin);
}

/* ---- unknown values ---- */

pl_status pl_parser_unknown(pl_parser *parser, size_t at, pl_status status,
                            pl_error *why, pl_value *out, pl_error *err)
{
    const char *text = NULL;
    if (status != PL_E_CONFIG)
        return pl_fail(err, status, "%s", why->text);
    pl_lexer_place(&parser->lexer, at, status, why);
    status = pl_heap_text(parser->heap, &text, why->text, strlen(why->text),
                          err);
    *out = pl_value_unknown(text);
    return status;
}

pl_status pl_parser_combine(pl_parser *parser, size_t at, pl_operator op,
                            pl_value *left, const pl_value *right,
                            pl_error *err)
{
    pl_value a = *left;
    pl_error why;
    if (a.kind == PL_VALUE_UNKNOWN)
        return PL_OK;
    if (right->kind == PL_VALUE_UNKNOWN) {
        *left = *right;
        return PL_OK;
    }
    pl_status status = pl_value_combine(left, op, &a, right, parser->heap,
                                        &why);
    return status == PL_OK
               ? PL_OK
               : pl_parser_unknown(parser, at, status, &why, left, err);
}

/* ---- operators ---- */

static pl_status parse_sign(pl_parser *parser, pl_value *out, pl_error *err);

static pl_status parse_power(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_value exponent;
    pl_status status = pl_parser_primary(parser, out, err);
    if (status != PL_OK || !pl_parser_sees(parser, "**"))
        return status;
    size_t at = parser->token.begin;
    status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = parse_sign(parser, &exponent, err);
    if (status == PL_OK)
        status = pl_parser_combine(parser, at, PL_PY_POWER, out, &exponent,
                                   err);
    return status;
}

/* -x, +x and ~x, which is -x - 1. */
static pl_status apply_sign(pl_parser *parser, char sign, size_t at,
                            const pl_value *operand, pl_value *out,
                            pl_error *err)
{
    const pl_value one = pl_value_int(1);
    pl_error why;
    if (operand->kind == PL_VALUE_UNKNOWN) {
        *out = *operand;
        return PL_OK;
    }
    pl_status status = PL_OK;
    if (sign == '~' && operand->kind == PL_VALUE_FLOAT)
        status = pl_fail(&why, PL_E_CONFIG, "~ needs an int, found a float");
    pl_value negated = *operand;
    if (status == PL_OK)
        status = pl_value_negate(&negated, operand, &why);
    if (status == PL_OK && sign == '+')
        status = pl_value_negate(&negated, &negated, &why);
    if (status != PL_OK)
        return pl_parser_unknown(parser, at, status, &why, out, err);
    *out = negated;
    return sign == '~'
               ? pl_parser_combine(parser, at, PL_PY_SUBTRACT, out, &one, err)
               : PL_OK;
}

static pl_status too_deep(const pl_parser *parser, pl_error *err)
{
    return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                         "an expression nested deeper than %d", PL_MAX_NESTING);
}

static pl_status parse_sign(pl_parser *parser, pl_value *out, pl_error *err)
{
    size_t at = parser->token.begin;
    pl_status status;
    if (parser->depth == PL_MAX_NESTING)
        return too_deep(parser, err);
    parser->depth++;
    if (pl_parser_sees(parser, "-") || pl_parser_sees(parser, "+") ||
        pl_parser_sees(parser, "~")) {
        pl_value operand;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_sign(parser, &operand, err);
        if (status == PL_OK)
            status = apply_sign(parser, parser->lexer.text[at], at, &operand,
                                out, err);
    } else {
        status = parse_power(parser, out, err);
    }
    parser->depth--;
    return status;
}

typedef struct binary_operator {
    const char *sign;
    pl_operator op;
    int level; /* higher binds more */
} binary_operator;

static const binary_operator binaries[] = {
    { "|", PL_PY_BIT_OR, 0 },       { "^", PL_PY_BIT_XOR, 1 },
    { "&", PL_PY_BIT_AND, 2 },      { "<<", PL_PY_SHIFT_LEFT, 3 },
    { ">>", PL_PY_SHIFT_RIGHT, 3 }, { "+", PL_PY_ADD, 4 },
    { "-", PL_PY_SUBTRACT, 4 },     { "*", PL_PY_MULTIPLY, 5 },
    { "/", PL_PY_DIVIDE, 5 },       { "//", PL_PY_FLOOR_DIVIDE, 5 },
    { "%", PL_PY_MODULO, 5 },
};
enum { BINARIES = sizeof binaries / sizeof *binaries, LEVELS = 6 };

static pl_status parse_binary(pl_parser *parser, int level, pl_value *out,
                              pl_error *err)
{
    if (level == LEVELS)
        return parse_sign(parser, out, err);
    pl_status status = parse_binary(parser, level + 1, out, err);
    while (status == PL_OK) {
        size_t at = parser->token.begin, i = 0;
        pl_value right;
        while (i < BINARIES && (binaries[i].level != level ||
                                !pl_parser_sees(parser, binaries[i].sign)))
            i++;
        if (i == BINARIES)
            break;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_binary(parser, level + 1, &right, err);
        if (status == PL_OK)
            status = pl_parser_combine(parser, at, binaries[i].op, out, &right,
                                       err);
    }
    return status;
}

/* The comparison at the present token, used up; *found false if none is. */
static pl_status take_comparison(pl_parser *parser, pl_operator *op,
                                 bool *found, pl_error *err)
{
    static const struct {
        const char *first, *second; /* second: NULL if there is none */
        pl_operator op, alone;      /* alone: without the second */
    } known[] = {
        { "<", NULL, PL_PY_LESS, PL_PY_LESS },
        { "<=", NULL, PL_PY_LESS_EQUAL, PL_PY_LESS_EQUAL },
        { ">", NULL, PL_PY_GREATER, PL_PY_GREATER },
        { ">=", NULL, PL_PY_GREATER_EQUAL, PL_PY_GREATER_EQUAL },
        { "==", NULL, PL_PY_EQUAL, PL_PY_EQUAL },
        { "!=", NULL, PL_PY_NOT_EQUAL, PL_PY_NOT_EQUAL },
        { "in", NULL, PL_PY_IN, PL_PY_IN },
        { "not", "in", PL_PY_NOT_IN, PL_PY_NOT_IN },
        { "is", "not", PL_PY_IS_NOT, PL_PY_IS },
    };
    size_t i = 0;
    while (i < 9 && !pl_parser_sees(parser, known[i].first))
        i++;
    *found = i < 9;
    if (!*found)
        return PL_OK;
    *op = known[i].alone;
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK || !known[i].second)
        return status;
    if (pl_parser_sees(parser, known[i].second)) {
        *op = known[i].op;
        return pl_parser_advance(parser, err);
    }
    return known[i].op == known[i].alone ? pl_parser_refuse(parser, err)
                                         : PL_OK;
}

/* a < b < c is a < b and b < c. */
static pl_status parse_comparison(pl_parser *parser, pl_value *out,
                                  pl_error *err)
{
    pl_status status = parse_binary(parser, 0, out, err);
    pl_value left = *out;
    bool found = false, first = true;
    while (status == PL_OK) {
        pl_operator op = PL_PY_LESS;
        pl_value right, holds = left;
        size_t at = parser->token.begin;
        status = take_comparison(parser, &op, &found, err);
        if (status != PL_OK || !found)
            break;
        status = parse_binary(parser, 0, &right, err);
        if (status == PL_OK)
            status = pl_parser_combine(parser, at, op, &holds, &right, err);
        if (first || (out->kind != PL_VALUE_UNKNOWN && pl_value_truth(out)))
            *out = holds;
        left = right;
        first = false;
    }
    return status;
}

static pl_status parse_not(pl_parser *parser, pl_value *out, pl_error *err)
{
    int turns = 0;
    pl_status status = PL_OK;
    for (; status == PL_OK && pl_parser_sees(parser, "not"); turns++)
        status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = parse_comparison(parser, out, err);
    if (status == PL_OK && turns > 0 && out->kind != PL_VALUE_UNKNOWN)
        *out = pl_value_flag(pl_value_truth(out) == (turns % 2 == 0));
    return status;
}

static pl_status parse_and(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_status status = parse_not(parser, out, err);
    while (status == PL_OK && pl_parser_sees(parser, "and")) {
        pl_value right;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_not(parser, &right, err);
        if (status == PL_OK && out->kind != PL_VALUE_UNKNOWN &&
            pl_value_truth(out))
            *out = right;
    }
    return status;
}

static pl_status parse_or(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_status status = parse_and(parser, out, err);
    while (status == PL_OK && pl_parser_sees(parser, "or")) {
        pl_value right;
        status = pl_parser_advance(parser, err);
        if (status == PL_OK)
            status = parse_and(parser, &right, err);
        if (status == PL_OK && out->kind != PL_VALUE_UNKNOWN &&
            !pl_value_truth(out))
            *out = right;
    }
    return status;
}

pl_status pl_parser_expression(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_value condition, other;
    pl_status status = parse_or(parser, out, err);
    if (status != PL_OK || !pl_parser_sees(parser, "if"))
        return status;
    status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = parse_or(parser, &condition, err);
    if (status == PL_OK && !pl_parser_sees(parser, "else"))
        return pl_lexer_fail(&parser->lexer, parser->token.begin, err,
                             "expected else: x if c else y");
    if (status == PL_OK)
        status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (parser->depth == PL_MAX_NESTING)
        return too_deep(parser, err);
    parser->depth++;
    status = pl_parser_expression(parser, &other, err);
    parser->depth--;
    if (condition.kind == PL_VALUE_UNKNOWN)
        *out = condition;
    else if (!pl_value_truth(&condition))
        *out = other;
    return status;
}

pl_status pl_parser_expressions(pl_parser *parser, pl_value *out, pl_error *err)
{
    pl_status status = pl_parser_expression(parser, out, err);
    if (status != PL_OK || !pl_parser_sees(parser, ","))
        return status;
    return pl_parser_items(parser, out, err);
}
