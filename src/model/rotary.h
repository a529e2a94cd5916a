/* rotary.h: the cosines and sines of rotated positions. */
#ifndef PL_MODEL_ROTARY_H
#define PL_MODEL_ROTARY_H

#include "model/shape.h"

/* Element i of the table [T, D], for i in [first, first + count): row p has the
 * D/2 cosines of position p's angles, p * theta^(-2k/D), then their sines. By
 * base/exact in double, each rounded once, so that it is the same everywhere.
 */
void pl_rotary_fill(const pl_shape *shape, size_t first, size_t count,
                    float *out);

#endif
