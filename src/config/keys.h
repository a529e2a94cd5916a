/* keys.h: the one table of config keys.
 *
 * Everything that knows a key reads it here: the typed struct (config.h), the
 * parser, the checks, the help of each command, the docs page and the saved
 * run. A new key is one new row. */
#ifndef PL_CONFIG_KEYS_H
#define PL_CONFIG_KEYS_H

#include "base/threads.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which commands read a key; a row may have several. */
enum {
    PL_FOR_TRAIN = 1, /* train, plan and eval */
    PL_FOR_SAMPLE = 2,
    PL_FOR_PREPARE = 4,
    PL_FOR_EXPLAIN = 8, /* beside what train takes */
    PL_FOR_BENCH = 16,  /* likewise */
    PL_FOR_TOKENIZER = 32,
    PL_FOR_TOKENIZE = 64,
    PL_FOR_INSPECT = 128,
    PL_FOR_EXPORT = 256,
    PL_FOR_IMPORT = 512,
    PL_FOR_PLAN = 1024, /* beside what train takes */
    PL_FOR_LIVE = 2048,
    PL_FOR_SERVE = 4096,
    PL_FOR_REPORT = 8192,
    PL_FOR_ALL = 16383,
};

/* Field in pl_config, what a file may assign, where the range columns apply:
 *   INT       int64_t            min <= value <= max
 *   OPTIONAL  int64_t            the same, or None, stored as PL_NONE
 *   FLOAT     double             min <= value < max; ints are converted
 *   FLAG      bool
 *   TEXT      const char *
 *   TEXTS     pl_texts           a string, or a list of strings
 *   CHOICE    pl_<key>_choice    one of PL_CHOICES_<key>
 *   DEVICE    pl_device_wish     likewise; one word has a number
 *   LEVELS    pl_checkpointing   a flag, a level, or a list of levels
 *   IGNORED   pl_ignored         any expression; has no effect */
typedef enum pl_key_type {
    PL_TYPE_INT,
    PL_TYPE_OPTIONAL,
    PL_TYPE_FLOAT,
    PL_TYPE_FLAG,
    PL_TYPE_TEXT,
    PL_TYPE_TEXTS,
    PL_TYPE_CHOICE,
    PL_TYPE_DEVICE,
    PL_TYPE_LEVELS,
    PL_TYPE_IGNORED,
} pl_key_type;

typedef enum pl_key_group {
    PL_GROUP_RUN,
    PL_GROUP_DATA,
    PL_GROUP_MODEL,
    PL_GROUP_OPTIMIZER,
    PL_GROUP_EVAL,
    PL_GROUP_MACHINE,
    PL_GROUP_SAMPLE,
    PL_GROUP_SERVER,
    PL_GROUP_PREPARE,
    PL_GROUP_OUTPUT,
    PL_GROUP_CONSENT,
    PL_GROUP_IGNORED,
    PL_GROUP_COUNT,
} pl_key_group;

/* What another value does to a run that goes on with it, the weakest first.
 * Everything that says what a change costs reads it: resume, the advice of
 * plan, the docs. There is no default: a row without it does not compile. */
typedef enum pl_effect {
    PL_EFFECT_CALL, /* belongs to one call of a command and to no run: where it
                     * is, how it begins, what is shown, read or written */
    PL_EFFECT_SAME, /* no bit of training or evaluation: only time, memory,
                     * which steps are kept and where the run ends */
    PL_EFFECT_EVALUATION, /* what is measured, when and on how much; no bit of
                           * the training */
    PL_EFFECT_NUMBERS,    /* the run is another one from there on */
    PL_EFFECT_TENSORS,    /* other numbers, held in other tensors than the
                           * checkpoint's: refused there */
    PL_EFFECT_MODEL,      /* another model: compared as a shape, refused */
    PL_EFFECT_DATA,       /* where the data is: the number of its tokens and its
                           * tokenizer are compared, not this */
    PL_EFFECT_IDENTITY,   /* which run it is: refused */
    PL_EFFECT_COUNT,
} pl_effect;

enum { PL_NONE = -1 }; /* an OPTIONAL key that has no value */

enum { PL_MAX_LAYERS = 1000, PL_MAX_LEVEL = 3 };

#define PL_MAX_SIZE  1073741824.0 /* 2^30: of one dimension */
#define PL_MAX_STEPS 4294967295.0 /* a step is one 32-bit word of a counter */

/* clang-format off */

/* The words that a CHOICE key takes: C(constant, word). Of each list an enum
 * pl_<key>_choice is made below, which is the type of the field. In a DEVICE's
 * words ":N" stands for a number in that place. */
#define PL_CHOICES_architecture(C)                                             \
    C(PL_ARCHITECTURE_GPT2, "gpt2") C(PL_ARCHITECTURE_LLAMA, "llama")          \
    C(PL_ARCHITECTURE_QWEN3, "qwen3")
#define PL_CHOICES_position(C)                                                 \
    C(PL_POSITION_LEARNED, "learned") C(PL_POSITION_ROPE, "rope")
#define PL_CHOICES_mlp(C)                                                      \
    C(PL_MLP_WORD_GELU, "gelu") C(PL_MLP_WORD_SWIGLU, "swiglu")                \
    C(PL_MLP_WORD_RELU2, "relu2")
