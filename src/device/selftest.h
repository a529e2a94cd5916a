/* selftest.h: whether a card computes the processor's bits: every kernel, in
 * every storage, on numbers of every size, compared byte by byte with the
 * processor's kernels; and how fast it is. */
#ifndef PL_DEVICE_SELFTEST_H
#define PL_DEVICE_SELFTEST_H

#include "device/gpu.h"

/* One case of a kernel, compared. */
typedef struct pl_selftest_case {
    const char *op;       /* "gemm" */
    const char *what;     /* "large, A transposed" */
    const char *storage;  /* "bfloat16" */
    const char *products; /* "exact", "tensor24" */
    size_t bytes;         /* that were compared */
    size_t different;     /* of them */
} pl_selftest_case;

/* Cases, those with other bits, and bytes that were compared, in exact and in
 * tensor arithmetic. */
#define PL_SELFTEST_COUNTS(X)                                                  \
    X(cases) X(failed) X(bytes) X(tensor_cases) X(tensor_failed) X(tensor_bytes)
/* pl_clock_date of its end; rates, 0 where they weren't measured, or there are
 * no tensor cores; seconds of a model's update, measured and predicted, which
 * the caller fills in: the test itself knows no models. */
#define PL_SELFTEST_REALS(X)                                                   \
    X(date)                                                                    \
    X(product_flops)                                                           \
    X(attention_flops)                                                         \
    X(peak_flops)                                                              \
    X(read_bytes)                                                              \
    X(tensor_flops)                                                            \
    X(tensor_attention_flops)                                                  \
    X(float32_update_seconds)                                                  \
    X(float32_update_predicted)                                                \
    X(float16_update_seconds) X(float16_update_predicted)

typedef struct pl_selftest_result {
#define PL_SELFTEST_COUNT(name) size_t name;
    PL_SELFTEST_COUNTS(PL_SELFTEST_COUNT)
#undef PL_SELFTEST_COUNT
#define PL_SELFTEST_REAL(name) double name;
    PL_SELFTEST_REALS(PL_SELFTEST_REAL)
#undef PL_SELFTEST_REAL
    char first[160]; /* the first case that failed, for people; or "" */
} pl_selftest_result;

typedef struct pl_selftest_wish {
    int measures;                                            /* rates, too */
    void (*seen)(void *context, const pl_selftest_case *it); /* or NULL */
    void *context;
} pl_selftest_wish;

/* Compares all kernels. A difference is no error: the result says it. */
PL_MUST_CHECK pl_status pl_selftest_run(pl_selftest_result *result,
                                        const pl_gpu_card *card,
                                        const pl_selftest_wish *wish,
                                        pl_heap *heap, pl_error *err);

/* Whether what is measured has to be small: a processor that poses as a card,
 * or one with hardly any memory. */
int pl_selftest_is_small(const pl_gpu_card *card);

#endif
