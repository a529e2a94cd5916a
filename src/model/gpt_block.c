/* gpt_block.c: a block's stages in their order, forward and backward, by the
 * tables of gpt_builder.h. Knows no stage by name. */
#include "base/check.h"
#include "kernels/kernels.h"
#include "model/gpt_builder.h"

/* A run of stages that ends in the residual stream. In chunks: rows are
 * independent of each other, so that what isn't kept exists for a part of them
 * at a time. */
typedef enum branch { BRANCH_ATTENTION, BRANCH_MLP, BRANCHES } branch;

static const struct {
    act in, out;
    unsigned site;
    const char *dy; /* the gradient behind its dropout */
    enum { ROWS_TOGETHER, ROWS_IN_CHUNKS } rows;
} branches[BRANCHES] = {
    [BRANCH_ATTENTION] = { ACT_X, ACT_MID, PL_DROP_ATTENTION_OUT, "att.dy",
                           ROWS_TOGETHER },
    [BRANCH_MLP] = { ACT_MID, ACT_OUT, PL_DROP_MLP_OUT, "mlp.dy",
                     ROWS_IN_CHUNKS },
};

static const struct {
    void (*forward)(builder *b, int layer, block *k);
    void (*backward)(builder *b, int layer, block *k, flow *g);
    branch branch;
    unsigned reads, levels, needs;
    const char *gradient;
    pl_dim dim;
} stages[STAGES] = {
#define BIT(id)   (1u << STAGE_##id)
#define AT(level) (1u << (level))
#define STAGE_ROW(id, name, branch, reads, levels, needs, gradient, dim)       \
    [STAGE_##id] = { pl_build_##name, pl_build_##name##_backward,              \
                     BRANCH_##branch, reads,                                   \
                     levels,          needs,                                   \
                     gradient,        PL_DIM_##dim },
    PL_STAGE_TABLE(STAGE_ROW)
#undef STAGE_ROW
#undef AT
#undef BIT
};

enum { IS_F32, IS_DTYPE };

static const struct {
    const char *name;
    stage from;
    int storage;
    pl_dim dim;
} acts[ACT_X] = {
#define ACT_ROW(id, name, stage, storage, dim)                                 \
    [ACT_##id] = { name, STAGE_##stage, IS_##storage, PL_DIM_##dim },
    PL_ACT_TABLE(ACT_ROW)
#undef ACT_ROW
};

unsigned pl_build_keeps(unsigned level)
{
    unsigned keeps = 0;
    for (unsigned i = 0; i < STAGES; i++)
        keeps |= (stages[i].levels >> level & 1) << i;
    return keeps;
}

pl_buffer_id pl_build_act(builder *b, int layer, block *k, act id)
{
    if (k->act[id] == PL_NO_BUFFER)
        k->act[id] = pl_build_activation(
            b, layer, acts[id].name, acts[id].from,
            acts[id].storage == IS_F32 ? PL_F32 : b->gpt->layout.dtype,
            pl_dim_size(b->s, acts[id].dim));
    return k->act[id];
}

pl_buffer_id pl_build_flow(builder *b, int layer, flow *g, stage id)
{
    PL_CHECK(stages[id].gradient != NULL);
    if (g->d[id] == PL_NO_BUFFER)
        g->d[id] = pl_build_buffer(b, layer, stages[id].gradient,
                                   PL_CLASS_TRANSIENT, b->gpt->layout.dtype,
                                   b->chunk ? b->chunk : b->rows,
                                   pl_dim_size(b->s, stages[id].dim));
    return g->d[id];
}

void pl_build_forget(block *k, unsigned keeps)
{
    k->have &= keeps;
    for (int i = 0; i < ACT_X; i++)
        if (!(keeps & 1u << acts[i].from))
            k->act[i] = PL_NO_BUFFER;
}

/* The output of a stage, and before it of those that it reads. */
static void make(builder *b, int layer, block *k, stage id)
{
    if (k->have & 1u << id)
        return;
    for (int i = 0; i < STAGES; i++)
        if (stages[id].reads & 1u << i)
            make(b, layer, k, (stage)i);
    stages[id].forward(b, layer, k);
    k->have |= 1u << id;
}

static unsigned stages_of(branch which)
{
    unsigned bits = 0;
    for (int i = 0; i < STAGES; i++)
        bits |= stages[i].branch == which ? 1u << i : 0;
    return bits;
}

/* ---- forward ---- */

static void forward(builder *b, int layer, block *k, branch which)
{
    const unsigned own = stages_of(which);
    if (branches[which].rows == ROWS_IN_CHUNKS) {
        pl_build_act(b, layer, k, branches[which].out); /* has all rows */
        if ((b->keeps & own) != own)
            pl_build_begin_chunks(b);
    }
    do {
        k->have &= ~own;
        for (int i = 0; i < STAGES; i++)
            if (own & 1u << i)
                make(b, layer, k, (stage)i);
    } while (pl_build_next_chunk(b));
}

pl_buffer_id pl_build_block(builder *b, int layer, pl_buffer_id x, block *k)
{
    *k = (block){ .have = 0 };
    pl_build_forget(k, 0);
    k->act[ACT_X] = x;
    for (int i = 0; i < BRANCHES; i++)
        forward(b, layer, k, (branch)i);
    return k->act[branches[BRANCHES - 1].out];
}

/* ---- backward ---- */

/* The gradient behind a dropped residual branch: dx itself without dropout. */
static pl_buffer_id behind_dropout(builder *b, int layer, branch which,
                                   pl_buffer_id dx)
{
    if (b->dropout <= 0.0)
        return dx;
    pl_buffer_id dy = pl_build_buffer(b, layer, branches[which].dy,
                                      PL_CLASS_TRANSIENT, b->gpt->layout.dtype,
                                      b->rows, b->s->C);
    pl_step *step = pl_build_dropped(b, PL_OP_DROP, layer,
                                     branches[which].site);
    step->cols = b->s->C;
    pl_step_arg(step, PL_ARG_DROP_Y, dy);
    pl_step_arg(step, PL_ARG_DROP_X, dx);
    return dy;
}

/* The branch's input, where no level kept it. Of what comes before it, stages
 * that read no other are given up at once: they are cheaper to compute again
 * than to hold. */
static void make_input(builder *b, int layer, block *k, branch which)
{
    const act in = branches[which].in;
    unsigned cheap = 0;
    if (in == ACT_X || k->have & 1u << acts[in].from)
        return;
    for (int i = 0; i < STAGES; i++)
        cheap |= stages[i].reads == 0 ? 1u << i & ~k->have : 0;
    make(b, layer, k, acts[in].from);
    pl_build_forget(k, ~cheap);
}

static void backward(builder *b, int layer, block *k, branch which, flow *g)
{
    const unsigned own = stages_of(which);
    make_input(b, layer, k, which);
    const pl_buffer_id dy = behind_dropout(b, layer, which, g->dx);
    const unsigned had = k->have;
    if (branches[which].rows == ROWS_IN_CHUNKS) {
        pl_build_begin_chunks(b);
        for (int i = STAGES; i-- > 0;) /* all chunks share them */
            if (own & 1u << i && stages[i].gradient)
                pl_build_flow(b, layer, g, (stage)i);
    }
    do {
        k->have = had;
        g->dy = dy;
        for (int i = STAGES; i-- > 0;) {
            if (!(own & 1u << i))
                continue;
            for (int j = 0; j < STAGES; j++)
                if (stages[i].needs & 1u << j)
                    make(b, layer, k, (stage)j);
            stages[i].backward(b, layer, k, g);
        }
    } while (pl_build_next_chunk(b));
}

void pl_build_block_backward(builder *b, int layer, block *k, pl_buffer_id dx)
{
    flow g = { .dx = dx };
    for (int i = 0; i < STAGES; i++)
        g.d[i] = PL_NO_BUFFER;
    b->keeps = 0;
    b->again = 1;
    for (int i = BRANCHES; i-- > 0;)
        backward(b, layer, k, (branch)i, &g);
    b->again = 0;
}
