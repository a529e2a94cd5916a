/* test_tensor.c: matrix products in tensor arithmetic: every set has the bits
 * of the reference, on awkward shapes and on numbers of every size. That the
 * reference has the bits of tensor cores is golden.tensor's; that it has those
 * of AMX is seen here where a processor has that. */
#include "../support/kernel_cases.h"
#include "support/sanitized.h"

static const pl_products classes[] = { PL_PRODUCTS_TENSOR24,
                                       PL_PRODUCTS_TENSOR25, PL_PRODUCTS_AMX };
enum { CLASSES = 3 };

/* What numbers are like. For WIDE and TINY float16 has its denormals. */
typedef enum numbers {
    ALIKE,      /* all of about 1 */
    WIDE,       /* bfloat16: 2^-56 to 2^24 */
    TINY,       /* the smallest there are; sums begin with as little */
    CANCELLING, /* each product is taken off by the next one, nearly */
    CROWDED,    /* products near 4 and a start near 2: with 16 of them the
                 * largest sum of a group, which 32 bits can't hold */
    LARGE,      /* sums about 2^128, or float16's largest */
    ZEROS,      /* zeros nearly all, of both signs */
    NUMBERS
} numbers;

typedef struct product {
    size_t M, N, K;
    int form; /* transposes and start, as in test_gemm.c */
    pl_storage half, c;
    int rounded; /* operands are float32, rounded as they are read */
    pl_products products;
    numbers numbers;
    size_t scratch;
} product;

/* Element (i, k), where k is along the sum. */
static float number(const product *p, uint32_t *seed, size_t k)
{
    const int f16 = p->half == PL_STORE_F16;
    const float x = 1 + fabsf(random_value(seed)),
                sign = random_value(seed) < 0 ? -1.0f : 1.0f;
    const uint32_t any = *seed = *seed * 1664525u + 1013904223u;
    const int pick = (int)(any >> 16 & 0x7fff);
    switch (p->numbers) {
    case ALIKE:
        return sign * x;
    case WIDE:
        return pick % 9 == 0 ? sign * 0.0f
               : f16         ? ldexpf(sign * x, pick % 40 - 25)
                             : ldexpf(sign * x, pick % 80 - 56);
    case TINY:
        return pick % 5 == 0 ? sign * 0.0f
                             : ldexpf(sign * x, pick % 8 - (f16 ? 25 : 57));
    case CANCELLING:
        return ldexpf(k % 2 ? 1.25f + (float)(pick % 2) / 64 : -1.25f, 3);
    case CROWDED:
        return (f16 ? 0x1.ffcp0f : 0x1.fep0f) - (pick % 99 == 0 ? 0x1p-7f : 0);
    case LARGE:
        return ldexpf(sign * x, f16 ? 14 : 58 + pick % 6);
    case ZEROS:
    case NUMBERS:
        break;
    }
    return pick % 7 ? sign * 0.0f : ldexpf(sign * x, pick % 24 - 12);
}

/* A matrix of `rows` rows; k is its row if `k_is_row`, else its column. */
static const void *make_matrix(const product *p, size_t rows, size_t columns,
                               int k_is_row, uint32_t seed)
{
    const size_t row = columns + 3, count = rows ? rows * row - 3 : 0;
    float *x = fenced_make(count, marked_nan(0xf), marked_nan(0xe));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            x[r * row + c] = number(p, &seed, k_is_row ? r : c);
    /* The second factors of a pair are equal: CANCELLING. */
    for (size_t r = 0; r < rows && p->numbers == CANCELLING && seed % 2; r++)
        for (size_t c = 0; c < columns; c++)
            x[r * row + c] = fabsf(x[r * row + c]);
    return p->rounded ? x : stored_input(x, count, p->half);
}

/* What a sum begins with. */
static float start_value(const product *p, uint32_t *seed)
{
    const float x = random_value(seed);
    return p->numbers == TINY      ? ldexpf(x, -100)
           : p->numbers == WIDE    ? ldexpf(x, (int)(*seed >> 20) % 60 - 40)
           : p->numbers == LARGE   ? ldexpf(x, 126)
           : p->numbers == ZEROS   ? -0.0f
           : p->numbers == CROWDED ? 1.75f + x / 8
                                   : x;
}

/* AMX has bfloat16 alone: in float16 it would be exact. */
static void settle(product *p)
{
    if (p->products == PL_PRODUCTS_AMX) {
        p->c = p->c ? PL_STORE_BF16 : PL_STORE_F32;
        p->half = PL_STORE_BF16;
    }
}

