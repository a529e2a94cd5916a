/* test_gemm.c: matrix products; test_linear.c has what a layer makes of them.
 */
#include "../support/kernel_cases.h"

/* Chains of at most 600 products below 1: partial sums stay under 20, and
 * rounding errors of half an ulp of that (1e-6) add up like a random walk. */
static const tolerance gemm_allowed = { "gemm", 2e-5, 1e-6 };

/* How the operands are kept. */
typedef struct keeping {
    pl_storage a, b, round, c, a_round;
} keeping;

typedef struct gemm_shape {
    size_t M, N, K;
    int a_transposed, b_transposed;
    pl_gemm_start start;
    keeping kept;
} gemm_shape;

/* As training uses them (forward, input's and weight's gradients), with a
 * stored copy of the weights, and in mixtures that nobody uses yet. */
static const keeping keepings[] = {
    { PL_STORE_BF16, PL_STORE_F32, PL_STORE_BF16, PL_STORE_BF16, PL_STORE_F32 },
    { PL_STORE_F16, PL_STORE_F32, PL_STORE_F16, PL_STORE_F16, PL_STORE_F32 },
    { PL_STORE_F32, PL_STORE_F32, PL_STORE_BF16, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_F32, PL_STORE_F32, PL_STORE_F16, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_BF16, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_F16, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_BF16, PL_STORE_BF16, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32 },
    { PL_STORE_F16, PL_STORE_F16, PL_STORE_F32, PL_STORE_F16, PL_STORE_F32 },
    { PL_STORE_F32, PL_STORE_BF16, PL_STORE_F16, PL_STORE_F16, PL_STORE_F32 },
    { PL_STORE_F16, PL_STORE_F32, PL_STORE_BF16, PL_STORE_BF16, PL_STORE_F32 },
    { PL_STORE_F32, PL_STORE_F32, PL_STORE_BF16, PL_STORE_BF16, PL_STORE_BF16 },
    { PL_STORE_F32, PL_STORE_BF16, PL_STORE_F32, PL_STORE_F32, PL_STORE_BF16 },
    { PL_STORE_F32, PL_STORE_F32, PL_STORE_F16, PL_STORE_F32, PL_STORE_F16 },
    { PL_STORE_F32, PL_STORE_F32, PL_STORE_F32, PL_STORE_F16, PL_STORE_BF16 },
};
enum { KEEPINGS = sizeof keepings / sizeof *keepings };

/* Such a product could not be carried on. */
static int is_allowed(const gemm_shape *s)
{
    return s->kept.c == PL_STORE_F32 || s->start != PL_GEMM_KEEP;
}

/* An operand of `columns` numbers in each row, and 3 gaps of NaN. */
static const void *make_operand(size_t rows, size_t columns, uint32_t seed,
                                pl_storage storage)
{
    const size_t row = columns + 3;
    return stored_input(fenced_matrix(rows, columns, row, seed),
                        rows ? (rows - 1) * row + columns : 0, storage);
}

static pl_gemm make_gemm(const gemm_shape *s)
{
    pl_gemm g = { .M = s->M,
                  .N = s->N,
                  .K = s->K,
                  .start = s->start,
                  .a_storage = s->kept.a,
                  .a_round = s->kept.a_round,
                  .b_storage = s->kept.b,
                  .b_round = s->kept.round,
                  .c_storage = s->kept.c };
    uint32_t seed = 3;
    const size_t a_rows = s->a_transposed ? s->K : s->M,
                 a_columns = s->a_transposed ? s->M : s->K,
                 b_rows = s->b_transposed ? s->N : s->K,
                 b_columns = s->b_transposed ? s->K : s->N;
    g.a = make_operand(a_rows, a_columns, 1, s->kept.a);
    g.a_row = s->a_transposed ? 1 : a_columns + 3;
    g.a_col = s->a_transposed ? a_columns + 3 : 1;
    g.b = make_operand(b_rows, b_columns, 2, s->kept.b);
    g.b_row = s->b_transposed ? 1 : b_columns + 3;
    g.b_col = s->b_transposed ? b_columns + 3 : 1;
    g.c_row = s->N + 3;
    g.c = stored_blank(s->M * g.c_row, s->kept.c);
    for (size_t m = 0; m < s->M && s->start == PL_GEMM_KEEP; m++)
        for (size_t n = 0; n < s->N; n++)
            ((float *)g.c)[m * g.c_row + n] = random_value(&seed);
    if (s->start == PL_GEMM_BIAS)
        g.bias = fenced_random(s->N, 4, 1);
    return g;
}

