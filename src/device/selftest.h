/* selftest.h: whether a card computes the processor's bits: every kernel, in
 * every storage, on numbers of every size, compared byte by byte with the
 * processor's kernels; and how fast it is. */
#ifndef PL_DEVICE_SELFTEST_H
#define PL_DEVICE_SELFTEST_H

#include "device/gpu.h"

/* One case of a kernel, compared. */
typedef struct pl_selftest_case {
    const char *op;      /* "gemm" */
    const char *what;    /* "large, A transposed" */
    const char *storage; /* "bfloat16" */
    size_t bytes;        /* that were compared */
    size_t different;    /* of them */
} pl_selftest_case;

typedef struct pl_selftest_result {
    size_t cases, failed, bytes;
    char first[160]; /* the first case that failed, for people; or "" */
    double date;     /* pl_clock_date of its end */
    /* rates; 0: not measured */
    double product_flops, attention_flops, peak_flops, read_bytes;
} pl_selftest_result;

typedef struct pl_selftest_wish {
    int measures;                                            /* rates, too */
    void (*seen)(void *context, const pl_selftest_case *it); /* or NULL */
    void *context;
} pl_selftest_wish;

/* Compares all kernels. A difference is no error: the result says it. */
PL_MUST_CHECK pl_status pl_selftest_run(pl_selftest_result *result,
                                        const pl_gpu_api *api,
                                        const pl_gpu_card *card,
                                        const pl_selftest_wish *wish,
                                        pl_heap *heap, pl_error *err);

#endif
