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
    pl_tensors_keeper keeper; /* of what isn't */
    size_t worker;            /* of PL_TENSORS_WORKERS_OWN: whose it is, which
                               * the caller says */
} pl_tensors_row;

/* Rows of a file, with those that turn out to be empty. */
size_t pl_tensors_rows(const pl_gpt *gpt, pl_tensors_file file);
pl_tensors_row pl_tensors_at(const pl_gpt *gpt, pl_tensors_file file, size_t i);

#endif