#define PL_CHOICES_norm(C)                                                     \
    C(PL_NORM_LAYERNORM, "layernorm") C(PL_NORM_RMSNORM, "rmsnorm")
#define PL_CHOICES_activation(C)                                               \
    C(PL_ACTIVATION_GELU, "gelu") C(PL_ACTIVATION_GELU_TANH, "gelu_tanh")
#define PL_CHOICES_optimizer(C)                                                \
    C(PL_OPTIMIZER_ADAMW, "adamw") C(PL_OPTIMIZER_MUON, "muon")
#define PL_CHOICES_muon_scale(C)                                               \
    C(PL_MUON_SCALE_SPECTRAL, "spectral") C(PL_MUON_SCALE_RMS, "rms")
#define PL_CHOICES_schedule(C)                                                 \
    C(PL_SCHEDULE_COSINE, "cosine") C(PL_SCHEDULE_WSD, "wsd")                  \
    C(PL_SCHEDULE_LINEAR, "linear") C(PL_SCHEDULE_CONSTANT, "constant")
#define PL_CHOICES_optimizer_state(C)                                          \
    C(PL_OPTIMIZER_STATE_FLOAT32, "float32")                                   \
    C(PL_OPTIMIZER_STATE_8BIT, "8bit")
#define PL_CHOICES_device(C)                                                   \
    C(PL_DEVICE_WISH_AUTO, "auto") C(PL_DEVICE_WISH_CPU, "cpu")                \
    C(PL_DEVICE_WISH_OPENCL, "opencl") C(PL_DEVICE_WISH_OPENCL_N, "opencl:N")  \
    C(PL_DEVICE_WISH_CUDA, "cuda") C(PL_DEVICE_WISH_CUDA_N, "cuda:N")          \
    C(PL_DEVICE_WISH_MPS, "mps")
#define PL_CHOICES_dtype(C)                                                    \
    C(PL_DTYPE_FLOAT32, "float32") C(PL_DTYPE_BFLOAT16, "bfloat16")            \
    C(PL_DTYPE_FLOAT16, "float16")
#define PL_CHOICES_products(C)                                                 \
    C(PL_PRODUCTS_WISH_AUTO, "auto") C(PL_PRODUCTS_WISH_EXACT, "exact")        \
    C(PL_PRODUCTS_WISH_TENSOR, "tensor")                                       \
    C(PL_PRODUCTS_WISH_TENSOR24, "tensor24")                                   \
    C(PL_PRODUCTS_WISH_TENSOR25, "tensor25")                                   \
    C(PL_PRODUCTS_WISH_AMX, "amx")
#define PL_CHOICES_weights(C)                                                  \
    C(PL_WEIGHTS_FLOAT32, "float32") C(PL_WEIGHTS_BF16, "bf16")
#define PL_CHOICES_working_copy(C)                                             \
    C(PL_WORKING_COPY_AUTO, "auto") C(PL_WORKING_COPY_ROUNDED, "rounded")      \
    C(PL_WORKING_COPY_RESIDENT, "resident")
#define PL_CHOICES_fit(C) C(PL_FIT_AUTO, "auto") C(PL_FIT_EXACT, "exact")
#define PL_CHOICES_input(C)                                                    \
    C(PL_INPUT_AUTO, "auto") C(PL_INPUT_TEXT, "text")                          \
    C(PL_INPUT_JSONL, "jsonl") C(PL_INPUT_PARQUET, "parquet")
#define PL_CHOICES_pattern(C)                                                  \
    C(PL_PATTERN_IS_GPT2, "gpt2") C(PL_PATTERN_IS_LLAMA3, "llama3")            \
    C(PL_PATTERN_IS_QWEN2, "qwen2") C(PL_PATTERN_IS_SMOLLM2, "smollm2")
#define PL_CHOICES_ids(C)                                                      \
    C(PL_IDS_TEXT, "text") C(PL_IDS_UINT16, "uint16")                          \
    C(PL_IDS_UINT32, "uint32")
#define PL_CHOICES_format(C)                                                   \
    C(PL_FORMAT_AUTO, "auto") C(PL_FORMAT_NANOGPT, "nanogpt")                  \
    C(PL_FORMAT_LLMC, "llmc") C(PL_FORMAT_GGUF, "gguf") C(PL_FORMAT_HF, "hf")  \
    C(PL_FORMAT_HTML, "html") C(PL_FORMAT_MD, "md")
#define PL_CHOICES_type(C)                                                     \
    C(PL_EXPORT_TYPE_F32, "f32") C(PL_EXPORT_TYPE_F16, "f16")                  \
    C(PL_EXPORT_TYPE_BF16, "bf16") C(PL_EXPORT_TYPE_Q8_0, "q8_0")

/* X(type, key, default, min, max, effect, commands, group, help) */
#define PL_CONFIG_TABLE(X)                                                     \
X(TEXT, out_dir, "out", 0, 0, CALL,                                            \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE | PL_FOR_REPORT, RUN,            \
  "folder of the run: checkpoints are written to it and read from it")         \