static void gemm_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const gemm_shape *s = shape;
    const pl_gemm g = make_gemm(s);
    RUN_OP(set, gemm, &g, nth);
    outcome_add_stored(out, g.c, s->M * g.c_row, s->kept.c);
}

static gemm_shape make_shape(size_t M, size_t N, size_t K, int form,
                             const keeping *kept)
{
    return (gemm_shape){
        M, N, K, form & 1, form >> 1 & 1, (pl_gemm_start)(form / 4), *kept
    };
}

static const keeping all_float = { PL_STORE_F32, PL_STORE_F32, PL_STORE_F32,
                                   PL_STORE_F32, PL_STORE_F32 };

static void judge_kept(size_t M, size_t N, size_t K, const keeping *kept)
{
    const tolerance allowed = tolerance_stored(&gemm_allowed, kept->c);
    for (int form = 0; form < 12; form++) {
        const gemm_shape s = make_shape(M, N, K, form, kept);
        if (is_allowed(&s))
            judge(gemm_case, &s, &allowed);
    }
}

static void judge_all_forms(size_t M, size_t N, size_t K)
{
    judge_kept(M, N, K, &all_float);
}

static void products_of_awkward_shapes_agree(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67 };
    (void)state;
    for (int m = 0; m < 6; m++)
        for (int n = 0; n < 6; n++)
            for (int k = 0; k < 6; k++)
                judge_all_forms(sizes[m], sizes[n], sizes[k]);
}

static void products_longer_than_a_block_agree(void **state)
{
    (void)state;
    judge_all_forms(13, 37, 600);
    judge_all_forms(33, 64, 256);
    judge_all_forms(1, 129, 257);
    judge_all_forms(50, 1, 511);
}

/* What follows a product is what would follow it alone, to the bit: with
 * threads, packed or not, of few rows or many, in 16 bits or not. */
