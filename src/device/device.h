/* device.h: where buffers live and when steps run.
 *
 * A device is known by a table of functions (device_kind.h) behind the calls
 * below. Outside a device a buffer is an id, never a pointer: what goes in and
 * out is copied. Only buffers of the host's space (graph.h) are pointers.
 *
 * A device can fail at any call that returns a status: a card can be lost. Then
 * nothing is known of what it holds; it can only be closed. */
#ifndef PL_DEVICE_DEVICE_H
#define PL_DEVICE_DEVICE_H

#include "kernels/kernels.h"
#include "plan/graph.h"
#include "plan/place.h"

#include <stdint.h>

/* ---- what passes between the host and a program ---- */

/* What changes between executions of a program. The host writes it before a
 * run (pl_device_set), steps read it, so that a device never waits for the host
 * inside a program. */
typedef struct pl_controls {
    /* double: 1 - beta2 of a beta2 rounded to float is off by 1e-5 */
    double learning_rate, beta1, beta2, eps, weight_decay;
    double correction1, correction2; /* 1 - beta^t */
    double muon_rate, muon_momentum, muon_decay;
    double outer_rate, outer_momentum;
    double outer_share;   /* one over the number of workers */
    double loss_scale;    /* a power of two: gradients carry it */
    float grad_clip;      /* 0: no clipping */
    float dlogit_scale;   /* loss_scale / tokens of the update */
    uint32_t seed, step;  /* of dropout */
    uint32_t batch_first; /* the batch's first sequence, in the update */
    uint32_t micro_first; /* the micro-batch's first sequence, in the batch */
    uint32_t rows, position; /* decoding: new rows, and where they begin */
    uint32_t digit;          /* of the counter that adds groups */
    /* serving: the rows are those of so many sequences, in as many slots from
     * the first of these on, and so many of the last rows get logits */
    uint32_t sequences, slot, logits;
} pl_controls;

/* What an update says of itself: written by its steps, read by later ones and,
 * after the run, by the host. */
typedef struct pl_outcome {
    float grad_norm, clip;
    uint32_t skipped; /* the gradients were not finite: weights unchanged */
} pl_outcome;

_Static_assert(sizeof(pl_outcome) == PL_OUTCOME_BYTES, "ops.h says its size");

/* Controls with which every program runs and AdamW divides by nothing odd: for
 * measuring and rehearsing. */
#define PL_CONTROLS_NEUTRAL                                                    \
    ((pl_controls){                                                            \
        .learning_rate = 1e-6,                                                 \
        .beta1 = 0.9,                                                          \
        .beta2 = 0.95,                                                         \
        .eps = 1e-8,                                                           \
        .correction1 = 1.0,                                                    \
        .correction2 = 1.0,                                                    \
        .muon_rate = 1e-6,                                                     \
        .muon_momentum = 0.95,                                                 \
        .outer_rate = 0.7,                                                     \
        .outer_momentum = 0.9,                                                 \
        .outer_share = 1.0,                                                    \
        .loss_scale = 1.0,                                                     \
        .grad_clip = 1.0f,                                                     \
        .dlogit_scale = 1e-3f,                                                 \
        .rows = 1,                                                             \
        .sequences = 1,                                                        \
        .logits = 1,                                                           \
    })

/* ---- what is known before it is opened ---- */

typedef struct pl_device pl_device;
typedef struct pl_device_kind pl_device_kind;

/* A device as plans see it; choose.h fills it in. Nothing was opened, and
 * nothing has to be closed. */
typedef struct pl_device_info {
    const pl_device_kind *kind;
    int variant;   /* the kind's own: which kernels, which card */
    char text[64]; /* "2 threads, avx2 kernels", for people */
    char key[32];  /* "avx2-2": the name of rates that were measured on it */
    char kernels[16];
    pl_arithmetic arithmetic; /* of all that it computes */
    pl_products products;     /* of 16 bits; pl_device_choose settles it */
    pl_products tensor;       /* what its tensor cores, or its processor's AMX,
                               * compute; exact: it has none */
    int has_all_products;     /* its kernels compute every kind */
    pl_place_rules memory;
    size_t workers; /* that share a step; scratch may be for each */
    size_t cores;   /* of 3 GHz with AVX2 that it is worth, until measured */
    /* of bfloat16 products, of 16-bit ones in tensor arithmetic and of those in
     * AMX's, as a multiple of float32's */
    double bf16_speed, tensor_speed, amx_speed;
    /* of a card, as its maker states them; 0: none, or unknown */
    double card_flops, card_bytes_per_second;
    size_t host_bytes; /* that it takes of the host's memory for itself */
} pl_device_info;

/* Memory that a device would give at this moment, and who says so. */
typedef struct pl_device_offer {
    size_t bytes;
    char from[256];
} pl_device_offer;

