/* gemm.c: the matrix products of a training step, as a share of the peak that
 * the same threads reach in the same moment. Judges nothing. Three ways:
 *
 *     plimsoll_bench [THREADS [DTYPE]]   a table for people, of every
 *                                        instruction set this machine has
 *     ... --json [--rounds=N]            the products of the bench's models,
 *                                        each between two probes of the peak
 *     ... --serve                        one measurement per line of stdin, so
 *                                        that a script can alternate with
 * peers:
 *
 * "peak" or "forward|dx|dw linear|classifier ROWS IN OUT" is answered by one
 * line of JSON. bench/peers_gemm.py speaks the same language for libraries.
 *
 * With bfloat16 or float16, activations and their gradients are kept so, but
 * for the residual stream, and float32 is rounded to it as it is packed, as
 * training does. bfloat16 is added up as 'auto' would, and its peak is that of
 * its own instructions, where the set has some. */
#include "base/clock.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "kernels/kernels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* What a product is for: y = x w, its gradient by x, its gradient by w. */
typedef enum pass { FORWARD, DX, DW, PASS_COUNT } pass;

/* How the weight lies: [in, out], or as the embedding does, [out, in]. */
typedef enum layout { LINEAR, CLASSIFIER, LAYOUT_COUNT } layout;

static const char *const pass_names[] = { "forward", "dx", "dw" };
static const char *const layout_names[] = { "linear", "classifier" };
static const char *const storage_names[] = { [PL_STORE_F32] = "float32",
                                             [PL_STORE_BF16] = "bfloat16",
                                             [PL_STORE_F16] = "float16" };

typedef struct product {
    pass pass;
    layout layout;
    size_t rows, in, out;
} product;

/* A layer's products: channels in and out as multiples of C; 0: vocabulary. */
typedef struct part {
    const char *name;
    layout layout;
    size_t in, out;
} part;

static const part parts[] = {
    { "qkv", LINEAR, 1, 3 },
    { "projection", LINEAR, 1, 1 },
    { "mlp up", LINEAR, 1, 4 },
    { "mlp down", LINEAR, 4, 1 },
    { "classifier", CLASSIFIER, 1, 0 },
};
static const size_t channels[] = { 384, 576, 768 };
static const size_t row_counts[] = { 1024, 4096 };

enum {
    N_PARTS = sizeof parts / sizeof parts[0],
    N_CHANNELS = sizeof channels / sizeof channels[0],
    N_ROW_COUNTS = sizeof row_counts / sizeof row_counts[0],
    VOCABULARY = 50304,
    MAX_RATES = 512
};

typedef struct bench {
    pl_threads *threads;
    pl_kernels kernels;
    pl_storage storage;
    pl_gemm gemm;
    product ready; /* what the operands below are filled for */
    void *a, *b, *c;
    size_t peak_rounds;
    double flops[PL_MAX_THREADS];
    float sink[PL_MAX_THREADS];
    float *scratch[PL_MAX_THREADS];
} bench;

/* ---- operands ---- */

/* Memory as an arena's is: page by page, in huge ones where that can be. */
static void *take(size_t floats)
{
    const size_t page = 2 << 20, bytes = floats * sizeof(float);
    const size_t whole = (bytes + page - 1) / page * page;
    void *memory = aligned_alloc(page, whole);
    if (!memory) {
        fprintf(stderr, "bench: no %zu bytes of memory\n", whole);
        exit(1);
    }
    madvise(memory, whole, MADV_HUGEPAGE);
    memset(memory, 0, whole);
    return memory;
}

/* Numbers from 0.5 up to 1, as the storage writes them. Zeros would flatter:
 * pages never written are one page that is always in the cache. */
static void fill(void *memory, size_t count, pl_storage storage)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        if (storage == PL_STORE_F32)
            ((uint32_t *)memory)[i] = 0x3f000000u | state >> 9;
        else if (storage == PL_STORE_BF16)
            ((uint16_t *)memory)[i] = (uint16_t)(0x3f00u | state >> 25);
        else
            ((uint16_t *)memory)[i] = (uint16_t)(0x3800u | state >> 22);
    }
}

/* Whether y is added to the residual stream, so that it and its gradient are
 * float32 whatever the rest is. */
