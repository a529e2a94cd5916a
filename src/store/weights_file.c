/* weights_file.c: a GGUF of a GPT-2, or a model of llm.c, as weights. */
#include "store/gpt2_config.h"
#include "store/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- GGUF ---- */

static pl_status want_gpt2(const pl_gguf *gguf, pl_error *err)
{
    char text[64];
    pl_status status = pl_gguf_want_text(gguf, "general.architecture", text,
                                         sizeof text, err);
    if (!status && strcmp(text, "gpt2") != 0)
        status = pl_fail(err, PL_E_UNSUPPORTED,
                         "%s: its architecture is %s, only gpt2 is read",
                         pl_path_shown(gguf->file.path), text);
    return status;
}

static pl_status read_keys(pl_weights *w, pl_error *err)
{
    pl_shape *s = &w->shape;
    const pl_gguf *gguf = &w->gguf;
    const struct {
        const char *key;
        int64_t most;
        size_t *out;
    } sizes[] = {
        { "gpt2.block_count", PL_MAX_LAYERS, &s->L },
        { "gpt2.attention.head_count", 1 << 20, &s->H },
        { "gpt2.embedding_length", 1 << 24, &s->C },
        { "gpt2.context_length", 1 << 30, &s->T },
    };
    pl_status status = want_gpt2(gguf, err);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !status; i++) {
        int64_t value = 0;
        status = pl_gguf_want_whole(gguf, sizes[i].key, 1, sizes[i].most,
                                    &value, err);
        *sizes[i].out = (size_t)value;
    }
    int64_t inner = (int64_t)pl_shape_hidden(s);
    if (!status && pl_gguf_find_key(gguf, "gpt2.feed_forward_length"))
        status = pl_gguf_want_whole(gguf, "gpt2.feed_forward_length", inner,
                                    inner, &inner, err);
    if (status)
        return status;
    const char *path = pl_path_shown(gguf->file.path);
    if (s->C % s->H != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: %zu channels can't be shared by %zu heads", path,
                       s->C, s->H);
    const pl_gguf_key *epsilon = pl_gguf_find_key(
        gguf, "gpt2.attention.layer_norm_epsilon");
    w->epsilon = epsilon ? epsilon->real : 1e-5;
    if (!(w->epsilon > 0.0 && w->epsilon < 1.0))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: gpt2.attention.layer_norm_epsilon must be between "
                       "0 and 1",
                       path);
    const pl_gguf_tensor *tokens = pl_gguf_find(gguf, "token_embd.weight");
    if (!tokens || tokens->rank != 2 || tokens->dims[1] > 1 << 30)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: there is no matrix token_embd.weight", path);
    s->V = (size_t)tokens->dims[1];
    s->D = s->C / s->H;
    s->norm_eps = w->epsilon;
    pl_shape_complete(s);
    s->head = pl_gguf_find(gguf, "output.weight") ? PL_HEAD_OWN : PL_HEAD_TIED;
    return PL_OK;
}

static pl_status enter(pl_weights *w, size_t slot, pl_error *err)
{
    pl_weights_dims dims = pl_weights_size(w, slot, PL_WEIGHTS_OUT_IN);
    pl_param param = pl_param_at(&w->shape, slot);
    pl_param_name gguf = pl_param_gguf_name(&param);
    const char *name = gguf.text;
    const pl_gguf_tensor *t = pl_gguf_find(&w->gguf, name);
    if (!t)
        return pl_fail(err, PL_E_FORMAT, "%s: there is no tensor %s",
                       pl_path_shown(w->gguf.file.path), name);
    if (t->dims[0] != dims.cols || t->dims[1] != dims.rows || t->dims[2] != 1 ||
        t->dims[3] != 1)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s has rows of %" PRIu64 " and %" PRIu64
                       " of them, its keys say %zu and %zu",
                       pl_path_shown(w->gguf.file.path), name, t->dims[0],
                       t->dims[1], dims.cols, dims.rows);
    w->entries[slot].file = &w->gguf.file;
    w->entries[slot].at = w->gguf.data_at + t->offset;
    w->entries[slot].type = t->type;
    return PL_OK;
}

/* Older converters write the token table twice. */
static pl_status drop_equal_head(pl_weights *w, pl_error *err)
{
    enum { PART = PL_WEIGHTS_SCRATCH / 2 };
    size_t cols = w->shape.C, some = PART / cols;
    pl_status status = PL_OK;
    if (w->shape.head == PL_HEAD_TIED || some == 0)
        return PL_OK;
    size_t head = pl_param_slot(&w->shape, PL_HEAD_W, -1),
           tokens = pl_param_slot(&w->shape, PL_WTE, -1);
    for (size_t row = 0; row < w->shape.V && !status; row += some) {
        some = some < w->shape.V - row ? some : w->shape.V - row;
        status = pl_weights_rows(w, head, PL_WEIGHTS_OUT_IN, row, some,
                                 w->scratch, err);
        if (!status)
            status = pl_weights_rows(w, tokens, PL_WEIGHTS_OUT_IN, row, some,
                                     w->scratch + PART, err);
        if (!status && memcmp(w->scratch, w->scratch + PART,
                              some * cols * sizeof *w->scratch) != 0)
            return PL_OK;
    }
    w->shape.head = PL_HEAD_TIED;
    return status;
}

