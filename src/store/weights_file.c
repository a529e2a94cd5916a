/* weights_file.c: a GGUF, or a model of llm.c, as weights. */
#include "store/gguf_shape.h"
#include "store/hf_config.h"
#include "store/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- GGUF ---- */

static pl_status enter(pl_weights *w, size_t i, pl_error *err)
{
    const pl_weights_dims dims = pl_weights_size(&w->shape, i, w->form.layout);
    const pl_weights_tensor own = pl_weights_at(&w->shape, i);
    const char *name = own.own.gguf.text;
    w->entries[i] = (pl_weights_entry){ 0 };
    if (!own.is_written)
        return PL_OK;
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
    w->entries[i].file = &w->gguf.file;
    w->entries[i].at = w->gguf.data_at + t->offset;
    w->entries[i].type = t->type;
    return PL_OK;
}

/* Llama's and Qwen3's relatives have tensors that change the result: biases of
 * some products, factors of rotations. */
static pl_status refuse_others(const pl_weights *w, pl_error *err)
{
    const size_t count = pl_weights_count(&w->shape);
    if (w->shape.family == PL_FAMILY_GPT2)
        return PL_OK;
    for (size_t k = 0; k < w->gguf.tensor_count; k++) {
        const uint64_t at = w->gguf.data_at + w->gguf.tensors[k].offset;
        size_t i = 0;
        while (i < count && !(w->entries[i].file && w->entries[i].at == at))
            i++;
        if (i == count)
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "%s: tensor %s belongs to no model of its "
                           "architecture that Plimsoll computes",
                           pl_path_shown(w->gguf.file.path),
                           w->gguf.tensors[k].name);
    }
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
    size_t head = pl_weights_index(pl_param_slot(&w->shape, PL_HEAD_W, -1), 0),
           tokens = pl_weights_index(pl_param_slot(&w->shape, PL_WTE, -1), 0);
    for (size_t row = 0; row < w->shape.V && !status; row += some) {
        some = some < w->shape.V - row ? some : w->shape.V - row;
        status = pl_weights_rows(w, head, w->form, row, some, w->scratch, err);
        if (!status)
            status = pl_weights_rows(w, tokens, w->form, row, some,
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
        status = pl_gguf_shape_read(&w->gguf, &w->shape, err);
    if (!status)
        w->form = pl_weights_form_gguf(&w->shape);
    if (!status)
        status = pl_weights_take(w, heap, err);
    for (size_t i = 0; !status && i < pl_weights_count(&w->shape); i++)
        status = enter(w, i, err);
    if (!status)
        status = refuse_others(w, err);
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
    w->form = pl_weights_form_llmc();
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
        w->entries[pl_weights_index(slot, 0)] = (pl_weights_entry){
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
        .tokenizer = pl_tokenizer_make_none(),
        .end_token = -1,
        .dropout = PL_GPT2_DROPOUT,
    };
    pl_shape_set_absent(&weights->shape, PL_IN_GPT2);
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