PL_MUST_CHECK pl_status pl_device_offer_make(pl_device_offer *offer,
                                             const pl_device_info *info,
                                             pl_error *err);

/* float32 scratch that a step of this op with these constants (of rows, T,
 * heads, inner) wants for itself; rows 0: none. `kept` is how attention's
 * result is, and a product's left operand, or the gradient in that of weights.
 */
pl_extent pl_device_scratch(const pl_device_info *info, const pl_step *step,
                            pl_dtype kept);

/* float32 scratch that all products share where the widest one has `columns`
 * columns of weights kept or rounded to `dtype`, of which at most `most` are to
 * be packed at once; rows 0: none. */
pl_extent pl_device_packing(const pl_device_info *info, size_t columns,
                            size_t most, pl_dtype dtype);

/* ---- open ---- */

/* Takes exactly the placement's bytes, which was made by info->memory's rules.
 * What lives throughout is zero. Borrows graph and placement. */
PL_MUST_CHECK pl_status pl_device_open(pl_device **out,
                                       const pl_device_info *info,
                                       const pl_graph *graph,
                                       const pl_placement *placement,
                                       pl_heap *heap, pl_error *err);
void pl_device_close(pl_device *device); /* NULL is fine */

/* The controls of all runs from here on. */
PL_MUST_CHECK pl_status pl_device_set(pl_device *device,
                                      const pl_controls *controls,
                                      pl_error *err);

typedef enum pl_part {
    PL_PART_LOOP, /* one round of the repeated steps */
    PL_PART_REST, /* what follows them */
} pl_part;

/* Runs a part of a program to its end. */
PL_MUST_CHECK pl_status pl_device_run(pl_device *device, pl_program_id program,
                                      pl_part part, pl_error *err);

/* Who watches a run from step to step. */
typedef struct pl_run_watch {
    void *context;
    /* `step` is done but for what other threads still do of it, and others
     * follow: not 0 ends the run here. Asked by the thread that called the
     * device and by no other, between any two steps; no thread begins the next
     * step before all know the answer. It may take its time. It must leave the
     * device alone, but for one thing: where steps are done when it is asked
     * (pl_device_is_prompt) it may read and write buffers that neither this
     * step nor a later one of the run touches. */
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
PL_MUST_CHECK pl_status pl_device_run_watched(pl_device *device,
                                              pl_program_id program,
                                              pl_part part,
                                              const pl_run_watch *watch,
                                              pl_run_end *end, pl_error *err);

/* Whether steps are done when a watch is asked, and not only begun. */
int pl_device_is_prompt(const pl_device *device);
/* The same of one that isn't open, and perhaps isn't here. */
int pl_device_info_is_prompt(const pl_device_info *info);

/* Fills a buffer with zeros. */
PL_MUST_CHECK pl_status pl_device_clear(pl_device *device, pl_buffer_id buffer,
                                        pl_error *err);

/* Copies in and out of a buffer of the device's space, `at` bytes from its
 * start. `source` may be overwritten, `target` read, as soon as it returns. */
PL_MUST_CHECK pl_status pl_device_write(pl_device *device, pl_buffer_id buffer,
                                        size_t at, const void *source,
                                        size_t bytes, pl_error *err);
PL_MUST_CHECK pl_status pl_device_read(pl_device *device, pl_buffer_id buffer,
                                       size_t at, void *target, size_t bytes,
                                       pl_error *err);

/* A buffer of the host's space: planned memory for what the host does itself.
 * It may lie over buffers of programs, so that it is the host's only until the
 * next run, and until the next write to (or clearing of) what doesn't live
 * throughout. In dev and asan builds it is buried then. */
void *pl_device_host(pl_device *device, pl_buffer_id buffer);

/* What a program's bytes are backed by: on a processor pages that are in memory
 * right now, on a card what its driver gave. */
typedef struct pl_device_backing {
    size_t class_bytes[PL_CLASS_COUNT]; /* of those that the placement counts */
    size_t gap_bytes;  /* of what is between them, up to the program's peak */
    size_t rest_bytes; /* of the arena above it, which others use */
    int is_in_host;    /* the arena lies in this process's memory */
} pl_device_backing;

/* Asks the system alone, and changes nothing: also for a watch. */
PL_MUST_CHECK pl_status pl_device_backed(pl_device *device,
                                         pl_program_id program,
                                         pl_device_backing *backing,
                                         pl_error *err);

/* From now on seconds[i] grows by the time of step i of `program` whenever it
 * runs; NULL: no longer. */
void pl_device_profile(pl_device *device, pl_program_id program,
                       double *seconds);

/* Flops per second that the device's arithmetic could do at best in a run of
 * that dtype, measured in some 40 ms. 0: unknown. */
double pl_device_peak_flops(pl_device *device, pl_dtype dtype);

/* Bytes per second of what lives throughout that the device reads at best,
 * likewise. 0: unknown. */
double pl_device_read_bytes(pl_device *device);

#endif
