/* convert_folder.c: to a Hugging Face folder. */
#include "base/file.h"
#include "store/convert.h"
#include "store/hf_config.h"
#include "text/tokfile.h"

#include <stdio.h>
#include <string.h>

enum { CONFIG_BYTES = 4096, WRITE_BYTES = 1024 * 1024 };

/* ---- model.safetensors ---- */

/* The writer asks for any bytes, in order; they are cut out of rows. */
typedef struct reader {
    pl_convert *convert;
    pl_ggml_type type;
    size_t tensor, first, rows; /* what lies in the slice */
} reader;

static pl_weights_dims size_of(const reader *r, size_t i)
{
    const pl_shape *shape = &r->convert->weights->shape;
    return pl_weights_size(shape, i, pl_weights_form_hf(shape).layout);
}

static void describe(void *context, size_t i, pl_tensor_info *info)
{
    const reader *r = context;
    const pl_weights *w = r->convert->weights;
    const pl_weights_dims dims = size_of(r, i);
    const pl_weights_tensor t = pl_weights_at(&w->shape, i);
    if (!t.is_written)
        return; /* rank 0: there is no such tensor */
    snprintf(info->name, sizeof info->name, "%s", t.own.name.text);
    info->dtype = r->type == PL_GGML_F32   ? PL_TENSOR_F32
                  : r->type == PL_GGML_F16 ? PL_TENSOR_F16
                                           : PL_TENSOR_BF16;
    info->rank = dims.is_matrix ? 2 : 1;
    info->dims[0] = dims.is_matrix ? dims.rows : dims.cols;
    info->dims[1] = dims.cols;
}

static pl_status fetch(reader *r, size_t i, pl_weights_dims dims, size_t row,
                       pl_error *err)
{
    const pl_weights *w = r->convert->weights;
    if (i == r->tensor && row >= r->first && row - r->first < r->rows)
        return PL_OK;
    r->tensor = i;
    r->first = row;
    r->rows = pl_convert_rows(r->convert, dims, row);
    return pl_weights_rows(w, i, pl_weights_form_hf(&w->shape), row, r->rows,
                           r->convert->slice, err);
}

static pl_status read_bytes(void *context, size_t i, size_t at, void *out,
                            size_t bytes, pl_error *err)
{
    reader *r = context;
    const pl_weights_dims dims = size_of(r, i);
    size_t each = pl_ggml_type_block_bytes(r->type);
    size_t next = at / each, left = bytes / each;
    unsigned char *to = out;
    pl_status status = pl_convert_step(r->convert, bytes, err);
    while (left > 0 && !status) {
        status = fetch(r, i, dims, next / dims.cols, err);
        size_t from = next - r->first * dims.cols;
        size_t some = r->rows * dims.cols - from;
        some = some < left ? some : left;
        if (!status)
            pl_ggml_pack(r->type, r->convert->slice + from, some, to);
        to += some * each;
        next += some;
        left -= some;
    }
    return status;
}

static pl_status write_model(pl_convert *c, const char *folder,
                             pl_ggml_type type, pl_error *err)
{
    char path[PL_PATH_BYTES];
    reader r = { .convert = c, .type = type, .tensor = SIZE_MAX };
    pl_tensor_source source = {
        .context = &r,
        .count = pl_weights_count(&c->weights->shape),
        .describe = describe,
        .read = read_bytes,
    };
    pl_status status = pl_path_join(path, folder, "model.safetensors", err);
    if (!status)
        status = pl_convert_room(c, folder, pl_safetensors_size(&source), err);
    if (!status)
        status = pl_safetensors_write(path, &source, c->packed, WRITE_BYTES,
                                      err);
    return status;
}

/* ---- the rest ---- */

static pl_status write_config(const pl_weights *w, const char *folder,
                              pl_ggml_type type, pl_error *err)
{
    char text[CONFIG_BYTES], path[PL_PATH_BYTES];
    pl_hf_config config = {
        .shape = w->shape,
        .dropout = w->dropout,
        .end_token = w->end_token,
        .dtype = type == PL_GGML_F32   ? "float32"
                 : type == PL_GGML_F16 ? "float16"
                                       : "bfloat16",
    };
    if (config.end_token < 0 && w->tokenizer.kind == PL_TOKENIZER_BPE)
        config.end_token = pl_bpe_end_token(w->tokenizer.bpe);
    pl_json_text j = pl_json_text_begin(text, sizeof text);
    pl_hf_config_put(&j, &config);
    pl_status status = pl_json_text_end(&j, err);
    if (!status)
        status = pl_path_join(path, folder, "config.json", err);
    return status ? status : pl_file_replace(path, j.text, j.used, err);
}

static pl_status write_tokenizer(const pl_weights *w, const char *folder,
                                 pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_tokenizer_text text;
    pl_status status = pl_tokenizer_write(&w->tokenizer, heap, &text, err);
    if (status || !text.name)
        return status;
    status = pl_path_join(path, folder, text.name, err);
    return status ? status : pl_file_replace(path, text.text, text.bytes, err);
}

/* Somebody's folder is never replaced. */
static pl_status must_be_new(const char *path, pl_heap *heap, pl_error *err)
{
    pl_file_kind kind;
    const char *const *names;
    size_t count = 0;
    pl_status status = pl_file_look(path, &kind, err);
    if (!status && kind == PL_FILE_FOLDER)
        status = pl_folder_list(path, heap, &names, &count, err);
    if (!status &&
        (count > 0 || (kind != PL_FILE_ABSENT && kind != PL_FILE_FOLDER)))
        status = pl_fail(err, PL_E_IO,
                         "%s is there already. Remove it, or choose another "
                         "name with --out=",
                         pl_path_shown(path));
    return status;
}

static pl_status write_parts(pl_convert *c, const char *folder,
                             pl_ggml_type type, pl_heap *heap, pl_error *err)
{
    pl_status status = write_model(c, folder, type, err);
    if (!status)
        status = write_config(c->weights, folder, type, err);
    if (!status)
        status = write_tokenizer(c->weights, folder, heap, err);
    return status ? status : pl_folder_sync(folder, err);
}

pl_status pl_convert_to_folder(pl_convert *convert, const char *path,
                               pl_ggml_type type, pl_heap *heap, pl_error *err)
{
    char fresh[PL_PATH_BYTES];
    if (type == PL_GGML_Q8_0)
        return pl_fail(err, PL_E_CONFIG,
                       "safetensors have no q8_0: use --type=f32, f16 or bf16, "
                       "or --format=gguf");
    pl_status status = must_be_new(path, heap, err);
    if (!status)
        status = pl_path_add(fresh, path, ".tmp", err);
    if (!status)
        status = pl_folder_remove_flat(fresh, err);
    if (!status)
        status = pl_folder_make(fresh, err);
    if (status)
        return status;
    status = write_parts(convert, fresh, type, heap, err);
    if (!status)
        status = pl_file_rename(fresh, path, err);
    if (!status)
        return pl_folder_sync_of(path, err);
    pl_status undo = pl_folder_remove_flat(fresh, NULL);
    (void)undo;
    return status;
}