static int is_residual(const product *p)
{
    return p->layout == LINEAR && p->out <= p->in;
}

static pl_gemm gemm_of(const product *p, pl_storage storage)
{
    const size_t rows = p->rows, in = p->in, out = p->out;
    const int linear = p->layout == LINEAR;
    const pl_storage y = is_residual(p) ? PL_STORE_F32 : storage;
    switch (p->pass) {
    case FORWARD:
        return (pl_gemm){ .M = rows,
                          .N = out,
                          .K = in,
                          .a_row = in,
                          .a_col = 1,
                          .b_row = linear ? out : 1,
                          .b_col = linear ? 1 : in,
                          .start = PL_GEMM_ZERO,
                          .a_storage = storage,
                          .b_round = storage,
                          .c_storage = y };
    case DX:
        return (pl_gemm){ .M = rows,
                          .N = in,
                          .K = out,
                          .a_row = out,
                          .a_col = 1,
                          .b_row = linear ? 1 : in,
                          .b_col = linear ? out : 1,
                          .start = PL_GEMM_ZERO,
                          .a_storage = y,
                          .a_round = storage,
                          .b_round = storage,
                          .c_storage = storage };
    default: /* a weight's gradient is added to what is there */
        return (pl_gemm){ .M = linear ? in : out,
                          .N = linear ? out : in,
                          .K = rows,
                          .a_row = 1,
                          .a_col = linear ? in : out,
                          .b_row = linear ? out : in,
                          .b_col = 1,
                          .start = PL_GEMM_KEEP,
                          .a_storage = storage,
                          .b_storage = linear ? y : storage,
                          .b_round = storage };
    }
}

static void drop(bench *b)
{
    free(b->a);
    free(b->b);
    free(b->c);
    b->a = b->b = b->c = NULL;
}

static double flops_of(const product *p)
{
    return 2.0 * (double)p->rows * (double)p->in * (double)p->out;
}

/* ---- measuring ---- */

static void run_gemm(void *context, int ith, int nth)
{
    const bench *b = context;
    pl_gemm gemm = b->gemm;
    gemm.scratch_floats = pl_gemm_scratch(gemm.N, b->storage);
    gemm.scratch = b->scratch[ith];
    b->kernels.gemm(&gemm, ith, nth);
}

static void run_peak(void *context, int ith, int nth)
{
    bench *b = context;
    const pl_kernels *set = &b->kernels;
    const int bf16 = b->storage == PL_STORE_BF16;
    double (*peak)(size_t, float *) = set->peak;
    (void)nth;
    if (bf16 && set->peak_bf16)
        peak = set->peak_bf16;
    if (bf16 && set->peak_matrices)
        peak = set->peak_matrices;
    b->flops[ith] = peak(b->peak_rounds, &b->sink[ith]);
}

/* Multiply-adds per second, two flops each: the best of a few short runs. */
static double peak_rate(bench *b)
{
    double best = 0.0;
    b->peak_rounds = 1000000;
    for (int i = 0; i < 5; i++) {
        double began = pl_clock_seconds(), flops = 0.0;
        pl_threads_run(b->threads, run_peak, b);
        double seconds = pl_clock_seconds() - began;
        for (int t = 0; t < pl_threads_count(b->threads); t++)
            flops += b->flops[t];
        if (flops / seconds > best)
            best = flops / seconds;
    }
    return best;
}

/* The middle of n > 0 values, which are put into order. */
static double median(double *values, int n)
{
    for (int i = 1; i < n; i++) {
        const double value = values[i];
        int slot = i;
        for (; slot > 0 && values[slot - 1] > value; slot--)
            values[slot] = values[slot - 1];
        values[slot] = value;
    }
    return 0.5 * (values[(n - 1) / 2] + values[n / 2]);
}