static void what_follows_a_product_equals_what_comes_after_it(void **state)
{
    static const size_t sizes[][3] = {
        { 1, 70, 40 }, { 2, 33, 500 }, { 37, 90, 65 }, { 130, 200, 500 }
    };
    const size_t floats = pl_gemm_scratch(64, PL_STORE_BF16);
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 64; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const size_t *size = sizes[form % 4];
            const pl_epilogue_kind kind = (pl_epilogue_kind)(1 + form / 4 % 3);
            const int small = kind == PL_EPILOGUE_GELU && form / 16 % 2;
            keeping kept = all_float;
            kept.c = small ? PL_STORE_F16 : PL_STORE_F32;
            gemm_shape s = make_shape(size[0], size[1], size[2],
                                      form / 32 ? 2 : 0, &kept);
            const pl_gemm plain = make_gemm(&s);
            pl_gemm g = make_gemm(&s), after = plain;
            const size_t count = s.M * plain.c_row;
            g.epilogue = (pl_epilogue){ .kind = kind,
                                        .gelu = (pl_gelu_kind)(form / 16 % 2),
                                        .x = fenced_random(count, 11, 1),
                                        .row = plain.c_row,
                                        .T = 7,
                                        .position = 3 };
            if (kind == PL_EPILOGUE_RESIDUAL)
                g.epilogue.dropout = (pl_dropout){ .threshold = 1u << 30,
                                                   .scale = 1.5f,
                                                   .seed = 5 };
            if (kind == PL_EPILOGUE_GELU && form / 32)
                g.epilogue.y = stored_blank(count,
                                            g.epilogue.y_storage = kept.c);
            g.scratch = fenced_random(floats, 9, 1);
            g.scratch_floats = form % 3 ? floats : 0;
            RUN_OP(&set, gemm, &g, 3);
            set.gemm(&plain, 0, 1);
            after.epilogue = g.epilogue;
            after.start = PL_GEMM_KEEP;
            after.K = 0;
            if (g.epilogue.y)
                after.epilogue.y = stored_blank(count, kept.c);
            if (small) { /* such a C can't be carried on: by the other op */
                void *y = g.epilogue.y ? after.epilogue.y : plain.c;
                for (size_t m = 0; m < s.M; m++) {
                    const pl_gelu row = {
                        .y = pl_storage_at(y, m * plain.c_row, kept.c),
                        .x = pl_storage_at(plain.c, m * plain.c_row, kept.c),
                        .count = s.N,
                        .kind = g.epilogue.gelu,
                        .y_storage = kept.c,
                        .x_storage = kept.c
                    };
                    set.gelu(&row, 0, 1);
                }
            } else {
                set.gemm(&after, 0, 1);
            }
            assert_memory_equal(g.c, plain.c, count * pl_storage_bytes(kept.c));
            if (g.epilogue.y)
                assert_memory_equal(g.epilogue.y, after.epilogue.y,
                                    count * pl_storage_bytes(kept.c));
            fenced_release();
        }
}

/* What a product is packed in is a matter of speed. */
static void scratch_of_any_size_gives_the_same_bits(void **state)
{
    static const keeping kept[] = {
        { PL_STORE_F32, PL_STORE_F32, PL_STORE_F32, PL_STORE_F32,
          PL_STORE_F32 },
        { PL_STORE_BF16, PL_STORE_F32, PL_STORE_BF16, PL_STORE_BF16,
          PL_STORE_F32 },
    };
    /* the second one's columns are several parts, of which each packs all of
     * k: for a C of 16 bits, too */
    static const size_t shapes[][3] = { { 110, 150, 800 }, { 110, 600, 400 } };
    /* too little, one panel of any set, several, all of it */
    const size_t sizes[] = { 1,
                             96 * PL_GEMM_DEPTH + 100,
                             (96 + 70) * PL_GEMM_DEPTH,
                             (96 + 170) * PL_GEMM_DEPTH,
                             pl_gemm_scratch(150, PL_STORE_BF16),
                             pl_gemm_scratch(600, PL_STORE_BF16),
                             pl_gemm_scratch(5000, PL_STORE_BF16) };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 48; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const size_t *size = shapes[form / 24];
            const gemm_shape s = make_shape(size[0], size[1], size[2],
                                            form % 12, &kept[form / 12 % 2]);
            if (!is_allowed(&s))
                continue;
            const pl_gemm plain = make_gemm(&s);
            const size_t bytes = s.M * plain.c_row * pl_storage_bytes(s.kept.c);
            set.gemm(&plain, 0, 1);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                pl_gemm g = make_gemm(&s);
                g.scratch = fenced_random(sizes[i], 9, 1);
                g.scratch_floats = sizes[i];
                set.gemm(&g, 0, 2);
                set.gemm(&g, 1, 2);
                assert_memory_equal(g.c, plain.c, bytes);
            }
            fenced_release();
        }
}

/* Rows a page apart meet in one set of a cache, and are copied first. */
static void where_rows_lie_changes_no_bit(void **state)
{
    enum { PAGE = 1024 }; /* floats */
    static const size_t depths[] = { 200, 900 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 12; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const gemm_shape s = make_shape(55, 70, depths[form % 2], form & ~1,
                                            &all_float);
            const pl_gemm near = make_gemm(&s);
            pl_gemm far = make_gemm(&s);
            float *a = fenced_matrix(s.M, s.K, PAGE, 1);
            for (size_t m = 0; m < s.M; m++)
                memcpy(a + m * PAGE, (const float *)near.a + m * near.a_row,
                       s.K * sizeof *a);
            far.a = a;
            far.a_row = PAGE;
            set.gemm(&near, 0, 1);
            set.gemm(&far, 0, 1);
            assert_memory_equal(far.c, near.c,
                                s.M * near.c_row * sizeof(float));
            fenced_release();
        }
}

