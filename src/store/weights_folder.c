/* weights_folder.c: a Hugging Face folder as weights. */
#include "store/hf_config.h"
#include "store/weights.h"
#include "text/tokfile.h"

/* ---- config.json ---- */

static pl_status open_config(pl_weights *w, const char *folder, pl_heap *heap,
                             pl_error *err)
{
    pl_hf_config config;
    pl_status status = pl_hf_config_read(&config, folder, heap, err);
    if (status)
        return status;
    w->shape = config.shape;
    w->form = pl_weights_form_hf(&w->shape);
    w->dropout = config.dropout;
    w->end_token = config.end_token;
    return PL_OK;
}

/* ---- tensors ---- */

static pl_status set_type(pl_weights_entry *entry, const pl_tensor_info *info,
                          const char *path, pl_error *err)
{
    switch (info->dtype) {
    case PL_TENSOR_F32:
        entry->type = PL_GGML_F32;
        return PL_OK;
    case PL_TENSOR_F16:
        entry->type = PL_GGML_F16;
        return PL_OK;
    case PL_TENSOR_BF16:
        entry->type = PL_GGML_BF16;
        return PL_OK;
    default:
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: tensor %s is %s, expected F32, F16 or BF16", path,
                       info->name, pl_tensor_dtype_name(info->dtype));
    }
}

static pl_status enter(pl_weights *w, size_t i, pl_error *err)
{
    pl_pretrained_tensor found;
    const pl_weights_tensor t = pl_weights_at(&w->shape, i);
    w->entries[i] = (pl_weights_entry){ 0 }; /* zeros */
    if (!t.is_there || !pl_param_present(&w->shape, &t.param))
        return PL_OK;
    pl_status status = pl_pretrained_find(&w->pretrained, &w->shape, t.slot,
                                          t.piece, &found, err);
    if (status)
        return status;
    w->entries[i].file = &found.st->file;
    w->entries[i].at = found.st->data_at + found.info->offset;
    return set_type(&w->entries[i], found.info,
                    pl_path_shown(found.st->file.path), err);
}

static pl_status open_tensors(pl_weights *w, const char *folder, pl_heap *heap,
                              pl_error *err)
{
    pl_status status = pl_pretrained_open(&w->pretrained, folder, heap, err);
    if (!status)
        status = pl_weights_take(w, heap, err);
    for (size_t i = 0; i < pl_weights_count(&w->shape) && !status; i++)
        status = enter(w, i, err);
    if (!status)
        status = pl_pretrained_check_biases(&w->pretrained, &w->shape, err);
    return status ? status
                  : pl_pretrained_check_head(&w->pretrained, &w->shape, err);
}

pl_status pl_weights_open_folder(pl_weights *weights, const char *folder,
                                 pl_heap *heap, pl_error *err)
{
    *weights = (pl_weights){
        .gguf.file = PL_FILE_CLOSED,
        .llmc.file = PL_FILE_CLOSED,
    };
    pl_status status = pl_path_add(weights->path, folder, "", err);
    if (!status)
        status = open_config(weights, folder, heap, err);
    if (!status)
        status = open_tensors(weights, folder, heap, err);
    if (!status)
        status = pl_tokenizer_find(&weights->tokenizer, folder, heap, err);
    if (!status && weights->tokenizer.kind != PL_TOKENIZER_NONE &&
        (size_t)weights->tokenizer.vocab_size > weights->shape.V)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: the tokenizer has %d tokens, the model %zu",
                         pl_path_shown(folder),
                         (int)weights->tokenizer.vocab_size, weights->shape.V);
    if (status)
        pl_weights_close(weights);
    return status;
}
