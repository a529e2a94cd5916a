/* assign.c: assignments: key = value, and variables that values are made of.
 *
 *     a = b, c = d += 1 : int     in all the forms that Python has for names
 *
 * A key takes what its row allows. Any other name is a variable. */
#include "config/statement.h"

#include <string.h>

enum { MAX_TARGETS = 32 };

typedef struct targets {
    pl_token names[MAX_TARGETS];
    bool last[MAX_TARGETS]; /* of those between two = */
    size_t count;
} targets;

typedef struct assigning {
    pl_parser *parser;
    pl_config *cfg;
    const char *origin_name;
    size_t begin, end; /* of the value's text */
} assigning;

static bool has_prefix(const pl_lexer *lexer, pl_token name, const char *prefix)
{
    size_t bytes = strlen(prefix);
    return name.end - name.begin > bytes &&
           memcmp(lexer->text + name.begin, prefix, bytes) == 0;
}

static pl_key key_of(const pl_lexer *lexer, pl_token name)
{
    return pl_key_find(lexer->text + name.begin, name.end - name.begin);
}

/* ---- one name ---- */

/* A key without effect takes any expression. What can be evaluated is, so
 * that later keys may use it; the rest is kept as it is written. */
static pl_status set_ignored(const assigning *a, pl_key key,
                             const pl_value *value, pl_config_origin origin,
                             pl_error *err)
{
    const pl_parser *parser = a->parser;
    if (value->kind != PL_VALUE_UNKNOWN)
        return pl_config_set(a->cfg, key, value, origin, parser->heap, err);
    pl_ignored ignored = { NULL, false };
    pl_status status = pl_heap_text(parser->heap, &ignored.text,
                                    parser->lexer.text + a->begin,
                                    a->end - a->begin, err);
    if (status != PL_OK)
        return status;
    memcpy((char *)a->cfg + pl_key_row(key)->offset, &ignored, sizeof ignored);
    a->cfg->origin[key] = origin;
    return PL_OK;
}

static pl_status set_variable(const assigning *a, pl_token name,
                              const pl_value *value, pl_error *err)
{
    pl_parser *parser = a->parser;
    const pl_lexer *lexer = &parser->lexer;
    const char *text = lexer->text + name.begin;
    size_t bytes = name.end - name.begin;
    pl_variable *variable = NULL;
    const bool known = pl_scope_find(parser->scope, text, bytes) != NULL;
    pl_status status = pl_scope_set(parser->scope, text, bytes, value,
                                    &variable, parser->heap, err);
    if (status != PL_OK || known || has_prefix(lexer, name, "wandb_"))
        return status;
    pl_error why;
    pl_statement_unknown_key(lexer, name, &why);
    return pl_heap_text(parser->heap, &variable->why, why.text,
                        strlen(why.text), err);
}

static pl_status set_name(const assigning *a, pl_token name,
                          const pl_value *value, pl_error *err)
{
    const pl_lexer *lexer = &a->parser->lexer;
    pl_config_origin origin = { PL_FROM_FILE, a->origin_name, 0, 0 };
    pl_key key = key_of(lexer, name);
    if (key == PL_KEY_COUNT)
        return set_variable(a, name, value, err);
    pl_lexer_locate(lexer, name.begin, &origin.line, &origin.column);
    if (pl_key_row(key)->type == PL_TYPE_IGNORED)
        return set_ignored(a, key, value, origin, err);
    if (value->kind == PL_VALUE_UNKNOWN)
        return pl_fail(err, PL_E_CONFIG, "%s", value->text);
    pl_status status = pl_config_set(a->cfg, key, value, origin,
                                     a->parser->heap, err);
    return status == PL_OK ? PL_OK
                           : pl_lexer_place(lexer, a->begin, status, err);
}

/* ---- the names on the left ---- */

/* Names with commas between them, up to a =, which is used up. *found is
 * false, and the parser where it was, if something else stands here. */
