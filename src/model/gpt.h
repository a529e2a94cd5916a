/* gpt.h: the GPT as step lists.
 *
 * Builds the graph of a run (training of a micro-batch, update, evaluation,
 * decoding, saving) over one set of weights, and places it. Owns the meaning
 * of the buffers; computes nothing. */
#ifndef PL_MODEL_GPT_H
#define PL_MODEL_GPT_H

#include "config/config.h"
#include "device/device.h"
#include "model/params.h"
#include "model/shape.h"
#include "model/slices.h"
#include "plan/graph.h"
#include "plan/place.h"

#include <stdint.h>

/* What a run is built for: only training needs gradients and moments. */
typedef enum pl_gpt_purpose {
    PL_PURPOSE_TRAINING,
    PL_PURPOSE_SAMPLING,
    PL_PURPOSE_EVALUATION,
    PL_PURPOSE_SERVING,
} pl_gpt_purpose;

/* Whether decoding keeps keys and values from token to token. Where there is no
 * room for them every token decodes its whole window anew: slow, the same. */
typedef enum pl_gpt_cache { PL_CACHE_KEPT, PL_CACHE_NONE } pl_gpt_cache;

/* How the moments of a matrix are kept, AdamW's two or Muon's one: as float32,
 * or in 8 bits with a scale per block. */
typedef enum pl_gpt_moments { PL_MOMENTS_F32, PL_MOMENTS_8BIT } pl_gpt_moments;

/* The 16-bit weights that products read: rounded from the float32 ones every
 * time they are read, or kept beside them. The bits are the same. */
typedef enum pl_gpt_copy { PL_COPY_NONE, PL_COPY_RESIDENT } pl_gpt_copy;

/* Rows are cut into at most so many chunks. */
enum { PL_GPT_MAX_CHUNKS = 1024 };

/* How the run is laid out. Nothing here changes a result, except what the
 * config alone decides: batches, groups, dropout, dtype, weights, moments and
 * the optimizer. */
typedef struct pl_gpt_layout {
    pl_gpt_purpose purpose;
    size_t batch;         /* sequences of one batch, or of a group within one */
    size_t batches;       /* such, in an update */
    size_t groups;        /* whose gradients are added pairwise: a power of two,
                           * of `batches` at most */
    size_t ranks;         /* processes that share an update, each with `batches`
                           * and `groups` of its own; 0: one */
    size_t rank;          /* which of them this is */
    size_t sync_interval; /* above 1 they don't share updates, but are workers
                           * that meet after so many of their own (DiLoCo) */
    size_t micro;         /* the micro-batch: sequences computed at once */
    size_t train_T;       /* tokens of a training sequence; 0: shape's T */
    size_t eval_T;        /* tokens of an evaluation sequence */
    size_t eval_micro;    /* sequences evaluated at once */
    size_t eval_sequences; /* of one evaluation, which ranks share; 0: none */
    size_t chunk_rows;     /* rows whose logits exist at once */
    size_t mlp_rows; /* rows whose MLP exists at once, where it isn't kept;
                      * 0: all */
    size_t prefill;  /* prompt tokens decoded at once */
    pl_gpt_cache cache;
    size_t slots;          /* serving: sequences with a cache of their own */
    size_t logit_rows;     /* and rows whose logits exist at once, `slots` at
                            * least */
    size_t slice_bytes;    /* of a tensor that is saved at once */
    size_t pack_columns;   /* of weights that a thread packs at once; 0: the few
                            * that fit its stack */
    pl_device_info device; /* scratch and alignment are as it wants them */
    double dropout;
    pl_dtype dtype;   /* storage of activations, and what products read */
    pl_dtype weights; /* storage of matrices: PL_F32, or PL_BF16 by stochastic
                       * rounding; vectors are float32 */
    pl_gpt_moments moments;
    pl_optimizer_choice optimizer;
    pl_muon_scale_choice muon_scale;
    pl_gpt_copy copy; /* of matrices, where dtype has 16 bits and they 32 */
    const uint8_t *levels; /* [L]: what each layer keeps, 0 to 3 */
} pl_gpt_layout;

