/* gpu_launch_family.c: the ops of kernels/family.h, but softcap, which is with
 * the loss. */
#include "device/gpu_launch_parts.h"

/* ---- queries and keys ---- */

enum { CHAIN_COLUMNS = 8 }; /* of a group of qk_dw */

/* What a rotation mixes is so far apart; without a table, all of a head. */
static uint32_t span_of(const float *table, size_t D)
{
    return word(table ? D / 2 : D);
}

static uint32_t qk_vector(uint64_t a, pl_storage a_storage, uint64_t b,
                          pl_storage b_storage, uint32_t span)
{
    return span % 4 == 0 && a % (4 * pl_storage_bytes(a_storage)) == 0 &&
           b % (4 * pl_storage_bytes(b_storage)) == 0;
}

static int all_aligned(const float *q_weight, const float *k_weight,
                       const float *table)
{
    return is_aligned(q_weight, PL_STORE_F32, 0) &&
           is_aligned(k_weight, PL_STORE_F32, 0) &&
           is_aligned(table, PL_STORE_F32, 0);
}

/* Heads that are rotated and nothing else; values too where they are copied. */
static void launch_rotation(pl_gpu_stream *stream, const gpu_qk *g)
{
    const size_t heads = (size_t)g->H + g->KV + (g->y == g->x ? 0 : g->KV);
    launch(stream, PL_GPU_qk_rotate, g->rows,
           ceil_div(heads * ceil_div(g->span, 4), 256), g);
}

void pl_gpu_qk(pl_gpu_stream *stream, const pl_qk *args)
{
    const size_t all = args->H + 2 * args->KV;
    const uint32_t span = span_of(args->table, args->D);
    const gpu_qk g = {
        .y = address(args->y),
        .x = address(args->x),
        .rstd = address(args->rstd),
        .q_weight = address(args->q_weight),
        .k_weight = address(args->k_weight),
        .table = address(args->table),
        .positions = address(args->positions),
        .rows = word(args->rows),
        .T = word(args->T),
        .H = word(args->H),
        .KV = word(args->KV),
        .D = word(args->D),
        .span = span,
        .position = word(args->position),
        .storage = (uint32_t)args->storage,
        .vector = qk_vector(address(args->y), args->storage, address(args->x),
                            args->storage, span) &&
                  all_aligned(args->q_weight, args->k_weight, args->table),
        .eps = args->eps,
    };
    if (span == 0)
        return;
    if (args->q_weight)
        launch(stream, PL_GPU_qk_norm,
               ceil_div(word(args->rows * all), LANE_ROWS), 1, &g);
    else
        launch_rotation(stream, &g);
}

void pl_gpu_qk_bwd(pl_gpu_stream *stream, const pl_qk_bwd *args)
{
    const size_t heads = args->H + args->KV;
    const uint32_t span = span_of(args->table, args->D);
    const gpu_qk_bwd g = {
        .d = address(args->d),
        .x = address(args->x),
        .rstd = address(args->rstd),
        .q_weight = address(args->q_weight),
        .k_weight = address(args->k_weight),
        .table = address(args->table),
        .rows = word(args->rows),
        .T = word(args->T),
        .H = word(args->H),
        .KV = word(args->KV),
        .D = word(args->D),
        .span = span,
        .d_storage = (uint32_t)args->d_storage,
        .x_storage = (uint32_t)args->x_storage,
        .vector = qk_vector(address(args->d), args->d_storage, address(args->x),
                            args->x_storage, span) &&
                  all_aligned(args->q_weight, args->k_weight, args->table),
    };
    const gpu_qk rotation = { .y = g.d,
                              .x = g.d,
                              .table = g.table,
                              .rows = g.rows,
                              .T = g.T,
                              .H = g.H,
                              .KV = g.KV,
                              .D = g.D,
                              .span = span,
                              .storage = g.d_storage,
                              .vector = g.vector,
                              .back = 1 };
    if (span == 0)
        return;
    if (args->q_weight)
        launch(stream, PL_GPU_qk_dx,
               ceil_div(word(args->rows * heads), LANE_ROWS), 1, &g);
    else
        launch_rotation(stream, &rotation);
}

void pl_gpu_qk_dw(pl_gpu_stream *stream, const pl_qk_dw *args)
{
    const uint32_t span = span_of(args->table, args->D);
    const gpu_qk_bwd g = {
        .d = address(args->d),
        .x = address(args->x),
        .rstd = address(args->rstd),
        .table = address(args->table),
        .dq_weight = address(args->dq_weight),
        .dk_weight = address(args->dk_weight),
        .rows = word(args->rows),
        .T = word(args->T),
        .H = word(args->H),
        .KV = word(args->KV),
        .D = word(args->D),
        .span = span,
        .d_storage = (uint32_t)args->d_storage,
        .x_storage = (uint32_t)args->x_storage,
        .vector = qk_vector(address(args->d), args->d_storage, address(args->x),
                            args->x_storage, span) &&
                  is_aligned(args->table, PL_STORE_F32, 0),
    };
    (void)word(args->rows * (args->H + args->KV));
    if (args->rows)
        launch(stream, PL_GPU_qk_dw, ceil_div(args->D, CHAIN_COLUMNS), 2, &g);
}

/* ---- SwiGLU ---- */

enum { GLU_COLUMNS = 1024 };

void pl_gpu_glu(pl_gpu_stream *stream, const pl_glu *args)
{
    const gpu_glu g = { .y = address(args->y),
                        .x = address(args->x),
                        .rows = word(args->rows),
                        .F = word(args->F),
                        .y_storage = (uint32_t)args->y_storage,
                        .x_storage = (uint32_t)args->x_storage,
                        .vector = is_aligned(args->y, args->y_storage,
                                             args->F) &&
                                  is_aligned(args->x, args->x_storage, 0) };
    launch(stream, PL_GPU_glu, args->rows, ceil_div(args->F, GLU_COLUMNS), &g);
}

void pl_gpu_glu_bwd(pl_gpu_stream *stream, const pl_glu_bwd *args)
{
    const gpu_glu g = { .dy = address(args->dy),
                        .x = address(args->x),
                        .rows = word(args->rows),
                        .F = word(args->F),
                        .dy_storage = (uint32_t)args->dy_storage,
                        .x_storage = (uint32_t)args->x_storage,
                        .vector = is_aligned(args->dy, args->dy_storage,
                                             args->F) &&
                                  is_aligned(args->x, args->x_storage, 0) };
    launch(stream, PL_GPU_glu_bwd, args->rows, ceil_div(args->F, GLU_COLUMNS),
           &g);
}