X(TEXT, init_from, "scratch", 0, 0, CALL,                                      \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE, RUN,                            \
  "where the weights come from: 'scratch', 'resume' (the newest checkpoint in "\
  "out_dir), or a folder with a GPT-2, Llama or Qwen3 as Hugging Face keeps "  \
  "it; 'gpt2' and "                                                            \
  "other names of its hub are looked up in its cache on this disk")            \
X(INT, seed, 1337, 0, PL_MAX_STEPS, IDENTITY,                                  \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE, RUN,                            \
  "seed of all random numbers of the run")                                     \
X(INT, max_iters, 600000, 0, PL_MAX_STEPS, SAME, PL_FOR_TRAIN, RUN,            \
  "updates of the weights in the whole run")                                   \
X(FLOAT, max_minutes, 0.0, 0, HUGE_VAL, CALL, PL_FOR_TRAIN, RUN,               \
  "how long a new run should take here, evaluations included: before its "     \
  "first step max_iters, lr_decay_iters, warmup_iters and eval_interval are "  \
  "made of it by this machine's measured rate, as far as they aren't set, and "\
  "stay; 0: nothing is. It is no deadline")                                    \
X(INT, log_interval, 1, 1, PL_MAX_STEPS, CALL, PL_FOR_TRAIN, RUN,              \
  "updates between two lines of progress")                                     \
X(FLAG, always_save_checkpoint, true, 0, 0, SAME, PL_FOR_TRAIN, RUN,           \
  "save after every evaluation, not only after the best one so far")           \
X(OPTIONAL, save_interval, PL_NONE, 1, PL_MAX_STEPS, SAME, PL_FOR_TRAIN, RUN,  \
  "updates between two checkpoints; None: after evaluations, as "              \
  "always_save_checkpoint says")                                               \
X(INT, keep, 1, 0, 1000000, SAME, PL_FOR_TRAIN, RUN,                           \
  "older checkpoints that stay, beside the newest and the best")               \
X(FLOAT, comm_timeout, 120.0, 1, 86400, CALL, PL_FOR_TRAIN, RUN,               \
  "seconds after which a process that shares the run and was not heard from "  \
  "is given up, and the run with it; five times as many before the first step")\
X(INT, max_skipped, 10, 1, PL_MAX_STEPS, SAME, PL_FOR_TRAIN, RUN,              \
  "the run stops after so many updates in a row whose loss or gradients are "  \
  "not finite")                                                                \
                                                                               \
X(TEXT, dataset, "openwebtext", 0, 0, DATA, PL_FOR_TRAIN, DATA,                \
  "folder below data/ that holds train.bin and val.bin")                       \
X(INT, batch_size, 12, 1, PL_MAX_SIZE, NUMBERS, PL_FOR_TRAIN, DATA,            \
  "sequences per batch")                                                       \
X(INT, gradient_accumulation_steps, 40, 1, PL_MAX_SIZE, NUMBERS, PL_FOR_TRAIN, \
  DATA, "batches per update, of batch_size sequences each")                    \
X(INT, gradient_groups, 1, 1, PL_MAX_SIZE, NUMBERS, PL_FOR_TRAIN, DATA,        \
  "groups of consecutive sequences, a power of two: gradients are summed "     \
  "within each, and then added pairwise")                                      \
X(INT, block_size, 1024, 1, PL_MAX_SIZE, MODEL, PL_FOR_TRAIN, DATA,            \
  "tokens per sequence, the longest context of the model")                     \
X(OPTIONAL, vocab_size, PL_NONE, 1, PL_MAX_SIZE, MODEL,                        \
  PL_FOR_TRAIN | PL_FOR_TOKENIZER, DATA,                                       \
  "size of the model's vocabulary; None: the tokenizer's, for BPE rounded up " \
  "to a multiple of 64 (GPT-2: 50304). For a new tokenizer: its size; None: "  \
  "32768")                                                                     \
                                                                               \
X(CHOICE, architecture, PL_ARCHITECTURE_GPT2, 0, 0, MODEL, PL_FOR_TRAIN,       \
  MODEL,                                                                       \
  "family of the model: it sets the defaults of norm, norm_eps, position, "    \
  "rope_theta, mlp, qk_norm, bias and tie_word_embeddings, each of which can " \
  "be set alone, and says how weights are named and stored")                   \
X(OPTIONAL, depth, PL_NONE, 1, PL_MAX_LAYERS, CALL, PL_FOR_TRAIN, MODEL,       \
  "one dial for a new run: its blocks, from which published rules derive the " \
  "width, heads, batch, learning rates and length of the run, as far as they " \
  "aren't set (docs/recipe.md); None: nothing is derived")                     \
X(INT, n_layer, 12, 1, PL_MAX_LAYERS, MODEL, PL_FOR_TRAIN, MODEL,              \
  "transformer blocks")                                                        \
X(INT, n_head, 12, 1, 1048576, MODEL, PL_FOR_TRAIN, MODEL,                     \
  "attention heads per block")                                                 \
X(INT, n_embd, 768, 1, 16777216, MODEL, PL_FOR_TRAIN, MODEL,                   \
  "channels of the residual stream")                                           \
