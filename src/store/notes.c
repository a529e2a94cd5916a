/* notes.c: see notes.h. */
#include "store/notes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "format/jsontext.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pl_phase_name(pl_phase phase)
{
    static const char *const names[] = {
#define PL_PHASE_NAME(id, name) name,
        PL_PHASE_TABLE(PL_PHASE_NAME)
#undef PL_PHASE_NAME
    };
    return names[phase];
}

/* ---- warnings ---- */

/* Whatever is in the way of a note is left unsaid: the run matters more. */
static void ignore(pl_status status)
{
    (void)status;
}

/* The file is made with its first line. */
static void open_warnings(pl_notes *notes)
{
    pl_file old;
    if (pl_file_open_read(&old, notes->warnings_path, NULL) != PL_OK) {
        ignore(pl_file_create(&notes->warnings, notes->warnings_path, NULL));
        return;
    }
    notes->warnings_bytes = pl_file_size(&old);
    pl_file_abandon(&old);
    ignore(pl_file_open_again(&notes->warnings, notes->warnings_path,
                              notes->warnings_bytes, NULL));
}

static void append_warning(pl_notes *notes, const char *line, size_t bytes)
{
    if (notes->warnings.fd < 0)
        open_warnings(notes);
    if (notes->warnings.fd < 0 ||
        notes->warnings_bytes + bytes > PL_NOTES_WARNINGS_BYTES)
        return;
    if (pl_file_append(&notes->warnings, line, bytes, NULL) != PL_OK) {
        pl_file_abandon(&notes->warnings);
        notes->warnings_path[0] = '\0';
    }
    notes->warnings_bytes += bytes;
}

/* One line of JSON: the object's own line ends become blanks, those of the text
 * are escaped already. */