static pl_gemm make_product(const product *p)
{
    static float room[200000];
    const int at = p->form & 1, bt = p->form >> 1 & 1;
    const size_t a_row = (at ? p->M : p->K) + 3, b_row = (bt ? p->K : p->N) + 3;
    uint32_t seed = 5;
    pl_gemm g = {
        .M = p->M,
        .N = p->N,
        .K = p->K,
        .a = make_matrix(p, at ? p->K : p->M, at ? p->M : p->K, at, 1),
        .a_row = at ? 1 : a_row,
        .a_col = at ? a_row : 1,
        .b = make_matrix(p, bt ? p->N : p->K, bt ? p->K : p->N, !bt, 2),
        .b_row = bt ? 1 : b_row,
        .b_col = bt ? b_row : 1,
        .c_row = p->N + 2,
        .start = (pl_gemm_start)(p->form / 4),
        .a_storage = p->rounded ? PL_STORE_F32 : p->half,
        .b_storage = p->rounded ? PL_STORE_F32 : p->half,
        .a_round = p->half,
        .b_round = p->half,
        .c_storage = p->c,
        .products = p->products,
        .scratch = p->scratch ? room : NULL,
        .scratch_floats = p->scratch
    };
    g.c = stored_blank(p->M * g.c_row, p->c);
    for (size_t i = 0; i < p->M * g.c_row && g.start == PL_GEMM_KEEP; i++)
        ((float *)g.c)[i] = pl_sum_start(start_value(p, &seed));
    if (g.start == PL_GEMM_BIAS) {
        float *bias = fenced_make(p->N, marked_nan(0xf), 0);
        for (size_t n = 0; n < p->N; n++)
            bias[n] = start_value(p, &seed);
        g.bias = bias;
    }
    return g;
}

static void add_rows(outcome *out, const pl_gemm *g)
{
    for (size_t m = 0; m < g->M; m++)
        outcome_add_stored(out, pl_storage_at(g->c, m * g->c_row, g->c_storage),
                           g->N, g->c_storage);
}

static void product_case(const pl_kernels *set, const void *shape, int nth,
                         outcome *out)
{
    const pl_gemm g = make_product(shape);
    RUN_OP(set, gemm, &g, nth);
    add_rows(out, &g);
}

/* Every set, and any number of threads, to the bit. base multiplies and adds
 * apart, which is as good as fused as long as no product is infinite. */
static void judge_product(const product *asked)
{
    static const int threads[] = { 1, 2, 3, 5 };
    const pl_kernels ref = pl_kernels_ref();
    product settled = *asked;
    const product *p = &settled;
    settle(&settled);
    if (p->c != PL_STORE_F32 && p->form / 4 == PL_GEMM_KEEP)
        return;
    outcome want = run_case(product_case, &ref, p, 1);
    int isa = PL_ISA_BASE;
    if (p->products == PL_PRODUCTS_AMX && p->numbers == LARGE)
        isa++;
    for (; isa <= (int)pl_cpu_isa(); isa++)
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            outcome got = run_case(product_case, &set, p, threads[i]);
            expect_same(set.name, &got, &want);
            free(got.values);
        }
    free(want.values);
}

static void products_of_awkward_shapes_have_the_references_bits(void **state)
{
    static const size_t sizes[] = { 1, 7, 16, 33 },
                        depths[] = { 0, 1, 7, 8, 9, 15, 16, 17, 24, 33, 100 };
    (void)state;
    for (size_t i = 0; i < 4 * 4 * 11 * 12; i++) {
        const size_t m = i % 4, n = i / 4 % 4, k = i / 16 % 11;
        product p = { .M = sizes[m],
                      .N = sizes[n],
                      .K = depths[k],
                      .form = (int)(i / 176),
                      .half = i % 3 ? PL_STORE_BF16 : PL_STORE_F16,
                      .rounded = i % 5 == 0,
                      .numbers = WIDE };
        p.c = i % 7 == 0 ? p.half : PL_STORE_F32;
        for (int c = 0; c < CLASSES; c++) {
            p.products = classes[c];
            if (c == (int)(i % 2) || c == 2)
                judge_product(&p);
        }
    }
}

static void numbers_of_every_size_have_the_references_bits(void **state)
{
    (void)state;
    for (int of = 0; of < NUMBERS; of++)
        for (int form = 0; form < 12; form++)
            for (int i = 0; i < 2 * CLASSES; i++) {
                const product p = { .M = 13,
                                    .N = 37,
                                    .K = 70,
                                    .form = form,
                                    .half = i / CLASSES ? PL_STORE_F16
                                                        : PL_STORE_BF16,
                                    .products = classes[i % CLASSES],
                                    .numbers = (numbers)of };
                judge_product(&p);
            }
}

