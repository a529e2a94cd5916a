/* bpe_pairs.h: the pairs of neighbouring tokens while a vocabulary is trained:
 * how often each occurs, where its first place is (if the caller keeps that),
 * and which is the most frequent: a hash table and a priority queue. Knows no
 * text. */
#ifndef PL_TEXT_BPE_PAIRS_H
#define PL_TEXT_BPE_PAIRS_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

enum { PL_PAIR_NOWHERE = 0 }; /* no place: there is no pair at place 0 */

typedef struct pl_pair {
    uint64_t key;   /* left << 32 | right */
    uint64_t count; /* of occurrences in the text */
    uint32_t head;  /* the first place, or PL_PAIR_NOWHERE; the next free one */
    uint32_t touched : 31; /* the next one touched; 0: this one isn't */
    uint32_t queued : 1;
} pl_pair;

typedef struct pl_pair_wait {
    uint64_t count, key;
} pl_pair_wait;

typedef struct pl_pairs {
    /* Each list has a heap of its own, so that the old one goes when it
     * grows. */
    pl_heap pair_heap, slot_heap, queue_heap;
    size_t limit_bytes, peak_bytes; /* of all three */
    uint64_t min_count;
    pl_pair *pairs; /* 0 isn't used */
    size_t pair_count, pair_capacity, live_count;
    uint32_t free;   /* the first pair that may be used again */
    uint32_t *slots; /* by key: place in pairs; 0: none */
    size_t slot_mask;
    pl_pair_wait *queue; /* a binary heap, the most frequent at its top */
    size_t queue_count, queue_capacity;
    uint32_t touched; /* the first that is new, or has no place left, since
                       * the last pl_pairs_settle; 0: none */
} pl_pairs;

/* PL_E_MEMORY, now or later, where more than limit_bytes would be needed. */
PL_MUST_CHECK pl_status pl_pairs_open(pl_pairs *pairs, uint64_t min_count,
                                      size_t limit_bytes, pl_error *err);
void pl_pairs_close(pl_pairs *pairs);

/* The pair of this key; made if there is none. */
PL_MUST_CHECK pl_status pl_pairs_get(pl_pairs *pairs, uint64_t key,
                                     uint32_t *pair, pl_error *err);
/* The pair of this key, 0 if there is none. */
uint32_t pl_pairs_find(const pl_pairs *pairs, uint64_t key);
/* This pair occurs nowhere any more: pl_pairs_settle removes it. */
void pl_pairs_empty(pl_pairs *pairs, uint32_t pair);

/* Queues the new pairs and removes those that occur nowhere any more. From now
 * on the counts of those that are there can only fall. */
PL_MUST_CHECK pl_status pl_pairs_settle(pl_pairs *pairs, pl_error *err);
/* The most frequent pair, of equal ones that with the lowest key; 0 if none is
 * frequent enough. It leaves the queue. */
uint32_t pl_pairs_next(pl_pairs *pairs);
/* The one that pl_pairs_next gave last is in the queue again. */
void pl_pairs_put_back(pl_pairs *pairs, uint32_t pair);

#endif
