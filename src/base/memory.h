/* memory.h: what the machine says about memory: the peak of this process, and
 * what it may still come to hold. Reads, never takes; allocates nothing. */
#ifndef PL_BASE_MEMORY_H
#define PL_BASE_MEMORY_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* The most that this process has held at once so far, all of it: the kernel's
 * VmHWM. Allocates nothing. */
PL_MUST_CHECK pl_status pl_memory_peak_bytes(size_t *bytes, pl_error *err);
/* What it holds right now: VmRSS. Allocates nothing. */
PL_MUST_CHECK pl_status pl_memory_now_bytes(size_t *bytes, pl_error *err);

/* '12GB', '1.5 GiB', '800mb', '123456' (bytes). GB is 10^9 and GiB 2^30, in
 * any case; a fraction of a byte is cut off. PL_E_CONFIG for anything else,
 * with what is accepted, for zero and for what no machine can address. 'auto'
 * is the caller's. */
PL_MUST_CHECK pl_status pl_memory_parse(const char *text, size_t *bytes,
                                        pl_error *err);

/* ---- what the machine offers ---- */

#define PL_MEMORY_UNLIMITED SIZE_MAX

typedef enum pl_memory_source_kind {
    PL_MEMORY_AVAILABLE,     /* MemAvailable; 90 % of it count */
    PL_MEMORY_CGROUP,        /* one enclosing cgroup, v1 or v2 */
    PL_MEMORY_ADDRESS_SPACE, /* RLIMIT_AS */
    PL_MEMORY_DATA,          /* RLIMIT_DATA */
    PL_MEMORY_COMMIT,        /* CommitLimit, under strict overcommit */
} pl_memory_source_kind;

enum { PL_MEMORY_SOURCES = 24, PL_MEMORY_NAME_BYTES = 160 };

typedef struct pl_memory_source {
    pl_memory_source_kind kind;
    size_t limit_bytes; /* AVAILABLE: MemAvailable */
    size_t used_bytes;  /* of the limit, what can't be had back; ours too */
    size_t offer_bytes; /* what this process may hold in all, by this one */
    char name[PL_MEMORY_NAME_BYTES]; /* CGROUP: its path, or the path's end */
} pl_memory_source;

typedef struct pl_memory_offer {
    size_t bytes;     /* the smallest offer: what the process may hold */
    size_t own_bytes; /* of these, what it holds now and can't give back */
    int binding;      /* index of the source that says `bytes`; -1: none */
    int n_sources;
    pl_memory_source sources[PL_MEMORY_SOURCES];
    /* For information: none of these is counted. */
    size_t swap_free_bytes;
    size_t high_bytes; /* lowest memory.high of the enclosing cgroups */
    size_t lock_bytes; /* RLIMIT_MEMLOCK */
} pl_memory_offer;

/* Asks every source. `bytes` includes what the process holds already (its
 * anonymous memory and page tables; of a cgroup's use also 1 MiB of the
 * kernel's), so it compares with a plan's total: arena + reserve. A
 * source that is absent or says nonsense is left out; PL_E_UNSUPPORTED only
 * where none is left, with the struct filled. `root` is put before every path
 * that is read: "" for the machine itself, a folder in tests. */
PL_MUST_CHECK pl_status pl_memory_offer_make(pl_memory_offer *offer,
                                             const char *root, pl_error *err);

/* One line without an end: "cgroup /user.slice/x: limit 2.00 GB, 0.30 GB in
 * use". Cut where `capacity` ends. */
void pl_memory_source_text(const pl_memory_source *source, char *out,
                           size_t capacity);

/* The same for the source that binds. */
void pl_memory_binding_text(const pl_memory_offer *offer, char *out,
                            size_t capacity);

/* Every source, a line each, the one that binds first, then what isn't
 * counted. */
void pl_memory_offer_text(const pl_memory_offer *offer, char *out,
                          size_t capacity);

#endif
