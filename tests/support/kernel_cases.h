/* kernel_cases.h: how a kernel is judged.
 *
 * A case is a function that makes its inputs from fixed seeds, runs one op of
 * one set of kernels on nth threads and hands over every output. judge() then
 * compares each set with `ref`, and any number of threads with one, to the
 * bit. Threads run one after the other, in either order: the contract has no
 * barrier inside a kernel, so the order cannot matter.
 *
 * Every buffer stands between fences. An input's are NaN, so that reading
 * beyond it shows in the result. An output's are a large number that no kernel
 * leaves as it is, NaN being contagious: a write beyond it breaks the fence.
 * With fenced_guarded set, every buffer ends where memory ends, so that even a
 * read whose result is thrown away is a crash. */
#ifndef PL_TESTS_SUPPORT_KERNEL_CASES_H
#define PL_TESTS_SUPPORT_KERNEL_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- fenced buffers ---- */

enum { FENCE = 61, FENCED_MAX = 256 };

typedef struct fenced {
    unsigned char *block, fence[4];
    size_t size, count, after; /* of an element; of the body and what follows */
    void *map;                 /* NULL: from malloc */
    size_t map_bytes;
} fenced;

static int fenced_guarded;

static fenced fenced_all[FENCED_MAX];
static size_t fenced_count;

/* A quiet NaN that no computation makes. */
static inline float marked_nan(uint32_t mark)
{
    return pl_bits_float(0x7fc00000u | mark);
}

/* `count` elements between two fences, whose odd width puts the buffer on no
 * vector's boundary. */
static inline void *fenced_sized(size_t count, size_t size, const void *fence,
                                 const void *body)
{
    fenced f = { .size = size, .count = count };
    const size_t before = FENCE + count;
    memcpy(f.fence, fence, size);
    if (fenced_guarded) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE),
                     pages = (before * size + page - 1) / page;
        f.map_bytes = (pages + 1) * page;
        f.map = mmap(NULL, f.map_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(f.map != MAP_FAILED);
        unsigned char *guard = (unsigned char *)f.map + pages * page;
        assert_int_equal(mprotect(guard, page, PROT_NONE), 0);
        f.block = guard - before * size;
    } else {
        f.after = FENCE;
        f.block = malloc((before + f.after) * size);
        assert_non_null(f.block);
    }
    for (size_t i = 0; i < before + f.after; i++)
        memcpy(f.block + i * size, i < FENCE || i >= before ? fence : body,
               size);
    assert_true(fenced_count < FENCED_MAX);
    fenced_all[fenced_count++] = f;
    return f.block + FENCE * size;
}

static inline void *fenced_stored(size_t count, const void *fence,
                                  const void *body, pl_storage storage)
{
    return fenced_sized(count, pl_storage_bytes(storage), fence, body);
}

static inline float *fenced_make(size_t count, float fence, float body)
{
    return fenced_stored(count, &fence, &body, PL_STORE_F32);
}

/* Checks every fence and frees every buffer. */
static inline void fenced_release(void)
{
    while (fenced_count) {
        const fenced f = fenced_all[--fenced_count];
        const unsigned char *end = f.block + (FENCE + f.count) * f.size;
        for (size_t i = 0; i < FENCE; i++)
            assert_memory_equal(f.block + i * f.size, f.fence, f.size);
        for (size_t i = 0; i < f.after; i++)
            assert_memory_equal(end + i * f.size, f.fence, f.size);
        if (f.map)
            assert_int_equal(munmap(f.map, f.map_bytes), 0);
        else
            free(f.block);
    }
}

/* Uniform in [-1, 1), multiples of 2^-12 so that finite differences step
 * exactly. */
static inline float random_value(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return ((float)(*seed >> 19) - 4096.0f) / 4096.0f;
}

/* An output that a kernel writes without reading. */
static inline float *fenced_blank(size_t count)
{
    return fenced_make(count, 3e30f, marked_nan(0xb));
}

/* An input. */
static inline float *fenced_random(size_t count, uint32_t seed, float scale)
{
    float *x = fenced_make(count, marked_nan(0xf), 0);
    for (size_t i = 0; i < count; i++)
        x[i] = random_value(&seed) * scale;
    return x;
}

