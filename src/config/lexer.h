/* lexer.h: Python's tokens in a piece of text, and messages that point at
 * them. Inside the config folder only. Knows no keys. */
#ifndef PL_CONFIG_LEXER_H
#define PL_CONFIG_LEXER_H

#include "base/arena.h"
#include "base/status.h"
#include "config/value.h"

typedef enum pl_token_kind {
    PL_TOKEN_END,
    PL_TOKEN_NEWLINE,
    PL_TOKEN_NAME,
    PL_TOKEN_NUMBER,
    PL_TOKEN_STRING,
    PL_TOKEN_SIGN, /* operators and brackets */
} pl_token_kind;

typedef struct pl_token {
    pl_token_kind kind;
    size_t begin, end; /* offsets in the text */
} pl_token;

enum { PL_MAX_NESTING = 64 };

typedef struct pl_lexer {
    const char *name; /* of the file; NULL: the command line */
    const char *text;
    size_t bytes; /* that are read */
    size_t shown; /* that a message may show */
    size_t at;
    size_t opened[PL_MAX_NESTING]; /* where brackets were opened */
    size_t depth;
} pl_lexer;

/* Fails unless the text is UTF-8 without zero bytes and of bearable size. */
PL_MUST_CHECK pl_status pl_lexer_open(pl_lexer *lexer, const char *name,
                                      const char *text, size_t bytes,
                                      pl_error *err);

/* The next token. Newlines inside brackets are spaces. */
PL_MUST_CHECK pl_status pl_lexer_next(pl_lexer *lexer, pl_token *out,
                                      pl_error *err);

bool pl_lexer_is(const pl_lexer *lexer, pl_token token, const char *text);

/* Line and column of an offset, from 1; columns count characters. */
void pl_lexer_locate(const pl_lexer *lexer, size_t offset, int *line,
                     int *column);

/* The number that the token is. */
PL_MUST_CHECK pl_status pl_lexer_number(const pl_lexer *lexer, pl_token token,
                                        pl_value *out, pl_error *err);

/* A string token: what is between its quotes, and its prefixes. */
typedef struct pl_quoted {
    size_t begin, end;
    bool raw, format; /* r'' and f'' */
} pl_quoted;

PL_MUST_CHECK pl_status pl_lexer_quotes(const pl_lexer *lexer, pl_token token,
                                        pl_quoted *out, pl_error *err);

/* The text of [begin, end) inside a string token, its escapes resolved. */
PL_MUST_CHECK pl_status pl_lexer_string(const pl_lexer *lexer, size_t begin,
                                        size_t end, bool raw, pl_value *out,
                                        pl_heap *heap, pl_error *err);

/* PL_E_CONFIG with place, message, line and a caret under `offset`. */
PL_PRINTF(4, 5)
pl_status pl_lexer_fail(const pl_lexer *lexer, size_t offset, pl_error *err,
                        const char *fmt, ...);

/* The same around a message that `err` has already; PL_E_MEMORY is left as it
 * is. Returns `status`. */
pl_status pl_lexer_place(const pl_lexer *lexer, size_t offset, pl_status status,
                         pl_error *err);

#endif
