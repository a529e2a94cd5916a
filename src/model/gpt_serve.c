/* gpt_serve.c: the program that decodes and scores several sequences.
 *
 * Each sequence has a slot of the cache. A round has the rows of as many
 * sequences as the controls say: one new token of each, or a part of one
 * prompt. Logits are those of its last rows: of every sequence's token, of the
 * part's last token, or of all its tokens where a text is scored. No sum
 * crosses from sequence to sequence, so that each has the bits that it has
 * alone (kernels.h). */
#include "model/gpt_builder.h"

/* Keys of all slots, then their values. */
static void make_caches(builder *b)
{
    const size_t rows = 2 * b->gpt->layout.slots * b->T;
    if (!b->graph->status)
        b->graph->status = pl_heap_take(b->graph->heap, &b->cache, b->s->L,
                                        sizeof *b->cache, &b->graph->error);
    for (size_t l = 0; l < b->s->L && !b->graph->status; l++)
        b->cache[l] = pl_build_buffer(b, (int)l, "cache", PL_CLASS_CACHE,
                                      b->gpt->layout.dtype, rows,
                                      pl_dim_size(b->s, PL_DIM_KV));
}

/* What the host writes before a round, and reads after it. */
static void make_ends(builder *b)
{
    pl_gpt *gpt = b->gpt;
    gpt->serve_tokens = pl_build_buffer(b, -1, "tokens", PL_CLASS_TOKENS,
                                        PL_I32, b->rows, 1);
    pl_graph_host(b->graph, gpt->serve_tokens, PL_HOST_WRITES);
    gpt->serve_positions = pl_build_buffer(b, -1, "positions", PL_CLASS_TOKENS,
                                           PL_I32, gpt->layout.slots, 1);
    pl_graph_host(b->graph, gpt->serve_positions, PL_HOST_WRITES);
    gpt->serve_work = pl_build_buffer(b, -1, "work", PL_CLASS_TRANSIENT, PL_F32,
                                      1, b->s->V);
    pl_graph_host(b->graph, gpt->serve_work, PL_HOST_READS);
    pl_graph_in_host(b->graph, gpt->serve_work);
    gpt->serve_logits = pl_build_buffer(b, -1, "logits", PL_CLASS_TRANSIENT,
                                        PL_F32, gpt->layout.logit_rows,
                                        b->s->V);
    pl_graph_host(b->graph, gpt->serve_logits, PL_HOST_READS);
    b->positions = gpt->serve_positions;
}

void pl_build_serve(builder *b)
{
    pl_gpt *gpt = b->gpt;
    pl_buffer_id stats;
    block k;

    b->program = PL_SERVE;
    b->T = b->s->T;
    b->rows = gpt->layout.prefill;
    b->graph->programs[PL_SERVE].loop_steps = SIZE_MAX;
    make_caches(b);
    make_ends(b);
    if (b->graph->status)
        return;
    b->flags = PL_STEP_RUN_ROWS;
    pl_buffer_id x = pl_build_embed(b, gpt->serve_tokens);
    for (size_t l = 0; l < b->s->L; l++)
        x = pl_build_block(b, (int)l, x, &k);
    b->flags = PL_STEP_LOGIT_ROWS;
    b->rows = gpt->layout.logit_rows;
    pl_buffer_id lnf = pl_build_lnf(b, x, b->rows, &stats);
    pl_step *step = pl_build_step(b, PL_OP_MATMUL_T, -1);
    step->cols = b->s->V;
    step->inner = b->s->C;
    pl_step_arg(step, PL_ARG_MATMUL_T_Y, gpt->serve_logits);
    pl_step_arg(step, PL_ARG_MATMUL_T_X, lnf);
    pl_step_arg(step, PL_ARG_MATMUL_T_W,
                pl_build_operand(b, pl_param_head(b->s), -1));
    pl_build_product_scratch(b, -1, step, PL_ARG_MATMUL_T_SCRATCH, lnf);
    pl_build_softcap(b, gpt->serve_logits);
    /* row by row, by the host */
    step = pl_build_step(b, PL_OP_FETCH, -1);
    pl_step_arg(step, PL_ARG_FETCH_TO, gpt->serve_work);
    pl_step_arg(step, PL_ARG_FETCH_FROM, gpt->serve_logits);
    pl_graph_end_loop(b->graph, PL_SERVE);
    b->cache = NULL;
}
