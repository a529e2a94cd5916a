/* prepare_keep.c: see prepare_parts.h. Owns what an unfinished preparation
 * leaves in prepare.part. */
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/units.h"
#include "data/prepare_parts.h"

#include <string.h>

/* Loads are estimates of the whole until this much was read: the first are
 * small beside what was read ahead of them. */
enum { ESTIMATE_BYTES = 64 * 1024 * 1024 };

/* ---- files ---- */

pl_shard_out_options pl_prepare_out_options(const pl_prepare_job *j, int split)
{
    return (pl_shard_out_options){
        .folder = j->part,
        .split = split ? "val" : "train",
        .kind = j->options->kind,
        .vocab_size = j->result->tokenizer.vocab_size,
        .shard_tokens = j->options->shard_tokens,
    };
}

static pl_status open_outs(pl_prepare_job *j)
{
    const uint64_t tokens[2] = { j->state.train_tokens, j->state.val_tokens };
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && !status; i++) {
        pl_shard_out_options options = pl_prepare_out_options(j, i);
        status = pl_shard_out_open(&j->outs[i], &options, tokens[i],
                                   j->buffers[i], j->err);
    }
    return status;
}

static void abandon_outs(pl_prepare_job *j)
{
    pl_shard_out_abandon(&j->outs[0]);
    pl_shard_out_abandon(&j->outs[1]);
}

pl_status pl_prepare_write_state(pl_prepare_job *j)
{
    pl_status status = pl_shard_out_sync(&j->outs[0], j->err);
    if (!status)
        status = pl_shard_out_sync(&j->outs[1], j->err);
    if (!status)
        status = pl_prepare_state_write(&j->state, j->part, j->err);
    j->saved_at = pl_clock_seconds();
    return status;
}

/* ---- beginning, or going on ---- */

/* Reads what an earlier run has read, to its place. Whether it is the same. */
static pl_status read_again(pl_prepare_job *j, int *same)
{
    const pl_source_place *place = &j->state.tally.place;
    pl_crew_tally tally = { 0 };
    *same = 0;
    pl_log_say(j->options->log, PL_LOG_INFO,
               "the files' times aren't what they were: reading %s of text "
               "again, to see that they are the same",
               pl_units_bytes(j->state.tally.text_bytes).text);
    pl_status status = pl_source_seek(j->source, tally.place, j->err);
    while (!status && tally.text_bytes < j->state.tally.text_bytes) {
        pl_fragment piece;
        status = pl_source_next(j->source, &piece, j->err);
        if (status || piece.part == PL_FRAGMENT_NONE)
            return status;
        tally.sum = pl_hash_chain(tally.sum, piece.text, piece.bytes);
        tally.text_bytes += piece.bytes;
    }
    pl_source_place here = pl_source_tell(j->source);
    *same = !status && here.file == place->file &&
            here.record == place->record && here.offset == place->offset &&
            tally.sum == j->state.tally.sum;
    return status;
}

/* Whether an earlier run's part could be gone on with; the source is then
 * there. Fails only where it was told to stop meanwhile. */
static pl_status can_go_on(pl_prepare_job *j, int *ready)
{
    pl_error failure = { 0 }, *err = j->err;
    uint64_t stamps = pl_source_stamps(j->source);
    j->err = &failure;
    pl_status status = open_outs(j);
    *ready = 1;
    if (!status && (stamps == 0 || stamps != j->state.stamps))
        status = read_again(j, ready);
    else if (!status)
        status = pl_source_seek(j->source, j->state.tally.place, j->err);
    j->err = err;
    if (status == PL_E_STOPPED)
        return pl_fail(err, status, "%s", failure.text);
    *ready &= !status;
    j->state.stamps = stamps;
    if (!*ready)
        abandon_outs(j);
    return PL_OK;
}

static pl_status begin_anew(pl_prepare_job *j)
{
    uint64_t settings = j->state.settings;
    j->state = (pl_prepare_state){ .settings = settings,
                                   .stamps = pl_source_stamps(j->source) };
    pl_status status = pl_folder_remove_flat(j->part, j->err);
    if (!status)
        status = pl_folder_make(j->part, j->err);
    if (!status && !j->from_input)
        status = pl_source_seek(j->source, (pl_source_place){ 0 }, j->err);
    return status ? status : open_outs(j);
}

