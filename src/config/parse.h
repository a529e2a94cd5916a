/* parse.h: expressions, as nanoGPT's config files have them. Inside the
 * config folder only.
 *
 * What is not Python, or not Python that is read here, is an error at once.
 * What is, and has no value that could be found without running it (a clock,
 * a division by zero, a name that nobody set), is an unknown value with the
 * reason: whoever needs the value says it. */
#ifndef PL_CONFIG_PARSE_H
#define PL_CONFIG_PARSE_H

#include "config/config.h"
#include "config/lexer.h"
#include "config/scope.h"

/* What a name in an expression stands for. */
typedef enum pl_names {
    PL_NAMES_KEYS, /* the value that the key or the variable has now */
    PL_NAMES_NONE, /* nothing: literals only */
} pl_names;

typedef struct pl_parser {
    pl_lexer lexer;
    pl_token token; /* the next one, not yet used */
    const pl_config *cfg;
    pl_names names;
    pl_scope *scope; /* may be NULL: no variables, no modules */
    pl_heap *heap;
    size_t heap_begin; /* bytes that were taken before */
    int depth;
} pl_parser;

#define PL_ACCEPTED                                                            \
    "a value is made of numbers, strings, True, False, None, names, lists, "   \
    "operators, x if c else y, int float str bool min max round abs len, "     \
    "math.* and os.environ.get"

/* Uses up the token and looks at the next one. */
PL_MUST_CHECK pl_status pl_parser_advance(pl_parser *parser, pl_error *err);

bool pl_parser_sees(const pl_parser *parser, const char *sign);

/* An expression from the present token on; stops at what can't belong to
 * it. */
PL_MUST_CHECK pl_status pl_parser_expression(pl_parser *parser, pl_value *out,
                                             pl_error *err);

/* The same, or several with commas between them: a tuple. */
PL_MUST_CHECK pl_status pl_parser_expressions(pl_parser *parser, pl_value *out,
                                              pl_error *err);

/* ---- primary.c ---- */

PL_MUST_CHECK pl_status pl_parser_primary(pl_parser *parser, pl_value *out,
                                          pl_error *err);

/* What follows the first item of a tuple, which *out is: a comma, at which the
 * parser stands, and more items. *out becomes the tuple. */
PL_MUST_CHECK pl_status pl_parser_items(pl_parser *parser, pl_value *out,
                                        pl_error *err);

/* One or more adjacent string literals, which Python joins; in fstring.c. */
PL_MUST_CHECK pl_status pl_parser_strings(pl_parser *parser, pl_value *out,
                                          pl_error *err);

/* Says what is wrong with the present token, which follows an expression. */
pl_status pl_parser_refuse(const pl_parser *parser, pl_error *err);

/* Makes *out unknown for what `why` says, which happened at `at`; what is no
 * matter of values (memory) passes. */
PL_MUST_CHECK pl_status pl_parser_unknown(pl_parser *parser, size_t at,
                                          pl_status status, pl_error *why,
                                          pl_value *out, pl_error *err);

/* left = left op right, at `at`. */
PL_MUST_CHECK pl_status pl_parser_combine(pl_parser *parser, size_t at,
                                          pl_operator op, pl_value *left,
                                          const pl_value *right, pl_error *err);

/* ---- calls.c ---- */

/* The arguments of a call; names[i] is NULL where none was written. */
typedef struct pl_call {
    const char *what;     /* "int", "math.sqrt", or the name of a method */
    const pl_value *self; /* of a method, else NULL */
    const pl_value *args;
    const char *const *names;
    size_t count;
} pl_call;

/* Whether Python, or nanoGPT's train.py, knows the name by itself. */
bool pl_call_knows(const char *name, size_t bytes);

/* The value of a name such as math.pi; false where it has none. */
bool pl_call_constant(const char *name, pl_value *out);

/* PL_E_CONFIG, without a place, where it isn't evaluated. */
PL_MUST_CHECK pl_status pl_call_evaluate(const pl_call *call, pl_scope *scope,
                                         pl_value *out, pl_heap *heap,
                                         pl_error *err);

/* sequence[index] */
PL_MUST_CHECK pl_status pl_value_index(pl_value *out, const pl_value *sequence,
                                       const pl_value *index, pl_heap *heap,
                                       pl_error *err);

#endif