X(OPTIONAL, head_dim, PL_NONE, 1, 16777216, MODEL, PL_FOR_TRAIN, MODEL,        \
  "channels of one head; None: n_embd / n_head, to the nearest even number "   \
  "where that is not whole")                                                   \
X(OPTIONAL, n_kv_head, PL_NONE, 1, 1048576, MODEL, PL_FOR_TRAIN, MODEL,        \
  "heads of keys and values, each shared by n_head / n_kv_head query heads; "  \
  "None: n_head")                                                              \
X(FLOAT, dropout, 0.0, 0, 1, NUMBERS, PL_FOR_TRAIN, MODEL,                     \
  "share of activations that training drops")                                  \
X(FLAG, bias, false, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,                         \
  "biases in the linear layers and layernorms, as GPT-2 has them")             \
X(FLAG, tie_word_embeddings, true, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,           \
  "the classifier uses the token table as its matrix, as in GPT-2; False, "    \
  "the default of llama: it has weights of its own")                           \
X(CHOICE, norm, PL_NORM_LAYERNORM, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,           \
  "what normalises a row: layernorm as in GPT-2, or RMSNorm, which has no "    \
  "mean and no bias, the default of llama and qwen3")                          \
X(FLOAT, norm_eps, 1e-5, 0, 1, MODEL, PL_FOR_TRAIN, MODEL,                     \
  "what norms add to a mean square before its root is taken; 1e-6 in qwen3")   \
X(CHOICE, position, PL_POSITION_LEARNED, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,     \
  "how the model knows positions: by a learned table as in GPT-2, or by "      \
  "rotating queries and keys, the default of llama and qwen3")                 \
X(FLOAT, rope_theta, 10000.0, 1, HUGE_VAL, MODEL, PL_FOR_TRAIN, MODEL,         \
  "base of the rotations' frequencies; 1000000 in qwen3")                      \
X(CHOICE, mlp, PL_MLP_WORD_GELU, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,             \
  "what is between the two products of the MLP: GELU as activation says, "     \
  "max(x, 0) squared, or silu(gate) * up of a wider one, the default of llama "\
  "and qwen3")                                                                 \
X(OPTIONAL, mlp_hidden, PL_NONE, 1, 16777216, MODEL, PL_FOR_TRAIN, MODEL,      \
  "channels between them; None: 4 x n_embd, for swiglu the multiple of 64 "    \
  "nearest to 8/3 x n_embd")                                                   \
X(FLAG, qk_norm, false, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,                      \
  "every head of queries and keys is normalised by RMSNorm, before it is "     \
  "rotated; the default of qwen3")                                             \
X(FLOAT, logit_softcap, 0.0, 0, HUGE_VAL, MODEL, PL_FOR_TRAIN, MODEL,          \
  "logits become cap * tanh(logits / cap), whose magnitude is below this; "    \
  "0.0: they are as they are")                                                 \
X(CHOICE, activation, PL_ACTIVATION_GELU, 0, 0, MODEL, PL_FOR_TRAIN, MODEL,    \
  "GELU by erf, or by tanh as in OpenAI's GPT-2")                              \
                                                                               \
X(CHOICE, optimizer, PL_OPTIMIZER_ADAMW, 0, 0, TENSORS, PL_FOR_TRAIN,          \
  OPTIMIZER, "what updates the matrices of the blocks: AdamW, or Muon, which " \
  "keeps one moment of them instead of two; all else is AdamW's")              \
X(FLOAT, learning_rate, 6e-4, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,   \
  "AdamW's learning rate at its highest")                                      \
X(FLOAT, weight_decay, 1e-1, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,    \
  "AdamW's weight decay, of matrices and embeddings")                          \
X(FLOAT, beta1, 0.9, 0, 1, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,                   \
  "decay rate of AdamW's running mean of the gradients")                       \
X(FLOAT, beta2, 0.95, 0, 1, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,                  \
  "decay rate of AdamW's running mean of their squares")                       \
X(FLOAT, grad_clip, 1.0, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,        \
  "largest norm of the gradients, to which longer ones are scaled down; 0.0: " \
  "no limit")                                                                  \
X(CHOICE, optimizer_state, PL_OPTIMIZER_STATE_FLOAT32, 0, 0, TENSORS,          \
  PL_FOR_TRAIN, OPTIMIZER,                                                     \
  "how the moments are kept: float32, or 8 bits in blocks, which takes 3 "     \
  "bytes less for each and gives other numbers")                               \
X(FLOAT, muon_learning_rate, 0.0, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN,          \
  OPTIMIZER, "Muon's learning rate at its highest, which follows the schedule "\
  "of learning_rate; 0.0: 0.02, or learning_rate where muon_scale is 'rms'")   \
X(CHOICE, muon_scale, PL_MUON_SCALE_SPECTRAL, 0, 0, NUMBERS, PL_FOR_TRAIN,     \
  OPTIMIZER, "what Muon's update of an out x in matrix is multiplied with: "   \
  "sqrt(max(1, out / in)), or 0.2 sqrt(max(out, in)), for updates as large "   \
  "as AdamW's")                                                                \
X(FLOAT, muon_momentum, 0.95, 0, 1, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,          \
  "decay rate of Muon's running mean of the gradients")                        \
