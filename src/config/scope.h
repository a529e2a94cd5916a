/* scope.h: what a config file knows beside the keys: its variables, the
 * modules it imported, the files around it. Inside the config folder only. */
#ifndef PL_CONFIG_SCOPE_H
#define PL_CONFIG_SCOPE_H

#include "config/config.h"
#include "config/lexer.h"

typedef struct pl_variable {
    const char *name;
    pl_value value;
    const char *module; /* "os.path": what an import bound it to, or NULL */
    const char *why;    /* the error if nothing uses it, or NULL */
    bool used;
    struct pl_variable *next;
} pl_variable;

enum { PL_MAX_CHAIN = 8, PL_MAX_INCLUDED = 16 };

typedef struct pl_scope {
    pl_variable *first, *last;
    const pl_config_host *host;      /* may be NULL */
    const char *chain[PL_MAX_CHAIN]; /* files that are being read */
    int depth, files;
} pl_scope;

/* The variable of that name, or NULL. */
pl_variable *pl_scope_find(const pl_scope *scope, const char *name,
                           size_t bytes);

/* Makes a variable, or takes the one of that name, with this value. */
PL_MUST_CHECK pl_status pl_scope_set(pl_scope *scope, const char *name,
                                     size_t bytes, const pl_value *value,
                                     pl_variable **out, pl_heap *heap,
                                     pl_error *err);

/* Reads a file, or one that another names, in this scope; in read.c. */
PL_MUST_CHECK pl_status pl_scope_read(pl_scope *scope, pl_config *cfg,
                                      const char *text, size_t bytes,
                                      const char *name, pl_heap *heap,
                                      pl_error *err);

#endif
