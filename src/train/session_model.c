/* session_model.c: sessions that need a model and nothing else of a run:
 * sampling and evaluation. */
#include "advise/runplan.h"
#include "base/units.h"
#include "store/checkpoint.h"
#include "store/pretrained.h"
#include "store/resume.h"
#include "store/vocabulary_check.h"
#include "train/session_rehearse.h"

#include <math.h>

/* ---- the model in a folder ---- */

typedef struct model {
    const char *folder;
    pl_shape shape;
    uint64_t step;
    pl_pretrained weights;
} model;

/* A checkpoint says more of itself than config.json has room for. */
static pl_status read_model(model *m, const char *folder, pl_heap *heap,
                            pl_error *err)
{
    pl_checkpoint_state state;
    int is_ours = 0;
    *m = (model){ .folder = folder };
    pl_status status = pl_checkpoint_is(folder, &is_ours, err);
    if (!status && is_ours)
        status = pl_checkpoint_read_state(&state, folder, heap, err);
    if (!status && is_ours) {
        m->shape = state.shape;
        m->step = state.step;
    } else if (!status) {
        status = pl_pretrained_shape(&m->shape, folder, heap, err);
    }
    if (!status)
        status = pl_pretrained_open(&m->weights, folder, heap, err);
    return status;
}

/* Arena and reserve, with `more` bytes of tables than are there by now, and
 * what a service takes for its requests. */
static size_t needed_bytes(pl_session *session, size_t more)
{
    const pl_gpt *gpt = &session->run.gpt;
    const size_t tables = session->run.heap->taken_bytes + more;
    session->reserve_bytes = pl_run_plan_reserve(
        &session->run.shape, &gpt->layout, pl_run_plan_host_arena(gpt), tables);
    return pl_run_plan_total(&session->run.shape, &gpt->layout,
                             gpt->placement.arena_bytes, tables,
                             session->files_bytes);
}

static pl_status check_budget(pl_session *session, const pl_machine *machine,
                              const char *what, pl_error *err)
{
    size_t needed = needed_bytes(session, 0);
    if (needed <= machine->budget_bytes)
        return PL_OK;
    return pl_fail(err, PL_E_MEMORY, "%s needs %s (%s), the budget is %s (%s)",
                   what, pl_units_bytes(needed).text,
                   pl_run_plan_sum_text(&session->run.gpt.layout,
                                        session->run.gpt.placement.arena_bytes,
                                        session->reserve_bytes, 0)
                       .text,
                   pl_units_bytes(machine->budget_bytes).text,
                   machine->budget_from);
}

/* ---- sampling ---- */

/* What the weights and the tokenizer must agree on. */
static pl_status check_sampling(const pl_session *session, const char *folder,
                                pl_error *err)
{
    if (session->run.tokenizer.kind == PL_TOKENIZER_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s has no tokenizer, since the data it was trained on "
                       "had none. For GPT-2's tokens put GPT-2's vocabulary "
                       "there, as vocab.json and merges.txt or as "
                       "tokenizer.json: `plimsoll prepare --tokenizer=gpt2` "
                       "writes one beside the tokens",
                       folder);
    if ((size_t)session->run.tokenizer.vocab_size > session->run.shape.V)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: the tokenizer has %d tokens, the model knows "
                       "%zu: they do not belong together",
                       folder, session->run.tokenizer.vocab_size,
                       session->run.shape.V);
    return PL_OK;
}

/* Decoding takes as long as reading the weights does: where there is room,
 * products find them in 16 bits. */
static pl_status try_copies(pl_session *session, const pl_machine *machine,
                            pl_gpt_layout *layout, size_t *needed,
                            pl_error *err)
{
    static const pl_gpt_copy copies[] = { PL_COPY_RESIDENT, PL_COPY_NONE };
    const int most = layout->dtype != PL_F32 && layout->weights == PL_F32;
    pl_status status = PL_OK;
    *needed = SIZE_MAX;
    for (int i = !most; i < 2 && *needed > machine->budget_bytes && !status;
         i++) {
        pl_heap trial = pl_heap_make(session->run.heap->limit_bytes);
        layout->copy = copies[i];
        status = pl_gpt_make(&session->run.gpt, &session->run.shape, layout,
                             &trial, err);
        *needed = status ? 0 : needed_bytes(session, trial.taken_bytes);
        pl_heap_close(&trial);
    }
    return status;
}

/* Whether a smaller layout is left: half the slots where their number is free,
 * then half the rows. */
