/* parse.h: expressions, as nanoGPT's config files have them. Inside the
 * config folder only. */
#ifndef PL_CONFIG_PARSE_H
#define PL_CONFIG_PARSE_H

#include "config/config.h"
#include "config/lexer.h"

/* What a name in an expression stands for. */
typedef enum pl_names {
    PL_NAMES_KEYS, /* the value that the key has now */
    PL_NAMES_NONE, /* nothing: literals only */
} pl_names;

typedef struct pl_parser {
    pl_lexer lexer;
    pl_token token; /* the next one, not yet used */
    const pl_config *cfg;
    pl_names names;
    pl_heap *heap;
    int depth;
} pl_parser;

/* Uses up the token and looks at the next one. */
PL_MUST_CHECK pl_status pl_parser_advance(pl_parser *parser, pl_error *err);

bool pl_parser_sees(const pl_parser *parser, const char *sign);

/* An expression from the present token on; stops at what can't belong to
 * it. */
PL_MUST_CHECK pl_status pl_parser_expression(pl_parser *parser, pl_value *out,
                                             pl_error *err);

/* One or more adjacent string literals, which Python joins. */
PL_MUST_CHECK pl_status pl_parser_strings(pl_parser *parser, pl_value *out,
                                          pl_error *err);

/* Says what is wrong with the present token, which follows an expression. */
pl_status pl_parser_refuse(const pl_parser *parser, pl_error *err);

#endif