pl_status pl_prepare_begin(pl_prepare_job *j)
{
    pl_prepare_found found = PL_PREPARE_NOTHING;
    pl_status status = PL_OK;
    int ready = 0;
    j->state.settings = pl_prepare_settings(j);
    if (!j->from_input)
        status = pl_prepare_state_read(&j->state, j->part, &found, j->err);
    if (status)
        return status;
    if (found == PL_PREPARE_SAME)
        status = can_go_on(j, &ready);
    if (status)
        return status;
    if (ready) {
        j->result->resumed_bytes = j->state.tally.text_bytes;
        j->begun_bytes = pl_source_done_bytes(j->source);
        j->begun_tokens = j->state.train_tokens + j->state.val_tokens;
        pl_log_say(j->options->log, PL_LOG_INFO,
                   "going on where the last run stopped: document %llu, %s of "
                   "text are done",
                   (unsigned long long)j->state.tally.documents,
                   pl_units_bytes(j->state.tally.text_bytes).text);
        return PL_OK;
    }
    if (found == PL_PREPARE_OTHER)
        pl_log_say(j->options->log, PL_LOG_NOTE,
                   "%s is of other inputs or settings: beginning anew",
                   pl_path_shown(j->part));
    else if (found == PL_PREPARE_SAME)
        pl_log_say(j->options->log, PL_LOG_NOTE,
                   "%s can't be gone on with, or the text was changed since: "
                   "beginning anew",
                   pl_path_shown(j->part));
    return begin_anew(j);
}

/* ---- the disk ---- */

pl_status pl_prepare_check_disk(const pl_prepare_job *j, uint64_t done_bytes,
                                uint64_t tokens)
{
    uint64_t room, done = done_bytes - j->begun_bytes;
    uint64_t written = j->outs[0].n_tokens + j->outs[1].n_tokens -
                       j->begun_tokens;
    if (j->from_input || done_bytes <= j->begun_bytes || done > ESTIMATE_BYTES)
        return PL_OK; /* nobody knows, or it was seen often enough */
    double share = (double)done / (double)(j->total_bytes - j->begun_bytes);
    double all = (double)(written + tokens) / (share < 1.0 ? share : 1.0);
    double need = all - (double)written;
    /* While the end is moved to val, it is there twice. */
    if (j->result->tokenizer.kind != PL_TOKENIZER_BPE)
        need += all * j->options->val_fraction;
    need *= (double)pl_shard_token_bytes(j->options->kind);
    pl_status status = pl_disk_free_bytes(j->options->folder, &room, j->err);
    /* It is an estimate: refused is what misses by more than a tenth. */
    if (status || 0.9 * need <= (double)room)
        return status;
    return pl_fail(j->err, PL_E_IO,
                   "%s: the tokens will take about %s more, the disk has %s "
                   "left. Make room, or choose a folder on another "
                   "disk with --out=",
                   pl_path_shown(j->options->folder),
                   pl_units_bytes((uint64_t)need).text,
                   pl_units_bytes(room).text);
}

/* ---- after a failure ---- */

/* The last place between two loads. Cutting the files there gives some room
 * back, which the state needs where the disk is full. */
static int save_last(pl_prepare_job *j)
{
    pl_error ignored, *err = j->err;
    if (j->from_input || j->state.tally.text_bytes == 0)
        return 0;
    j->err = &ignored;
    int saved = !open_outs(j) && !pl_prepare_write_state(j);
    j->err = err;
    abandon_outs(j);
    return saved;
}

static void say_kept(const pl_prepare_job *j, pl_status failure)
{
    char text[PL_ERROR_TEXT_BYTES];
    if (!j->err)
        return;
    memcpy(text, j->err->text, sizeof text);
    pl_fail(j->err, failure,
            "%s. What is done is kept in %s; the same command goes on there",
            text, pl_path_shown(j->part));
}

void pl_prepare_keep(pl_prepare_job *j, pl_status failure)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_error ignored;
    abandon_outs(j);
    if (failure == PL_E_IO && save_last(j)) {
        say_kept(j, failure);
        return;
    }
    pl_status status = pl_path_join(path, j->part, PL_PREPARE_STATE_FILE,
                                    &ignored);
    if (!status)
        status = pl_file_look(path, &kind, &ignored);
    if (!status && kind == PL_FILE_ABSENT)
        status = pl_folder_remove_flat(j->part, &ignored);
    (void)status;
}
