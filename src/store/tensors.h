/* tensors.h: what a checkpoint keeps of a run, tensor by tensor. Writing and
 * reading go through the same list. Touches no file and no memory. */
#ifndef PL_STORE_TENSORS_H
#define PL_STORE_TENSORS_H

#include "format/safetensors.h"
#include "model/gpt.h"

typedef enum pl_tensors_file {
    PL_TENSORS_MODEL,     /* the weights */
    PL_TENSORS_OPTIMIZER, /* the moments, and the scales of 8-bit ones; of
                           * workers (DiLoCo) the first one's, and the outer
                           * state of all */
    PL_TENSORS_WORKER,    /* weights and moments of another worker */
} pl_tensors_file;

/* Which of the processes of a run keep a tensor. */
typedef enum pl_tensors_keeper {
    PL_TENSORS_SLICED,      /* every rank a slice (model/slices.h) */
    PL_TENSORS_WORKERS_OWN, /* each worker one of its own */
} pl_tensors_keeper;

typedef struct pl_tensors_row {
    pl_tensor_info info;      /* rank 0: there is no such tensor */
    pl_buffer_id buffer;      /* PL_NO_BUFFER: it is all zeros */
    size_t slot;              /* of params.h */
    size_t set;               /* offset of the list of buffers in pl_gpt */
    size_t unit;              /* of a moment: elements that share one of it */
    size_t first;             /* of the buffer's elements that it begins with */
    int is_weight;            /* in the names that others know */
    pl_tensors_keeper keeper; /* weights: of what it writes of them */
    size_t worker;            /* of PL_TENSORS_WORKERS_OWN: whose it is, which
                               * the caller says */
} pl_tensors_row;

/* Elements of a tensor that one process has. Of weights, which each has all of,
 * those that it writes to a file that several write. */
typedef struct pl_tensors_share {
    size_t first, count; /* of the tensor's elements; count 0: none */
    size_t at;           /* of its buffer's: where they begin */
} pl_tensors_share;

/* Rows of a file, with those that turn out to be empty. */
size_t pl_tensors_rows(const pl_gpt *gpt, pl_tensors_file file);
pl_tensors_row pl_tensors_at(const pl_gpt *gpt, pl_tensors_file file, size_t i);

size_t pl_tensors_elements(const pl_tensors_row *row);

/* The share of `rank` in a tensor that several processes keep. */
pl_tensors_share pl_tensors_own(const pl_gpt *gpt, const pl_tensors_row *row,
                                size_t rank);

#endif