static pl_status read_targets(pl_parser *parser, targets *out, bool *found,
                              pl_error *err)
{
    const pl_parser back = *parser;
    const size_t before = out->count;
    pl_error trouble;
    pl_status status = PL_OK;
    *found = false;
    while (status == PL_OK && parser->token.kind == PL_TOKEN_NAME &&
           out->count < MAX_TARGETS) {
        out->last[out->count] = false;
        out->names[out->count++] = parser->token;
        status = pl_parser_advance(parser, &trouble);
        if (status != PL_OK || !pl_parser_sees(parser, ","))
            break;
        status = pl_parser_advance(parser, &trouble);
    }
    *found = status == PL_OK && out->count > before &&
             pl_parser_sees(parser, "=");
    if (*found) {
        out->last[out->count - 1] = true;
        return pl_parser_advance(parser, err);
    }
    *parser = back;
    out->count = before;
    return PL_OK;
}

/* Gives each name its value: all of it, or an item each. */
static pl_status set_targets(const assigning *a, const targets *names,
                             const pl_value *value, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t first = 0, i = 0; i < names->count && status == PL_OK; i++) {
        if (!names->last[i])
            continue;
        size_t count = i + 1 - first;
        if (count > 1 && value->kind != PL_VALUE_UNKNOWN &&
            (value->kind != PL_VALUE_LIST || value->count != count))
            return pl_lexer_fail(&a->parser->lexer, a->begin, err,
                                 "%zu names need a tuple of as many values",
                                 count);
        for (size_t k = 0; k < count && status == PL_OK; k++)
            status = set_name(a, names->names[first + k],
                              count > 1 && value->kind == PL_VALUE_LIST
                                  ? &value->items[k]
                                  : value,
                              err);
        first = i + 1;
    }
    return status;
}

/* ---- the value on the right ---- */

/* Whether none of the names is a key with an effect. */
static bool without_effect(const pl_lexer *lexer, const targets *names)
{
    for (size_t i = 0; i < names->count; i++) {
        pl_key key = key_of(lexer, names->names[i]);
        if (key != PL_KEY_COUNT && pl_key_row(key)->type != PL_TYPE_IGNORED)
            return false;
    }
    return true;
}

/* The value up to the statement's end. Where no effect hangs on it, Python
 * that is not read here is an unknown value. */
static pl_status read_value(assigning *a, const targets *names, pl_value *out,
                            pl_error *err)
{
    pl_parser *parser = a->parser;
    const pl_parser back = *parser;
    pl_error why;
    a->begin = a->end = parser->token.begin;
    if (pl_statement_ends(parser))
        return pl_parser_refuse(parser, err);
    pl_status status = pl_parser_expressions(parser, out, &why);
    if (status == PL_OK && !pl_statement_ends(parser))
        status = pl_parser_refuse(parser, &why);
    if (status != PL_OK &&
        !(status == PL_E_CONFIG && without_effect(&parser->lexer, names)))
        return pl_fail(err, status, "%s", why.text);
    *parser = back; /* once more, for where it ends */
    const bool evaluated = status == PL_OK;
    status = pl_statement_skip(parser, &a->end, err);
    if (status != PL_OK || evaluated)
        return status;
    const char *text = NULL;
    status = pl_heap_text(parser->heap, &text, why.text, strlen(why.text), err);
    *out = pl_value_unknown(text);
    return status;
}

/* ---- statements ---- */

/* Says what is wrong with a statement that begins with a name and doesn't go
 * on with '='. The parser is at what follows the name. */
