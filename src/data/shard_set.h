/* shard_set.h: several shards, one after another, as one long list of tokens.
 * Where a shard ends doesn't show: a crop may begin in one and end in the
 * next, as if they were one file. Any number of tokens. */
#ifndef PL_DATA_SHARD_SET_H
#define PL_DATA_SHARD_SET_H

#include "base/arena.h"
#include "data/shard.h"

typedef struct pl_shard_set {
    pl_shard *shards;
    uint64_t *begins; /* of each shard, its first token's number in all */
    size_t count;
    uint64_t n_tokens;
    const char *name; /* for messages: the first one's path */
} pl_shard_set;

/* Opens them all, and keeps them open. The lists come from `heap`. On failure
 * none stays open. All have llm.c's header, or none: PL_E_FORMAT with the names
 * of two that differ, since a header that is damaged would be read as tokens.
 */
PL_MUST_CHECK pl_status pl_shard_set_open(pl_shard_set *set,
                                          const char *const *paths,
                                          size_t count, pl_heap *heap,
                                          pl_error *err);
void pl_shard_set_close(pl_shard_set *set);

/* As pl_shard_read, over all of them. */
PL_MUST_CHECK pl_status pl_shard_set_read(const pl_shard_set *set,
                                          uint64_t first, size_t count,
                                          int32_t *out, int32_t vocab_size,
                                          pl_error *err);

#endif
