/* prepare_parts.h: what prepare.c shares with prepare_first.c, which finds the
 * characters of a text and names what was asked for, and with prepare_keep.c,
 * which goes on after a stop and sees that the disk suffices. For these three
 * alone. */
#ifndef PL_DATA_PREPARE_PARTS_H
#define PL_DATA_PREPARE_PARTS_H

#include "data/charset.h"
#include "data/prepare.h"
#include "data/prepare_state.h"
#include "data/shard_out.h"
#include "text/tokfile.h"

#define PL_PREPARE_UNKNOWN SIZE_MAX /* a part's count: it can't be encoded */

typedef struct pl_prepare_job {
    const pl_prepare_options *options;
    pl_prepare_result *result;
    pl_heap *heap;
    pl_error *err;
    pl_heap scratch;
    size_t load_bytes, cache_bytes, source_bytes;
    pl_source *source;
    int from_input;       /* or a pipe */
    uint64_t total_bytes; /* of the files, on the disk */
    uint64_t first_done;  /* of these, by a first pass */
    uint64_t seen_bytes;  /* of text, by a first pass */
    pl_charset charset;
    pl_bpe_encoder encoders[PL_MAX_THREADS];
    pl_tokenizer_text file;
    pl_threads *threads;
    pl_shard_out outs[2];      /* train, val */
    unsigned char *buffers[2]; /* of theirs */
    int32_t *moved;
    pl_prepare_state state; /* as far as it could be gone on from */
    double saved_at;
    uint64_t begun_bytes, begun_tokens; /* done when this run began */
    pl_file lock;                       /* of the folder */
    char part[PL_PATH_BYTES];
} pl_prepare_job;

/* Fills result->tokenizer where the text says what it is. */
PL_MUST_CHECK pl_status pl_prepare_vocabulary(pl_prepare_job *j);

/* Progress, and the wish to stop: PL_E_STOPPED. */
PL_MUST_CHECK pl_status pl_prepare_report(pl_prepare_job *j,
                                          uint64_t done_bytes,
                                          const pl_crew_tally *tally);

/* The error for a text that isn't what it was. */
pl_status pl_prepare_changed(pl_prepare_job *j);

/* All that a part of another run must have in common with this one. */
uint64_t pl_prepare_settings(const pl_prepare_job *j);

/* ---- prepare_keep.c ---- */

pl_shard_out_options pl_prepare_out_options(const pl_prepare_job *j, int split);

/* Opens the files of both splits, behind an earlier run's tokens or empty, and
 * brings the source there. */
PL_MUST_CHECK pl_status pl_prepare_begin(pl_prepare_job *j);

/* Whether the disk has room for what is to come, estimated by the first loads
 * of this run. The next one has `tokens` tokens. */
PL_MUST_CHECK pl_status pl_prepare_check_disk(const pl_prepare_job *j,
                                              uint64_t done_bytes,
                                              uint64_t tokens);

/* j->state, once the tokens that it counts are on the disk. */
PL_MUST_CHECK pl_status pl_prepare_write_state(pl_prepare_job *j);

/* After a failure: closes the files, keeps what can be gone on with, and says
 * so; else nothing of it stays. */
void pl_prepare_keep(pl_prepare_job *j, pl_status failure);

#endif