static void stored_products_of_awkward_shapes_agree(void **state)
{
    static const size_t sizes[] = { 0, 1, 9, 67 };
    (void)state;
    for (int i = 0; i < KEEPINGS; i++) {
        for (int m = 0; m < 4; m++)
            for (int n = 0; n < 4; n++)
                for (int k = 0; k < 4; k++)
                    judge_kept(sizes[m], sizes[n], sizes[k], &keepings[i]);
        judge_kept(13, 37, 600, &keepings[i]);
        judge_kept(250, 70, 64, &keepings[i]);
        judge_kept(1, 129, 257, &keepings[i]);
    }
}

/* c = a b at once, or over pieces of K that end at each of `cuts`. */
static void cut_case(const pl_kernels *set, const gemm_shape *s,
                     const size_t *cuts, size_t count, outcome *out)
{
    const pl_gemm whole = make_gemm(s);
    size_t from = 0;
    for (size_t i = 0; i < count; i++) {
        pl_gemm part = whole;
        part.a = pl_storage_at(whole.a, from * whole.a_col, s->kept.a);
        part.b = pl_storage_at(whole.b, from * whole.b_row, s->kept.b);
        part.K = cuts[i] - from;
        part.start = i ? PL_GEMM_KEEP : s->start;
        RUN_OP(set, gemm, &part, 2);
        from = cuts[i];
    }
    outcome_add(out, whole.c, s->M * whole.c_row);
    fenced_release();
}

static void expect_cuts_do_not_show(const keeping *kept)
{
    static const size_t whole[] = { 300 },
                        pieces[] = { 1, 8, 9, 160, 299, 300 };
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 12; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const gemm_shape s = make_shape(19, 43, 300, form, kept);
            outcome one = { 0 }, many = { 0 };
            cut_case(&set, &s, whole, 1, &one);
            cut_case(&set, &s, pieces, 6, &many);
            expect_same("pieces of K", &many, &one);
            free(one.values);
            free(many.values);
        }
}

static void a_sum_may_be_cut_anywhere(void **state)
{
    (void)state;
    expect_cuts_do_not_show(&all_float);
    for (int i = 0; i < KEEPINGS; i++)
        if (keepings[i].c == PL_STORE_F32)
            expect_cuts_do_not_show(&keepings[i]);
}

/* Rows in chunks of `chunk`, columns in chunks of `chunk` + 2. */
static void chunk_case(const pl_kernels *set, const gemm_shape *s, size_t chunk,
                       outcome *out)
{
    const pl_gemm whole = make_gemm(s);
    for (size_t m = 0; m < s->M; m += chunk)
        for (size_t n = 0; n < s->N; n += chunk + 2) {
            pl_gemm part = whole;
            part.a = pl_storage_at(whole.a, m * whole.a_row, s->kept.a);
            part.b = pl_storage_at(whole.b, n * whole.b_col, s->kept.b);
            part.c = pl_storage_at(whole.c, m * whole.c_row + n, s->kept.c);
            if (whole.bias)
                part.bias += n;
            part.M = s->M - m < chunk ? s->M - m : chunk;
            part.N = s->N - n < chunk + 2 ? s->N - n : chunk + 2;
            RUN_OP(set, gemm, &part, 2);
        }
    outcome_add_stored(out, whole.c, s->M * whole.c_row, s->kept.c);
    fenced_release();
}

