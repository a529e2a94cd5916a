/* gpu_launch_gemm.c: the products of gpu_launch.h. */
#include "device/gpu_launch_parts.h"

/* A product in launches of about 1e12 flops at most, so that a card that also
 * has a screen is never busy for longer than its watchdog allows. */
static void launch_product(pl_gpu_stream *stream, pl_gpu_kernel kernel,
                           size_t columns, size_t tile, gpu_gemm *g)
{
    const double flops = 2.0 * (double)tile * (double)g->N * (double)g->K;
    const size_t all = ceil_div(g->M, tile);
    size_t some = flops < 1e12 ? (size_t)(1e12 / (flops + 1.0)) : 1;
    if (some > 32768)
        some = 32768;
    for (size_t at = 0; at < all; at += some) {
        g->first_tile = (uint32_t)at;
        launch(stream, kernel, columns, all - at < some ? all - at : some, g);
    }
}

enum {
    TILE = 128,     /* of the fast kernels */
    SMALL = 64,     /* of those for any shape */
    THIN = 16,      /* rows of those for few */
    PANEL = 32,     /* k must be a multiple */
    FAST_FROM = 48, /* rows and columns: below, a tile would be mostly empty */
};

size_t pl_gpu_gemm_scratch(size_t M, size_t N, size_t K)
{
    if (M < FAST_FROM || N < FAST_FROM || K % PANEL)
        return 0;
    return (M < N ? M : N) * K * sizeof(float);
}

static gpu_gemm gemm_args(const pl_gemm *a)
{
    const pl_epilogue *e = &a->epilogue;
    gpu_gemm g = { .a = address(a->a),
                   .b = address(a->b),
                   .c = address(a->c),
                   .bias = address(a->bias),
                   .x = address(e->x),
                   .y = address(e->y),
                   .M = word(a->M),
                   .N = word(a->N),
                   .K = word(a->K),
                   .a_ld = word(a->a_col == 1 ? a->a_row : a->a_col),
                   .b_ld = word(a->b_col == 1 ? a->b_row : a->b_col),
                   .c_row = word(a->c_row),
                   .start = (uint32_t)a->start,
                   .epilogue = (uint32_t)e->kind,
                   .gelu = (uint32_t)e->gelu,
                   .row = word(e->row),
                   .T = word(e->T),
                   .position = word(e->position),
                   .a_storage = (uint32_t)a->a_storage,
                   .a_round = (uint32_t)a->a_round,
                   .b_storage = (uint32_t)a->b_storage,
                   .b_round = (uint32_t)a->b_round,
                   .c_storage = (uint32_t)a->c_storage,
                   .x_storage = (uint32_t)e->x_storage,
                   .y_storage = (uint32_t)e->y_storage,
                   .flush = (uint32_t)pl_gemm_is_bf16(a),
                   .dropout = dropout_of(&e->dropout) };
    int beside = 1;
    if (e->kind != PL_EPILOGUE_NONE)
        beside = is_aligned(e->x, e->x_storage, e->row) &&
                 is_aligned(e->y, e->y_storage, e->row);
    if (is_aligned(a->a, a->a_storage, g.a_ld))
        g.vector |= GPU_VECTOR_A;
    if (is_aligned(a->b, a->b_storage, g.b_ld))
        g.vector |= GPU_VECTOR_B;
    if (beside && is_aligned(a->c, a->c_storage, a->c_row))
        g.vector |= GPU_VECTOR_C;
    return g;
}

/* b, or a, transposed in the product's scratch, as [K, lines]. */
static void transpose(pl_gpu_stream *stream, const pl_gemm *a, const void *from,
                      uint32_t lines, uint32_t ld, pl_storage storage)
{
    const gpu_transpose t = { .y = address(a->scratch),
                              .x = address(from),
                              .rows = lines,
                              .columns = word(a->K),
                              .ld = ld,
                              .bytes = (uint32_t)pl_storage_bytes(storage) };
    launch(stream, PL_GPU_transpose, ceil_div(t.columns, 32),
           ceil_div(t.rows, 32), &t);
}

typedef enum gemm_form { NN, NT, TN, TT } gemm_form;

static gemm_form form_of(const pl_gemm *a)
{
    if (a->a_col != 1)
        return a->b_col == 1 ? TN : TT;
    return a->b_col == 1 ? NN : NT;
}

/* Whether the fast kernels can: they read in fours, and whole panels. */
static int is_fast(const pl_gemm *a, const gpu_gemm *g, gemm_form form)
{
    const uint32_t both = GPU_VECTOR_A | GPU_VECTOR_B;
    if (form == TT || a->M < FAST_FROM || a->N < FAST_FROM || a->K == 0 ||
        (g->vector & both) != both)
        return 0;
    switch (form) {
    case NN:
        return a->K % PANEL == 0 && a->N % 4 == 0;
    case TN:
        return a->K % 16 == 0 && a->M % 4 == 0 && a->N % 4 == 0;
    default:
        return a->K % PANEL == 0 && a->M % 4 == 0 && a->N % 4 == 0 &&
               a->scratch_floats * sizeof(float) >=
                   pl_gpu_gemm_scratch(a->M, a->N, a->K);
    }
}

