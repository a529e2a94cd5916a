/* shard_out.h: the token files of one split while they are written: one file,
 * or shards of a given number of tokens.
 *
 *   train.bin   or   train_000000.bin, train_000001.bin, ...
 *
 * How many tokens there are in all says which shard is open and how long it
 * is, so that number alone suffices to go on after a stop. Owns the names. */
#ifndef PL_DATA_SHARD_OUT_H
#define PL_DATA_SHARD_OUT_H

#include "data/shard.h"

enum {
    PL_SHARD_OUT_NAME_BYTES = 32,
    PL_SHARD_OUT_BUFFER_BYTES = 256 * 1024,
    PL_SHARD_OUT_MAX_SHARDS = 1000000, /* six digits */
};

typedef struct pl_shard_out_options {
    const char *folder;
    const char *split; /* "train", "val" */
    pl_shard_kind kind;
    int32_t vocab_size;
    uint64_t shard_tokens; /* 0: one file of any length */
} pl_shard_out_options;

typedef struct pl_shard_out {
    pl_shard_out_options options;
    uint64_t n_tokens; /* of all shards */
    pl_file file;      /* the last shard, unless none is begun */
    pl_shard_writer writer;
    unsigned char *buffer; /* PL_SHARD_OUT_BUFFER_BYTES */
} pl_shard_out;

/* The name of a shard, without the folder. */
void pl_shard_out_name(const pl_shard_out_options *options, uint64_t shard,
                       char name[PL_SHARD_OUT_NAME_BYTES]);
/* How many files `n_tokens` tokens take. */
uint64_t pl_shard_out_files(const pl_shard_out_options *options,
                            uint64_t n_tokens);

/* Goes on behind the first `n_tokens` tokens; what is behind them is removed.
 * With 0 it begins: a file is made with its first token. PL_E_IO if there are
 * less. On failure nothing stays open. `buffer` is used until the end. */
PL_MUST_CHECK pl_status pl_shard_out_open(pl_shard_out *out,
                                          const pl_shard_out_options *options,
                                          uint64_t n_tokens,
                                          unsigned char *buffer, pl_error *err);
PL_MUST_CHECK pl_status pl_shard_out_put(pl_shard_out *out, const int32_t *ids,
                                         size_t count, pl_error *err);
/* What was put is in the file then, and on its way to the disk. */
PL_MUST_CHECK pl_status pl_shard_out_flush(pl_shard_out *out, pl_error *err);
/* Returns once what was put is on the disk. */
PL_MUST_CHECK pl_status pl_shard_out_sync(pl_shard_out *out, pl_error *err);
/* Finishes the last shard, on the disk, and closes it. */
PL_MUST_CHECK pl_status pl_shard_out_end(pl_shard_out *out, pl_error *err);
/* For undoing: closes it as it is. */
void pl_shard_out_abandon(pl_shard_out *out);

#endif