/* The operands of a product, filled, and used once. */
static void prepare(bench *b, const product *p)
{
    const product *r = &b->ready;
    if (b->a && r->pass == p->pass && r->layout == p->layout &&
        r->rows == p->rows && r->in == p->in && r->out == p->out)
        return;
    drop(b);
    b->ready = *p;
    b->gemm = gemm_of(p, b->storage);
    b->gemm.products = b->kernels.matrices;
    pl_gemm *g = &b->gemm;
    b->a = take(g->M * g->K);
    b->b = take(g->K * g->N);
    b->c = take(g->M * g->N);
    fill(b->a, g->M * g->K, g->a_storage);
    fill(b->b, g->K * g->N, g->b_storage);
    g->a = b->a;
    g->b = b->b;
    g->c = b->c;
    g->c_row = g->N;
    pl_threads_run(b->threads, run_gemm, b);
}

/* Flops per second: the middle of the runs that fit `seconds`, at least 1. */
static double product_rate(bench *b, const product *p, double seconds,
                           int *runs)
{
    static double rates[MAX_RATES];
    int n = 0;
    prepare(b, p);
    double end = pl_clock_seconds() + seconds;
    do {
        double began = pl_clock_seconds();
        pl_threads_run(b->threads, run_gemm, b);
        rates[n++] = flops_of(p) / (pl_clock_seconds() - began);
    } while (pl_clock_seconds() < end && n < MAX_RATES);
    *runs = n;
    return median(rates, n);
}

/* ---- for people ---- */

static void print_table(bench *b)
{
    const size_t rows = 1024, C = 576;
    double peak = peak_rate(b);
    printf("%s kernels, %d thread%s, %s: multiply-add peak %.1f GFLOP/s\n"
           "%-34s  %13s %13s %13s\n",
           b->kernels.name, pl_threads_count(b->threads),
           pl_threads_count(b->threads) == 1 ? "" : "s",
           storage_names[b->storage], peak * 1e-9, "GFLOP/s", "forward", "dx",
           "dw");
    for (int i = 0; i < N_PARTS; i++) {
        product p = { .layout = parts[i].layout,
                      .rows = rows,
                      .in = parts[i].in * C,
                      .out = parts[i].out ? parts[i].out * C : VOCABULARY };
        printf("%-12s %5zu x %4zu x %5zu", parts[i].name, p.rows, p.in, p.out);
        for (int k = 0; k < PASS_COUNT; k++) {
            int runs;
            p.pass = (pass)k;
            double rate = product_rate(b, &p, 0.5, &runs);
            printf("  %7.1f %3.0f %%", rate * 1e-9, 100.0 * rate / peak);
            fflush(stdout);
        }
        printf("\n");
    }
}

/* ---- for scripts ---- */

/* One product's line; returns the middle of its shares of the peak. */
static double print_share(bench *b, const char *name, const product *p,
                          int rounds)
{
    double rates[99], shares[99], peaks[99], before = peak_rate(b);
    for (int i = 0; i < rounds; i++) {
        int runs;
        rates[i] = product_rate(b, p, 0.05, &runs);
        if (i == 0) { /* the first one took its time to be filled */
            before = peak_rate(b);
            rates[i] = product_rate(b, p, 0.05, &runs);
        }
        double after = peak_rate(b);
        peaks[i] = 0.5 * (before + after);
        shares[i] = rates[i] / peaks[i];
        before = after;
    }
    const double share = median(shares, rounds);
    printf("    {\"name\": \"%s\", \"pass\": \"%s\", \"layout\": \"%s\", "
           "\"rows\": %zu, \"in\": %zu, \"out\": %zu, "
           "\"flops_per_second\": %.6g, \"peak_flops\": %.6g, "
           "\"share_of_peak\": %.5f}",
           name, pass_names[p->pass], layout_names[p->layout], p->rows, p->in,
           p->out, median(rates, rounds), median(peaks, rounds), share);
    return share;
}

/* All shares together are weighted so that times add up: flops over the sum of
 * flops / share. */
