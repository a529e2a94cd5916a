/* bench.h: what this machine does with a config: rates of training, evaluation
 * and decoding beside what the machine could do at best, in one run.
 *
 * Everything is repeated in rounds, each with its own measurement of the peak,
 * so that a disturbed round can be seen for what it is. Judges nothing. */
#ifndef PL_TRAIN_BENCH_H
#define PL_TRAIN_BENCH_H

#include "train/session.h"

/* One round. Rates are per second. */
typedef struct pl_bench_round {
    double peak_flops, read_bytes;
    double train_tokens, eval_tokens, sample_tokens;
    double update_seconds; /* of a whole update, with all its batches */
    /* useful flops of the peak, bytes read of what can be: measured before and
     * after each */
    double train_share, eval_share, sample_share;
} pl_bench_round;

/* One matrix product of the training step. */
typedef struct pl_bench_product {
    pl_op op;
    size_t rows, cols, inner, count; /* count: of a micro-batch */
    double seconds;                  /* of all of them */
} pl_bench_product;

enum { PL_BENCH_MAX_ROUNDS = 99, PL_BENCH_MAX_PRODUCTS = 64 };

typedef struct pl_bench {
    pl_session *session;
    pl_bench_round rounds[PL_BENCH_MAX_ROUNDS];
    int count;
    pl_bench_round median;             /* of each column */
    double loops;                      /* micro-batches that were measured */
    double op_seconds[PL_OP_COUNT];    /* of one update */
    double tokens;                     /* that were decoded one by one */
    double token_seconds[PL_OP_COUNT]; /* of one of them */
    pl_bench_product products[PL_BENCH_MAX_PRODUCTS];
    size_t n_products;
    pl_observed seen;             /* in all rounds */
    pl_looks looks;               /* one for each of them */
    double predicted_seconds;     /* of an update, from rates known before */
    pl_rates_source prior_source; /* where those came from */
} pl_bench;

/* Useful flops per token: 6 N of training, 2 N of evaluation, N = 12 L C^2 +
 * V C, and the lower triangle of attention. */
double pl_bench_train_flops(const pl_shape *shape);
double pl_bench_eval_flops(const pl_shape *shape, size_t T);
/* Bytes that decoding one token must read: the weights of products, and the
 * keys and values of the half of a window. */
double pl_bench_sample_bytes(const pl_gpt *gpt);

/* Seconds of a whole update, with all its batches, from some of its
 * micro-batches. *loops: how many were run. */
PL_MUST_CHECK pl_status pl_bench_update(pl_session *session, double *seconds,
                                        double *loops, pl_error *err);

/* `session` is pl_session_open_bench's. */
void pl_bench_begin(pl_bench *bench, pl_session *session);
/* Runs one more round: some seconds. The first one warms up and isn't kept. */
PL_MUST_CHECK pl_status pl_bench_run_round(pl_bench *bench, pl_error *err);
/* Medians and tables; the rates are taken over into session->machine. */
void pl_bench_finish(pl_bench *bench);

#endif
