/* place.h: where every buffer of a graph lies in the arena.
 *
 * What lives throughout the run lies at the bottom. Above it the programs lie
 * over each other, each with its buffers placed greedily by size at the lowest
 * offset that is free during their lifetime. The result is exact: the arena has
 * arena_bytes, and all of them are used.
 *
 * The host's buffers lie among the device's where both have one memory, or in
 * an arena of their own.
 *
 * This is arithmetic only: it allocates tables on the graph's heap and touches
 * no tensor. */
#ifndef PL_PLAN_PLACE_H
#define PL_PLAN_PLACE_H

#include "plan/graph.h"

#include <stdint.h>

typedef enum pl_spaces { PL_SPACES_SHARED, PL_SPACES_APART } pl_spaces;

/* What a device's memory asks of a placement. */
typedef struct pl_place_rules {
    size_t align; /* of every buffer; a power of two */
    /* The largest single allocation, a multiple of align: the arena is made of
     * banks of this size, the last one shorter, and no buffer lies in two.
     * SIZE_MAX: there is one bank. */
    size_t bank_bytes;
    pl_spaces spaces;
} pl_place_rules;

/* The host's own memory, and a device that works in it. */
#define PL_PLACE_IN_HOST                                                       \
    ((pl_place_rules){ PL_ARENA_ALIGN, SIZE_MAX, PL_SPACES_SHARED })

typedef struct pl_placement {
    pl_place_rules rules;
    size_t *offsets; /* per buffer, in its arena: multiples of the alignment */
    size_t throughout_bytes;
    size_t program_bytes[PL_PROGRAM_COUNT]; /* above throughout_bytes */
    size_t arena_bytes; /* throughout + the largest program */
    size_t host_bytes;  /* of the host's arena; 0 where they share one */
    /* No placement can need less: throughout + the most that is live at one
     * step. */
    size_t lower_bound_bytes;
    /* The step where a program holds the most, and its bytes by class there. */
    size_t fullest[PL_PROGRAM_COUNT];
    size_t class_bytes[PL_PROGRAM_COUNT][PL_CLASS_COUNT];
} pl_placement;

/* PL_E_MEMORY where a tensor is larger than a bank. */
PL_MUST_CHECK pl_status pl_place(pl_placement *placement, const pl_graph *graph,
                                 const pl_place_rules *rules, pl_error *err);

/* throughout + program: what `program` needs while it runs. */
size_t pl_placement_peak(const pl_placement *placement, pl_program_id program);

/* Whether class_bytes[program] counts a buffer. */
int pl_placement_counts(const pl_placement *placement, const pl_buffer *buffer,
                        pl_program_id program);

/* Whether a buffer lies in the host's arena. */
int pl_placement_in_host(const pl_placement *placement,
                         const pl_buffer *buffer);

#endif
