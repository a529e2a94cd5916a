/* arena.c: the only malloc and mmap. See arena.h for the three kinds. */
#include "base/arena.h"
#include "base/check.h"
#include "base/units.h"

#include <errno.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define PL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PL_ASAN 1
#endif
#endif
#ifdef PL_ASAN
#include <sanitizer/asan_interface.h>
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { CHUNK_BYTES = 64 * 1024, HUGE_BYTES = 2 * 1024 * 1024 };

struct pl_heap_chunk {
    struct pl_heap_chunk *next;
    size_t size_bytes, used_bytes;
    alignas(max_align_t) unsigned char memory[];
};

/* Tests only: counts down to the request that is to fail. */
static long fail_countdown;

void pl_arena_fail_at(long nth)
{
    fail_countdown = nth;
}

static int must_fail(void)
{
    if (fail_countdown <= 0 || --fail_countdown > 0)
        return 0;
    errno = ENOMEM;
    return 1;
}

/* ---- heap ---- */

pl_heap pl_heap_make(size_t limit_bytes)
{
    return (pl_heap){ .limit_bytes = limit_bytes };
}

/* A spare chunk that is large enough, or NULL. */
static struct pl_heap_chunk *take_spare(pl_heap *heap, size_t need)
{
    struct pl_heap_chunk **link = &heap->spare;
    while (*link && (*link)->size_bytes < need)
        link = &(*link)->next;
    struct pl_heap_chunk *chunk = *link;
    if (chunk)
        *link = chunk->next;
    return chunk;
}

static struct pl_heap_chunk *add_chunk(pl_heap *heap, size_t need)
{
    size_t size = need > CHUNK_BYTES ? need : CHUNK_BYTES;
    struct pl_heap_chunk *chunk = take_spare(heap, need);
    if (!chunk) {
        chunk = malloc(sizeof *chunk + size);
        if (!chunk)
            return NULL;
        chunk->size_bytes = size;
    }
    chunk->used_bytes = 0;
    chunk->next = heap->chunks;
    heap->chunks = chunk;
    return chunk;
}

pl_status pl_heap_take(pl_heap *heap, void *pointer_out, size_t count,
                       size_t size, pl_error *err)
{
    const size_t align = alignof(max_align_t);
    size_t bytes;

    PL_CHECK(!heap->sealed);
    if (__builtin_mul_overflow(count, size, &bytes) ||
        bytes > heap->limit_bytes - heap->taken_bytes || bytes > SIZE_MAX / 2 ||
        must_fail())
        return pl_fail(
            err, PL_E_MEMORY,
            "out of set-up memory: %zu x %s asked for, %s of %s in use", count,
            pl_units_bytes(size).text, pl_units_bytes(heap->taken_bytes).text,
            pl_units_bytes(heap->limit_bytes).text);

    size_t rounded = (bytes + align - 1) / align * align;
    struct pl_heap_chunk *chunk = heap->chunks;
    if (!chunk || chunk->size_bytes - chunk->used_bytes < rounded) {
        chunk = add_chunk(heap, rounded);
        if (!chunk)
            return pl_fail(err, PL_E_MEMORY,
                           "the system has no %s left for set-up",
                           pl_units_bytes(rounded).text);
    }
    void *memory = chunk->memory + chunk->used_bytes;
    memset(memory, 0, rounded);
    chunk->used_bytes += rounded;
    heap->taken_bytes += bytes;
    memcpy(pointer_out, &memory, sizeof memory);
    return PL_OK;
}

pl_status pl_heap_grow(pl_heap *heap, void *array, size_t *capacity,
                       size_t need, size_t size, pl_error *err)
{
    void *old, *grown = NULL;
    size_t wanted = *capacity ? *capacity : 16;

    if (need <= *capacity)
        return PL_OK;
    while (wanted < need)
        wanted = wanted > SIZE_MAX / 2 ? need : wanted * 2;
    pl_status status = pl_heap_take(heap, &grown, wanted, size, err);
    if (status)
        return status;
    memcpy(&old, array, sizeof old);
    if (*capacity)
        memcpy(grown, old, *capacity * size);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return PL_OK;
}

