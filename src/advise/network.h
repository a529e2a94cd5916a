/* network.h: what a network costs several processes (ranks) that share a run.
 *
 * A model of one update: what a rank computes, what it sends and receives, and
 * how long it waits for that. Every rank has a link of its own, on which it
 * sends and receives at once; a message takes its latency and its bytes. Of R
 * ranks each sends and receives (R - 1) / R of
 *
 *     the gradients   in float32, by recursive halving: log2 R rounds
 *     the weights     as they are stored, back the same way: log2 R rounds
 *     partial sums    of the norm, and losses: log2 R rounds each
 *
 * Gradients that are ready before the end of an update's last backward pass
 * travel while it goes on; the rest is waiting. Pure. */
#ifndef PL_ADVISE_NETWORK_H
#define PL_ADVISE_NETWORK_H

#include "base/status.h"

#include <stddef.h>

typedef struct pl_network {
    double bytes_per_second; /* of each rank, in each direction */
    double latency_seconds;  /* of a message */
} pl_network;

#define PL_NETWORK_LATENCY                                                     \
    50e-6 /* where none is stated: Ethernet in a room                          \
           */
/* Waiting below this share of an update is worth the same bits. */
#define PL_NETWORK_WORTH_IT 0.20

/* "1Gbit", "25Gbit/s", "12.5GB/s", and behind a comma "50us" or "0.1ms".
 * PL_E_USAGE where it is something else. */
PL_MUST_CHECK pl_status pl_network_parse(pl_network *network, const char *text,
                                         pl_error *err);

/* What an update of one rank is made of. */
typedef struct pl_network_work {
    size_t ranks;            /* a power of two */
    double compute_seconds;  /* of the slowest: its share of the groups, and the
                              * update of what it owns */
    double add_seconds;      /* of adding all gradients to others, once */
    double all_seconds;      /* more, if it updated all weights; 0: it does */
    double backward_seconds; /* in which early gradients travel; 0: none does */
    double early_bytes, late_bytes; /* of all gradients, in float32 */
    double weight_bytes;            /* of all weights, as they are stored */
    double sum_bytes;               /* of all partial sums and losses */
    double uneven;                  /* pl_network_uneven; 1: all own as much */
} pl_network_work;

/* Seconds of an update, or of an average one. */
typedef struct pl_network_times {
    double compute;                  /* what arrives is added in it */
    double waiting;                  /* for the network */
    double update;                   /* both */
    double gradients, weights, sums; /* how long each is on its way, */
    double hidden;                   /* and how much of it nobody waits for */
} pl_network_times;

/* Exact data parallel training: every update is shared. */
pl_network_times pl_network_update(const pl_network *network,
                                   const pl_network_work *work);

/* DiLoCo: each rank makes `interval` updates of its own, of all weights. Then
 * their changes are averaged by the same rounds, of the same bytes. */
pl_network_times pl_network_diloco(const pl_network *network,
                                   const pl_network_work *work,
                                   size_t interval);

/* How much longer the rounds take than if all ranks owned as much: in each of
 * them the one that sends most is waited for. elements[ranks]: that each owns,
 * a power of two of them. */
double pl_network_uneven(const size_t *elements, size_t ranks);

/* Whether waiting is little enough. */
int pl_network_is_worth_it(const pl_network_times *times);

/* What the ranks reach of as many times the speed of one machine, which takes
 * `one_seconds` for the same update. */
double pl_network_efficiency(const pl_network_times *times, size_t ranks,
                             double one_seconds);

#endif
