/* diloco.c: see diloco.h. */
#include "train/diloco.h"

double pl_diloco_own_loss(const pl_session *session, double all)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t own = layout->batch * layout->batches;
    double sum = 0.0;
    if (!session->losses)
        return all;
    for (size_t i = 0; i < own; i++)
        sum += session->losses[layout->rank * own + i];
    return sum;
}

pl_status pl_diloco_any_skipped(pl_session *session, uint32_t *skipped,
                                pl_error *err)
{
    int any = *skipped != 0;
    if (!session->ranks.comm)
        return PL_OK;
    pl_status status = pl_comm_any(session->ranks.comm, &any, err);
    *skipped = (uint32_t)any;
    return status;
}

pl_status pl_diloco_sync(pl_session *session, pl_error *err)
{
    const pl_config *config = session->run.config;
    pl_controls *controls = &session->controls;
    pl_ranks *ranks = &session->ranks;
    controls->outer_rate = config->outer_learning_rate;
    controls->outer_momentum = config->outer_momentum;
    controls->outer_share = 1.0 /
                            (double)pl_gpt_workers(&session->run.gpt.layout);
    pl_status status = pl_session_run(session, PL_SYNC, PL_PART_LOOP, err);
    if (!status && ranks->comm) {
        pl_ranks_begin_gradients(ranks, 0);
        status = pl_ranks_add_gradients(ranks, err);
    }
    if (!status)
        status = pl_session_run(session, PL_SYNC, PL_PART_REST, err);
    if (!status && ranks->comm)
        status = pl_ranks_share_weights(ranks, err);
    return status;
}
