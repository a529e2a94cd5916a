/* convert_gguf.c: to llama.cpp's files, with the keys and the types that its
 * own converter writes. */
#include "base/file.h"
#include "store/convert.h"
#include "store/gguf_shape.h"

#include <string.h>

/* llama.cpp's number for "mostly of this type". */
static uint32_t file_type(pl_ggml_type type)
{
    switch (type) {
    case PL_GGML_F32:
        return 0;
    case PL_GGML_F16:
        return 1;
    case PL_GGML_Q8_0:
        return 7;
    case PL_GGML_BF16:
        return 32;
    }
    return 0;
}

static pl_weights_dims size_of(const pl_convert *c, size_t i)
{
    return pl_weights_size(&c->weights->shape, i, PL_LAYOUT_OUT_IN);
}

static pl_ggml_type type_of(const pl_convert *c, size_t i, pl_ggml_type type)
{
    const pl_weights_dims dims = size_of(c, i);
    if (!dims.is_matrix ||
        pl_weights_at(&c->weights->shape, i).param.kind == PL_WPE)
        return PL_GGML_F32;
    if (dims.cols % pl_ggml_type_block(type) != 0)
        return PL_GGML_F16;
    return type;
}

_Static_assert((int)PL_GGUF_NAME_BYTES == (int)PL_PARAM_NAME_BYTES,
               "a name of the table is one of GGUF's");

static pl_gguf_tensor describe(const pl_convert *c, size_t i, pl_ggml_type type)
{
    const pl_weights_dims dims = size_of(c, i);
    const pl_weights_tensor own = pl_weights_at(&c->weights->shape, i);
    pl_gguf_tensor t = { .rank =
                             0 }; /* none: such a model has no such tensor */
    if (!own.is_written)
        return t;
    t = (pl_gguf_tensor){ .type = type_of(c, i, type),
                          .rank = dims.is_matrix ? 2 : 1,
                          .dims = { dims.cols, dims.rows, 1, 1 } };
    memcpy(t.name, own.own.gguf.text, sizeof t.name);
    return t;
}

static uint64_t tensor_bytes(const pl_gguf_tensor *t)
{
    return t->rank == 0 ? 0
                        : t->dims[0] / pl_ggml_type_block(t->type) *
                              pl_ggml_type_block_bytes(t->type) * t->dims[1];
}

static void put_keys(const pl_convert *c, pl_gguf_writer *writer,
                     pl_ggml_type type)
{
    const pl_shape *s = &c->weights->shape;
    pl_gguf_shape_put(writer, s);
    pl_gguf_put_u32(writer, "general.file_type", file_type(type));
    pl_gguf_put_u32(writer, "general.quantization_version", 2);
    if (s->bias == PL_BIAS_NONE && s->family == PL_FAMILY_GPT2)
        pl_gguf_put_bool(writer, PL_WEIGHTS_GGUF_BIAS, 0); /* zeros are there */
}

static pl_status put_data(pl_convert *c, pl_gguf_writer *writer, size_t i,
                          const pl_gguf_tensor *t, pl_error *err)
{
    const pl_weights_form form = pl_weights_form_gguf(&c->weights->shape);
    const pl_weights_dims dims = size_of(c, i);
    size_t row_bytes = dims.cols / pl_ggml_type_block(t->type) *
                       pl_ggml_type_block_bytes(t->type);
    pl_status status = PL_OK;
    for (size_t row = 0; row < dims.rows && !status;) {
        size_t rows = pl_convert_rows(c, dims, row);
        status = pl_weights_rows(c->weights, i, form, row, rows, c->slice, err);
        if (status)
            return status;
        pl_ggml_pack(t->type, c->slice, rows * dims.cols, c->packed);
        status = pl_gguf_data(writer, t, (uint64_t)row * row_bytes, c->packed,
                              rows * row_bytes, err);
        if (!status)
            status = pl_convert_step(c, rows * row_bytes, err);
        row += rows;
    }
    return status;
}

static pl_status put_all(pl_convert *c, pl_gguf_writer *writer,
                         pl_ggml_type type, pl_gguf_tensor *tensors,
                         pl_error *err)
{
    size_t count = pl_weights_count(&c->weights->shape);
    put_keys(c, writer, type);
    pl_status status = pl_vocab_put(writer, c->weights, c->log, err);
    for (size_t i = 0; i < count; i++)
        if (tensors[i].rank > 0)
            pl_gguf_put_tensor(writer, &tensors[i]);
    for (size_t i = 0; i < count && !status; i++)
        if (tensors[i].rank > 0)
            status = put_data(c, writer, i, &tensors[i], err);
    return status;
}

pl_status pl_convert_to_gguf(pl_convert *convert, const char *path,
                             pl_ggml_type type, pl_heap *heap, pl_error *err)
{
    char fresh[PL_PATH_BYTES];
    pl_gguf_writer writer;
    pl_gguf_tensor *tensors;
    void *buffer;
    size_t count = pl_weights_count(&convert->weights->shape);
    uint64_t bytes = 0;
    pl_status status = pl_convert_check(convert, "llama.cpp", err);
    if (!status)
        status = pl_heap_take(heap, &tensors, count, sizeof *tensors, err);
    if (!status)
        status = pl_heap_take(heap, &buffer, PL_GGUF_BUFFER_BYTES, 1, err);
    if (!status)
        status = pl_path_add(fresh, path, ".tmp", err);
    for (size_t i = 0; i < count && !status; i++) {
        tensors[i] = describe(convert, i, type);
        bytes += tensor_bytes(&tensors[i]);
    }
    if (!status)
        status = pl_convert_room(convert, path, bytes, err);
    if (!status)
        status = pl_gguf_begin(&writer, fresh, buffer, err);
    if (status)
        return status;
    status = put_all(convert, &writer, type, tensors, err);
    if (status) {
        pl_gguf_drop(&writer);
        return status;
    }
    status = pl_gguf_end(&writer, err);
    if (!status)
        status = pl_file_rename(fresh, path, err);
    return status ? status : pl_folder_sync_of(path, err);
}