static void expect_chunks_do_not_show(const gemm_shape *s)
{
    static const size_t chunks[] = { 1, 5, 12, 17, 32 };
    for (int isa = 0; isa <= (int)pl_cpu_isa() && is_allowed(s); isa++)
        for (int i = 0; i < 5; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            outcome one = { 0 }, many = { 0 };
            chunk_case(&set, s, 1000, &one);
            chunk_case(&set, s, chunks[i], &many);
            expect_same("chunks", &many, &one);
            free(one.values);
            free(many.values);
        }
}

static void an_output_may_be_computed_in_chunks(void **state)
{
    (void)state;
    for (int form = 0; form < 12; form++)
        for (int i = -1; i < KEEPINGS; i++) {
            const gemm_shape s = make_shape(41, 71, 65, form,
                                            i < 0 ? &all_float : &keepings[i]);
            expect_chunks_do_not_show(&s);
        }
}

/* An operand as float32, rounded if a product would round it. */
static const float *rounded_operand(const void *x, size_t count,
                                    pl_storage storage, pl_storage round)
{
    if (storage != PL_STORE_F32)
        return stored_back(x, count, storage);
    return stored_back(stored_input(x, count, round), count, round);
}

/* The definition of storage: inputs as they are stored, float32 from there to
 * the end of the sum, one rounding. So the product of the same numbers, kept
 * and summed as float32 and rounded here, has the same bits. */
static void expect_one_rounding(const pl_kernels *set, const gemm_shape *s)
{
    outcome stored = { 0 }, floats = { 0 };
    const pl_gemm g = make_gemm(s);
    pl_gemm f = make_gemm(s);
    const size_t b_rows = s->b_transposed ? s->N : s->K,
                 b_columns = s->b_transposed ? s->K : s->N,
                 b_count = b_rows ? (b_rows - 1) * (b_columns + 3) + b_columns
                                  : 0;
    const size_t a_rows = s->a_transposed ? s->K : s->M,
                 a_columns = s->a_transposed ? s->M : s->K;
    f.a = rounded_operand(f.a, (a_rows - 1) * (a_columns + 3) + a_columns,
                          s->kept.a, s->kept.a_round);
    f.b = rounded_operand(f.b, b_count, s->kept.b, s->kept.round);
    f.a_storage = f.a_round = PL_STORE_F32;
    f.b_storage = f.b_round = f.c_storage = PL_STORE_F32;
    f.c = fenced_blank(s->M * g.c_row);
    if (s->start == PL_GEMM_KEEP)
        memcpy(f.c, g.c, s->M * g.c_row * sizeof(float));
    RUN_OP(set, gemm, &g, 2);
    RUN_OP(set, gemm, &f, 2);
    outcome_add_stored(&stored, g.c, s->M * g.c_row, s->kept.c);
    outcome_add_rounded(&floats, f.c, s->M * g.c_row, s->kept.c);
    for (size_t i = 0; i < stored.count; i++)
        if (i % g.c_row >= s->N) /* gaps */
            stored.values[i] = floats.values[i] = 0;
    expect_same("one rounding", &stored, &floats);
    free(stored.values);
    free(floats.values);
    fenced_release();
}

static void a_stored_product_is_a_float_product_rounded_once(void **state)
{
    static const size_t sizes[][3] = {
        { 1, 64, 300 }, { 30, 33, 7 }, { 17, 70, 600 }, { 260, 130, 257 }
    };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < KEEPINGS; i++)
            for (int form = 0; form < 12; form++)
                for (int j = 0; j < 4; j++) {
                    const pl_kernels set = pl_kernels_for((pl_isa)isa);
                    const gemm_shape s = make_shape(sizes[j][0], sizes[j][1],
                                                    sizes[j][2], form,
                                                    &keepings[i]);
                    if (is_allowed(&s))
                        expect_one_rounding(&set, &s);
                }
}