/* An output that a kernel reads and writes. */
static inline float *fenced_state(size_t count, uint32_t seed, float scale)
{
    float *x = fenced_make(count, 3e30f, 0);
    for (size_t i = 0; i < count; i++)
        x[i] = random_value(&seed) * scale;
    return x;
}

/* An input [rows, row] of which only the first `columns` of each row hold
 * numbers; it ends with the last of them. */
static inline float *fenced_matrix(size_t rows, size_t columns, size_t row,
                                   uint32_t seed)
{
    const size_t count = rows ? (rows - 1) * row + columns : 0;
    float *x = fenced_make(count, marked_nan(0xf), marked_nan(0xe));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            x[r * row + c] = random_value(&seed);
    return x;
}

/* ---- 16 bits ---- */

static const pl_storage storages[] = { PL_STORE_F32, PL_STORE_BF16,
                                       PL_STORE_F16 };
enum { STORAGES = 3 };

/* The numbers of x, an input, as another input that is kept in `storage`. */
static inline const void *stored_input(const float *x, size_t count,
                                       pl_storage storage)
{
    /* NaN with a mark that fits into every storage */
    static const uint16_t nan[] = {
        [PL_STORE_BF16] = 0x7fcb, [PL_STORE_F16] = 0x7e0b
    };
    if (storage == PL_STORE_F32)
        return x;
    void *y = fenced_stored(count, &nan[storage], &nan[storage], storage);
    for (size_t i = 0; i < count; i++)
        pl_storage_put(y, i, x[i], storage);
    return y;
}

/* The same numbers as a float32 input: rounded, if storage is smaller. */
static inline const float *stored_back(const void *x, size_t count,
                                       pl_storage storage)
{
    float *y = fenced_make(count, marked_nan(0xf), 0);
    for (size_t i = 0; i < count; i++)
        y[i] = pl_storage_get(x, i, storage);
    return y;
}

/* An output that a kernel writes without reading, fences as elsewhere. */
static inline void *stored_blank(size_t count, pl_storage storage)
{
    static const uint16_t
        fence[] = { [PL_STORE_BF16] = 0x7217, [PL_STORE_F16] = 0x7bfe },
        body[] = { [PL_STORE_BF16] = 0x7fcb, [PL_STORE_F16] = 0x7e0b };
    if (storage == PL_STORE_F32)
        return fenced_blank(count);
    return fenced_stored(count, &fence[storage], &body[storage], storage);
}

/* For cmocka_unit_test_setup_teardown. */
static inline int guard_up(void **state)
{
    (void)state;
    fenced_guarded = 1;
    return 0;
}

static inline int guard_down(void **state)
{
    (void)state;
    fenced_guarded = 0;
    return 0;
}

/* ---- outcomes ---- */

typedef struct outcome {
    double *values;
    size_t count;
} outcome;

static inline void outcome_grow(outcome *o, size_t more)
{
    o->values = realloc(o->values, (o->count + more + 1) * sizeof *o->values);
    assert_non_null(o->values);
}

static inline void outcome_add(outcome *o, const float *x, size_t count)
{
    outcome_grow(o, count);
    for (size_t i = 0; i < count; i++)
        o->values[o->count++] = (double)x[i];
}

static inline void outcome_add_stored(outcome *o, const void *x, size_t count,
                                      pl_storage storage)
{
    outcome_grow(o, count);
    for (size_t i = 0; i < count; i++)
        o->values[o->count++] = (double)pl_storage_get(x, i, storage);
}

/* What x would be, had it been an output of `storage`. */
static inline void outcome_add_rounded(outcome *o, const float *x, size_t count,
                                       pl_storage storage)
{
    outcome_grow(o, count);
    for (size_t i = 0; i < count; i++)
        o->values[o->count++] = (double)pl_storage_round(x[i], storage);
}

static inline void outcome_add_double(outcome *o, const double *x, size_t count)
{
    outcome_grow(o, count);
    for (size_t i = 0; i < count; i++)
        o->values[o->count++] = x[i];
}

typedef struct tolerance {
    const char *what;
    double absolute, relative;
} tolerance;