static int shrink_serving(pl_gpt_layout *layout, const pl_config *config)
{
    const int is_free = config->serve_slots == PL_NONE;
    if (is_free && layout->slots > 1)
        layout->slots /= 2;
    else if (layout->prefill > layout->slots)
        layout->prefill /= 2;
    else
        return 0;
    if (layout->logit_rows > layout->prefill)
        layout->logit_rows = layout->prefill;
    pl_gpt_layout_mend_serving(layout);
    return 1;
}

/* The most slots and rows that fit, with 16-bit weights beside the others where
 * there is room for these too. */
static pl_status fit_serving(pl_session *session, const pl_machine *machine,
                             pl_gpt_layout *layout, size_t *needed,
                             pl_error *err)
{
    pl_status status;
    do {
        status = try_copies(session, machine, layout, needed, err);
    } while (!status && *needed > machine->budget_bytes &&
             shrink_serving(layout, session->run.config));
    return status;
}

enum { LEAST_CONTEXT = 1024 };

/* Whether fewer positions are left to try: rotations have no table, and models
 * are made for more of them than there is often room for. */
static int shrink_context(pl_shape *shape)
{
    if (shape->position != PL_POSITION_ROTARY || shape->T <= LEAST_CONTEXT)
        return 0;
    shape->T = shape->T / 2 > LEAST_CONTEXT ? shape->T / 2 : LEAST_CONTEXT;
    return 1;
}

static pl_status check_serving(pl_session *session, const pl_machine *machine,
                               pl_error *err)
{
    const size_t needed = needed_bytes(session, 0);
    if (needed <= machine->budget_bytes)
        return PL_OK;
    return pl_fail(err, PL_E_MEMORY,
                   "serving %zu texts at once needs %s, of which %s are for "
                   "requests; the budget is %s (%s)",
                   session->run.gpt.layout.slots, pl_units_bytes(needed).text,
                   pl_units_bytes(session->files_bytes).text,
                   pl_units_bytes(machine->budget_bytes).text,
                   machine->budget_from);
}

static pl_status plan_sampling(pl_session *session, const model *m,
                               const pl_machine *machine,
                               pl_gpt_purpose purpose, pl_error *err)
{
    pl_gpt_layout layout;
    pl_shape *shape = &session->run.shape;
    size_t needed = 0;
    pl_status status = pl_dataset_read_tokenizer(
        &session->run.tokenizer, m->folder, session->run.heap, err);
    *shape = m->shape;
    if (!status)
        status = check_sampling(session, m->folder, err);
    do {
        if (!status)
            status = pl_gpt_layout_make(&layout, shape, session->run.config,
                                        purpose, session->run.heap, err);
        if (!status)
            status = purpose == PL_PURPOSE_SERVING
                         ? fit_serving(session, machine, &layout, &needed, err)
                         : try_copies(session, machine, &layout, &needed, err);
    } while (!status && needed > machine->budget_bytes &&
             shrink_context(shape));
    if (!status && shape->T < m->shape.T)
        pl_log_say(session->run.log, PL_LOG_NOTE,
                   "the model was made for %zu positions; with the budget of "
                   "%s (%s) it has %zu",
                   m->shape.T, pl_units_bytes(machine->budget_bytes).text,
                   machine->budget_from, shape->T);
    if (status)
        return status;
    return pl_gpt_make(&session->run.gpt, shape, &layout, session->run.heap,
                       err);
}

static pl_status open_sample(pl_session *session, const pl_machine *machine,
                             const char *folder, pl_gpt_purpose purpose,
                             pl_error *err)
{
    model m;
    pl_session_say_device(session->run.config, session->run.log);
    pl_status status = read_model(&m, folder, session->run.heap, err);
    if (status)
        return status;
    session->run.step = m.step;
    status = plan_sampling(session, &m, machine, purpose, err);
    if (!status)
        status = pl_pretrained_check(&m.weights, &session->run.gpt, err);
    if (!status)
        status = purpose == PL_PURPOSE_SERVING
                     ? check_serving(session, machine, err)
                     : check_budget(session, machine, "sampling", err);
    if (!status)
        status = pl_session_open_device(session, err);
    if (status)
        goto close_weights;
    status = pl_pretrained_load(&m.weights, &session->run, err);
    if (status)
        pl_device_close(session->run.device);

close_weights:
    pl_pretrained_close(&m.weights);
    return status;
}

pl_status pl_session_open_sample(pl_session *session, const pl_config *config,
                                 const pl_machine *machine, const char *folder,
                                 const pl_log *log, pl_heap *heap,
                                 pl_error *err)
{
    *session = (pl_session){ .run = pl_run_make(PL_RUN_SAMPLES, config, log,
                                                heap) };
    return open_sample(session, machine, folder, PL_PURPOSE_SAMPLING, err);
}

