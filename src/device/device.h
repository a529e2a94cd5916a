/* device.h: where buffers live and when steps run.
 *
 * Outside a device a buffer is an id, never a pointer. A device owns the arena
 * that a placement asks for, executes programs, and moves bytes in and out. */
#ifndef PL_DEVICE_DEVICE_H
#define PL_DEVICE_DEVICE_H

#include "kernels/kernels.h"
#include "plan/graph.h"
#include "plan/place.h"

#include <stdint.h>

/* What changes between executions of a program. It lives in a buffer that
 * steps read, so that a device never waits for the host inside a program. */
typedef struct pl_scalars {
    /* written by the host */
    /* double: 1 - beta2 of a beta2 rounded to float is off by 1e-5 */
    double learning_rate, beta1, beta2, eps, weight_decay;
    double correction1, correction2; /* 1 - beta^t */
    double loss_scale;               /* a power of two: gradients carry it */
    float grad_clip;                 /* 0: no clipping */
    float dlogit_scale;              /* loss_scale / tokens of the update */
    uint32_t seed, step;             /* of dropout */
    uint32_t batch_first; /* the batch's first sequence, in the update */
    uint32_t micro_first; /* the micro-batch's first sequence, in the batch */
    uint32_t rows, position; /* decoding: new rows, and where they begin */
    /* written by the update program */
    float grad_norm, clip;
    uint32_t skipped; /* the gradients were not finite: weights unchanged */
} pl_scalars;

/* Scalars with which every program runs and AdamW divides by nothing odd: for
 * measuring and rehearsing. */
#define PL_SCALARS_NEUTRAL                                                     \
    ((pl_scalars){                                                             \
        .learning_rate = 1e-6,                                                 \
        .beta1 = 0.9,                                                          \
        .beta2 = 0.95,                                                         \
        .eps = 1e-8,                                                           \
        .correction1 = 1.0,                                                    \
        .correction2 = 1.0,                                                    \
        .loss_scale = 1.0,                                                     \
        .grad_clip = 1.0f,                                                     \
        .dlogit_scale = 1e-3f,                                                 \
        .rows = 1,                                                             \
    })

typedef struct pl_device pl_device;

typedef enum pl_part {
    PL_PART_LOOP, /* one round of the repeated steps */
    PL_PART_REST, /* what follows them */
} pl_part;

/* The processor: `threads` threads, the kernels of `kernels`. Opens, claims
 * and seals an arena of exactly the placement's bytes. Borrows graph and
 * placement. */
PL_MUST_CHECK pl_status pl_device_open_cpu(
    pl_device **out, const pl_graph *graph, const pl_placement *placement,
    const pl_kernels *kernels, int threads, pl_heap *heap, pl_error *err);
void pl_device_close(pl_device *device);

/* Runs a part of a program to its end. */
void pl_device_run(pl_device *device, pl_program_id program, pl_part part);

/* Who watches a run from step to step. */
typedef struct pl_run_watch {
    void *context;
    /* `step` is done, and others follow it: not 0 ends the run here. Asked by
     * the thread that called the device and by no other, between any two steps;
     * no thread begins the next step before all know the answer. It may take
     * its time, but must leave the device alone. */
    int (*between)(void *context, const pl_step *step);
} pl_run_watch;

typedef enum pl_run_end {
    PL_RUN_DONE,
    PL_RUN_STOPPED, /* the watch ended it before the last step */
} pl_run_end;

/* The same, watched. After PL_RUN_STOPPED nothing that the program computes
 * for itself or for the host is there; what lives throughout is as the steps so
 * far have left it. PL_UPDATE_WEIGHTS can't be watched: half of it would be
 * neither the old weights nor the new ones. */
PL_MUST_CHECK pl_run_end pl_device_run_watched(pl_device *device,
                                               pl_program_id program,
                                               pl_part part,
                                               const pl_run_watch *watch);

/* Fills a buffer with zeros. */
void pl_device_clear(pl_device *device, pl_buffer_id buffer);

/* Copies in and out of a buffer, `at` bytes from its start. */
void pl_device_write(pl_device *device, pl_buffer_id buffer, size_t at,
                     const void *source, size_t bytes);
void pl_device_read(pl_device *device, pl_buffer_id buffer, size_t at,
                    void *target, size_t bytes);

/* The host's own view of a buffer that the host fills or reads: valid until
 * the next run. */
void *pl_device_host(pl_device *device, pl_buffer_id buffer);

/* Bytes of the arena that claims cover: equal to the plan's, by assertion. */
size_t pl_device_used_bytes(const pl_device *device);

/* From now on seconds[i] grows by the time of step i of `program` whenever it
 * runs, by the clock of one thread from barrier to barrier; NULL: no longer. */
void pl_device_profile(pl_device *device, pl_program_id program,
                       double *seconds);

/* Flops per second that the device's arithmetic could do at best: all threads
 * at independent multiply-adds for some 40 ms. 0: unknown. */
double pl_device_peak_flops(pl_device *device);

/* Bytes per second that all threads together read at best: what lives
 * throughout, for some 40 ms. 0: unknown. */
double pl_device_read_bytes(pl_device *device);

#endif