/* Longer than a block of k, more rows than are packed together, with scratch
 * of any size. */
static void large_products_have_the_references_bits(void **state)
{
    static const size_t rooms[] = { 0, 1000, 60000, 200000 };
    (void)state;
    for (int form = 0; form < 12; form++)
        for (int i = 0; i < 4 + 4; i++) {
            const product p = { .M = i % 2 ? 130 : 2,
                                .N = i % 2 ? 40 : 150,
                                .K = 800,
                                .form = form,
                                .half = form % 3 ? PL_STORE_BF16 : PL_STORE_F16,
                                .c = form / 4 == PL_GEMM_KEEP || i % 3
                                         ? PL_STORE_F32
                                         : PL_STORE_BF16,
                                .products = classes[i < 4 ? i % 2 : 2],
                                .numbers = WIDE,
                                .scratch = rooms[(i + form) % 4] };
            if (!SANITIZED_ADDRESS || form % 3 == 0)
                judge_product(&p);
        }
}

/* A chain may be cut between groups, rows and columns anywhere. */
static void a_product_may_be_cut(void **state)
{
    static const size_t cuts[] = { 16, 48, 64, 96 };
    (void)state;
    for (int i = 0; i < 16 * CLASSES; i++) {
        const pl_kernels set = pl_kernels_for(i % 2 ? pl_cpu_isa()
                                                    : PL_ISA_BASE);
        product p = { .M = 21,
                      .N = 35,
                      .K = 130,
                      .form = i / 2 % 4 + 4,
                      .half = i % 3 ? PL_STORE_BF16 : PL_STORE_F16,
                      .products = classes[i / 16],
                      .numbers = WIDE };
        const size_t unit = (size_t)pl_products_group(p.products) / 16,
                     cut = cuts[i / 4 % 4] * unit;
        settle(&p);
        pl_gemm whole = make_product(&p), parts = make_product(&p);
        outcome one = { 0 }, many = { 0 };
        RUN_OP(&set, gemm, &whole, 1);
        for (size_t k = 0; k < p.K; k += cut)
            for (size_t m = 0; m < p.M; m += 5) {
                pl_gemm g = parts;
                g.a = pl_storage_at(g.a, m * g.a_row + k * g.a_col,
                                    g.a_storage);
                g.b = pl_storage_at(g.b, k * g.b_row, g.b_storage);
                g.c = (float *)g.c + m * g.c_row;
                g.M = p.M - m < 5 ? p.M - m : 5;
                g.K = p.K - k < cut ? p.K - k : cut;
                g.start = k ? PL_GEMM_KEEP : g.start;
                RUN_OP(&set, gemm, &g, 2);
            }
        add_rows(&one, &whole);
        add_rows(&many, &parts);
        expect_same("cut", &many, &one);
        free(one.values);
        free(many.values);
        fenced_release();
    }
}

/* What follows a product in exact arithmetic follows this one: a product of no
 * k has the epilogue alone. */
static void what_follows_a_product_is_the_same(void **state)
{
    static float x[40 * 60], y[2][40 * 60];
    uint32_t seed = 9;
    (void)state;
    for (size_t i = 0; i < 40 * 60; i++)
        x[i] = random_value(&seed);
    for (int i = 0; i < 8 * CLASSES; i++) {
        const pl_kernels set = pl_kernels_for(i % 2 ? pl_cpu_isa()
                                                    : PL_ISA_BASE);
        const product p = { .M = 37,
                            .N = 53,
                            .K = 70,
                            .form = 4,
                            .half = PL_STORE_BF16,
                            .products = classes[i / 8] };
        pl_gemm plain = make_product(&p), all = make_product(&p);
        outcome got = { 0 }, want = { 0 };
        all.epilogue = (pl_epilogue){ .kind = (pl_epilogue_kind)(i / 2 % 4),
                                      .gelu = PL_GELU_TANH,
                                      .row = 55,
                                      .x = x,
                                      .T = 10 };
        RUN_OP(&set, gemm, &plain, 2);
        pl_gemm after = plain;
        after.epilogue = all.epilogue;
        after.K = 0;
        after.start = PL_GEMM_KEEP;
        if (all.epilogue.kind == PL_EPILOGUE_GELU) {
            all.epilogue.y = y[0];
            after.epilogue.y = y[1];
        }
        RUN_OP(&set, gemm, &all, 2);
        RUN_OP(&set, gemm, &after, 2);
        add_rows(&got, &all);
        add_rows(&want, &after);
        expect_same("epilogue", &got, &want);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        free(got.values);
        free(want.values);
        fenced_release();
    }
}

