/* scaler.h: float16's loss scale.
 *
 * Small gradients would vanish in 16 bits, so the loss is multiplied by a power
 * of two, which the update takes off again exactly. Too large a one overflows:
 * then the update is skipped and the scale halved; after many updates without
 * that it is doubled. PyTorch's numbers. */
#ifndef PL_MODEL_SCALER_H
#define PL_MODEL_SCALER_H

#include <stdint.h>

typedef struct pl_scaler {
    double scale;  /* 1 to 2^24, a power of two; always 1 if it isn't active */
    uint32_t good; /* updates since it changed */
    int active;
} pl_scaler;

enum { PL_SCALER_GROWTH_UPDATES = 2000 };

pl_scaler pl_scaler_make(int active); /* begins at 65536 */

/* After an update: `skipped` if its gradients were not finite. Returns whether
 * there was room to make the scale smaller: if not, the run itself is at
 * fault. */
int pl_scaler_update(pl_scaler *scaler, int skipped);

/* Whether a scale from a file is one that a scaler can have. */
int pl_scaler_is_valid(double scale);

#endif