X(FLOAT, muon_weight_decay, 0.1, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN,           \
  OPTIMIZER, "Muon's weight decay, which its learning rate multiplies")        \
X(INT, sync_interval, 1, 1, PL_MAX_STEPS, TENSORS, PL_FOR_TRAIN, OPTIMIZER,    \
  "1: processes that share a run share every update, exactly. More: DiLoCo, "  \
  "another algorithm for slow networks: each of gradient_groups processes "    \
  "makes so many updates with its own group of sequences and its own "         \
  "optimizer before all of them meet (docs/ranks.md)")                         \
X(FLOAT, outer_learning_rate, 0.7, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN,         \
  OPTIMIZER, "where they meet: how far the weights that they began with go "   \
  "towards, or past, the mean of what each has come to")                       \
X(FLOAT, outer_momentum, 0.9, 0, 1, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,          \
  "Nesterov's momentum of these steps")                                        \
X(FLAG, decay_lr, true, 0, 0, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,                \
  "the learning rates follow `schedule`; False: they are constant, without "   \
  "a warm-up")                                                                 \
X(CHOICE, schedule, PL_SCHEDULE_COSINE, 0, 0, NUMBERS, PL_FOR_TRAIN,           \
  OPTIMIZER, "what follows the warm-up: a cosine or a line down to min_lr, "   \
  "the highest rate and then a line (wsd), or the highest rate for good")      \
X(FLOAT, warmdown_share, 0.65, 0, 1, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,         \
  "of 'wsd': the share of lr_decay_iters in which the rate goes down")         \
X(INT, warmup_iters, 2000, 0, PL_MAX_STEPS, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,  \
  "updates until the learning rate is at its highest")                         \
X(INT, lr_decay_iters, 600000, 0, PL_MAX_STEPS, NUMBERS, PL_FOR_TRAIN,         \
  OPTIMIZER, "update at which the learning rate arrives at min_lr")            \
X(FLOAT, min_lr, 6e-5, 0, HUGE_VAL, NUMBERS, PL_FOR_TRAIN, OPTIMIZER,          \
  "learning rate at the end of the decay")                                     \
                                                                               \
X(INT, eval_interval, 2000, 1, PL_MAX_STEPS, EVALUATION, PL_FOR_TRAIN, EVAL,   \
  "updates between two evaluations")                                           \
X(INT, eval_iters, 200, 1, PL_MAX_SIZE, EVALUATION, PL_FOR_TRAIN, EVAL,        \
  "batches per evaluation and split: more take more time and give less "       \
  "noise, and need no memory")                                                 \
X(FLAG, eval_only, false, 0, 0, CALL, PL_FOR_TRAIN, EVAL,                      \
  "stop after the first evaluation")                                           \
X(OPTIONAL, eval_batch_size, PL_NONE, 1, PL_MAX_SIZE, EVALUATION,              \
  PL_FOR_TRAIN, EVAL, "sequences per evaluation batch; None: batch_size")      \
X(OPTIONAL, eval_block_size, PL_NONE, 1, PL_MAX_SIZE, EVALUATION,              \
  PL_FOR_TRAIN, EVAL,                                                          \
  "tokens per evaluation sequence; None: block_size. With a shorter context "  \
  "the loss is another, higher one")                                           \
X(TEXTS, tasks, "", 0, 0, SAME, PL_FOR_TRAIN, EVAL,                            \
  "files of tasks, or folders with some, that a training puts to its model "   \
  "on its way: a string, or a list of strings. docs/tasks.md has the forms")   \
X(INT, task_interval, 0, 0, PL_MAX_STEPS, SAME, PL_FOR_TRAIN, EVAL,            \
  "updates between two times that it does so, with results in tasks.jsonl in " \
  "out_dir; 0: never. It changes no bit of the run")                           \
X(INT, shots, 0, 0, 1000000, SAME, PL_FOR_TRAIN, EVAL,                         \
  "items of a task, with their answers, that stand before each item")          \
X(OPTIONAL, task_limit, PL_NONE, 1, PL_MAX_SIZE, SAME, PL_FOR_TRAIN, EVAL,     \
  "items of each task that are asked, the first ones; None: all")              \
X(TEXT, continuation_delimiter, " ", 0, 0, SAME, PL_FOR_TRAIN, EVAL,           \
  "what stands between the context of a task's item and its continuation")     \
X(TEXT, example_delimiter, "\n\n", 0, 0, SAME, PL_FOR_TRAIN, EVAL,             \
  "what stands behind each of the items that shots puts before another")       \
                                                                               \
X(DEVICE, device, PL_DEVICE_WISH_AUTO, 0, 0, SAME,                             \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE, MACHINE,                        \
  "what computes: the processor, a card by its number, or 'auto', a card "     \
  "that has the processor's bits, else the processor. `plimsoll devices` "     \
  "lists them")                                                                \
X(CHOICE, dtype, PL_DTYPE_FLOAT32, 0, 0, NUMBERS,                              \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE, MACHINE,                        \
  "what products multiply, and activations and their gradients are stored "    \
  "as, as PyTorch's autocast does; sums are float32 or better")                \
