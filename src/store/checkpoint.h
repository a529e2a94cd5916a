/* checkpoint.h: a run as a folder, written whole or not at all.
 *
 *   model.safetensors      weights, in the names and the layout that Hugging
 *                          Face's models of the family have; a GPT-2 without
 *                          biases has zeros there, since that format knows no
 *                          other way
 *   config.json            for programs that load GPT-2 from a folder
 *   generation_config.json  likewise
 *   tokenizer.json, tokenizer_config.json, meta.json
 *                          the tokenizer, if there is one
 *   optimizer.safetensors  AdamW's moments, "m." and "v." before the names; of
 *                          workers (DiLoCo) those of the first, and the outer
 *                          state, "anchor." and "outer."
 *   worker-00001.safetensors, ...
 *                          of the other workers: weights ("w.") and moments;
 *                          model.safetensors has the first one's
 *   metrics.jsonl          the lines so far, thinned out (metrics_thin.h)
 *   state.json             step, losses, loss scaler, model, the kernels'
 *                          arithmetic, every config key and which were set
 *   manifest.json          the checksums of all of them (manifest.h)
 *
 * outdir.h has the folder around it. */
#ifndef PL_STORE_CHECKPOINT_H
#define PL_STORE_CHECKPOINT_H

#include "store/checkpoint_tensors.h"
#include "store/manifest.h"
#include "store/run.h"

/* The longest value of a key that a checkpoint can hold, with its zero. */
enum { PL_CHECKPOINT_VALUE_BYTES = 4096 };

/* What state.json says. */
typedef struct pl_checkpoint_state {
    uint64_t step, skipped;
    double best_val_loss; /* of all evaluations; infinite: none yet */
    double best_val_bpb;  /* of the same evaluation; infinite: unknown */
    double val_loss;      /* at this step; infinite: it had none */
    double val_bpb;       /* likewise; infinite: unknown */
    pl_scaler scaler;     /* active if the run had one */
    uint64_t train_tokens, val_tokens; /* of the data */
    uint64_t workers;                  /* of DiLoCo; 0: it was another run */
    pl_metrics_past metrics;
    pl_shape shape;
    uint64_t arithmetic; /* a pl_arithmetic, or a later version's number */
} pl_checkpoint_state;

/* ---- writing ---- */

/* Writes out_dir/step-<step>. Allocates nothing. Of processes that share a run
 * rank 0 alone comes here, and run->others has the others. */
PL_MUST_CHECK pl_status pl_checkpoint_save(pl_run *run, pl_error *err);

/* The most bytes that a checkpoint of this run takes on a disk: every file in
 * whole pages. */
uint64_t pl_checkpoint_bytes(const pl_config *config, const pl_gpt *gpt,
                             uint64_t tokenizer_bytes);
/* That of the tokenizer's files. */
uint64_t pl_checkpoint_tokenizer_bytes(const pl_tokenizer_text *file,
                                       const pl_tokenizer_text *hf);
/* Likewise its metrics, those in out_dir too. */
pl_metrics_bytes pl_checkpoint_metrics_bytes(const pl_config *config);

/* The largest of its files of tensors, and its bytes. */
pl_tensors_name pl_checkpoint_largest(const pl_gpt *gpt, uint64_t *bytes);

/* The JSON files, into run->text; *bytes without the zero. */
PL_MUST_CHECK pl_status pl_checkpoint_state_text(pl_run *run, size_t *bytes,
                                                 pl_error *err);

/* ---- finding ---- */

typedef enum pl_checkpoint_wish {
    PL_WANT_NEWEST,
    PL_WANT_BEST, /* else the newest */
} pl_checkpoint_wish;

/* The checkpoint to take in `out_dir`, which may be one itself: the first that
 * is whole, as far as `scope` needs it. Those before it are named to `log`,
 * left alone and passed over. PL_E_IO if there is none at all, PL_E_FORMAT if
 * none is whole. */
PL_MUST_CHECK pl_status pl_checkpoint_find(
    char folder[PL_PATH_BYTES], const char *out_dir, pl_checkpoint_wish wish,
    pl_manifest_scope scope, const pl_log *log, pl_heap *heap, pl_error *err);

/* Whether `folder` itself has a manifest. */
PL_MUST_CHECK pl_status pl_checkpoint_is(const char *folder, int *yes,
                                         pl_error *err);

/* ---- reading; the manifest was checked ---- */

PL_MUST_CHECK pl_status pl_checkpoint_read_state(pl_checkpoint_state *state,
                                                 const char *folder,
                                                 pl_heap *heap, pl_error *err);

/* The text alone: `name` (a path) begins every message. */
PL_MUST_CHECK pl_status pl_checkpoint_parse_state(pl_checkpoint_state *state,
                                                  const char *text,
                                                  size_t bytes,
                                                  const char *name,
                                                  pl_error *err);
PL_MUST_CHECK pl_status
pl_checkpoint_parse_config(pl_config *config, const char *text, size_t bytes,
                           const char *name, pl_heap *heap, pl_error *err);

/* Every key as it was when the checkpoint was written: as if set by a file
 * what was set then, as a default what was one; and its arithmetic. */
PL_MUST_CHECK pl_status pl_checkpoint_read_config(pl_config *config,
                                                  const char *folder,
                                                  pl_heap *heap, pl_error *err);

/* Lets config->kept_arithmetic be the checkpoint's. */
PL_MUST_CHECK pl_status pl_checkpoint_keep_arithmetic(pl_config *config,
                                                      const char *folder,
                                                      pl_heap *heap,
                                                      pl_error *err);

/* PL_E_FORMAT unless the checkpoint has every tensor that the run's model
 * and its optimizer need, as they are kept here. To be asked before memory is
 * taken. */
PL_MUST_CHECK pl_status pl_checkpoint_check(const pl_run *run,
                                            const char *folder, pl_error *err);

/* Fills the device's weights and moments. */
PL_MUST_CHECK pl_status pl_checkpoint_load(pl_run *run, const char *folder,
                                           pl_error *err);

#endif
