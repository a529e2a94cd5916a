/* own_names.h: what others call this machine. */
#ifndef PL_CLI_OWN_NAMES_H
#define PL_CLI_OWN_NAMES_H

typedef struct pl_own_names {
    char name[256], local[264];
    const char *list[3];
} pl_own_names;

/* The names that a client elsewhere may ask for, then NULL; NULL: none is
 * known. They are in `names`. */
const char *const *pl_own_names_find(pl_own_names *names);

#endif