static void print_json(bench *b, int rounds)
{
    double flops = 0.0, times = 0.0;
    const char *comma = "";
    printf("{\n  \"kernels\": \"%s\", \"threads\": %d, \"dtype\": \"%s\", "
           "\"rounds\": %d,\n  \"products\": [\n",
           b->kernels.name, pl_threads_count(b->threads),
           storage_names[b->storage], rounds);
    for (int i = 0; i < N_ROW_COUNTS * N_CHANNELS * N_PARTS * PASS_COUNT; i++) {
        const part *q = &parts[i / PASS_COUNT % N_PARTS];
        const size_t C = channels[i / (PASS_COUNT * N_PARTS) % N_CHANNELS];
        const product p = {
            .pass = (pass)(i % PASS_COUNT),
            .layout = q->layout,
            .rows = row_counts[i / (PASS_COUNT * N_PARTS * N_CHANNELS)],
            .in = q->in * C,
            .out = q->out ? q->out * C : VOCABULARY,
        };
        printf("%s", comma);
        flops += flops_of(&p);
        times += flops_of(&p) / print_share(b, q->name, &p, rounds);
        comma = ",\n";
        fflush(stdout);
    }
    printf("\n  ],\n  \"share_of_peak\": %.5f\n}\n", flops / times);
}

static int index_of(const char *name, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

static int serve(bench *b)
{
    const size_t most = 1 << 20;
    char line[128], pass_name[16], layout_name[16];
    while (fgets(line, sizeof line, stdin)) {
        product p;
        int runs;
        if (strcmp(line, "peak\n") == 0) {
            printf("{\"flops_per_second\": %.6g}\n", peak_rate(b));
            fflush(stdout);
            continue;
        }
        if (sscanf(line, "%15s %15s %zu %zu %zu", pass_name, layout_name,
                   &p.rows, &p.in, &p.out) != 5 ||
            index_of(pass_name, pass_names, PASS_COUNT) < 0 ||
            index_of(layout_name, layout_names, LAYOUT_COUNT) < 0 ||
            p.rows - 1 >= most || p.in - 1 >= most || p.out - 1 >= most) {
            fprintf(stderr, "bench: no such product: %s", line);
            return 2;
        }
        p.pass = (pass)index_of(pass_name, pass_names, PASS_COUNT);
        p.layout = (layout)index_of(layout_name, layout_names, LAYOUT_COUNT);
        double rate = product_rate(b, &p, 0.05, &runs);
        printf("{\"flops_per_second\": %.6g, \"runs\": %d}\n", rate, runs);
        fflush(stdout);
    }
    return 0;
}

/* ---- the command ---- */

typedef struct options {
    int threads, rounds, json, serve;
    pl_storage storage;
} options;

static int read_options(int argc, char **argv, options *o)
{
    int words = 0;
    *o = (options){ .threads = pl_cpu_count(), .rounds = 5 };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            o->json = 1;
        } else if (strcmp(argv[i], "--serve") == 0) {
            o->serve = 1;
        } else if (strncmp(argv[i], "--rounds=", 9) == 0) {
            o->rounds = atoi(argv[i] + 9);
        } else if (words == 0) {
            o->threads = atoi(argv[i]);
            words++;
        } else if (words == 1) {
            int found = index_of(argv[i], storage_names, 3);
            if (found < 0)
                return 0;
            o->storage = (pl_storage)found;
            words++;
        } else {
            return 0;
        }
    }
    return o->threads >= 1 && o->threads <= PL_MAX_THREADS && o->rounds >= 1 &&
           o->rounds <= 99;
}

int main(int argc, char **argv)
{
    static bench b;
    pl_heap heap = pl_heap_make(1 << 20);
    pl_error err;
    options o;
    int code = 0;

    if (!read_options(argc, argv, &o)) {
        fprintf(stderr, "usage: plimsoll_bench [THREADS "
                        "[float32|bfloat16|float16]] [--json [--rounds=N] | "
                        "--serve]\n");
        return 2;
    }
    if (pl_threads_open(&b.threads, o.threads, &heap, &err)) {
        fprintf(stderr, "bench: %s\n", err.text);
        return 1;
    }
    b.storage = o.storage;
    for (int i = 0; i < o.threads; i++)
        b.scratch[i] = take(pl_gemm_scratch(SIZE_MAX, b.storage));
    b.kernels = pl_kernels_for(pl_cpu_isa());
    if (o.serve) {
        code = serve(&b);
    } else if (o.json) {
        print_json(&b, o.rounds);
    } else {
        for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
            b.kernels = pl_kernels_for((pl_isa)isa);
            print_table(&b);
        }
    }
    drop(&b);
    for (int i = 0; i < o.threads; i++)
        free(b.scratch[i]);
    pl_threads_close(b.threads);
    pl_heap_close(&heap);
    return code;
}