X(CHOICE, products, PL_PRODUCTS_WISH_AUTO, 0, 0, NUMBERS,                      \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE, MACHINE,                        \
  "how a 16-bit dtype's products are added up: 'exact' by multiply-adds, "     \
  "'tensor24' as Ampere's and Ada's tensor cores, 'tensor25' as Hopper's and " \
  "Blackwell's, 'amx' as Intel's AMX (bfloat16), 'tensor' as what is here; "   \
  "'auto': as the checkpoint was, else as tensor cores or AMX, if any")        \
X(CHOICE, weights, PL_WEIGHTS_FLOAT32, 0, 0, TENSORS, PL_FOR_TRAIN, MACHINE,   \
  "how training keeps the weights: float32, or bf16 with stochastic "          \
  "rounding, which takes 2 bytes per parameter less and gives other numbers")  \
X(CHOICE, working_copy, PL_WORKING_COPY_AUTO, 0, 0, SAME, PL_FOR_TRAIN,        \
  MACHINE,                                                                     \
  "16-bit weights, for a 16-bit dtype: rounded from the float32 ones "         \
  "whenever they are read, or kept beside them; 'auto' keeps them for a "      \
  "card's tensor cores, which can't round; the bits are the same")             \
X(OPTIONAL, threads, PL_NONE, 1, PL_MAX_THREADS, SAME,                         \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE | PL_FOR_PREPARE |               \
    PL_FOR_TOKENIZER, MACHINE,                                                 \
  "threads that compute; None: one per processor this process may use")        \
X(TEXT, memory, "auto", 0, 0, SAME,                                            \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE | PL_FOR_PREPARE |               \
    PL_FOR_TOKENIZER, MACHINE,                                                 \
  "the budget: '12GB', '1.5GiB', or 'auto', which is what the machine "        \
  "offers, but no more than nanoGPT or llm.c would take; of a card's own "     \
  "memory, where one computes")                                                \
X(TEXT, host_memory, "auto", 0, 0, SAME,                                       \
  PL_FOR_TRAIN | PL_FOR_SAMPLE | PL_FOR_SERVE, MACHINE,                        \
  "where a card computes: the budget of the rest, which is the host's, "       \
  "without the card's driver; 'auto': what it offers")                         \
X(CHOICE, fit, PL_FIT_AUTO, 0, 0, SAME, PL_FOR_TRAIN, MACHINE,                 \
  "'auto': the fastest layout that fits the budget; 'exact': the layout that " \
  "the config describes")                                                      \
X(TEXT, gpu, "", 0, 0, CALL, PL_FOR_EXPLAIN | PL_FOR_PLAN, MACHINE,            \
  "graphics card by its name, 'RTX 4070', which needn't be here: plan says "   \
  "what would fit it and how long it would take, explain what nanoGPT would "  \
  "need on it")                                                                \
X(INT, rounds, 5, 1, 99, CALL, PL_FOR_BENCH, MACHINE,                          \
  "measurements of which bench prints the medians")                            \
X(LEVELS, grad_checkpoint, false, 0, PL_MAX_LEVEL, SAME, PL_FOR_TRAIN,         \
  MACHINE,                                                                     \
  "how many activations are computed again instead of kept, for less memory "  \
  "and more time; False: none that needs a matrix product")                    \
                                                                               \
X(TEXT, start, "\n", 0, 0, CALL, PL_FOR_SAMPLE, SAMPLE,                        \
  "text to go on from, or FILE:path to read it from a file")                   \
X(INT, num_samples, 10, 1, PL_MAX_SIZE, CALL, PL_FOR_SAMPLE, SAMPLE,           \
  "texts to write")                                                            \
X(INT, sample_interval, 0, 0, PL_MAX_STEPS, SAME, PL_FOR_TRAIN, SAMPLE,        \
  "updates between two times that a training writes texts, to samples.jsonl "  \
  "in out_dir; 0: it writes none. It changes no bit of the run")               \
X(TEXTS, sample_prompts, "\n", 0, 0, SAME, PL_FOR_TRAIN, SAMPLE,               \
  "texts that a training goes on from then: a string, or a list of strings, "  \
  "each as start has it")                                                      \
X(INT, max_new_tokens, 500, 1, PL_MAX_SIZE, CALL,                              \
  PL_FOR_TRAIN | PL_FOR_SAMPLE, SAMPLE,                                        \
  "tokens in each text")                                                       \
X(FLOAT, temperature, 0.8, 0, HUGE_VAL, CALL, PL_FOR_TRAIN | PL_FOR_SAMPLE,    \
  SAMPLE,                                                                      \
  "divides the logits: below 1.0 likely tokens come more often, above it "     \
  "less often; 0.0: always the likeliest token")                               \
X(OPTIONAL, top_k, 200, 0, PL_MAX_SIZE, CALL, PL_FOR_TRAIN | PL_FOR_SAMPLE,    \
  SAMPLE,                                                                      \
  "choose among this many likeliest tokens; None or 0: among all")             \
                                                                               \
X(TEXT, host, "127.0.0.1", 0, 0, CALL, PL_FOR_LIVE | PL_FOR_SERVE, SERVER,     \
  "address to listen on; any but this machine's own needs a token")            \