pl_status pl_session_open_serve(pl_session *session, const pl_config *config,
                                const pl_machine *machine, const char *folder,
                                size_t service_bytes, const pl_log *log,
                                pl_heap *heap, pl_error *err)
{
    *session = (pl_session){ .run = pl_run_make(PL_RUN_SAMPLES, config, log,
                                                heap),
                             .files_bytes = service_bytes };
    return open_sample(session, machine, folder, PL_PURPOSE_SERVING, err);
}

/* ---- evaluation ---- */

/* Fewer rows of logits at once gain no memory, but make longer lists. */
enum { LEAST_ROWS = 16 };

/* Halves what is evaluated at once until it fits; the loss is the same. */
static pl_status plan_evaluation(pl_session *session, const pl_machine *machine,
                                 pl_error *err)
{
    pl_gpt_layout layout;
    pl_status status = pl_gpt_layout_make(
        &layout, &session->run.shape, session->run.config,
        PL_PURPOSE_EVALUATION, session->run.heap, err);
    while (!status) {
        pl_heap trial = pl_heap_make(session->run.heap->limit_bytes);
        status = pl_gpt_make(&session->run.gpt, &session->run.shape, &layout,
                             &trial, err);
        size_t needed = status ? 0 : needed_bytes(session, trial.taken_bytes);
        pl_heap_close(&trial);
        if (status || needed <= machine->budget_bytes)
            break;
        if (layout.eval_micro > 1)
            layout.eval_micro /= 2;
        else if (layout.chunk_rows > LEAST_ROWS)
            layout.chunk_rows /= 2;
        else
            break;
    }
    if (!status)
        status = pl_gpt_make(&session->run.gpt, &session->run.shape, &layout,
                             session->run.heap, err);
    return status ? status : check_budget(session, machine, "evaluation", err);
}

/* The data's tokens must be ones that the model knows. */
static pl_status check_vocabulary(const pl_session *session, const model *m,
                                  pl_error *err)
{
    const pl_tokenizer *tokenizer = &session->run.tokenizer;
    if (tokenizer->kind != PL_TOKENIZER_NONE &&
        (size_t)tokenizer->vocab_size > m->shape.V)
        return pl_fail(err, PL_E_CONFIG,
                       "%s knows %zu tokens, the tokenizer of %s has %d: they "
                       "do not belong together",
                       m->folder, m->shape.V, session->run.dataset.folder,
                       tokenizer->vocab_size);
    return PL_OK;
}

static pl_status open_eval(pl_session *session, const pl_machine *machine,
                           const model *m, pl_error *err)
{
    pl_status status = pl_vocabulary_check(&session->run, m->folder, err);
    if (!status)
        status = check_vocabulary(session, m, err);
    session->run.shape = m->shape;
    session->run.step = m->step;
    if (!status && ((size_t)session->run.config->block_size < m->shape.T ||
                    m->shape.position == PL_POSITION_ROTARY))
        session->run.shape.T = (size_t)session->run.config->block_size;
    if (!status)
        status = plan_evaluation(session, machine, err);
    if (!status)
        status = pl_pretrained_check(&m->weights, &session->run.gpt, err);
    if (!status)
        status = pl_session_open_device(session, err);
    if (status)
        return status;
    session->machine = *machine;
    status = pl_rehearse(session, err);
    if (!status)
        status = pl_pretrained_load(&m->weights, &session->run, err);
    if (status)
        pl_device_close(session->run.device);
    return status;
}

pl_status pl_session_open_eval(pl_session *session, const pl_config *config,
                               const pl_machine *machine, const char *folder,
                               const pl_log *log, pl_heap *heap, pl_error *err)
{
    model m;
    uint64_t hashes[2];
    *session = (pl_session){ .run = pl_run_make(PL_RUN_EVALUATES, config, log,
                                                heap) };
    pl_session_say_device(config, log);
    pl_status status = pl_session_open_tokens(session, err);
    if (status)
        return status;
    status = pl_session_check_tokens(session, machine, hashes, err);
    if (status) {
        pl_dataset_close(&session->run.dataset);
        return status;
    }
    status = read_model(&m, folder, heap, err);
    if (!status)
        status = open_eval(session, machine, &m, err);
    pl_pretrained_close(&m.weights);
    if (status) {
        pl_dataset_close(&session->run.dataset);
        return status;
    }
    pl_heap_seal(heap);
    return PL_OK;
}