pl_status pl_heap_text(pl_heap *heap, const char **out, const char *text,
                       size_t bytes, pl_error *err)
{
    char *copy = NULL;
    pl_status status = pl_heap_take(heap, &copy, bytes + 1, 1, err);
    if (status)
        return status;
    memcpy(copy, text, bytes);
    *out = copy;
    return PL_OK;
}

void pl_heap_seal(pl_heap *heap)
{
    heap->sealed = 1;
}

void pl_heap_empty(pl_heap *heap)
{
    PL_CHECK(!heap->sealed);
    while (heap->chunks) {
        struct pl_heap_chunk *chunk = heap->chunks;
        heap->chunks = chunk->next;
        chunk->next = heap->spare;
        heap->spare = chunk;
    }
    heap->taken_bytes = 0;
}

static void free_chunks(struct pl_heap_chunk *chunk)
{
    while (chunk) {
        struct pl_heap_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void pl_heap_close(pl_heap *heap)
{
    free_chunks(heap->chunks);
    free_chunks(heap->spare);
    *heap = (pl_heap){ .limit_bytes = heap->limit_bytes };
}

void pl_heap_trim(void)
{
    malloc_trim(0);
}

/* ---- lumps ---- */

pl_status pl_lump_resize(void *pointer, size_t bytes, pl_error *err)
{
    void *memory, *resized = NULL;
    memcpy(&memory, pointer, sizeof memory);
    if (bytes <= SIZE_MAX / 2 && !must_fail())
        resized = realloc(memory, bytes);
    if (!resized)
        return pl_fail(err, PL_E_MEMORY, "the system has no %s left",
                       pl_units_bytes(bytes).text);
    memcpy(pointer, &resized, sizeof resized);
    return PL_OK;
}

void pl_lump_free(void *memory)
{
    free(memory);
}

/* ---- arena ---- */

enum { SLICE_BYTES = 64 << 20 };

/* Makes the kernel give every page, slice by slice, so that *given_bytes says
 * how far it came. Kernels before 5.14 know no MADV_POPULATE_WRITE: there each
 * page is touched, and a shortage shows as a signal. */
static int populate(unsigned char *base, size_t bytes, size_t page,
                    size_t *given_bytes)
{
    for (size_t at = 0; at < bytes; *given_bytes = at) {
        size_t slice = bytes - at < SLICE_BYTES ? bytes - at : SLICE_BYTES;
        if (madvise(base + at, slice, MADV_POPULATE_WRITE)) {
            if (errno == EINTR)
                continue;
            if (errno != EINVAL)
                return errno;
            for (size_t i = at; i < at + slice; i += page)
                ((volatile unsigned char *)base)[i] = 0;
        }
        at += slice;
    }
    return 0;
}

/* `bytes` bytes of address space, MAP_FAILED if there are none. What was
 * mapped to align it is unmapped again: it never had pages. */
static unsigned char *map_aligned(size_t bytes)
{
    const int protection = PROT_READ | PROT_WRITE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    if (bytes >= HUGE_BYTES) {
        unsigned char *wide = mmap(NULL, bytes + HUGE_BYTES, protection, flags,
                                   -1, 0);
        if (wide != MAP_FAILED) {
            size_t before = -(uintptr_t)wide % HUGE_BYTES;
            if (before > 0)
                munmap(wide, before);
            munmap(wide + before + bytes, HUGE_BYTES - before);
            return wide + before;
        }
    }
    return mmap(NULL, bytes, protection, flags, -1, 0);
}

static void lock(pl_arena *arena)
{
    if (mlock(arena->base, arena->mapped_bytes) == 0) {
        arena->locked = 1;
        return;
    }
    arena->lock_error = errno;
    munlock(arena->base, arena->mapped_bytes); /* a part may be */
}

pl_status pl_arena_open(pl_arena *arena, size_t size_bytes, pl_error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), given = 0;
    *arena = (pl_arena){ 0 };
    if (size_bytes > SIZE_MAX / 2 - HUGE_BYTES)
        return pl_fail(err, PL_E_MEMORY, "an arena of %s is absurd",
                       pl_units_bytes(size_bytes).text);
    size_t mapped = size_bytes ? (size_bytes + page - 1) / page * page : page;
    unsigned char *base = must_fail() ? MAP_FAILED : map_aligned(mapped);
    if (base == MAP_FAILED)
        return pl_fail(err, PL_E_MEMORY,
                       "cannot map the arena of %s: %s. Make the model, "
                       "batch_size or block_size smaller, or see what limits "
                       "this process (ulimit -v, ulimit -d)",
                       pl_units_bytes(size_bytes).text, strerror(errno));
    madvise(base, mapped, MADV_HUGEPAGE); /* a wish: fewer page faults */
    int error = populate(base, mapped, page, &given);
    if (error) {
        munmap(base, mapped);
        return pl_fail(err, PL_E_MEMORY,
                       "the machine cannot give the arena's %s; after %s it "
                       "said: %s. Make the model, batch_size or "
                       "block_size smaller, or end what else takes memory",
                       pl_units_bytes(size_bytes).text,
                       pl_units_bytes(given).text, strerror(error));
    }
    arena->base = base;
    arena->size_bytes = size_bytes;
    arena->mapped_bytes = mapped;
    lock(arena);
    return PL_OK;
}

void *pl_arena_claim(pl_arena *arena, size_t offset, size_t bytes)
{
    PL_CHECK(!arena->sealed);
    PL_CHECK(offset % PL_ARENA_ALIGN == 0);
    PL_CHECK(offset <= arena->size_bytes &&
             bytes <= arena->size_bytes - offset);
    size_t end = offset + pl_arena_round(bytes);
    PL_CHECK(end <= arena->size_bytes);
    if (end > arena->used_bytes)
        arena->used_bytes = end;
    return arena->base + offset;
}

void pl_arena_seal(pl_arena *arena)
{
    PL_CHECK(arena->used_bytes == arena->size_bytes);
    arena->sealed = 1;
}

void pl_arena_close(pl_arena *arena)
{
    if (arena->base) {
        pl_arena_raise(arena->base, arena->mapped_bytes);
        munmap(arena->base, arena->mapped_bytes);
    }
    *arena = (pl_arena){ 0 };
}

pl_status pl_arena_resident(const pl_arena *arena, size_t offset, size_t bytes,
                            size_t *resident_bytes, pl_error *err)
{
    enum { PAGES = 4096 }; /* that are asked for at once */
    unsigned char is_here[PAGES];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), end = offset + bytes;
    PL_CHECK(offset <= arena->size_bytes &&
             bytes <= arena->size_bytes - offset);
    *resident_bytes = 0;
    for (size_t at = offset / page * page; at < end;) {
        const size_t left = (end - at + page - 1) / page,
                     pages = left < PAGES ? left : PAGES;
        if (mincore(arena->base + at, pages * page, is_here))
            return pl_fail(err, PL_E_IO,
                           "the kernel doesn't say which pages are in memory: "
                           "%s",
                           strerror(errno));
        for (size_t i = 0; i < pages; i++, at += page) {
            const size_t from = at > offset ? at : offset,
                         to = end - at > page ? at + page : end;
            if (is_here[i] & 1)
                *resident_bytes += to - from;
        }
    }
    return PL_OK;
}

/* ---- dead memory ---- */

void pl_arena_bury(void *memory, size_t bytes)
{
#ifdef PL_BURY
    pl_arena_raise(memory, bytes);
    memset(memory, 0xff, bytes);
#ifdef PL_ASAN
    ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
#else
    (void)memory, (void)bytes;
#endif
}

void pl_arena_raise(void *memory, size_t bytes)
{
#ifdef PL_ASAN
    ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#else
    (void)memory, (void)bytes;
#endif
}

int pl_arena_buries(void)
{
#ifdef PL_BURY
    return 1;
#else
    return 0;
#endif
}