static pl_status refuse_statement(const pl_parser *parser, pl_token name,
                                  pl_error *err)
{
    const pl_lexer *lexer = &parser->lexer;
    size_t bytes = name.end - name.begin;
    if (pl_parser_sees(parser, "(") || pl_parser_sees(parser, "."))
        return pl_lexer_fail(lexer, name.begin, err,
                             "function calls are not run: a config is a list "
                             "of lines key = value");
    return pl_lexer_fail(lexer, name.begin, err,
                         "'%.*s' does not begin a line key = value, which is "
                         "all that a config has (beside comments, imports, "
                         "assert and print)",
                         bytes < 40 ? (int)bytes : 40,
                         lexer->text + name.begin);
}

/* name += value: true if the present token is such a sign. */
static bool is_augmented(const pl_parser *parser, pl_operator *op)
{
    static const struct {
        const char *sign;
        pl_operator op;
    } known[] = {
        { "+=", PL_PY_ADD },           { "-=", PL_PY_SUBTRACT },
        { "*=", PL_PY_MULTIPLY },      { "/=", PL_PY_DIVIDE },
        { "//=", PL_PY_FLOOR_DIVIDE }, { "%=", PL_PY_MODULO },
        { "**=", PL_PY_POWER },        { "<<=", PL_PY_SHIFT_LEFT },
        { ">>=", PL_PY_SHIFT_RIGHT },  { "&=", PL_PY_BIT_AND },
        { "|=", PL_PY_BIT_OR },        { "^=", PL_PY_BIT_XOR },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (pl_parser_sees(parser, known[i].sign)) {
            *op = known[i].op;
            return true;
        }
    return false;
}

/* The parser is at the name of `name += value`. */
static pl_status read_augmented(assigning *a, pl_token name, pl_operator op,
                                pl_error *err)
{
    pl_parser *parser = a->parser;
    const targets names = { .names = { name }, .last = { true }, .count = 1 };
    pl_value before, by;
    pl_status status = pl_parser_primary(parser, &before, err);
    size_t at = parser->token.begin;
    if (status == PL_OK)
        status = pl_parser_advance(parser, err);
    if (status == PL_OK)
        status = read_value(a, &names, &by, err);
    if (status == PL_OK)
        status = pl_parser_combine(parser, at, op, &before, &by, err);
    return status == PL_OK ? set_name(a, name, &before, err) : status;
}

/* ": int" behind a name, up to the = or the end. */
static pl_status skip_annotation(pl_parser *parser, pl_error *err)
{
    pl_status status = PL_OK;
    while (status == PL_OK && !pl_statement_ends(parser) &&
           (parser->lexer.depth > 0 || !pl_parser_sees(parser, "=")))
        status = pl_parser_advance(parser, err);
    return status;
}

pl_status pl_statement_assign(pl_parser *parser, pl_config *cfg,
                              const char *origin_name, pl_error *err)
{
    assigning a = { parser, cfg, origin_name, 0, 0 };
    targets names = { .count = 0 };
    const pl_token name = parser->token;
    const pl_parser back = *parser;
    pl_operator op;
    pl_value value;
    bool found = true;
    pl_status status = pl_parser_advance(parser, err);
    if (status != PL_OK)
        return status;
    if (is_augmented(parser, &op)) {
        *parser = back;
        return read_augmented(&a, name, op, err);
    }
    if (pl_parser_sees(parser, ":") &&
        key_of(&parser->lexer, name) != PL_KEY_COUNT) {
        status = skip_annotation(parser, err);
        if (status != PL_OK || !pl_parser_sees(parser, "="))
            return status;
        names = (targets){ .names = { name }, .last = { true }, .count = 1 };
        status = pl_parser_advance(parser, err);
    } else {
        *parser = back;
    }
    while (status == PL_OK && found)
        status = read_targets(parser, &names, &found, err);
    if (status == PL_OK && names.count == 0) {
        status = pl_parser_advance(parser, err);
        return status == PL_OK ? refuse_statement(parser, name, err) : status;
    }
    if (status == PL_OK)
        status = read_value(&a, &names, &value, err);
    return status == PL_OK ? set_targets(&a, &names, &value, err) : status;
}
