/* rig.h: a fixture's model on a device, ready to run. Fails the running test
 * itself (cmocka). */
#ifndef PL_TESTS_GOLDEN_RIG_H
#define PL_TESTS_GOLDEN_RIG_H

#include "device/device.h"
#include "golden/fixture.h"
#include "model/gpt.h"

#include <stddef.h>
#include <stdint.h>

/* How a result is computed. Zeros: the literal run, one thread. */
typedef struct rig_way {
    size_t micro;      /* 0: the whole batch */
    size_t chunk_rows; /* 0: all rows */
    size_t mlp_rows;   /* 0: all rows */
    size_t eval_T;     /* 0: T */
    uint8_t levels[2]; /* of even and odd layers */
    int threads;       /* 0: 1 */
    pl_muon_scale_choice muon_scale;
} rig_way;

typedef struct rig {
    const fixture *from;
    const char *set; /* the kernels' name */
    size_t T, batch;
    pl_heap heap;
    uint8_t levels[8];
    pl_gpt gpt;
    pl_device *device;
    pl_controls controls; /* written before every run */
    pl_outcome outcome;   /* of the last update */
} rig;

/* Builds the model, opens the device, writes the weights and the controls that
 * a training batch needs. */
void rig_open(rig *r, fixture *f, const pl_kernels *kernels,
              const rig_way *way);
void rig_close(rig *r);

/* Adds the gradients of a batch; sums[batch]: the loss of each sequence. */
void rig_train(rig *r, const int32_t *tokens, double *sums);
/* sums[batch] over the first `eval_T` tokens of each sequence. */
void rig_evaluate(rig *r, const int32_t *tokens, double *sums);
/* Decodes tokens [position, position + rows); logits[V] of the last of them. */
void rig_decode(rig *r, const int32_t *tokens, size_t position, size_t rows,
                float *logits);
/* One update with `controls`; then `outcome` has the norm. */
void rig_update(rig *r);

/* A tensor of the fixture that belongs to a slot, "" or another text before
 * its names, as the arena has it: put together of its pieces. */
void rig_tensor(fixture *f, const pl_shape *shape, size_t slot,
                const char *prefix, float *values);

/* A copy of a buffer of floats; malloc'ed. */
float *rig_floats(rig *r, pl_buffer_id buffer);

/* The kernel sets that this machine can run, the reference first. */
enum { RIG_SETS = 1 + PL_ISA_COUNT };
size_t rig_sets(pl_kernels sets[RIG_SETS]);

#endif
