/* slices.h: which of the processes of a run (ranks) keeps the moments of which
 * part of a parameter, and updates it.
 *
 * The parameters of each layer, and those before and behind all layers, stand
 * in a row that is cut into parts of about the same size, one for each rank: so
 * a layer's gradients travel both ways at once when they are ready. A cut is at
 * a multiple of PL_SUMSQ_BLOCK elements of a tensor, so that the partial sums
 * of the norm are those of one process; what a rank has more of one layer it
 * has less of the next. A matrix that is Muon's has one owner, the rank that
 * has least. */
#ifndef PL_MODEL_SLICES_H
#define PL_MODEL_SLICES_H

#include "base/arena.h"
#include "config/keys.h"
#include "model/shape.h"

#include <stdint.h>

typedef struct pl_slice {
    size_t first, count; /* elements of the parameter; count 0: none */
} pl_slice;

typedef struct pl_slices {
    size_t ranks, slots;
    size_t elements;      /* of all parameters */
    const size_t *begins; /* [slots + 1]: elements of those before it */
    const size_t *blocks; /* [slots + 1]: partial sums of those before it */
    const uint32_t *cuts; /* [slots][ranks + 1]: partial sums of it */
    const unsigned char *is_whole; /* [slots]: it has one owner */
} pl_slices;

PL_MUST_CHECK pl_status pl_slices_make(pl_slices *slices, const pl_shape *shape,
                                       pl_optimizer_choice optimizer,
                                       size_t ranks, pl_heap *heap,
                                       pl_error *err);

/* What `rank` keeps of parameter `slot`. */
pl_slice pl_slices_at(const pl_slices *slices, size_t slot, size_t rank);

/* The partial sums of the norm that it computes of it, among all. */
pl_slice pl_slices_partials(const pl_slices *slices, size_t slot, size_t rank);

/* Elements that it keeps of all of them. */
size_t pl_slices_elements(const pl_slices *slices, size_t rank);

#endif
