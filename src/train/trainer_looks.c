/* trainer_looks.c: see trainer_looks.h. */
#include "train/trainer_looks.h"
#include "model/cost.h"

#include <string.h>

static const pl_program_id profiled[] = { PL_TRAIN, PL_ADD_GROUPS,
                                          PL_UPDATE_WEIGHTS };

void pl_trainer_profile(pl_session *session, int on)
{
    for (int i = 0; i < 3; i++) {
        double *seconds = session->step_seconds[profiled[i]];
        memset(seconds, 0,
               session->run.gpt.graph.programs[profiled[i]].n_steps *
                   sizeof *seconds);
        pl_device_profile(session->run.device, profiled[i],
                          on ? seconds : NULL);
    }
}

void pl_trainer_look(pl_session *session, pl_looks *looks, const pl_load *from)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const double batches = (double)layout->batches,
                 rounds = batches * (double)(layout->batch / layout->micro),
                 carries = pl_cost_carries(&session->run.gpt);
    const pl_load to = pl_machine_load(&session->machine);
    pl_observed seen = { .least_seconds = 0.0 };
    pl_cost_observe(&seen, &session->run.gpt, PL_TRAIN,
                    session->step_seconds[PL_TRAIN], rounds, batches);
    pl_cost_observe(&seen, &session->run.gpt, PL_ADD_GROUPS,
                    session->step_seconds[PL_ADD_GROUPS], carries, carries);
    pl_cost_observe(&seen, &session->run.gpt, PL_UPDATE_WEIGHTS,
                    session->step_seconds[PL_UPDATE_WEIGHTS], 1.0, 1.0);
    pl_looks_add(looks, &seen, pl_load_quiet(from, &to));
}

/* A cache that can't be written is not worth a word. */
void pl_trainer_learn(pl_session *session, const pl_looks *looks)
{
    pl_machine_learn(&session->machine, looks);
    pl_status kept = pl_machine_remember(&session->machine, session->run.text,
                                         PL_RUN_TEXT_BYTES, NULL);
    (void)kept;
}
