/* place.h: where every buffer of a graph lies in the arena.
 *
 * What lives throughout the run lies at the bottom. Above it the programs lie
 * over each other, each with its buffers placed greedily by size at the lowest
 * offset that is free during their lifetime. The result is exact: the arena has
 * arena_bytes, and all of them are used.
 *
 * This is arithmetic only: it allocates tables on the graph's heap and touches
 * no tensor. */
#ifndef PL_PLAN_PLACE_H
#define PL_PLAN_PLACE_H

#include "plan/graph.h"

typedef struct pl_placement {
    size_t *offsets; /* per buffer, multiples of PL_ARENA_ALIGN */
    size_t throughout_bytes;
    size_t program_bytes[PL_PROGRAM_COUNT]; /* above throughout_bytes */
    size_t arena_bytes; /* throughout + the largest program */
    /* No placement can need less: throughout + the most that is live at one
     * step. */
    size_t lower_bound_bytes;
    /* Bytes by class at the step where a program holds the most. */
    size_t class_bytes[PL_PROGRAM_COUNT][PL_CLASS_COUNT];
} pl_placement;

PL_MUST_CHECK pl_status pl_place(pl_placement *placement, const pl_graph *graph,
                                 pl_error *err);

/* throughout + program: what `program` needs while it runs. */
size_t pl_placement_peak(const pl_placement *placement, pl_program_id program);

#endif