static void launch_fast(pl_gpu_stream *stream, const pl_gemm *a, gpu_gemm *g,
                        gemm_form form)
{
    static const pl_gpu_kernel kernels[][2] = {
        [NN] = { PL_GPU_gemm_nn_stored, PL_GPU_gemm_nn },
        [NT] = { PL_GPU_gemm_tt_stored, PL_GPU_gemm_tt },
        [TN] = { PL_GPU_gemm_tn_stored, PL_GPU_gemm_tn },
    };
    const int plain = !a->a_storage && !a->a_round && !a->b_storage &&
                      !a->b_round;
    if (form == NT && a->M <= a->N) {
        transpose(stream, a, a->a, g->M, g->a_ld, a->a_storage);
        g->a = address(a->scratch);
        g->a_ld = g->M;
    } else if (form == NT) {
        transpose(stream, a, a->b, g->N, g->b_ld, a->b_storage);
        g->b = address(a->scratch);
        g->b_ld = g->N;
        form = NN;
    }
    launch_product(stream, kernels[form][plain], ceil_div(a->N, TILE), TILE, g);
}

/* ---- by tensor cores ---- */

size_t pl_gpu_tensor_scratch(size_t elements, pl_storage storage)
{
    return storage == PL_STORE_F32 ? elements * sizeof(uint16_t) : 0;
}

/* One operand of a large product: `lines` lines of K, as its memory has them.
 */
typedef struct tensor_operand {
    uint64_t *at;
    uint32_t *ld, *storage;
    uint32_t lines, round;
    int by_k;
} tensor_operand;

/* Whether blocks of 8 can be read of it, once it has 16 bits. */
static int is_in_blocks(const tensor_operand *o, uint32_t K)
{
    const uint32_t length = o->by_k ? K : o->lines;
    if (*o->storage == PL_STORE_F32)
        return *o->at % 16 == 0 && *o->ld % 4 == 0 && length % 8 == 0;
    return *o->at % 16 == 0 && *o->ld % 8 == 0 && length % 8 == 0;
}

/* A float32 operand, rounded at `room`, which moves on. */
static void round_operand(pl_gpu_stream *stream, tensor_operand *o, uint32_t K,
                          uint64_t *room)
{
    const gpu_round g = { .y = *room,
                          .x = *o->at,
                          .rows = o->by_k ? o->lines : K,
                          .C = o->by_k ? K : o->lines,
                          .ld = *o->ld,
                          .storage = o->round };
    if (*o->storage != PL_STORE_F32)
        return;
    launch(stream, PL_GPU_round_copy, ceil_div(g.rows * g.C, 1024), 1, &g);
    *o->at = g.y;
    *o->ld = g.C;
    *o->storage = o->round;
    *room += g.rows * g.C * sizeof(uint16_t);
}

static void launch_tensor(pl_gpu_stream *stream, const pl_gemm *a)
{
    static const pl_gpu_kernel large[] = { [NN] = PL_GPU_tensor_nn,
                                           [NT] = PL_GPU_tensor_nt,
                                           [TN] = PL_GPU_tensor_tn,
                                           [TT] = PL_GPU_tensor_tt };
    const gemm_form form = form_of(a);
    gpu_gemm g = gemm_args(a);
    tensor_operand x = { &g.a, &g.a_ld,   &g.a_storage,
                         g.M,  g.a_round, form == NN || form == NT },
                   y = { &g.b, &g.b_ld,   &g.b_storage,
                         g.N,  g.b_round, form == NT || form == TT };
    const size_t room = pl_gpu_tensor_scratch(a->M * a->K, a->a_storage) +
                        pl_gpu_tensor_scratch(a->K * a->N, a->b_storage);
    PL_CHECK(a->products == stream->tensor);
    g.by_k = (x.by_k ? GPU_BY_K_A : 0u) | (y.by_k ? GPU_BY_K_B : 0u);
    if (a->M >= FAST_FROM && a->N >= FAST_FROM && a->K > 0 &&
        is_in_blocks(&x, g.K) && is_in_blocks(&y, g.K) &&
        a->scratch_floats * sizeof(float) >= room) {
        uint64_t at = address(a->scratch);
        round_operand(stream, &x, g.K, &at);
        round_operand(stream, &y, g.K, &at);
        launch_product(stream, large[form], ceil_div(a->N, TILE), TILE, &g);
    } else if (a->M <= THIN && x.by_k) {
        launch(stream, PL_GPU_tensor_thin, ceil_div(a->N, SMALL), 1, &g);
    } else {
        launch_product(stream, PL_GPU_tensor_any, ceil_div(a->N, SMALL), SMALL,
                       &g);
    }
}

void pl_gpu_gemm(pl_gpu_stream *stream, const pl_gemm *args)
{
    static const pl_gpu_kernel any[] = { [NN] = PL_GPU_gemm_nn_any,
                                         [NT] = PL_GPU_gemm_nt_any,
                                         [TN] = PL_GPU_gemm_tn_any,
                                         [TT] = PL_GPU_gemm_tt_any };
    const gemm_form form = form_of(args);
    gpu_gemm g = gemm_args(args);
    if (pl_products_of(args->products, pl_gemm_a(args), pl_gemm_b(args)))
        launch_tensor(stream, args);
    else if (is_fast(args, &g, form))
        launch_fast(stream, args, &g, form);
    else if (args->M <= THIN && args->a_col == 1)
        launch(stream, form == NN ? PL_GPU_gemm_nn_thin : PL_GPU_gemm_nt_thin,
               ceil_div(args->N, 128), 1, &g);
    else
        launch_product(stream, any[form], ceil_div(args->N, SMALL), SMALL, &g);
}
