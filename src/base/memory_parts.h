/* memory_parts.h: what the files behind memory.h share; nobody else's. */
#ifndef PL_BASE_MEMORY_PARTS_H
#define PL_BASE_MEMORY_PARTS_H

#include "base/memory.h"

/* ---- memory_read.c: the kernel's text files ----
 *
 * A file that is absent, unreadable or no text is one that says nothing. */

/* fn(context, line) for every line of at most 8 kB, without its end. Longer
 * lines are left out; nothing is read past 4 MB. */
typedef void pl_memory_line_fn(void *context, char *line);
void pl_memory_read_lines(const char *path, pl_memory_line_fn *fn,
                          void *context);

typedef struct pl_memory_key {
    const char *name;
    size_t *value; /* keeps what it had where the file has no such number */
} pl_memory_key;

/* Lines of the kind "name value", "name: value kB", "name  value  value": the
 * first value, in bytes. "max" and "unlimited" and what doesn't fit a size_t
 * are PL_MEMORY_UNLIMITED. */
void pl_memory_read_keys(const char *root, const char *path,
                         const pl_memory_key *keys, size_t n_keys);

/* The one number that a file holds; *value stays where it holds none. */
void pl_memory_read_number(const char *folder, const char *name, size_t *value);

/* ---- memory_cgroup.c ---- */

/* Adds every enclosing cgroup that has a limit. */
void pl_memory_add_cgroups(pl_memory_offer *offer, const char *root);

/* ---- memory_offer.c ---- */

/* Adds a source with a limit and what of it is used; what the process holds
 * itself is taken to be part of the use. */
void pl_memory_add_source(pl_memory_offer *offer, pl_memory_source_kind kind,
                          const char *name, size_t limit_bytes,
                          size_t used_bytes);

#endif