static size_t warning_line(char *line, size_t capacity, pl_log_level level,
                           const char *text)
{
    pl_json_text j = pl_json_text_begin(line, capacity);
    pl_json_text_real(&j, "date", pl_clock_date());
    pl_json_text_string(&j, "level", level == PL_LOG_WARN ? "warning" : "note");
    pl_json_text_shown(&j, "text", text);
    if (pl_json_text_end(&j, NULL) != PL_OK)
        return 0;
    for (size_t i = 0; i + 1 < j.used; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    return j.used;
}

void pl_notes_warn(pl_notes *notes, pl_log_level level, const char *text)
{
    char line[PL_ERROR_TEXT_BYTES * 2];
    if (level == PL_LOG_INFO)
        return;
    size_t bytes = warning_line(line, sizeof line, level, text);
    if (notes->warnings_path[0]) {
        append_warning(notes, line, bytes);
    } else if (notes->early_bytes + bytes <= sizeof notes->early) {
        memcpy(notes->early + notes->early_bytes, line, bytes);
        notes->early_bytes += bytes;
    }
}

/* ---- progress ---- */

/* Who writes: a reader can tell whether that process is still there. */
static void find_own_pid(pl_notes *notes)
{
    char text[1024];
    size_t bytes;
    if (pl_file_read_into("/proc/self/stat", text, sizeof text, &bytes, NULL))
        return;
    const char *at = strrchr(text, ')'); /* the name may hold anything */
    notes->pid = strtoull(text, NULL, 10);
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    notes->pid_began = at ? strtoull(at, NULL, 10) : 0;
}

/* The phase in which a program runs. */
static pl_phase phase_of(pl_program_id program)
{
    switch (program) {
    case PL_EVAL:
        return PL_PHASE_EVAL;
    case PL_SAMPLE:
    case PL_SERVE:
        return PL_PHASE_SAMPLE;
    case PL_SAVE:
        return PL_PHASE_SAVE;
    default:
        return PL_PHASE_TRAIN;
    }
}

void pl_notes_measure(pl_notes *notes, pl_device *device, const pl_graph *graph)
{
    notes->device = device;
    notes->programs = 0;
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        if (graph->programs[i].n_steps)
            notes->programs |= 1u << i;
}

/* Of a program that could not be measured nothing is said. */
static void measure(pl_notes *notes, pl_program_id program)
{
    pl_notes_actual *actual = &notes->actual[program];
    size_t held = 0, arena = 0;
    if (pl_device_backed(notes->device, program, &actual->arena, NULL) ||
        pl_memory_now_bytes(&held, NULL))
        return;
    for (int i = 0; i < PL_CLASS_COUNT; i++)
        arena += actual->arena.class_bytes[i];
    arena += actual->arena.gap_bytes + actual->arena.rest_bytes;
    actual->outside_bytes = held > arena ? held - arena : 0;
    actual->is_known = 1;
}

/* The programs of the phase that was told of last. */
static void measure_phase(pl_notes *notes)
{
    for (int i = 0; i < PL_PROGRAM_COUNT && notes->device; i++)
        if ((notes->programs & 1u << i) && !notes->actual[i].is_known &&
            phase_of((pl_program_id)i) == notes->now.phase)
            measure(notes, (pl_program_id)i);
}

typedef struct parts_line {
    char text[640]; /* every part with a petabyte, and more */
    size_t used;
} parts_line;

static void put_part(parts_line *line, const char *name, uint64_t bytes)
{
    if (bytes)
        line->used += (size_t)snprintf(
            line->text + line->used, sizeof line->text - line->used,
            "%s\"%s\": %" PRIu64, line->used > 1 ? ", " : "", name, bytes);
}

/* {"weights": 123, "gaps, alignment": 4}: by the names of plan.json, and on one
 * line, since bytes are few. */
static void put_actual(pl_json_text *j, const pl_notes_actual *actual,
                       const char *program)
{
    parts_line line = { .text = "{", .used = 1 };
    for (int i = 0; i < PL_CLASS_COUNT; i++)
        put_part(&line, pl_class_name((pl_class)i),
                 actual->arena.class_bytes[i]);
    put_part(&line, PL_NOTES_GAPS, actual->arena.gap_bytes);
    put_part(&line, PL_NOTES_REST, actual->arena.rest_bytes);
    if (actual->arena.is_in_host)
        put_part(&line, PL_NOTES_RESERVE, actual->outside_bytes);
    snprintf(line.text + line.used, sizeof line.text - line.used, "}");
    pl_json_text_raw(j, program, line.text);
}

static void write_progress(pl_notes *notes)
{
    char text[PL_NOTES_PROGRESS_BYTES + 1];
    const pl_notes_now *now = &notes->now;
    pl_json_text j = pl_json_text_begin(text, sizeof text);
    pl_json_text_string(&j, "phase", pl_phase_name(now->phase));
    pl_json_text_whole(&j, "step", now->step);
    pl_json_text_whole(&j, "max_iters", now->max_iters);
    pl_json_text_real(&j, "share", now->share);
    pl_json_text_real(&j, "tokens_per_second", now->tokens_per_second);
    pl_json_text_real(&j, "seconds_left", now->seconds_left);
    pl_json_text_real(&j, "mfu", now->mfu);
    pl_json_text_real(&j, "peak_flops", now->peak_flops);
    for (int i = 0; i < PL_PHASES_HELD; i++) {
        char name[32];
        snprintf(name, sizeof name, "held_%s_bytes",
                 pl_phase_name((pl_phase)i));
        pl_json_text_whole(&j, name, notes->held_bytes[i]);
    }
    pl_json_text_open(&j, "actual", '{');
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        if (notes->actual[i].is_known)
            put_actual(&j, &notes->actual[i],
                       pl_program_name((pl_program_id)i));
    pl_json_text_close(&j, '}');
    pl_json_text_whole(&j, "pid", notes->pid);
    pl_json_text_whole(&j, "pid_began", notes->pid_began);
    pl_json_text_real(&j, "date", pl_clock_date());
    if (pl_json_text_end(&j, NULL) != PL_OK)
        return;
    memset(text + j.used, ' ', PL_NOTES_PROGRESS_BYTES - j.used);
    text[PL_NOTES_PROGRESS_BYTES - 1] = '\n';
    if (pl_file_write_at(&notes->progress, text, PL_NOTES_PROGRESS_BYTES, 0,
                         NULL) != PL_OK)
        pl_file_abandon(&notes->progress);
}

void pl_notes_open(pl_notes *notes, const char *out_dir)
{
    char path[PL_PATH_BYTES];
    if (pl_path_join(notes->warnings_path, out_dir, PL_NOTES_WARNINGS, NULL))
        notes->warnings_path[0] = '\0';
    else if (notes->early_bytes)
        append_warning(notes, notes->early, notes->early_bytes);
    notes->early_bytes = 0;
    find_own_pid(notes);
    if (pl_path_join(path, out_dir, PL_NOTES_PROGRESS, NULL) != PL_OK ||
        pl_file_create(&notes->progress, path, NULL) != PL_OK)
        return;
    notes->now = (pl_notes_now){ .phase = PL_PHASE_START,
                                 .seconds_left = -1.0,
                                 .mfu = -1.0 };
    write_progress(notes);
}

void pl_notes_tell(pl_notes *notes, const pl_notes_now *now)
{
    enum { EVERY_MS = 500 };
    size_t bytes;
    if (notes->progress.fd < 0)
        return;
    const double date = pl_clock_seconds();
    const int is_new = now->phase != notes->now.phase;
    measure_phase(notes);
    notes->now = *now;
    if (!is_new && date - notes->told < EVERY_MS * 1e-3)
        return;
    notes->told = date;
    if ((int)now->phase < (int)PL_PHASES_HELD &&
        pl_memory_now_bytes(&bytes, NULL) == PL_OK &&
        bytes > notes->held_bytes[now->phase])
        notes->held_bytes[now->phase] = bytes;
    write_progress(notes);
}

void pl_notes_close(pl_notes *notes, pl_phase phase)
{
    if (notes->progress.fd >= 0) {
        measure_phase(notes);
        notes->now.phase = phase;
        notes->now.share = 0.0;
        write_progress(notes);
    }
    pl_file_abandon(&notes->progress);
    pl_file_abandon(&notes->warnings);
}
