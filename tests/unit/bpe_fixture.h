/* bpe_fixture.h: byte-pair encoding and its training as they are defined,
 * without any thought for speed: what text/bpe.h and text/bpe_train.h must
 * agree with. */
#ifndef PL_TESTS_UNIT_BPE_FIXTURE_H
#define PL_TESTS_UNIT_BPE_FIXTURE_H

#include "base/rng.h"
#include "text/bpe_model.h"
#include "text/bpe_train.h"
#include "text/pretok.h"

#include <stdlib.h>
#include <string.h>

static inline uint32_t random_at(uint32_t seed, uint32_t i)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_SAMPLE, seed, i, 0, 0, 0, words);
    return words[0];
}

/* `bytes` characters of `alphabet`, at random. */
static inline void random_text(char *out, size_t bytes, const char *alphabet,
                               uint32_t seed)
{
    size_t letters = strlen(alphabet);
    for (size_t i = 0; i < bytes; i++)
        out[i] = alphabet[random_at(seed, (uint32_t)i) % letters];
}

/* Each merge in turn, from left to right. */
static inline size_t naive_merge(int32_t *ids, size_t count,
                                 const pl_bpe_merge *merges, size_t merge_count)
{
    for (size_t m = 0; m < merge_count; m++) {
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            ids[used] = ids[i];
            if (i + 1 < count && ids[i] == merges[m].left &&
                ids[i + 1] == merges[m].right) {
                ids[used] = merges[m].made;
                i++;
            }
            used++;
        }
        count = used;
    }
    return count;
}

/* The merges of a vocabulary, malloc'ed. */
static inline pl_bpe_merge *merges_of(const pl_bpe *bpe, size_t *count)
{
    *count = pl_bpe_merge_count(bpe);
    pl_bpe_merge *merges = malloc((*count + 1) * sizeof *merges);
    for (size_t i = 0; i < *count; i++)
        merges[i] = pl_bpe_merge_at(bpe, i);
    return merges;
}

/* Encodes piece by piece. */
static inline size_t naive_encode(const pl_bpe *bpe, const char *text,
                                  size_t bytes, int32_t *ids)
{
    size_t merge_count, count = 0;
    pl_bpe_merge *merges = merges_of(bpe, &merge_count);
    for (size_t at = 0; at < bytes;) {
        size_t length = pl_pretok_next(bpe->splitting.pattern, text + at,
                                       bytes - at);
        for (size_t i = 0; i < length; i++)
            ids[count + i] = bpe->ids[(unsigned char)text[at + i]];
        count += naive_merge(ids + count, length, merges, merge_count);
        at += length;
    }
    free(merges);
    return count;
}

/* Trains on one text, in one thread. */
static inline pl_status train_on(const char *text, size_t bytes,
                                 const pl_bpe_train_options *options,
                                 pl_bpe_train_result *result, pl_heap *heap,
                                 pl_error *err)
{
    pl_bpe_counter *counter;
    pl_status status = pl_bpe_counter_open(&counter, options, heap, err);
    if (status)
        return status;
    status = pl_bpe_counter_add(counter, 0, text, bytes, err);
    if (!status)
        status = pl_bpe_train(counter, result, heap, err);
    pl_bpe_counter_close(counter);
    return status;
}

#endif
