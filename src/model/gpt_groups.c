/* gpt_groups.c: the sum of an update's groups.
 *
 * Groups are added pairwise, as a binary tree: 0 + 1, 2 + 3, ..., then those
 * sums. One machine has one group after the other, so it counts them in binary.
 * Digit d, where it is 1, is a sum of 2^d groups that is kept. A new group is
 * in the gradients. Counting it carries: as long as a digit is 1, its sum is
 * added to the gradients from the left, and it is 0 then. The first digit that
 * is 0 takes the gradients and leaves them zero for the next group. For the
 * last group there is none: the total stays where the update reads it.
 *
 * Several processes have as many consecutive groups each: these sums are what
 * they add then, pairwise again (train/ranks.c). */
#include "base/check.h"
#include "model/gpt_builder.h"

size_t pl_gpt_digits(size_t groups)
{
    size_t digits = 0;
    while (groups >> (digits + 1))
        digits++;
    return digits;
}

void pl_gpt_layout_share(pl_gpt_layout *layout, size_t ranks, size_t rank)
{
    PL_CHECK(ranks > 0 && rank < ranks && layout->groups % ranks == 0);
    layout->batches /= ranks;
    layout->groups /= ranks;
    layout->ranks = ranks;
    layout->rank = rank;
}

size_t pl_gpt_ranks(const pl_gpt_layout *layout)
{
    return layout->ranks ? layout->ranks : 1;
}

size_t pl_gpt_workers(const pl_gpt_layout *layout)
{
    return layout->sync_interval > 1 ? pl_gpt_ranks(layout) : 0;
}

pl_slice pl_gpt_own(const pl_gpt *gpt, size_t slot)
{
    const pl_slices *slices = &gpt->slices;
    if (pl_gpt_workers(&gpt->layout))
        return (pl_slice){ 0, slices->begins[slot + 1] - slices->begins[slot] };
    return pl_slices_at(slices, slot, gpt->layout.rank);
}

/* g = sums[digit] + g, or sums[digit] = g and g = 0. */
static void add_or_move(builder *b, pl_op op, int g, int sums,
                        const pl_buffer_id *kept)
{
    for (size_t i = 0; i < pl_param_slots(b->s); i++) {
        pl_param param = pl_param_at(b->s, i);
        if (b->gpt->gradients[i] == PL_NO_BUFFER)
            continue;
        pl_step *step = pl_build_step(b, op, param.layer);
        step->rows = param.rows * param.cols;
        pl_step_arg(step, g, b->gpt->gradients[i]);
        pl_step_arg(step, sums, kept[i]);
    }
}

void pl_build_groups(builder *b)
{
    const size_t slots = pl_param_slots(b->s),
                 digits = pl_gpt_digits(b->gpt->layout.groups);
    pl_graph *graph = b->graph;
    pl_buffer_id *kept;

    b->program = PL_ADD_GROUPS;
    if (digits == 0 || graph->status ||
        (graph->status = pl_heap_take(graph->heap, &kept, slots, sizeof *kept,
                                      &graph->error)))
        return;
    for (size_t i = 0; i < slots; i++) {
        pl_param param = pl_param_at(b->s, i);
        if (b->gpt->gradients[i] != PL_NO_BUFFER)
            kept[i] = pl_build_buffer(b, -1, pl_param_name_of(&param).text,
                                      PL_CLASS_GRADIENT, PL_F32,
                                      digits * param.rows, param.cols);
    }
    graph->programs[PL_ADD_GROUPS].loop_steps = SIZE_MAX;
    add_or_move(b, PL_OP_ADD, PL_ARG_ADD_G, PL_ARG_ADD_SUMS, kept);
    pl_graph_end_loop(graph, PL_ADD_GROUPS);
    add_or_move(b, PL_OP_MOVE, PL_ARG_MOVE_G, PL_ARG_MOVE_SUMS, kept);
}
