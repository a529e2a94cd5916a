/* run.h: the state of a run: its model on a device, its tokens, and everything
 * that a checkpoint keeps. Checkpoints are written from it and read into it. */
#ifndef PL_STORE_RUN_H
#define PL_STORE_RUN_H

#include "base/arena.h"
#include "base/log.h"
#include "config/config.h"
#include "data/dataset.h"
#include "device/device.h"
#include "model/gpt.h"
#include "model/scaler.h"
#include "store/metrics.h"
#include "store/outdir.h"
#include "store/tensors.h"
#include "text/tokfile.h"

#include <stdint.h>

enum {
    PL_RUN_TEXT_BYTES = 64 * 1024,   /* a checkpoint's JSON files */
    PL_RUN_STAGE_BYTES = 256 * 1024, /* weights on their way in */
};

/* What it is opened for. Decided by the command; nobody below asks the config
 * (eval_only) again. */
typedef enum pl_run_purpose {
    PL_RUN_TRAINS,    /* trains, evaluates and saves */
    PL_RUN_EVALUATES, /* evaluates once: changes no weight, writes no file */
    PL_RUN_SAMPLES,
    PL_RUN_IS_MEASURED,
} pl_run_purpose;

/* The other processes of a run that several share, for a checkpoint that is
 * read or written from here. */
typedef struct pl_run_others {
    void *context;
    /* `count` elements from `first` on of a tensor of the optimizer's, wherever
     * they are. */
    pl_status (*read)(void *context, const pl_tensors_row *row, size_t first,
                      size_t count, void *out, pl_error *err);
    pl_status (*write)(void *context, const pl_tensors_row *row, size_t first,
                       size_t count, const void *in, pl_error *err);
    /* Whether all of them can write into a folder that was made here. */
    pl_status (*look)(void *context, const char *folder, int *is_shared,
                      pl_error *err);
    /* Adds `count` elements from `first` on, which `rank` has all of, to a
     * checksum. */
    pl_status (*sum)(void *context, const pl_tensors_row *row, size_t rank,
                     size_t first, size_t count, pl_hash *hash, pl_error *err);
    /* Lets each write its part of the files in the folder. */
    pl_status (*fill)(void *context, const char *folder, pl_error *err);
} pl_run_others;

typedef struct pl_run {
    pl_run_purpose purpose;
    const pl_config *config;
    const pl_log *log;
    pl_heap *heap;
    pl_dataset dataset; /* training and evaluation only */
    pl_tokenizer tokenizer;
    pl_tokenizer_text tokenizer_file; /* what a checkpoint has of it */
    pl_tokenizer_text hf_tokenizer; /* and what others read, if that differs */
    pl_shape shape;
    pl_gpt gpt;
    pl_device *device;
    char *text;           /* PL_RUN_TEXT_BYTES */
    char *stage;          /* PL_RUN_STAGE_BYTES: on the way to the device */
    uint16_t *halves;     /* as many elements of 16 bits */
    uint64_t step;        /* updates done */
    double best_val_loss; /* infinite: none yet */
    double best_val_bpb;  /* bits per byte of that evaluation; infinite:
                           * unknown */
    double val_loss;      /* at this step; infinite: not evaluated */
    double val_bpb;       /* likewise, in bits per byte; infinite: unknown */
    pl_scaler scaler;     /* float16's loss scale */
    uint64_t skipped;     /* updates that were not finite */
    pl_outdir outdir;     /* while training */
    pl_metrics metrics;   /* likewise */
    size_t tasks;         /* that it asks every task_interval updates */
    size_t rank;          /* of the processes that share it */
    const pl_run_others *others; /* NULL: there are none */
} pl_run;

/* Nothing is open yet, and no update was done. */
pl_run pl_run_make(pl_run_purpose purpose, const pl_config *config,
                   const pl_log *log, pl_heap *heap);

/* Fills the table of rotations, if the model has one. */
PL_MUST_CHECK pl_status pl_run_write_rotary(pl_run *run, pl_error *err);

/* Puts `count` weights from `first` on, which lie in run->stage as float32,
 * where they are kept, and where they are copied to. */
PL_MUST_CHECK pl_status pl_run_write_weights(pl_run *run, size_t slot,
                                             size_t first, size_t count,
                                             pl_error *err);
/* Writes the working copy of a weight, if it has one: `count` elements from
 * `first` on, as they lie in run->stage. */
PL_MUST_CHECK pl_status pl_run_write_copy(pl_run *run, size_t slot,
                                          size_t first, size_t count,
                                          pl_error *err);

#endif
