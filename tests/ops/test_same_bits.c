/* test_same_bits.c: sets that share an arithmetic give the same bits, for every
 * op that keeps something in 16 bits, on numbers of every size: from 2^-140,
 * denormal in float32, to 2^100, and zeros of either sign. That bfloat16's
 * least number makes sums of products denormal nowhere is what is tested by it.
 *
 * Infinities and NaN are compared as such: which NaN it is is not promised. */
#include "../support/kernel_cases.h"

static uint32_t seed = 1;

static uint32_t draw(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Sizes up to `most`: small ones, multiples of a vector and their neighbours.
 */
static size_t draw_size(size_t most)
{
    const size_t any = 1 + draw() % most, whole = any / 16 * 16;
    return draw() % 3 ? any : whole + draw() % 3 > 0 ? whole + draw() % 3 : 1;
}

/* How large numbers are: all of the range, or a part in which sums of products
 * are finite, or such that products lie about 2^-126, or zeros nearly all, or
 * small enough for scores. */
typedef enum range { ANY, FINITE, TINY, ZEROS, SMALL, RANGES } range;

static float draw_value(range r)
{
    static const int least[] = { -140, -140, -66, 0, -140 },
                     most[] = { 100, 40, -50, 0, 2 };
    const int size = least[r] +
                     (int)(draw() % (uint32_t)(most[r] - least[r] + 1));
    const float x = ldexpf(1.0f + (float)(draw() & 0xffff) / 65536.0f, size);
    const uint32_t kind = draw() % (r == ZEROS ? 3 : 16);
    return kind == 0 ? 0.0f : kind == 1 ? -0.0f : kind % 2 ? -x : x;
}

/* An input; its numbers depend on the seed alone. */
static const void *draw_input(size_t count, range r, pl_storage storage)
{
    float *x = fenced_make(count, marked_nan(0xf), 0);
    for (size_t i = 0; i < count; i++)
        x[i] = draw_value(r);
    return stored_input(x, count, storage);
}

/* An output that is read first, of float32. */
static float *draw_state(size_t count, range r, int of_products)
{
    float *x = fenced_make(count, 3e30f, 0);
    for (size_t i = 0; i < count; i++) {
        x[i] = draw_value(r);
        if (of_products)
            x[i] = pl_sum_start(x[i]);
    }
    return x;
}

static pl_storage draw_storage(void)
{
    return storages[draw() % STORAGES];
}

static pl_dropout draw_dropout(void)
{
    return (pl_dropout){ .threshold = draw() % 2 ? 1u << 30 : 0,
                         .scale = 4.0f / 3.0f,
                         .seed = draw(),
                         .step = 3,
                         .sequence = 2 };
}

/* ---- ops: each draws its arguments, runs, and hands over its outputs ---- */

typedef void random_op(const pl_kernels *set, outcome *out);

static pl_epilogue draw_epilogue(pl_gemm *g, range r)
{
    const size_t count = g->M * g->c_row;
    pl_epilogue e = { .kind = (pl_epilogue_kind)(draw() % 4),
                      .gelu = (pl_gelu_kind)(draw() % 3),
                      .row = g->c_row,
                      .T = 1 + draw() % 9,
                      .position = draw() % 5 };
    if (e.kind == PL_EPILOGUE_RESIDUAL && g->c_storage != PL_STORE_F32)
        e.kind = PL_EPILOGUE_GELU_BWD;
    if (e.kind == PL_EPILOGUE_GELU && draw() % 2)
        e.y = stored_blank(count, e.y_storage = draw_storage());
    if (e.kind == PL_EPILOGUE_GELU_BWD)
        e.x = draw_input(count, r, e.x_storage = draw_storage());
    if (e.kind == PL_EPILOGUE_RESIDUAL) {
        e.x = draw_input(count, r, PL_STORE_F32);
        e.dropout = draw_dropout();
    }
    return e;
}

/* Three of four are bf16 products. */
static pl_gemm draw_gemm(range r)
{
    const int bf16 = draw() % 4 > 0, at = (int)(draw() % 2),
              bt = (int)(draw() % 2), deep = draw() % 8 == 0;
    pl_gemm g = { .M = draw() % 4 ? draw_size(120) : 1 + draw() % 2,
                  .N = draw_size(deep ? 40 : 150),
                  .K = r == ZEROS    ? draw() % 8 /* sums may stay -0 */
                       : draw() % 16 ? draw_size(deep ? 2600 : 700)
                                     : 0,
                  .start = (pl_gemm_start)(draw() % 3) };
    g.a_storage = bf16 ? (draw() % 2 ? PL_STORE_BF16 : PL_STORE_F32)
                       : draw_storage();
    g.b_storage = bf16 ? (draw() % 2 ? PL_STORE_BF16 : PL_STORE_F32)
                       : draw_storage();
    g.a_round = bf16 ? PL_STORE_BF16 : draw_storage();
    g.b_round = bf16 ? PL_STORE_BF16 : draw_storage();
    g.c_storage = g.start == PL_GEMM_KEEP ? PL_STORE_F32 : draw_storage();
    g.c_row = g.N + draw() % 3;
    const size_t a_row = (at ? g.M : g.K) + draw() % 3,
                 b_row = (bt ? g.K : g.N) + draw() % 3;
    g.a = draw_input((at ? g.K : g.M) * a_row, r, g.a_storage);
    g.b = draw_input((bt ? g.N : g.K) * b_row, r, g.b_storage);
    g.a_row = at ? 1 : a_row;
    g.a_col = at ? a_row : 1;
    g.b_row = bt ? 1 : b_row;
    g.b_col = bt ? b_row : 1;
    if (g.start == PL_GEMM_BIAS)
        g.bias = draw_input(g.N, r, PL_STORE_F32);
    g.c = g.start == PL_GEMM_KEEP
              ? (void *)draw_state(g.M * g.c_row, r, pl_gemm_is_bf16(&g))
              : stored_blank(g.M * g.c_row, g.c_storage);
    return g;
}

static void random_gemm(const pl_kernels *set, outcome *out)
{
    static const size_t rooms[] = { 0, 70000, 120000, 180000, 300000 };
    static float room[300000];
    const range r = (range)(draw() % RANGES);
    pl_gemm g = draw_gemm(r);
    g.epilogue = draw_epilogue(&g, r);
    g.scratch = room;
    g.scratch_floats = rooms[draw() % 5];
    const int threads = 1 + (int)(draw() % 3);
    RUN_OP(set, gemm, &g, threads);
    for (size_t m = 0; m < g.M; m++) {
        const size_t at = m * g.c_row;
        outcome_add_stored(out, pl_storage_at(g.c, at, g.c_storage), g.N,
                           g.c_storage);
        if (g.epilogue.y)
            outcome_add_stored(
                out, pl_storage_at(g.epilogue.y, at, g.epilogue.y_storage), g.N,
                g.epilogue.y_storage);
    }
}

static void random_column_sum(const pl_kernels *set, outcome *out)
{
    pl_column_sum a = { .rows = draw_size(60),
                        .C = draw_size(700),
                        .x_storage = draw_storage() };
    a.sum = draw_state(a.C, FINITE, 0);
    a.x = draw_input(a.rows * a.C, FINITE, a.x_storage);
    RUN_OP(set, column_sum, &a, 2);
    outcome_add(out, a.sum, a.C);
}

static void random_norms(const pl_kernels *set, outcome *out)
{
    pl_layernorm_bwd a = { .rows = draw_size(30),
                           .C = draw_size(700),
                           .accumulate = (int)(draw() % 2),
                           .dy_storage = draw_storage() };
    const size_t n = a.rows * a.C;
    a.dx = draw_state(n, FINITE, 0);
    a.dweight = draw_state(a.C, FINITE, 0);
    a.dbias = draw_state(a.C, FINITE, 0);
    a.dy = draw_input(n, FINITE, a.dy_storage);
    a.x = draw_input(n, FINITE, PL_STORE_F32);
    a.stats = draw_input(2 * a.rows, FINITE, PL_STORE_F32);
    a.weight = draw_input(a.C, FINITE, PL_STORE_F32);
    RUN_OP(set, layernorm_bwd, &a, 2);
    outcome_add(out, a.dx, n);
    outcome_add(out, a.dweight, a.C);
    outcome_add(out, a.dbias, a.C);
    const pl_rmsnorm_bwd b = { .dx = draw_state(n, FINITE, 0),
                               .dweight = draw_state(a.C, FINITE, 0),
                               .dy = a.dy,
                               .x = a.x,
                               .rstd = a.stats,
                               .weight = a.weight,
                               .rows = a.rows,
                               .C = a.C,
                               .accumulate = a.accumulate,
                               .dy_storage = a.dy_storage };
    RUN_OP(set, rmsnorm_bwd, &b, 2);
    outcome_add(out, b.dx, n);
    outcome_add(out, b.dweight, a.C);
}

static void random_outputs(const pl_kernels *set, outcome *out)
{
    const size_t rows = draw_size(30), C = draw_size(700), n = rows * C;
    const pl_storage s = draw_storage(), t = draw_storage();
    const float *x = draw_input(n, ANY, PL_STORE_F32),
                *weight = draw_input(C, FINITE, PL_STORE_F32);
    const pl_drop drop = { .y = stored_blank(n, s),
                           .x = x,
                           .rows = rows,
                           .T = 7,
                           .C = C,
                           .dropout = draw_dropout(),
                           .y_storage = s };
    const pl_gelu gelu = { .y = stored_blank(n, s),
                           .x = stored_input(x, n, t),
                           .count = n,
                           .kind = (pl_gelu_kind)(draw() % 3),
                           .y_storage = s,
                           .x_storage = t };
    const pl_layernorm norm = { .y = stored_blank(n, s),
                                .stats = fenced_blank(2 * rows),
                                .x = draw_input(n, FINITE, PL_STORE_F32),
                                .weight = weight,
                                .rows = rows,
                                .C = C,
                                .eps = 1e-5f,
                                .y_storage = s };
    RUN_OP(set, drop, &drop, 2);
    RUN_OP(set, gelu, &gelu, 2);
    RUN_OP(set, layernorm, &norm, 2);
    outcome_add_stored(out, drop.y, n, s);
    outcome_add_stored(out, gelu.y, n, s);
    outcome_add_stored(out, norm.y, n, s);
}

static void random_cross_entropy(const pl_kernels *set, outcome *out)
{
    enum { ROWS = 9 };
    static const int32_t tokens[ROWS + 1] = { 0 };
    const size_t V = draw_size(1500);
    const pl_storage s = draw_storage();
    const float spread = draw() % 2 ? 4 : 90;
    void *logits = stored_blank(ROWS * V, s);
    for (size_t i = 0; i < ROWS * V; i++)
        pl_storage_put(logits, i, random_value(&seed) * spread, s);
    const pl_cross_entropy a = { .logits = logits,
                                 .loss = fenced_blank(ROWS),
                                 .tokens = tokens,
                                 .token_stride = ROWS + 1,
                                 .rows = ROWS,
                                 .T = ROWS,
                                 .V = V,
                                 .scale = ldexpf(1, (int)(draw() % 40) - 30),
                                 .cap = draw() % 2 ? 0.0f : 7.5f,
                                 .storage = s };
    RUN_OP(set, cross_entropy, &a, 2);
    outcome_add(out, a.loss, ROWS);
    outcome_add_stored(out, logits, ROWS * V, s);
}

/* The heads of queries and keys: normed, rotated or both, forward and back. */
static void random_heads(const pl_kernels *set, outcome *out)
{
    enum { T = 7, H = 4, KV = 2, HEADS = H + KV };
    const size_t rows = T * (draw() % 9), half = draw_size(70), D = 2 * half,
                 n = rows * (HEADS + KV) * D;
    const int normed = draw() % 3 > 0, rotated = !normed || draw() % 2;
    const pl_storage s = draw_storage();
    const float *weight = normed ? draw_input(D, FINITE, PL_STORE_F32) : NULL,
                *table = rotated ? draw_input(2 * T * D, FINITE, PL_STORE_F32)
                                 : NULL;
    const pl_qk a = { .y = stored_blank(n, s),
                      .x = draw_input(n, FINITE, s),
                      .rstd = normed ? fenced_blank(rows * HEADS) : NULL,
                      .q_weight = weight,
                      .k_weight = weight,
                      .table = table,
                      .rows = rows,
                      .T = T,
                      .H = H,
                      .KV = KV,
                      .D = D,
                      .position = draw() % T,
                      .eps = 1e-6f,
                      .storage = s };
    const pl_qk_bwd b = { .d = stored_blank(n, s),
                          .x = normed ? a.x : NULL,
                          .rstd = a.rstd,
                          .q_weight = weight,
                          .k_weight = weight,
                          .table = table,
                          .rows = rows,
                          .T = T,
                          .H = H,
                          .KV = KV,
                          .D = D,
                          .d_storage = s,
                          .x_storage = s };
    const pl_qk_dw w = { .dq_weight = draw_state(D, FINITE, 0),
                         .dk_weight = draw_state(D, FINITE, 0),
                         .d = b.d,
                         .x = b.x,
                         .rstd = b.rstd,
                         .table = table,
                         .rows = rows,
                         .T = T,
                         .H = H,
                         .KV = KV,
                         .D = D,
                         .d_storage = s,
                         .x_storage = s };
    for (size_t i = 0; i < n; i++)
        pl_storage_put(b.d, i, draw_value(FINITE), s);
    RUN_OP(set, qk, &a, 2);
    if (normed)
        RUN_OP(set, qk_dw, &w, 2);
    RUN_OP(set, qk_bwd, &b, 2);
    outcome_add_stored(out, a.y, n, s);
    outcome_add_stored(out, b.d, n, s);
    outcome_add(out, w.dq_weight, D);
    outcome_add(out, w.dk_weight, D);
}

static void random_glu(const pl_kernels *set, outcome *out)
{
    const size_t rows = draw_size(20), F = draw_size(1200), n = rows * F;
    const pl_storage s = draw_storage(), t = draw_storage();
    const pl_glu a = { .y = stored_blank(n, s),
                       .x = draw_input(2 * n, ANY, t),
                       .rows = rows,
                       .F = F,
                       .y_storage = s,
                       .x_storage = t };
    const pl_glu_bwd b = { .x = stored_blank(2 * n, t),
                           .dy = draw_input(n, ANY, s),
                           .rows = rows,
                           .F = F,
                           .x_storage = t,
                           .dy_storage = s };
    for (size_t i = 0; i < 2 * n; i++)
        pl_storage_put(b.x, i, draw_value(ANY), t);
    RUN_OP(set, glu, &a, 2);
    RUN_OP(set, glu_bwd, &b, 2);
    outcome_add_stored(out, a.y, n, s);
    outcome_add_stored(out, b.x, 2 * n, t);
}

/* The storages of qkv, out, dout and dqkv: training's, most often. */
static void draw_storages(pl_storage s[4])
{
    const pl_storage all = draw() % 2 ? PL_STORE_BF16 : draw_storage();
    const int alike = draw() % 4 > 0;
    for (int i = 0; i < 4; i++)
        s[i] = alike ? all : draw_storage();
}

/* Training's form, forward and back, and one of a window that goes on. */
static void random_attention(const pl_kernels *set, outcome *out)
{
    const range r = (range[]){ TINY, ZEROS, SMALL }[draw() % 3];
    const size_t B = 1 + draw() % 2, KV = 1 + draw() % 3,
                 H = KV * (1 + draw() % 2), D = draw_size(80),
                 T = draw_size(150), row = (H + 2 * KV) * D, C = H * D,
                 queries = 1 + draw() % T, threads = 1 + draw() % 3;
    pl_storage s[4];
    draw_storages(s);
    const void *qkv = draw_input(B * T * row, r, s[0]);
    pl_attention a = { .out = stored_blank(B * T * C, s[1]),
                       .lse = fenced_blank(B * H * T),
                       .q = qkv,
                       .k = pl_storage_at(qkv, C, s[0]),
                       .v = pl_storage_at(qkv, C + KV * D, s[0]),
                       .q_row = row,
                       .kv_row = row,
                       .B = B,
                       .queries = T,
                       .keys = T,
                       .H = H,
                       .KV = KV,
                       .D = D,
                       .dropout = draw_dropout(),
                       .scratch = fenced_blank(threads *
                                               pl_attention_scratch(T, D)),
                       .qkv_storage = s[0],
                       .out_storage = s[1] };
    pl_attention later = a;
    later.out = stored_blank(B * queries * C, s[1]);
    later.lse = NULL;
    later.q = draw_input(B * queries * row, r, s[0]);
    later.queries = queries;
    later.first = draw() % (T - queries + 1);
    const pl_attention_bwd b = {
        .dqkv = stored_blank(B * T * row, s[3]),
        .dout = draw_input(B * T * C, r, s[2]),
        .qkv = qkv,
        .out = a.out,
        .lse = a.lse,
        .B = B,
        .T = T,
        .H = H,
        .KV = KV,
        .D = D,
        .dropout = a.dropout,
        .scratch = fenced_blank(threads * pl_attention_bwd_scratch(T, D, s[3])),
        .qkv_storage = s[0],
        .out_storage = s[1],
        .dout_storage = s[2],
        .dqkv_storage = s[3]
    };
    RUN_OP(set, attention, &a, (int)threads);
    RUN_OP(set, attention, &later, (int)threads);
    RUN_OP(set, attention_bwd, &b, (int)threads);
    outcome_add_stored(out, a.out, B * T * C, s[1]);
    outcome_add(out, a.lse, B * H * T);
    outcome_add_stored(out, later.out, B * queries * C, s[1]);
    outcome_add_stored(out, b.dqkv, B * T * row, s[3]);
}

/* A token's gradients are added to what a product carries on from. */
static void random_embed_bwd(const pl_kernels *set, outcome *out)
{
    enum { ROWS = 40, TOKENS = 9 };
    static int32_t tokens[ROWS + 1];
    const range r = (range)(draw() % RANGES);
    for (int i = 0; i <= ROWS; i++)
        tokens[i] = (int32_t)(draw() % TOKENS);
    pl_embed_bwd a = { .tokens = tokens,
                       .token_stride = ROWS + 1,
                       .rows = ROWS,
                       .T = ROWS,
                       .C = draw_size(200),
                       .dropout = draw_dropout() };
    a.dwte = draw_state(TOKENS * a.C, r, 1);
    a.dwpe = draw_state(ROWS * a.C, r, 0);
    a.dx = draw_input(ROWS * a.C, r, PL_STORE_F32);
    RUN_OP(set, embed_bwd, &a, 3);
    outcome_add(out, a.dwte, TOKENS * a.C);
    outcome_add(out, a.dwpe, ROWS * a.C);
}

static void random_softcap(const pl_kernels *set, outcome *out)
{
    const size_t count = draw_size(3000);
    const pl_softcap a = { .x = draw_state(count, ANY, 0),
                           .count = count,
                           .cap = 30 };
    RUN_OP(set, softcap, &a, 2);
    outcome_add(out, a.x, count);
}

/* ---- the comparison ---- */

static int same_number(double a, double b)
{
    return isnan(a) ? isnan(b) : same_bits(a, b);
}

static void expect_one_result(const char *what, random_op *run, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        outcome first = { 0 };
        const char *name = NULL;
        pl_arithmetic number = PL_ARITHMETIC_UNSAID;
        for (int isa = PL_ISA_BASE + 1; isa <= (int)pl_cpu_isa(); isa++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            outcome o = { 0 };
            seed = (uint32_t)round * 7919u + 17u;
            run(&set, &o);
            fenced_release();
            if (!name) {
                first = o;
                name = set.name;
                number = set.arithmetic;
                continue;
            }
            assert_int_equal(set.arithmetic, number);
            assert_int_equal(o.count, first.count);
            for (size_t i = 0; i < o.count; i++)
                if (!same_number(o.values[i], first.values[i]))
                    fail_msg("%s, round %d: element %zu is %a by %s, %a by %s",
                             what, round, i, o.values[i], set.name,
                             first.values[i], name);
            free(o.values);
        }
        free(first.values);
    }
}