/* Master weights rounded as they are read, or a copy that is kept rounded. */
static void weights_rounded_on_the_way_equal_a_stored_copy(void **state)
{
    enum { M = 29, N = 75, K = 290 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int kind = 1; kind < STORAGES; kind++)
            for (int transposed = 0; transposed < 2; transposed++) {
                const pl_kernels set = pl_kernels_for((pl_isa)isa);
                const float *w = fenced_random(K * N, 2, 1);
                pl_gemm g = { .M = M,
                              .N = N,
                              .K = K,
                              .a = fenced_random(M * K, 1, 1),
                              .a_row = K,
                              .a_col = 1,
                              .b = w,
                              .b_row = transposed ? 1 : N,
                              .b_col = transposed ? K : 1,
                              .b_round = storages[kind],
                              .c = fenced_blank(M * N),
                              .c_row = N };
                const float *on_the_way = g.c;
                RUN_OP(&set, gemm, &g, 2);
                g.b = stored_input(w, K * N, storages[kind]);
                g.b_storage = storages[kind];
                g.b_round = PL_STORE_F32;
                g.c = fenced_blank(M * N);
                RUN_OP(&set, gemm, &g, 2);
                assert_memory_equal(on_the_way, g.c, M * N * sizeof(float));
                fenced_release();
            }
}

/* The derivative belongs to the sums: a C of 16 bits is rounded after it. */
static void a_slope_is_taken_before_the_rounding(void **state)
{
    static const size_t sizes[][3] = {
        { 1, 70, 40 }, { 2, 33, 500 }, { 37, 90, 65 }, { 130, 200, 500 }
    };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 48; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const size_t *size = sizes[form % 4];
            const pl_storage c = storages[1 + form / 4 % 2],
                             x = storages[form / 8 % 3];
            keeping kept = all_float;
            const gemm_shape floats = make_shape(size[0], size[1], size[2],
                                                 form / 24 * 2, &kept);
            kept.c = c;
            const gemm_shape stored = make_shape(size[0], size[1], size[2],
                                                 form / 24 * 2, &kept);
            pl_gemm f = make_gemm(&floats), g = make_gemm(&stored);
            const size_t count = floats.M * f.c_row;
            f.epilogue = (pl_epilogue){
                .kind = PL_EPILOGUE_GELU_BWD,
                .gelu = (pl_gelu_kind)(form / 24),
                .x = stored_input(fenced_random(count, 11, 1), count, x),
                .x_storage = x,
                .row = f.c_row
            };
            g.epilogue = f.epilogue;
            RUN_OP(&set, gemm, &f, 2);
            RUN_OP(&set, gemm, &g, 3);
            for (size_t i = 0; i < count; i++)
                if (i % f.c_row < floats.N)
                    assert_true(same_bits(
                        (double)pl_storage_round(((float *)f.c)[i], c),
                        (double)pl_storage_get(g.c, i, c)));
            fenced_release();
        }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    static const size_t sizes[] = { 1, 9, 16, 67 };
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int n = 0; n < 4; n++)
            for (int k = 0; k < 4; k++)
                judge_all_forms(sizes[m], sizes[n], sizes[k]);
    for (int i = 0; i < KEEPINGS; i++)
        for (int m = 0; m < 4; m++)
            judge_kept(sizes[m], sizes[(m + 1 + i) % 4], sizes[(m + 2) % 4],
                       &keepings[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_awkward_shapes_agree),
        cmocka_unit_test(products_longer_than_a_block_agree),
        cmocka_unit_test(what_follows_a_product_equals_what_comes_after_it),
        cmocka_unit_test(scratch_of_any_size_gives_the_same_bits),
        cmocka_unit_test(where_rows_lie_changes_no_bit),
        cmocka_unit_test(stored_products_of_awkward_shapes_agree),
        cmocka_unit_test(a_sum_may_be_cut_anywhere),
        cmocka_unit_test(an_output_may_be_computed_in_chunks),
        cmocka_unit_test(a_stored_product_is_a_float_product_rounded_once),
        cmocka_unit_test(a_slope_is_taken_before_the_rounding),
        cmocka_unit_test(weights_rounded_on_the_way_equal_a_stored_copy),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
