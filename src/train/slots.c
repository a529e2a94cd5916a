/* slots.c: see slots.h. */
#include "train/slots.h"
#include "base/check.h"

pl_slots pl_slots_make(pl_session *session)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    PL_CHECK(layout->purpose == PL_PURPOSE_SERVING);
    return (pl_slots){ .session = session,
                       .count = layout->slots,
                       .rows = layout->prefill,
                       .logits = layout->logit_rows,
                       .T = session->run.shape.T,
                       .V = session->run.shape.V };
}

static void check_round(const pl_slots *slots, const pl_slots_round *round)
{
    const size_t rows = round->sequences * round->queries;
    PL_CHECK(rows > 0 && rows <= slots->rows);
    PL_CHECK(round->slot + round->sequences <= slots->count);
    PL_CHECK(round->logits > 0 && round->logits <= rows &&
             round->logits <= slots->logits);
    for (size_t i = 0; i < round->sequences; i++)
        PL_CHECK(round->positions[i] >= 0 &&
                 (size_t)round->positions[i] + round->queries <= slots->T);
    for (size_t i = 0; i < rows; i++)
        PL_CHECK(round->tokens[i] >= 0 && (size_t)round->tokens[i] < slots->V);
}

pl_status pl_slots_run(pl_slots *slots, const pl_slots_round *round,
                       pl_error *err)
{
    pl_session *session = slots->session;
    const pl_gpt *gpt = &session->run.gpt;
    const size_t rows = round->sequences * round->queries;
    pl_run_end end = PL_RUN_DONE;
    check_round(slots, round);
    pl_status status = pl_device_write(session->run.device, gpt->serve_tokens,
                                       0, round->tokens,
                                       rows * sizeof *round->tokens, err);
    if (!status)
        status = pl_device_write(
            session->run.device, gpt->serve_positions, 0, round->positions,
            round->sequences * sizeof *round->positions, err);
    session->controls.micro_first = 0;
    session->controls.rows = (uint32_t)rows;
    session->controls.position = 0;
    session->controls.sequences = (uint32_t)round->sequences;
    session->controls.slot = (uint32_t)round->slot;
    session->controls.logits = (uint32_t)round->logits;
    if (!status)
        status = pl_session_run_watched(session, PL_SERVE, PL_PART_LOOP,
                                        slots->watch, &end, err);
    if (!status && end == PL_RUN_STOPPED)
        status = pl_fail(err, PL_E_STOPPED, "stopped");
    return status;
}

pl_status pl_slots_logits(pl_slots *slots, size_t row, float **logits,
                          pl_error *err)
{
    pl_session *session = slots->session;
    const pl_gpt *gpt = &session->run.gpt;
    const size_t bytes = slots->V * sizeof **logits;
    PL_CHECK(row < session->controls.logits);
    *logits = pl_device_host(session->run.device, gpt->serve_work);
    return pl_device_read(session->run.device, gpt->serve_logits, row * bytes,
                          *logits, bytes, err);
}