/* Of a set of moments: another process keeps all of this one. */
enum { PL_BUFFER_ELSEWHERE = PL_NO_BUFFER - 1 };

typedef struct pl_gpt {
    pl_shape shape;
    pl_gpt_layout layout;
    pl_graph graph;
    pl_placement placement;
    /* per slot of params.h; PL_NO_BUFFER where absent. Moments begin with the
     * first element of their slice */
    pl_buffer_id *weights, *gradients, *m, *v; /* v: AdamW's alone */
    pl_buffer_id *m_scales, *v_scales;         /* of moments in 8 bits */
    pl_buffer_id *copies;         /* of weights that products read */
    pl_buffer_id *anchor, *outer; /* of workers: where they met last, and the
                                   * outer momentum; sliced likewise */
    pl_slices slices;      /* of which moments, or outer state, are kept here */
    pl_buffer_id partials; /* float64: of the norm, by blocks; training */
    pl_buffer_id rotary;   /* float32 [T, D]: rotary.h; or PL_NO_BUFFER */
    pl_buffer_id controls; /* device.h's pl_controls */
    pl_buffer_id outcome;  /* and pl_outcome; training only */
    pl_buffer_id train_tokens; /* int32 [batch, train_T + 1] */
    pl_buffer_id train_sums;   /* float64 [batch]: loss summed per sequence */
    pl_buffer_id eval_tokens, eval_sums; /* [eval_micro] likewise */
    pl_buffer_id eval_loss; /* float32 [eval_micro, eval_T]: of each token */
    pl_buffer_id sample_tokens; /* int32 [prefill] */
    pl_buffer_id sample_logits; /* float32 [V] */
    pl_buffer_id sample_work;   /* float32 [V], in the host's space */
    pl_buffer_id slice;         /* uint8 [slice_bytes], likewise */
    /* serving: int32 [prefill] and [slots], float32 [logit_rows, V] */
    pl_buffer_id serve_tokens, serve_positions, serve_logits;
    pl_buffer_id serve_work; /* float32 [V], in the host's space */
} pl_gpt;

/* What the key `dtype` means for a layout. */
pl_dtype pl_layout_dtype(const pl_config *config);

/* The literal layout of a config, for the device that it asks for: batch_size
 * sequences at once; evaluation, prefill and save slices cut so that they fit
 * the memory that training needs anyway. */
PL_MUST_CHECK pl_status pl_gpt_layout_make(pl_gpt_layout *layout,
                                           const pl_shape *shape,
                                           const pl_config *config,
                                           pl_gpt_purpose purpose,
                                           pl_heap *heap, pl_error *err);

/* Serving: every slot's row has room in a round, and its logits. For whoever
 * changed slots, prefill or logit_rows. */
void pl_gpt_layout_mend_serving(pl_gpt_layout *layout);

/* The layout of one of `ranks` processes, of which each has as many of the
 * update's groups: `ranks` divides layout->groups. */
void pl_gpt_layout_share(pl_gpt_layout *layout, size_t ranks, size_t rank);
/* The same number, where a layout says nothing: 1. */
size_t pl_gpt_ranks(const pl_gpt_layout *layout);
/* What this process keeps of a parameter's moments: a worker all of it. */
pl_slice pl_gpt_own(const pl_gpt *gpt, size_t slot);
/* Workers of a run that has such: one or more; else 0. */
size_t pl_gpt_workers(const pl_gpt_layout *layout);

/* Sums of groups that an update keeps beside its gradients: log2(groups). */
size_t pl_gpt_digits(size_t groups);

/* Builds and places. All memory is `heap`'s. Evaluation, sampling and saving
 * are shrunk (eval_micro, prefill, slice_bytes) until they add no byte to
 * training's peak; gpt->layout holds what was chosen. */
PL_MUST_CHECK pl_status pl_gpt_make(pl_gpt *gpt, const pl_shape *shape,
                                    const pl_gpt_layout *layout, pl_heap *heap,
                                    pl_error *err);

/* Only training and the update: what the search for a layout compares. */
PL_MUST_CHECK pl_status pl_gpt_make_training(pl_gpt *gpt, const pl_shape *shape,
                                             const pl_gpt_layout *layout,
                                             pl_heap *heap, pl_error *err);

#endif