X(OPTIONAL, port, PL_NONE, 0, 65535, CALL, PL_FOR_LIVE | PL_FOR_SERVE, SERVER, \
  "port to listen on; 0: any that is free; None: 8080 for serve, for live "    \
  "8377, or any that is free where that is in use")                            \
X(TEXT, token, "", 0, 0, CALL, PL_FOR_LIVE | PL_FOR_SERVE, SERVER,             \
  "what every request has to know, as 'Authorization: Bearer TOKEN'; '': "     \
  "nothing, on this machine")                                                  \
X(OPTIONAL, serve_slots, PL_NONE, 1, 1024, CALL, PL_FOR_SERVE, SERVER,         \
  "texts that are written at the same time, each with a cache of its own; "    \
  "None: 8, or fewer where the budget has no room for them")                   \
X(INT, serve_queue, 64, 1, 4096, CALL, PL_FOR_SERVE, SERVER,                   \
  "requests that are there at the same time, written or waiting; others are "  \
  "told to come back later")                                                   \
                                                                               \
X(TEXT, tokenizer, "char", 0, 0, CALL,                                         \
  PL_FOR_PREPARE | PL_FOR_TOKENIZE | PL_FOR_INSPECT, PREPARE,                  \
  "'char', 'byte', 'gpt2', or the path of a BPE: tokenizer.json, .tiktoken, "  \
  "vocab.json, or a folder with one")                                          \
X(FLOAT, val_fraction, 0.1, 0, 1, CALL, PL_FOR_PREPARE, PREPARE,               \
  "share of the text for validation: whole documents, or the end of a single " \
  "text")                                                                      \
X(CHOICE, input, PL_INPUT_AUTO, 0, 0, CALL, PL_FOR_PREPARE | PL_FOR_TOKENIZER, \
  PREPARE, "what the files are; 'auto': by their names")                       \
X(TEXT, field, "text", 0, 0, CALL,                                             \
  PL_FOR_PREPARE | PL_FOR_TOKENIZER | PL_FOR_INSPECT, PREPARE,                 \
  "field of JSON lines, or column of parquet, that has the text")              \
X(TEXT, include, "", 0, 0, CALL, PL_FOR_PREPARE | PL_FOR_TOKENIZER, PREPARE,   \
  "patterns of the files to take from folders, with commas: '*.c,*.h'; '': "   \
  "all that are text")                                                         \
X(TEXT, exclude, "", 0, 0, CALL, PL_FOR_PREPARE | PL_FOR_TOKENIZER, PREPARE,   \
  "patterns of files and folders to leave out of folders: "                    \
  "'*.min.js,node_modules,docs/**'")                                           \
X(TEXT, end_of_text, "<|endoftext|>", 0, 0, CALL,                              \
  PL_FOR_PREPARE | PL_FOR_TOKENIZER, PREPARE,                                  \
  "special token of a BPE that stands behind every document; '': none")        \
X(CHOICE, pattern, PL_PATTERN_IS_GPT2, 0, 0, CALL, PL_FOR_TOKENIZER, PREPARE,  \
  "whose way of cutting text into words a new tokenizer has; 'qwen2' also "    \
  "normalizes text to NFC")                                                    \
X(OPTIONAL, shard_tokens, PL_NONE, 1, 1e12, CALL, PL_FOR_PREPARE, PREPARE,     \
  "tokens per file; None: one file for each split")                            \
X(CHOICE, ids, PL_IDS_TEXT, 0, 0, CALL, PL_FOR_TOKENIZE, PREPARE,              \
  "how token ids are written and read: a line for each, or binary")            \
                                                                               \
X(TEXT, out, "", 0, 0, CALL,                                                   \
  PL_FOR_PREPARE | PL_FOR_TOKENIZER | PL_FOR_EXPORT | PL_FOR_IMPORT |          \
  PL_FOR_REPORT, OUTPUT,                                                       \
  "what to write: a folder, or for export to gguf and llmc, and for report, "  \
  "a file; '' is report.html or report.md for the latter, '-' its output")     \
X(CHOICE, format, PL_FORMAT_AUTO, 0, 0, CALL,                                  \
  PL_FOR_PREPARE | PL_FOR_EXPORT | PL_FOR_REPORT, OUTPUT,                      \
  "for prepare: nanoGPT's 16 bits without a header, or llm.c's with one; "     \
  "'auto': nanoGPT's unless the vocabulary needs 32 bits. For export: gguf "   \
  "for llama.cpp, llmc, or hf, a Hugging Face folder; for report: html, or "   \
  "md with pictures beside it; 'auto': by the name of out")                    \
X(CHOICE, type, PL_EXPORT_TYPE_F32, 0, 0, CALL, PL_FOR_EXPORT, OUTPUT,         \
  "type of exported matrices: f32 as trained, f16 or bf16, or q8_0, 8 bits "   \
  "in blocks of 32 (gguf); llmc has f32 and bf16")                             \
                                                                               \
X(FLAG, allow_other_tokenizer, false, 0, 0, CALL, PL_FOR_TRAIN, CONSENT,       \
  "use a model on data with another tokenizer than its own, where the same "   \
  "token means something else")                                                \