static void products_are_the_same_on_every_set(void **state)
{
    (void)state;
    expect_one_result("gemm", random_gemm, 1500);
}

static void attention_is_the_same_on_every_set(void **state)
{
    (void)state;
    expect_one_result("attention", random_attention, 150);
}

static void other_ops_are_the_same_on_every_set(void **state)
{
    (void)state;
    expect_one_result("column_sum", random_column_sum, 60);
    expect_one_result("norms", random_norms, 60);
    expect_one_result("outputs", random_outputs, 60);
    expect_one_result("cross_entropy", random_cross_entropy, 60);
    expect_one_result("qk", random_heads, 60);
    expect_one_result("glu", random_glu, 60);
    expect_one_result("embed_bwd", random_embed_bwd, 60);
    expect_one_result("softcap", random_softcap, 20);
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    expect_one_result("gemm", random_gemm, 300);
    expect_one_result("attention", random_attention, 20);
    expect_one_result("norms", random_norms, 20);
    expect_one_result("cross_entropy", random_cross_entropy, 20);
    expect_one_result("qk", random_heads, 20);
    expect_one_result("glu", random_glu, 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_the_same_on_every_set),
        cmocka_unit_test(attention_is_the_same_on_every_set),
        cmocka_unit_test(other_ops_are_the_same_on_every_set),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
