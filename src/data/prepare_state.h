/* prepare_state.h: how far a preparation has come, as a small file of names
 * and numbers, so that the next one goes on there.
 *
 * Everything in it is a place between two pieces of text, and what was counted
 * before it. Knows no tokenizer and no format. */
#ifndef PL_DATA_PREPARE_STATE_H
#define PL_DATA_PREPARE_STATE_H

#include "base/file.h"
#include "data/crew.h"

#define PL_PREPARE_STATE_FILE "state"

typedef struct pl_prepare_state {
    uint64_t
        settings; /* a hash of inputs and options: all else depends on it */
    pl_crew_tally tally; /* marked documents validate */
    uint64_t train_tokens, val_tokens;
    uint64_t stamps; /* pl_source_stamps when the run began */
} pl_prepare_state;

PL_MUST_CHECK pl_status pl_prepare_state_write(const pl_prepare_state *state,
                                               const char *folder,
                                               pl_error *err);

typedef enum pl_prepare_found {
    PL_PREPARE_NOTHING, /* no such file, or none that can be understood */
    PL_PREPARE_OTHER,   /* of other inputs or settings */
    PL_PREPARE_SAME,
} pl_prepare_found;

/* state->settings says which ones are meant; the rest is filled where they
 * are found. */
PL_MUST_CHECK pl_status pl_prepare_state_read(pl_prepare_state *state,
                                              const char *folder,
                                              pl_prepare_found *found,
                                              pl_error *err);

#endif
