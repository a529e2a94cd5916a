/* checkpoint_tensors.h: the files of a checkpoint that hold tensors
 * (checkpoint.h), and which process of a run writes which part of them.
 *
 * Where all processes that share a run can write into the checkpoint's folder,
 * each writes what it has: rank 0 makes the files and leaves room, the others
 * fill it.
 *
 *     optimizer.safetensors
 *     |header|        64 KiB blocks of m.wte, then of others        |
 *     | rank 0 |  rank 0  | 0 | rank 1  | rank 1 | 0 |  rank 2  | ...
 *
 * A block of 64 KiB has one writer: the process that has all of it, else rank
 * 0. So no two write to one page, which a network's file system may read,
 * change and write back as a whole. */
#ifndef PL_STORE_CHECKPOINT_TENSORS_H
#define PL_STORE_CHECKPOINT_TENSORS_H

#include "store/run.h"

enum { PL_CHECKPOINT_BLOCK_BYTES = 64 * 1024 };

typedef struct pl_tensors_name {
    char text[48];
    pl_tensors_file file;
    size_t worker; /* of PL_TENSORS_WORKER: whose it is; else 0 */
} pl_tensors_name;

/* The files, in the order in which they are written. */
size_t pl_checkpoint_files(const pl_gpt *gpt);
pl_tensors_name pl_checkpoint_file(const pl_gpt *gpt, size_t i);

/* A file that is written. */
typedef struct pl_kept {
    const pl_gpt *gpt;
    const pl_run *run; /* NULL: only sizes are asked for */
    pl_tensors_file file;
    size_t worker;
    int is_shared; /* every process writes its part */
} pl_kept;

/* `kept` is borrowed. */
pl_tensor_source pl_kept_source(pl_kept *kept);

/* Writes what this process, which isn't rank 0, has of the files in `folder`.
 * *bytes: how many, also of a try that failed. */
PL_MUST_CHECK pl_status pl_checkpoint_fill(const pl_run *run,
                                           const char *folder, uint64_t *bytes,
                                           pl_error *err);

#endif
