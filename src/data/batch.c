/* batch.c: see batch.h. Owns the counters of PL_RNG_CROP and PL_RNG_EVAL. */
#include "data/batch.h"

#include "base/check.h"
#include "base/rng.h"

pl_status pl_batch_check(const char *name, uint64_t n_tokens, size_t T,
                         pl_error *err)
{
    if (n_tokens > T)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s has %llu tokens, too few for sequences of %zu: it needs "
                   "%llu at least. Use a smaller block_size (or "
                   "eval_block_size), or more text",
                   name, (unsigned long long)n_tokens, T,
                   (unsigned long long)T + 1);
}

uint64_t pl_batch_crop_train(uint32_t seed, uint32_t step, uint32_t sequence,
                             uint64_t n_tokens, size_t T)
{
    uint32_t words[4];
    PL_CHECK(n_tokens > T);
    pl_rng_words(PL_RNG_CROP, seed, step, sequence, PL_SPLIT_TRAIN, 0, words);
    return pl_rng_below(words, n_tokens - T);
}

uint64_t pl_batch_crop_eval(uint32_t seed, pl_split split, uint32_t i,
                            uint64_t n_tokens, size_t T)
{
    uint32_t words[4];
    PL_CHECK(n_tokens > T);
    pl_rng_words(PL_RNG_EVAL, seed, i, 0, (uint32_t)split, 0, words);
    return pl_rng_below(words, n_tokens - T);
}

pl_status pl_batch_read(const pl_dataset *dataset, const pl_batch_key *key,
                        uint32_t sequence, size_t T, size_t from, size_t count,
                        int32_t *tokens, pl_error *err)
{
    pl_split split = key->use == PL_BATCH_TRAIN ? PL_SPLIT_TRAIN : key->split;
    const pl_shard_set *shards = &dataset->shards[split];
    pl_status status = pl_batch_check(shards->name, shards->n_tokens, T, err);
    if (status)
        return status;
    PL_CHECK(from <= T + 1 && count <= T + 1 - from);
    uint64_t start = key->use == PL_BATCH_TRAIN
                         ? pl_batch_crop_train(key->seed, key->step, sequence,
                                               shards->n_tokens, T)
                         : pl_batch_crop_eval(key->seed, split, sequence,
                                              shards->n_tokens, T);
    return pl_shard_set_read(shards, start + from, count, tokens,
                             dataset->tokenizer.vocab_size, err);
}
