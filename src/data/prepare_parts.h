/* prepare_parts.h: what prepare.c shares with prepare_first.c, which finds the
 * characters of a text and names what was asked for. For these two alone. */
#ifndef PL_DATA_PREPARE_PARTS_H
#define PL_DATA_PREPARE_PARTS_H

#include "data/charset.h"
#include "data/prepare.h"
#include "data/prepare_state.h"
#include "data/shard_out.h"
#include "text/tokenizer_file.h"

#define PL_PREPARE_UNKNOWN SIZE_MAX /* a part's count: it can't be encoded */

typedef struct pl_prepare_job {
    const pl_prepare_options *options;
    pl_prepare_result *result;
    pl_heap *heap;
    pl_error *err;
    pl_heap scratch;
    size_t load_bytes, cache_bytes, source_bytes;
    pl_source *source;
    int from_input;
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
    char part[PL_PATH_BYTES];
} pl_prepare_job;

/* Fills result->tokenizer where the text says what it is. */
PL_MUST_CHECK pl_status pl_prepare_vocabulary(pl_prepare_job *j);

/* Progress, and the wish to stop: PL_E_STOPPED. */
PL_MUST_CHECK pl_status pl_prepare_report(pl_prepare_job *j,
                                          uint64_t done_bytes,
                                          const pl_crew_tally *tally);

pl_status pl_prepare_changed(const pl_prepare_job *j);

/* All that a part of another run must have in common with this one. */
uint64_t pl_prepare_settings(const pl_prepare_job *j);

#endif
