/* plan_file.c: see plan_file.h. */
#include "train/plan_file.h"
#include "advise/runplan.h"
#include "base/clock.h"
#include "base/memory.h"
#include "device/device.h"
#include "format/jsontext.h"
#include "store/notes.h"

#include <stdint.h>

static int has_program(const pl_gpt *gpt, int program)
{
    return gpt->graph.programs[program].n_steps > 0;
}

static void put_model(pl_json_text *j, const pl_session *session)
{
    const pl_shape *s = &session->run.shape;
    pl_json_text_open(j, "model", '{');
    pl_json_text_whole(j, "layers", s->L);
    pl_json_text_whole(j, "heads", s->H);
    pl_json_text_whole(j, "head_dim", s->D);
    pl_json_text_whole(j, "channels", s->C);
    pl_json_text_whole(j, "context", s->T);
    pl_json_text_whole(j, "vocabulary", s->V);
    pl_json_text_whole(j, "parameters", pl_param_count(s));
    pl_json_text_close(j, '}');
}

static void put_row(pl_json_text *j, const char *key, const pl_gpt *gpt,
                    const size_t bytes[PL_PROGRAM_COUNT])
{
    pl_json_text_open(j, key, '[');
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        if (has_program(gpt, i))
            pl_json_text_whole(j, NULL, bytes[i]);
    pl_json_text_close(j, ']');
}

/* The table of `plimsoll plan`: a list for each class, a column for each
 * program. */
static void put_table(pl_json_text *j, const pl_gpt *gpt)
{
    const pl_placement *place = &gpt->placement;
    size_t peaks[PL_PROGRAM_COUNT], rest[PL_PROGRAM_COUNT];
    pl_json_text_open(j, "programs", '[');
    for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
        peaks[i] = rest[i] = pl_placement_peak(place, (pl_program_id)i);
        if (has_program(gpt, i))
            pl_json_text_string(j, NULL, pl_program_name((pl_program_id)i));
    }
    pl_json_text_close(j, ']');
    pl_json_text_open(j, "classes", '{');
    for (int class = 0; class < PL_CLASS_COUNT; class ++) {
        size_t bytes[PL_PROGRAM_COUNT], sum = 0;
        for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
            bytes[i] = place->class_bytes[i][class];
            rest[i] -= bytes[i];
            sum += bytes[i];
        }
        if (sum)
            put_row(j, pl_class_name((pl_class) class), gpt, bytes);
    }
    put_row(j, PL_NOTES_GAPS, gpt, rest);
    pl_json_text_close(j, '}');
    put_row(j, "peaks", gpt, peaks);
}

static void put_bytes(pl_json_text *j, const pl_session *session,
                      const pl_plan_more *more)
{
    const pl_gpt *gpt = &session->run.gpt;
    const pl_machine *machine = &session->machine;
    const int apart = pl_run_plan_is_apart(&gpt->layout);
    size_t held;
    pl_json_text_whole(j, "arena_bytes", gpt->placement.arena_bytes);
    pl_json_text_whole(j, "host_arena_bytes", pl_run_plan_host_arena(gpt));
    pl_json_text_whole(j, "reserve_bytes", session->reserve_bytes);
    pl_json_text_whole(j, "files_bytes", session->files_bytes);
    pl_json_text_whole(j, "driver_bytes", session->driver_bytes);
    pl_json_text_whole(j, "live_bytes", more->live_bytes);
    if (machine->budget_bytes == SIZE_MAX)
        pl_json_text_raw(j, "budget_bytes", "null");
    else /* what a page beside the run takes was taken off the host's */
        pl_json_text_whole(j, "budget_bytes",
                           machine->budget_bytes +
                               (apart ? 0 : more->live_bytes));
    pl_json_text_shown(j, "budget_from", machine->budget_from);
    pl_json_text_raw(j, "has_own_memory", apart ? "true" : "false");
    if (pl_memory_now_bytes(&held, NULL) == PL_OK)
        pl_json_text_whole(j, "held_bytes", held);
}

static void put_config(pl_json_text *j, const pl_config *config)
{
    enum { TEXT_BYTES = 1024 };
    pl_json_text_open(j, "config", '{');
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[TEXT_BYTES], origin[TEXT_BYTES];
        const pl_key_info *row = pl_key_row((pl_key)key);
        if (!(row->commands & PL_FOR_TRAIN))
            continue;
        pl_config_value_text(config, (pl_key)key, value, sizeof value);
        pl_config_origin_text(config, (pl_key)key, origin, sizeof origin);
        pl_json_text_open(j, row->name, '{');
        pl_json_text_shown(j, "value", value);
        pl_json_text_shown(j, "from", origin);
        pl_json_text_string(j, "in_a_run", pl_effect_name(row->effect));
        pl_json_text_close(j, '}');
    }
    pl_json_text_close(j, '}');
}

static pl_status make_text(pl_json_text *j, const pl_session *session,
                           const pl_plan_more *more, int with_config,
                           pl_error *err)
{
    const pl_gpt *gpt = &session->run.gpt;
    const pl_config *config = session->run.config;
    char layout[160];
    *j = pl_json_text_begin(session->run.text, PL_RUN_TEXT_BYTES);
    pl_json_text_whole(j, "format", 1);
    pl_json_text_string(j, "program", "plimsoll " PL_VERSION);
    pl_json_text_real(j, "began", pl_clock_date());
    pl_json_text_whole(j, "began_step", session->run.step);
    pl_json_text_whole(j, "max_iters", (uint64_t)config->max_iters);
    pl_json_text_whole(j, "update_tokens",
                       (uint64_t)config->batch_size *
                           (uint64_t)config->gradient_accumulation_steps *
                           session->run.shape.T);
    pl_json_text_real(j, "update_flops", more->update_flops);
    pl_json_text_real(
        j, "peak_flops",
        pl_device_peak_flops(session->run.device, gpt->layout.dtype));
    put_model(j, session);
    pl_json_text_string(j, "device", gpt->layout.device.text);
    pl_run_plan_layout_text(&gpt->layout, session->run.shape.L, layout,
                            sizeof layout);
    pl_json_text_string(j, "layout", layout);
    put_bytes(j, session, more);
    put_table(j, gpt);
    if (with_config)
        put_config(j, config);
    return pl_json_text_end(j, err);
}

pl_status pl_plan_file_write(const pl_session *session,
                             const pl_plan_more *more, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_json_text j;
    pl_status status = pl_path_join(path, session->run.outdir.path,
                                    PL_NOTES_PLAN, err);
    if (status)
        return status;
    status = make_text(&j, session, more, 1, NULL);
    if (status)
        status = make_text(&j, session, more, 0, err);
    return status ? status : pl_file_replace(path, j.text, j.used, err);
}
