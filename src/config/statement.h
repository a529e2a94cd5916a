/* statement.h: what the readers of statements share. Inside the config folder
 * only. */
#ifndef PL_CONFIG_STATEMENT_H
#define PL_CONFIG_STATEMENT_H

#include "config/parse.h"

/* Whether the statement ends here. */
bool pl_statement_ends(const pl_parser *parser);

/* Uses up whatever is left of the statement; *end, unless NULL, is where it
 * ended. The variables in it count as used. */
PL_MUST_CHECK pl_status pl_statement_skip(pl_parser *parser, size_t *end,
                                          pl_error *err);

/* PL_E_CONFIG that names the nearest key. */
pl_status pl_statement_unknown_key(const pl_lexer *lexer, pl_token token,
                                   pl_error *err);

/* import ..., from ... import ...; in import.c */
PL_MUST_CHECK pl_status pl_statement_import(pl_parser *parser, pl_config *cfg,
                                            pl_error *err);

/* exec(open(...).read()); in import.c. The parser is at "exec". */
PL_MUST_CHECK pl_status pl_statement_exec(pl_parser *parser, pl_config *cfg,
                                          pl_error *err);

/* One or more assignments; in assign.c. The parser is at a name. */
PL_MUST_CHECK pl_status pl_statement_assign(pl_parser *parser, pl_config *cfg,
                                            const char *origin_name,
                                            pl_error *err);

#endif
