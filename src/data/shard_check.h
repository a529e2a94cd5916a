/* shard_check.h: every id of a set of shards against the vocabulary, before
 * training and not hours into it, when the first bad one is drawn.
 *
 * Files are read once, at the speed of the disk, in bounded memory. What was
 * found is remembered in the user's cache folder, as each file's largest id and
 * the hash of its tokens under its stamp (base/file.h): a file that is the same
 * isn't read again, whatever the vocabulary, and one that was changed is. */
#ifndef PL_DATA_SHARD_CHECK_H
#define PL_DATA_SHARD_CHECK_H

#include "base/log.h"
#include "data/shard_set.h"

/* PL_E_FORMAT with the file, the position, the id and the vocabulary. With
 * `cache_folder` NULL nothing is remembered; one that can't be written is no
 * error. Says how far it is where that takes longer than a second. *hash is of
 * all tokens, in their order. */
PL_MUST_CHECK pl_status pl_shard_check(const pl_shard_set *set,
                                       int32_t vocab_size,
                                       const char *cache_folder,
                                       const pl_log *log, uint64_t *hash,
                                       pl_error *err);

#endif