/* kernels/tensor.h proves it: what a mask hides, and any number of groups of
 * it, changes nothing but -0. */
static void hidden_products_change_nothing(void **state)
{
    enum { M = 5, N = 19, K = 128, SEEN = 41 };
    static float a[M * K], b[K * N], c[2][M * N];
    uint32_t seed = 3;
    (void)state;
    for (int i = 0; i < 2 * CLASSES * NUMBERS * 3; i++) {
        const pl_kernels set = i % 3 == 2   ? pl_kernels_ref()
                               : i % 3 == 1 ? pl_kernels_for(PL_ISA_BASE)
                                            : pl_kernels_for(pl_cpu_isa());
        product p = { .half = i / 3 % 2 ? PL_STORE_F16 : PL_STORE_BF16,
                      .products = classes[i / 6 % CLASSES],
                      .numbers = (numbers)(i / 6 / CLASSES) };
        settle(&p);
        if (p.numbers == LARGE)
            continue; /* nothing is promised */
        for (size_t j = 0; j < M * K; j++)
            a[j] = j % K < SEEN ? number(&p, &seed, j % K) : 0.0f;
        for (size_t j = 0; j < K * N; j++) /* up to 2^24 where it is hidden */
            b[j] = j / N < SEEN ? number(&p, &seed, j / N)
                                : ldexpf(random_value(&seed),
                                         p.half == PL_STORE_F16 ? 15 : 24);
        pl_gemm g = { .M = M,
                      .N = N,
                      .K = SEEN,
                      .a = a,
                      .a_row = K,
                      .a_col = 1,
                      .b = b,
                      .b_row = N,
                      .b_col = 1,
                      .c = c[0],
                      .c_row = N,
                      .a_round = p.half,
                      .b_round = p.half,
                      .products = p.products };
        RUN_OP(&set, gemm, &g, 1);
        g.c = c[1];
        g.K = K;
        RUN_OP(&set, gemm, &g, 1);
        for (size_t j = 0; j < M * N; j++) {
            c[0][j] += 0.0f;
            c[1][j] += 0.0f;
        }
        assert_memory_equal(c[0], c[1], sizeof c[0]);
    }
}

/* Operands of which one is float32, or that are of two kinds, have the chain of
 * multiply-adds, whatever is asked for; with AMX float16 has, too. */
static void other_products_stay_exact(void **state)
{
    static const pl_storage kept[][2] = { { PL_STORE_F32, PL_STORE_F32 },
                                          { PL_STORE_BF16, PL_STORE_F32 },
                                          { PL_STORE_F32, PL_STORE_F16 },
                                          { PL_STORE_BF16, PL_STORE_F16 },
                                          { PL_STORE_F16, PL_STORE_F16 } };
    (void)state;
    for (int i = 0; i < 10 + 8; i++) {
        const pl_kernels set = i % 2 ? pl_kernels_ref()
                                     : pl_kernels_for(pl_cpu_isa());
        outcome o[2] = { 0 };
        for (int asked = 0; asked < 2; asked++) {
            const product p = {
                .M = 20, .N = 30, .K = 90, .rounded = 1, .numbers = WIDE
            };
            pl_gemm g = make_product(&p);
            const pl_products other = i < 10 ? PL_PRODUCTS_AMX
                                             : PL_PRODUCTS_TENSOR25;
            g.a_round = kept[i % 10 / 2][0];
            g.b_round = kept[i % 10 / 2][1];
            g.products = asked ? other : PL_PRODUCTS_EXACT;
            RUN_OP(&set, gemm, &g, 1);
            add_rows(&o[asked], &g);
            fenced_release();
        }
        expect_same("exact", &o[1], &o[0]);
        free(o[0].values);
        free(o[1].values);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_awkward_shapes_have_the_references_bits),
        cmocka_unit_test(numbers_of_every_size_have_the_references_bits),
        cmocka_unit_test(large_products_have_the_references_bits),
        cmocka_unit_test(a_product_may_be_cut),
        cmocka_unit_test(what_follows_a_product_is_the_same),
        cmocka_unit_test(hidden_products_change_nothing),
        cmocka_unit_test(other_products_stay_exact),
        cmocka_unit_test_setup_teardown(
            products_of_awkward_shapes_have_the_references_bits, guard_up,
            guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
