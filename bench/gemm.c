/* gemm.c: the matrix products of a training step, as a share of the peak that
 * the same threads reach in the same minute. Prints a table; judges nothing.
 * With bfloat16 or float16, activations are kept so and weights rounded to it
 * as they are packed, as training does. */
#include "base/clock.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "kernels/kernels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    const char *name;
    size_t rows, in, out;
    int is_kept; /* the output is an activation, not part of a sum */
} shape;

/* The story's model: 576 channels, 1024 rows; and its classifier. */
static const shape shapes[] = {
    { "qkv", 1024, 576, 1728, 1 },        { "projection", 1024, 576, 576, 0 },
    { "mlp up", 1024, 576, 2304, 1 },     { "mlp down", 1024, 2304, 576, 0 },
    { "classifier", 256, 576, 50304, 0 },
};

typedef struct job {
    const pl_kernels *kernels;
    const pl_gemm *gemm;
    pl_storage storage;
    size_t peak_rounds;
    double flops[PL_MAX_THREADS];
    float sink[PL_MAX_THREADS];
    float *scratch[PL_MAX_THREADS];
} job;

static void run_gemm(void *context, int ith, int nth)
{
    const job *j = context;
    pl_gemm gemm = *j->gemm;
    gemm.scratch_floats = pl_gemm_scratch(gemm.N, j->storage);
    gemm.scratch = j->scratch[ith];
    j->kernels->gemm(&gemm, ith, nth);
}

static void run_peak(void *context, int ith, int nth)
{
    job *j = context;
    (void)nth;
    j->flops[ith] = j->kernels->peak(j->peak_rounds, &j->sink[ith]);
}

static double peak_gflops(pl_threads *threads, job *j)
{
    double best = 0.0;
    j->peak_rounds = 2000000;
    for (int i = 0; i < 5; i++) {
        double began = pl_clock_seconds(), flops = 0.0;
        pl_threads_run(threads, run_peak, j);
        double seconds = pl_clock_seconds() - began;
        for (int t = 0; t < pl_threads_count(threads); t++)
            flops += j->flops[t];
        if (flops / seconds * 1e-9 > best)
            best = flops / seconds * 1e-9;
    }
    return best;
}

static double gemm_gflops(pl_threads *threads, job *j, const pl_gemm *gemm)
{
    double best = 0.0, end = pl_clock_seconds() + 0.5;
    j->gemm = gemm;
    do {
        double began = pl_clock_seconds();
        pl_threads_run(threads, run_gemm, j);
        double seconds = pl_clock_seconds() - began;
        double rate = 2e-9 * (double)gemm->M * (double)gemm->N *
                      (double)gemm->K / seconds;
        if (rate > best)
            best = rate;
    } while (pl_clock_seconds() < end);
    return best;
}

/* Forward x w, gradient of x (dy w^T), gradient of w (x^T dy). */
static void measure(pl_threads *threads, job *j, const shape *s, double peak)
{
    float *x = calloc(s->rows * s->in, sizeof *x);
    float *w = calloc(s->in * s->out, sizeof *w);
    float *y = calloc(s->rows * s->out, sizeof *y);
    if (!x || !w || !y) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    const pl_gemm products[] = {
        { .M = s->rows,
          .N = s->out,
          .K = s->in,
          .a = x,
          .a_row = s->in,
          .a_col = 1,
          .b = w,
          .b_row = s->out,
          .b_col = 1,
          .c = y,
          .c_row = s->out,
          .start = PL_GEMM_ZERO,
          .a_storage = j->storage,
          .b_round = j->storage,
          .c_storage = s->is_kept ? j->storage : PL_STORE_F32 },
        { .M = s->rows,
          .N = s->in,
          .K = s->out,
          .a = y,
          .a_row = s->out,
          .a_col = 1,
          .b = w,
          .b_row = 1,
          .b_col = s->out,
          .c = x,
          .c_row = s->in,
          .start = PL_GEMM_ZERO,
          .b_round = j->storage },
        { .M = s->in,
          .N = s->out,
          .K = s->rows,
          .a = x,
          .a_row = 1,
          .a_col = s->in,
          .b = y,
          .b_row = s->out,
          .b_col = 1,
          .c = w,
          .c_row = s->out,
          .start = PL_GEMM_KEEP,
          .a_storage = j->storage },
    };
    printf("%-12s %5zu x %4zu x %5zu", s->name, s->rows, s->in, s->out);
    for (int i = 0; i < 3; i++) {
        double rate = gemm_gflops(threads, j, &products[i]);
        printf("  %7.1f %3.0f %%", rate, 100.0 * rate / peak);
    }
    printf("\n");
    free(x);
    free(w);
    free(y);
}

static int storage_named(const char *name, pl_storage *out)
{
    static const char *const names[] = { [PL_STORE_F32] = "float32",
                                         [PL_STORE_BF16] = "bfloat16",
                                         [PL_STORE_F16] = "float16" };
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (pl_storage)i;
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : pl_cpu_count();
    const char *storage = argc > 2 ? argv[2] : "float32";
    pl_heap heap = pl_heap_make(1 << 20);
    pl_threads *threads;
    pl_error err;
    job j = { 0 };

    if (count < 1 || count > PL_MAX_THREADS ||
        !storage_named(storage, &j.storage)) {
        fprintf(stderr, "usage: plimsoll_bench [THREADS "
                        "[float32|bfloat16|float16]]\n");
        return 2;
    }
    if (pl_threads_open(&threads, count, &heap, &err)) {
        fprintf(stderr, "bench: %s\n", err.text);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        j.scratch[i] = aligned_alloc(
            4096,
            (pl_gemm_scratch(SIZE_MAX, j.storage) * sizeof(float) + 4095) /
                4096 * 4096);
        if (!j.scratch[i]) {
            fprintf(stderr, "bench: out of memory\n");
            return 1;
        }
    }
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        pl_kernels kernels = pl_kernels_for((pl_isa)isa);
        j.kernels = &kernels;
        double peak = peak_gflops(threads, &j);
        printf("%s kernels, %d thread%s, %s: multiply-add peak %.1f GFLOP/s\n"
               "%-34s  %13s %13s %13s\n",
               kernels.name, count, count == 1 ? "" : "s", storage, peak,
               "GFLOP/s", "forward", "dx", "dw");
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            measure(threads, &j, &shapes[i], peak);
    }
    pl_threads_close(threads);
    pl_heap_close(&heap);
    return 0;
}
