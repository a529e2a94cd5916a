/* scaler.h: the loss scale of a run in 16 bits.
 *
 * Small gradients would vanish, so the loss is multiplied by a power of two,
 * which the update takes off again exactly.
 *   float16   too large a scale overflows: then the update is skipped and the
 *             scale halved; after many updates without that it is doubled.
 *             PyTorch's numbers.
 *   bfloat16  has float32's range, but rounding makes zero of what is below
 *             2^-56 (storage.h). A gradient of the mean loss is smaller, the
 *             more tokens an update has: the scale is constant, the power of
 *             two next to their number.
 *   float32   1. */
#ifndef PL_MODEL_SCALER_H
#define PL_MODEL_SCALER_H

#include "plan/tensor.h"

#include <stdint.h>

typedef struct pl_scaler {
    double scale;  /* a power of two; if it is adaptive, 1 to 2^24 */
    uint32_t good; /* updates since it changed */
    int adaptive;
} pl_scaler;

enum { PL_SCALER_GROWTH_UPDATES = 2000 };

/* For a run in `dtype`, with so many tokens in an update. */
pl_scaler pl_scaler_make(pl_dtype dtype, double tokens);

/* After an update: `skipped` if its gradients were not finite. Returns whether
 * there was room to make the scale smaller: if not, the run itself is at
 * fault. */
int pl_scaler_update(pl_scaler *scaler, int skipped);

/* Whether a scale from a file is one that an adaptive scaler can have. */
int pl_scaler_is_valid(double scale);

#endif
