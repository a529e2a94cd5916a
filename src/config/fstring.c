/* fstring.c: string literals: plain ones, several that Python joins, and
 * f'...' with its {fields}. */
#include "config/parse.h"

#include <string.h>

typedef struct pieces {
    pl_text text;
    pl_value unknown; /* the first field without a value */
} pieces;

/* A failure of a value becomes the unknown; others pass. */
static pl_status settle(pl_parser *parser, size_t at, pl_status status,
                        pl_error *why, pieces *out, pl_error *err)
{
    pl_value value;
    if (status == PL_OK)
        return PL_OK;
    status = pl_parser_unknown(parser, at, status, why, &value, err);
    if (status == PL_OK && out->unknown.kind != PL_VALUE_UNKNOWN)
        out->unknown = value;
    return status;
}

/* A piece without fields, braces doubled. */
static pl_status add_plain(pl_parser *parser, size_t begin, size_t end,
                           bool raw, pieces *out, pl_error *err)
{
    pl_value value;
    pl_error why;
    pl_status status = pl_lexer_string(&parser->lexer, begin, end, raw, &value,
                                       parser->heap, err);
    if (status != PL_OK)
        return status;
    status = pl_text_add(&out->text, value.text, strlen(value.text), &why);
    return settle(parser, begin, status, &why, out, err);
}

/* [=][!r][:spec]} behind the expression of a field, whose text begins at
 * `begin`. *end is behind the brace. */
static pl_status finish_field(pl_parser *inner, size_t begin,
                              const pl_value *value, pieces *out, size_t *end,
                              pl_error *err)
{
    const char *text = inner->lexer.text;
    size_t spec = 0, at = inner->token.begin;
    bool quoted = false;
    pl_error why;
    pl_status status = PL_OK;
    if (pl_parser_sees(inner, "=")) {
        status = pl_text_add(&out->text, text + begin, inner->token.end - begin,
                             &why);
        status = settle(inner, at, status, &why, out, err);
        quoted = true;
        if (status == PL_OK)
            status = pl_parser_advance(inner, err);
    }
    if (status == PL_OK && pl_parser_sees(inner, "!")) {
        status = pl_parser_advance(inner, err);
        quoted = pl_parser_sees(inner, "r");
        if (status == PL_OK && !quoted && !pl_parser_sees(inner, "s"))
            return pl_parser_refuse(inner, err);
        if (status == PL_OK)
            status = pl_parser_advance(inner, err);
    }
    if (status != PL_OK)
        return status;
    *end = inner->token.end;
    if (pl_parser_sees(inner, ":")) {
        spec = inner->token.end;
        const char *brace = memchr(text + spec, '}', inner->lexer.bytes - spec);
        if (!brace || memchr(text + spec, '{', (size_t)(brace - text) - spec))
            return pl_lexer_fail(&inner->lexer, spec, err,
                                 "fields in the format of a field are not "
                                 "evaluated");
        *end = (size_t)(brace - text) + 1;
    } else if (!pl_parser_sees(inner, "}")) {
        return pl_parser_refuse(inner, err);
    }
    if (value->kind == PL_VALUE_UNKNOWN) {
        if (out->unknown.kind != PL_VALUE_UNKNOWN)
            out->unknown = *value;
        return PL_OK;
    }
    if (spec && quoted)
        return pl_lexer_fail(&inner->lexer, spec, err,
                             "a format behind = or !r is not evaluated");
    status = spec ? pl_text_add_format(&out->text, value, text + spec,
                                       *end - 1 - spec, &why)
                  : pl_text_add_value(&out->text, value, quoted, &why);
    return settle(inner, begin, status, &why, out, err);
}

/* The field whose { stands at `at`. */
static pl_status add_field(pl_parser *parser, size_t at, size_t limit,
                           pieces *out, size_t *end, pl_error *err)
{
    pl_parser inner = *parser;
    pl_value value;
    inner.lexer.at = at + 1;
    inner.lexer.bytes = limit;
    inner.lexer.opened[0] = at;
    inner.lexer.depth = 1;
    pl_status status = pl_parser_advance(&inner, err);
    if (status == PL_OK)
        status = pl_parser_expressions(&inner, &value, err);
    if (status == PL_OK)
        status = finish_field(&inner, at + 1, &value, out, end, err);
    return status;
}

static pl_status add_format(pl_parser *parser, pl_quoted quoted, pieces *out,
                            pl_error *err)
{
    const char *text = parser->lexer.text;
    size_t begin = quoted.begin, at = begin;
    pl_status status = PL_OK;
    while (at < quoted.end && status == PL_OK) {
        char c = text[at];
        if (c != '{' && c != '}') {
            at++;
            continue;
        }
        const bool twice = at + 1 < quoted.end && text[at + 1] == c;
        if (c == '}' && !twice)
            return pl_lexer_fail(&parser->lexer, at, err,
                                 "a brace that stands alone in an f-string: "
                                 "write }}");
        /* of two braces one is kept */
        status = add_plain(parser, begin, at + twice, quoted.raw, out, err);
        if (status != PL_OK)
            break;
        at += 2;
        if (!twice)
            status = add_field(parser, at - 2, quoted.end, out, &at, err);
        begin = at;
    }
    return status == PL_OK && begin < quoted.end
               ? add_plain(parser, begin, quoted.end, quoted.raw, out, err)
               : status;
}

pl_status pl_parser_strings(pl_parser *parser, pl_value *out, pl_error *err)
{
    size_t first = parser->token.begin;
    pieces all = { .text = { .heap = parser->heap } };
    pl_error why;
    pl_status status = PL_OK;
    while (status == PL_OK && parser->token.kind == PL_TOKEN_STRING) {
        pl_quoted quoted;
        status = pl_lexer_quotes(&parser->lexer, parser->token, &quoted, err);
        if (status == PL_OK)
            status = quoted.format ? add_format(parser, quoted, &all, err)
                                   : add_plain(parser, quoted.begin, quoted.end,
                                               quoted.raw, &all, err);
        if (status == PL_OK)
            status = pl_parser_advance(parser, err);
    }
    if (status != PL_OK)
        return status;
    status = pl_text_end(&all.text, out, &why);
    status = settle(parser, first, status, &why, &all, err);
    if (all.unknown.kind == PL_VALUE_UNKNOWN)
        *out = all.unknown;
    return status;
}