/* In a GGUF of ours that has none; llama.cpp reads past it. */
static int says_no_bias(const pl_gguf *gguf)
{
    const pl_gguf_key *key = pl_gguf_find_key(gguf, PL_WEIGHTS_GGUF_BIAS);
    return key && key->type == PL_GGUF_BOOL && key->whole == 0;
}

static pl_status open_gguf(pl_weights *w, const char *path, const pl_log *log,
                           pl_heap *heap, pl_error *err)
{
    pl_status status = pl_gguf_open(&w->gguf, path, heap, err);
    if (!status)
        status = read_keys(w, err);
    if (!status)
        status = pl_weights_take(w, heap, err);
    for (size_t slot = 0; !status && slot < pl_param_slots(&w->shape); slot++) {
        const pl_param param = pl_param_at(&w->shape, slot);
        if (pl_param_is_written(&w->shape, &param))
            status = enter(w, slot, err);
    }
    if (!status)
        status = drop_equal_head(w, err);
    if (!status && says_no_bias(&w->gguf))
        status = pl_weights_find_bias(w, log, err);
    if (!status)
        status = pl_vocab_read(w, log, heap, err);
    return status;
}

/* ---- llm.c ---- */

static pl_status open_llmc(pl_weights *w, const char *path, const pl_log *log,
                           pl_heap *heap, pl_error *err)
{
    pl_status status = pl_llmc_open(&w->llmc, path, err);
    if (status)
        return status;
    const pl_llmc_shape *s = &w->llmc.shape;
    if (s->L > PL_MAX_LAYERS || s->C > 1 << 24)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: %zu layers of %zu channels: up to %d and %d are "
                       "read",
                       pl_path_shown(path), s->L, s->C, PL_MAX_LAYERS, 1 << 24);
    w->shape.L = s->L;
    w->shape.H = s->H;
    w->shape.C = s->C;
    w->shape.D = s->C / s->H;
    w->shape.T = s->T;
    pl_shape_complete(&w->shape);
    w->shape.V = s->V; /* the padding's rows are behind those that count */
    w->epsilon = 1e-5;
    if (s->V == 50257)
        w->end_token = 50256;
    status = pl_weights_take(w, heap, err);
    int is_f32 = w->llmc.version == PL_LLMC_F32;
    for (size_t slot = 0; !status && slot < pl_param_slots(&w->shape); slot++) {
        pl_param param = pl_param_at(&w->shape, slot);
        if (pl_param_llmc(param.kind) < 0)
            continue; /* no GPT-2 has it */
        pl_llmc_tensor t = pl_llmc_tensor_at(s,
                                             (size_t)pl_param_llmc(param.kind));
        uint64_t layer = param.layer < 0 ? 0 : (uint64_t)param.layer;
        uint64_t first = t.first + layer * t.rows * t.cols;
        w->entries[slot] = (pl_weights_entry){
            .file = &w->llmc.file,
            .at = PL_LLMC_HEADER_BYTES + first * (is_f32 ? 4 : 2),
            .type = is_f32 ? PL_GGML_F32 : PL_GGML_BF16,
        };
    }
    if (!status && w->llmc.biases == PL_LLMC_NO_BIASES)
        status = pl_weights_find_bias(w, log, err);
    return status;
}

pl_status pl_weights_open_file(pl_weights *weights, const char *path,
                               const pl_log *log, pl_heap *heap, pl_error *err)
{
    int is_llmc = 0;
    *weights = (pl_weights){
        .gguf.file = PL_FILE_CLOSED,
        .llmc.file = PL_FILE_CLOSED,
        .layout = PL_WEIGHTS_OUT_IN,
        .shape.bias = PL_BIAS_ALL,
        .shape.activation = PL_ACT_GELU_TANH,
        .shape.norm_eps = 1e-5,
        .shape.rope_theta = 10000.0,
        .tokenizer = pl_tokenizer_make_none(),
        .end_token = -1,
        .dropout = PL_GPT2_DROPOUT,
    };
    pl_status status = pl_path_add(weights->path, path, "", err);
    if (!status)
        status = pl_llmc_is_one(path, &is_llmc, err);
    if (!status)
        status = is_llmc ? open_llmc(weights, path, log, heap, err)
                         : open_gguf(weights, path, log, heap, err);
    if (status)
        pl_weights_close(weights);
    return status;
}
