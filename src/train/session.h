/* session.h: a run that is set up: model, arena, device, tokens.
 *
 * Opening a session does everything that can run out of memory or find the
 * input wanting; afterwards the heap is sealed and nothing allocates. */
#ifndef PL_TRAIN_SESSION_H
#define PL_TRAIN_SESSION_H

#include "advise/machine.h"
#include "data/batch.h"
#include "store/run.h"
#include "train/ranks.h"
#include "train/session_prompts.h"
#include "train/session_quiz.h"
#include "train/token_bytes.h"

/* What an evaluation finds of a sequence: the sum of its losses; of its tokens
 * that stand for text, too, and the bytes of that. */
typedef struct pl_eval_sequence {
    double loss, nats;
    uint64_t bytes;
} pl_eval_sequence;

/* What one of the processes that share a run has planned of its host's memory:
 * arena, reserve and files; and how it computes. */
typedef struct pl_rank_need {
    uint64_t bytes;
    uint64_t arithmetic;
} pl_rank_need;

typedef struct pl_session {
    pl_run run;           /* what a checkpoint keeps of it, and where that is */
    pl_controls controls; /* of the next run: pl_session_run hands them over */
    int has_dataset;
    pl_token_bytes token_bytes; /* of the data's tokenizer, where known */
    pl_prompts prompts;         /* of a training that writes texts on its way */
    pl_session_quiz quiz;       /* and of one that asks tasks */
    size_t reserve_bytes;       /* what was planned outside the arena */
    uint64_t files_bytes;       /* and for files in memory, or for requests */
    size_t driver_bytes;   /* the most of the host's memory that a card's driver
                            * had taken when the card was open; else 0 */
    pl_machine machine;    /* its rates are learnt while training */
    double update_seconds; /* of the last update; 0: none yet */
    pl_ranks ranks;        /* the processes that share it */
    pl_run_others others;  /* for files, of what the others keep */
    pl_rank_need *needs;   /* [ranks], where several share it */
    double *losses;        /* of an update's sequences, where several do */
    int is_torn;     /* workers that met only half: its weights are no step's */
    int fails_alike; /* it has failed on all ranks, and rank 0 says how */
    pl_eval_sequence *evaluated; /* of a round, or of all, where several do */
    /* of each step while it is profiled; NULL: never */
    double *step_seconds[PL_PROGRAM_COUNT];
} pl_session;

/* A run that trains, evaluates and saves, or only evaluates (`purpose`) as it
 * would before its next update: from scratch, from the newest checkpoint in
 * out_dir that is whole (init_from 'resume'), or from a GPT-2 in a folder
 * (pretrained.h), in the layout that fits `machine`. PL_E_MEMORY if none
 * does. Of the processes that share it (machine->comm) only rank 0 has an
 * out_dir. */
PL_MUST_CHECK pl_status pl_session_open_train(
    pl_session *session, pl_run_purpose purpose, const pl_config *config,
    const pl_machine *machine, const pl_log *log, pl_heap *heap, pl_error *err);

typedef enum pl_new_weights { PL_NEW_RANDOM, PL_NEW_ZEROS } pl_new_weights;

/* A run to measure: the config's plan, new weights, no data and no out_dir.
 * The tokens of its programs are the caller's to fill. */
PL_MUST_CHECK pl_status pl_session_open_bench(
    pl_session *session, const pl_config *config, const pl_machine *machine,
    pl_new_weights weights, size_t vocab_size, const pl_log *log, pl_heap *heap,
    pl_error *err);

/* Sampling only, from the weights in `folder`: a checkpoint, or any GPT-2 in a
 * folder (pretrained.h). */
PL_MUST_CHECK pl_status pl_session_open_sample(
    pl_session *session, const pl_config *config, const pl_machine *machine,
    const char *folder, const pl_log *log, pl_heap *heap, pl_error *err);

/* The same to serve: several texts at once (train/slots.h). The budget also has
 * to hold `service_bytes`, what the caller takes for requests. */
PL_MUST_CHECK pl_status pl_session_open_serve(
    pl_session *session, const pl_config *config, const pl_machine *machine,
    const char *folder, size_t service_bytes, const pl_log *log, pl_heap *heap,
    pl_error *err);

/* Evaluation only, of the weights in `folder` likewise, on the config's data:
 * no gradients, no moments, no out_dir. */
PL_MUST_CHECK pl_status pl_session_open_eval(
    pl_session *session, const pl_config *config, const pl_machine *machine,
    const char *folder, const pl_log *log, pl_heap *heap, pl_error *err);

void pl_session_close(pl_session *session);

/* ---- parts, for those who open sessions ---- */

/* Says once that another device was wished for, and what isn't in the words of
 * `products`. */
void pl_session_say_device(const pl_config *config, const pl_log *log);
/* The config's data and its tokenizer. */
PL_MUST_CHECK pl_status pl_session_open_tokens(pl_session *session,
                                               pl_error *err);
/* The least vocabulary of a model for these tokens: what was set, where the
 * tokenizer leaves that open; a tokenizer's own; else bpe's, rounded up. */
size_t pl_session_vocabulary(const pl_config *config,
                             const pl_tokenizer *tokenizer);
/* Every id of these against their vocabulary (data/shard_check.h); hashes of
 * both splits. */
PL_MUST_CHECK pl_status pl_session_check_tokens(pl_session *session,
                                                const pl_machine *machine,
                                                uint64_t hashes[2],
                                                pl_error *err);
/* The arena of session->run.gpt, and the memory that files pass through. */
PL_MUST_CHECK pl_status pl_session_open_device(pl_session *session,
                                               pl_error *err);

/* Bytes of the host's memory that were planned, arena and reserve, and what a
 * card's driver had taken. */
size_t pl_session_host_bytes(const pl_session *session);

/* ---- what those who run programs share ---- */

/* Runs a part of a program with session->controls. */
PL_MUST_CHECK pl_status pl_session_run(pl_session *session,
                                       pl_program_id program, pl_part part,
                                       pl_error *err);
/* The same, watched as pl_device_run_watched says; `watch` may be NULL. */
PL_MUST_CHECK pl_status pl_session_run_watched(pl_session *session,
                                               pl_program_id program,
                                               pl_part part,
                                               const pl_run_watch *watch,
                                               pl_run_end *end, pl_error *err);

/* Row `row` of a buffer of tokens = sequence `sequence` of the key's list, of
 * T + 1 tokens. */
PL_MUST_CHECK pl_status pl_session_load_row(pl_session *session,
                                            pl_buffer_id buffer, size_t row,
                                            const pl_batch_key *key,
                                            size_t sequence, size_t T,
                                            pl_error *err);

#endif
