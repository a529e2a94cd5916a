/* arena.h: the only source of memory.
 *
 * Three kinds, all owned here and nowhere else:
 *   pl_heap   small things whose size is bounded by the config, taken while a
 *             run is set up: names, tables, step lists. Bump allocation, given
 *             back as a whole, closed for good by pl_heap_seal().
 *   lumps     single things that grow and are given back one by one, while
 *             files are read: a page, a document. No two calls at once.
 *   pl_arena  the bulk: one mapping of exactly the planned bytes, whose pages
 *             the kernel has really given before pl_arena_open returns.
 *
 * Nothing here knows tensors. Not thread-safe: set-up has one thread. */
#ifndef PL_BASE_ARENA_H
#define PL_BASE_ARENA_H

#include "base/status.h"

#include <stddef.h>

/* ---- heap ---- */

typedef struct pl_heap {
    struct pl_heap_chunk *chunks;
    struct pl_heap_chunk *spare; /* what pl_heap_empty kept */
    size_t limit_bytes;          /* of everything taken */
    size_t taken_bytes;
    int sealed;
} pl_heap;

/* A heap that gives at most `limit_bytes`. Costs nothing until used. */
pl_heap pl_heap_make(size_t limit_bytes);

/* count * size zeroed bytes, aligned for anything. PL_E_MEMORY past the limit,
 * or when the system has no more, or when the product overflows. A zero-sized
 * request yields a valid pointer. After pl_heap_seal it is a broken
 * invariant. */
PL_MUST_CHECK pl_status pl_heap_take(pl_heap *heap, void *pointer_out,
                                     size_t count, size_t size, pl_error *err);

/* Makes `*array` (of `*capacity` elements) hold at least `need` of them,
 * growing by doubling; what it held stays. */
PL_MUST_CHECK pl_status pl_heap_grow(pl_heap *heap, void *array,
                                     size_t *capacity, size_t need, size_t size,
                                     pl_error *err);

/* A copy of `bytes` bytes of `text` with a terminating zero. */
PL_MUST_CHECK pl_status pl_heap_text(pl_heap *heap, const char **out,
                                     const char *text, size_t bytes,
                                     pl_error *err);

void pl_heap_seal(pl_heap *heap);
/* Takes everything back, and keeps it for what is taken next: for work that is
 * done many times over. */
void pl_heap_empty(pl_heap *heap);
void pl_heap_close(pl_heap *heap); /* gives everything back */

/* Makes the C library give back to the system what it keeps of memory that was
 * freed, ours and that of libraries (a parser's): before a plan counts what
 * the process holds. */
void pl_heap_trim(void);

/* ---- lumps ---- */

/* Makes the lump at `*pointer` (NULL: there is none yet) hold `bytes` > 0
 * bytes; what it held stays, what is new is undefined. A large one is moved by
 * the kernel, page by page: it is never there twice. On failure it is as it
 * was. */
PL_MUST_CHECK pl_status pl_lump_resize(void *pointer, size_t bytes,
                                       pl_error *err);
void pl_lump_free(void *memory); /* NULL is fine */

/* ---- arena ---- */

typedef struct pl_arena {
    unsigned char *base;
    size_t size_bytes;   /* as planned */
    size_t mapped_bytes; /* size rounded up to whole pages */
    size_t used_bytes;   /* end of the highest claim */
    int sealed;
    int locked;     /* the kernel promised never to swap it out */
    int lock_error; /* why not: an errno, mostly ENOMEM for RLIMIT_MEMLOCK */
} pl_arena;

enum { PL_ARENA_ALIGN = 64 }; /* of every claim: a cache line, a zmm */

/* What a claim of `bytes` takes: whole lines, so that no two claims share
 * one. */
static inline size_t pl_arena_round(size_t bytes)
{
    return (bytes + PL_ARENA_ALIGN - 1) / PL_ARENA_ALIGN * PL_ARENA_ALIGN;
}

/* Maps `size_bytes` and makes the kernel give every page, so that running out
 * happens here and not later, and locks them where that is permitted (that it
 * isn't is no error). From 2 MiB on it begins at a multiple of 2 MiB, where
 * address space allows, for huge pages; the mapping is never longer than
 * mapped_bytes, so these can't make more than that resident. Contents: zero.
 *
 * A machine that is short says so with a message. A memory cgroup that is
 * short has the kernel kill the process instead: ask pl_memory_offer_make
 * first. */
PL_MUST_CHECK pl_status pl_arena_open(pl_arena *arena, size_t size_bytes,
                                      pl_error *err);

/* The memory at [offset, offset + pl_arena_round(bytes)). Claims may overlap:
 * the plan knows who lives when. Broken invariant if it leaves the arena or it
 * is sealed. */
void *pl_arena_claim(pl_arena *arena, size_t offset, size_t bytes);

/* No claim afterwards. Asserts used == planned: the plan was exact. */
void pl_arena_seal(pl_arena *arena);
void pl_arena_close(pl_arena *arena);

/* Of [offset, offset + bytes) what lies in pages that are in memory right now,
 * as the kernel says: a page that was swapped out isn't. Touches none. */
PL_MUST_CHECK pl_status pl_arena_resident(const pl_arena *arena, size_t offset,
                                          size_t bytes, size_t *resident_bytes,
                                          pl_error *err);

/* ---- dead memory, for dev and asan builds ---- */

/* Marks memory as dead: filled with 0xff (NaN in every float dtype) and, under
 * ASan, poisoned. Compiled to nothing in release builds. */
void pl_arena_bury(void *memory, size_t bytes);
/* Makes dead memory usable again; what it holds is still 0xff. */
void pl_arena_raise(void *memory, size_t bytes);
/* Whether bury does anything in this build. */
int pl_arena_buries(void);

/* ---- faults, for tests ---- */

/* The nth take, grow or map from now (1 = next) fails; 0 switches it off. */
void pl_arena_fail_at(long nth);

#endif