X(FLAG, allow_other_arithmetic, false, 0, 0, CALL, PL_FOR_TRAIN, CONSENT,      \
  "resume with kernels that give other bits than those of the run so far")     \
                                                                               \
X(IGNORED, backend, "'nccl'", 0, 0, CALL, PL_FOR_TRAIN, IGNORED,               \
  "nanoGPT's distributed backend")                                             \
X(IGNORED, compile, "True", 0, 0, CALL, PL_FOR_TRAIN | PL_FOR_SAMPLE, IGNORED, \
  "nanoGPT's use of torch.compile")                                            \
X(IGNORED, wandb_log, "False", 0, 0, CALL, PL_FOR_TRAIN, IGNORED,              \
  "nanoGPT's logging to Weights & Biases")                                     \
X(IGNORED, wandb_project, "'owt'", 0, 0, CALL, PL_FOR_TRAIN, IGNORED,          \
  "its project there")                                                         \
X(IGNORED, wandb_run_name, "'gpt2'", 0, 0, CALL, PL_FOR_TRAIN, IGNORED,        \
  "its run there")
/* clang-format on */

typedef enum pl_key {
#define PL_KEY_ENUM(type, key, ...) PL_KEY_##key,
    PL_CONFIG_TABLE(PL_KEY_ENUM)
#undef PL_KEY_ENUM
        PL_KEY_COUNT
} pl_key;

/* The enums of choices. */
#define PL_CHOICE_CONSTANT(constant, word) constant,
#define PL_CHOICE_ENUM(key)                                                    \
    typedef enum pl_##key##_choice{ PL_CHOICES_##key(                          \
        PL_CHOICE_CONSTANT) } pl_##key##_choice;
#define PL_ENUM_INT(key)
#define PL_ENUM_OPTIONAL(key)
#define PL_ENUM_FLOAT(key)
#define PL_ENUM_FLAG(key)
#define PL_ENUM_TEXT(key)
#define PL_ENUM_TEXTS(key)
#define PL_ENUM_CHOICE(key) PL_CHOICE_ENUM(key)
#define PL_ENUM_DEVICE(key) PL_CHOICE_ENUM(key)
#define PL_ENUM_LEVELS(key)
#define PL_ENUM_IGNORED(key)
#define PL_KEY_CHOICES(type, key, ...) PL_ENUM_##type(key)
PL_CONFIG_TABLE(PL_KEY_CHOICES)
#undef PL_KEY_CHOICES

/* A row of the table. */
typedef struct pl_key_info {
    const char *name;
    pl_key_type type;
    size_t offset; /* of the field in pl_config */
    union {
        int64_t whole;    /* INT, OPTIONAL */
        double real;      /* FLOAT */
        bool flag;        /* FLAG, LEVELS */
        const char *text; /* TEXT, TEXTS; IGNORED: a Python literal */
        int choice;       /* CHOICE, DEVICE */
    } standard;           /* the default */
    double min, max;
    const char *const *choices; /* CHOICE, DEVICE: words, then NULL */
    pl_effect effect;
    unsigned commands;
    pl_key_group group;
    const char *help;
} pl_key_info;

/* The row of a key. `key` < PL_KEY_COUNT. */
const pl_key_info *pl_key_row(pl_key key);

/* The key named by `bytes` bytes at `name`, or PL_KEY_COUNT. */
pl_key pl_key_find(const char *name, size_t bytes);

/* The key that such a name was probably meant to be, by edit distance, or
 * PL_KEY_COUNT where none is near. */
pl_key pl_key_nearest(const char *name, size_t bytes);

/* Whether a checkpoint keeps it: neither what has no effect, nor a consent,
 * which is given for once, nor what a server asks of its clients. */
bool pl_key_is_kept(pl_key key);

/* Whether `bytes` bytes at `name` look like a misspelled `known`. */
bool pl_name_is_near(const char *name, size_t bytes, const char *known);

/* The same among other names, all in lower case: which of them, or `count`. */
size_t pl_name_nearest(const char *name, size_t bytes, const char *const *known,
                       size_t count);

/* "Evaluation": the heading under which help and docs list a group. */
const char *pl_key_group_title(pl_key_group group);

/* "numbers": what the docs and `config --json` call an effect, and what it
 * means, as a sentence for people. */
const char *pl_effect_name(pl_effect effect);
const char *pl_effect_meaning(pl_effect effect);

/* The commands that read it: "train, plan and eval". Returns the length that
 * it needs, as snprintf does. */
size_t pl_key_commands(pl_key key, char *text, size_t size);

/* What the key takes, in words: "a whole number from 1 to 100000". Returns
 * the length that it needs, as snprintf does. */
size_t pl_key_takes(pl_key key, char *text, size_t size);

enum {
    PL_TAKES_BYTES = 128,
    PL_COMMANDS_BYTES = 128
}; /* enough for any row of the table */

/* Which of the key's choices `text` is, or -1. Of a word that ends in ":N"
 * *number is that, else PL_NONE. `number` may be NULL. */
int pl_key_choice(pl_key key, const char *text, int *number);

/* Whether a string is expected: a text, or one of some words. */
bool pl_key_is_text(pl_key key);

#endif
