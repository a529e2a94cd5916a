/* ranks_traffic.h: parts of tensors on their way between two ranks, in messages
 * of at most PL_RANKS_CHUNK_BYTES. Both know by themselves what a message has
 * in it: the order of the slots and slices is the same everywhere. */
#ifndef PL_TRAIN_RANKS_TRAFFIC_H
#define PL_TRAIN_RANKS_TRAFFIC_H

#include "comm/comm.h"
#include "store/run.h"

enum { PL_RANKS_CHUNK_BYTES = 1024 * 1024 };
enum { PL_FLOW_ALL = -2 }; /* layers; -1 is what is outside the blocks */

/* The slices of all ranks `s` with (s & mask) == bits, one after the other, of
 * one set of buffers. */
typedef struct pl_flow {
    pl_run *run;
    const pl_buffer_id *buffers; /* by slot; NULL: partial sums of the norm */
    size_t mask, bits;
    int of_layer;
    size_t owner, slot, at; /* where it is: elements of the slice */
} pl_flow;

/* A part of a tensor. */
typedef struct pl_piece {
    pl_buffer_id buffer;
    size_t slot, first, count, bytes; /* bytes of an element */
} pl_piece;

/* Of an element of a buffer. */
size_t pl_piece_element_bytes(const pl_run *run, pl_buffer_id buffer);

/* Puts it there; of a weight also in its working copy. */
PL_MUST_CHECK pl_status pl_piece_put(pl_run *run, const pl_piece *piece,
                                     const char *chunk, pl_error *err);

/* What arrives is added to what is there, or put in its place. */
typedef enum pl_treatment { PL_ADDED, PL_PUT } pl_treatment;

/* How many bytes the next message has; 0: there is none. */
size_t pl_flow_measure(pl_flow s);
void pl_flow_skip(pl_flow *s);
/* The next message, from the device, or into it. */
PL_MUST_CHECK pl_status pl_flow_fill(pl_flow *s, char *chunk, size_t *bytes,
                                     pl_error *err);
PL_MUST_CHECK pl_status pl_flow_drain(pl_flow *s, const char *chunk,
                                      pl_treatment use, pl_error *err);

/* Two streams between two ranks; one of them may be empty. The next messages
 * are on their way while one is worked on. */
typedef struct pl_traffic {
    pl_comm *comm;
    char *chunks[4]; /* two on the way out, two in */
    int partner;
    pl_flow out, in, ahead; /* ahead: what was asked for, of `in` */
    pl_treatment use;
    pl_comm_message sending[2], receiving[2];
    size_t sent, asked, taken; /* messages */
    int is_all_sent, is_all_asked;
} pl_traffic;

pl_traffic pl_traffic_begin(pl_comm *comm, char *const chunks[4], int partner,
                            pl_flow out, pl_flow in, pl_treatment use);

/* Goes as far as it can, or to the end: *over. */
typedef enum pl_patience { PL_RETURNS, PL_WAITS } pl_patience;
PL_MUST_CHECK pl_status pl_traffic_move(pl_traffic *traffic,
                                        pl_patience patience, int *over,
                                        pl_error *err);

#endif