/* What may differ beyond t where the output is kept in `storage`. Both sides
 * read the same rounded inputs. Their float32 results differ by t at most; each
 * is then rounded, by half a unit of its last place: 8 bits in bfloat16, 11 in
 * float16, whose denormals are 2^-24 apart. bfloat16 has float32's range, and
 * its denormals never show. */
static inline tolerance tolerance_stored(const tolerance *t, pl_storage storage)
{
    static const tolerance more[] = {
        [PL_STORE_F32] = { "float32", 0, 0 },
        [PL_STORE_BF16] = { "bfloat16", 0, 0x1p-7 },
        [PL_STORE_F16] = { "float16", 0x1p-24, 0x1p-10 },
    };
    return (tolerance){ t->what, t->absolute + more[storage].absolute,
                        t->relative + more[storage].relative };
}

static inline int same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static inline void expect_same(const char *what, const outcome *a,
                               const outcome *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        if (!same_bits(a->values[i], b->values[i]))
            fail_msg("%s: element %zu is %.9g or %.9g", what, i, a->values[i],
                     b->values[i]);
}

static inline void expect_close(const tolerance *t, const char *who,
                                const outcome *got, const outcome *want)
{
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < got->count; i++) {
        const double g = got->values[i], w = want->values[i];
        if (!same_bits(g, w) &&
            !(fabs(g - w) <= t->absolute + t->relative * fabs(w)))
            fail_msg("%s, %s: element %zu is %.9g, not %.9g", t->what, who, i,
                     g, w);
    }
}

/* ---- the judge ---- */

typedef void case_fn(const pl_kernels *set, const void *shape, int nth,
                     outcome *out);

/* Runs one op on nth threads, the last one first if nth is even. */
#define RUN_OP(set, op, args, nth)                                             \
    do {                                                                       \
        for (int i_ = 0; i_ < (nth); i_++)                                     \
            (set)->op((args), (nth) % 2 ? i_ : (nth)-1 - i_, (nth));           \
    } while (0)

static inline outcome run_case(case_fn *run, const pl_kernels *set,
                               const void *shape, int nth)
{
    outcome o = { 0 };
    run(set, shape, nth, &o);
    fenced_release();
    return o;
}

static inline void judge(case_fn *run, const void *shape, const tolerance *t)
{
    static const int threads[] = { 2, 3, 5 };
    const pl_kernels ref = pl_kernels_ref();
    const pl_isa best = pl_cpu_isa();
    outcome want = run_case(run, &ref, shape, 1), fused = { 0 };
    for (int isa = PL_ISA_BASE; isa <= (int)best; isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        outcome one = run_case(run, &set, shape, 1);
        expect_close(t, set.name, &one, &want);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            outcome many = run_case(run, &set, shape, threads[i]);
            expect_same("threads", &many, &one);
            free(many.values);
        }
        /* Same lanes, same chains, same exp: same bits by construction. */
        if (isa > PL_ISA_BASE + 1)
            expect_same("avx2 and the set above it", &one, &fused);
        free(fused.values);
        fused = one;
    }
    free(fused.values);
    free(want.values);
}

/* ---- finite differences ---- */

/* gradient[i] against the fourth-order central difference of loss(context) in
 * x[i]. The step is a power of two, so x +- step is exact for random_value. */
static inline void expect_gradient(const char *what,
                                   double (*loss)(void *context), void *context,
                                   float *x, size_t count,
                                   const float *gradient, double allowed)
{
    const float step = 1.0f / 64;
    for (size_t i = 0; i < count; i++) {
        const float kept = x[i];
        double at[4];
        static const int steps[4] = { 1, -1, 2, -2 };
        for (int s = 0; s < 4; s++) {
            x[i] = kept + (float)steps[s] * step;
            at[s] = loss(context);
        }
        x[i] = kept;
        const double slope = (8 * (at[0] - at[1]) - (at[2] - at[3])) /
                             (12 * (double)step);
        if (!(fabs(slope - (double)gradient[i]) <= allowed * (1 + fabs(slope))))
            fail_msg("%s: gradient %zu is %.7g, the slope %.7g", what, i,
                     (double)gradient[i], slope);
    }
}

/* The sum of y * weights in double: a scalar loss whose gradient is weights. */
static inline double weighted(const float *y, const float *weights,
                              size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)y[i] * (double)weights[i];
    return sum;
}

#endif
