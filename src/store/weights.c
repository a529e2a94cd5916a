/* weights.c: see weights.h. Slots, pieces and turning; where the bytes come
 * from is weights_folder.c's and weights_file.c's. */
#include "store/weights.h"
#include "base/check.h"

#include <string.h>

enum { PIECE = 4096 }; /* values that are unpacked at once */

pl_weights_dims pl_weights_size(const pl_weights *weights, size_t slot,
                                pl_weights_layout layout)
{
    pl_param param = pl_param_at(&weights->shape, slot);
    if (!param.is_2d)
        return (pl_weights_dims){ 1, param.rows, 0 };
    if (layout == PL_WEIGHTS_OUT_IN && param.role == PL_ROLE_PRODUCT)
        return (pl_weights_dims){ param.cols, param.rows, 1 };
    return (pl_weights_dims){ param.rows, param.cols, 1 };
}

pl_status pl_weights_take(pl_weights *weights, pl_heap *heap, pl_error *err)
{
    pl_status status = pl_heap_take(heap, &weights->entries,
                                    pl_param_slots(&weights->shape),
                                    sizeof *weights->entries, err);
    if (!status)
        status = pl_heap_take(heap, &weights->scratch, PL_WEIGHTS_SCRATCH,
                              sizeof *weights->scratch, err);
    return status;
}

/* Elements [first, first + count) of a tensor as it is stored. */
static pl_status run(const pl_weights *weights, size_t slot, uint64_t first,
                     size_t count, float *out, pl_error *err)
{
    unsigned char raw[PIECE * 2 + 1024];
    float values[PIECE];
    pl_weights_entry entry = weights->entries[slot];
    size_t block = pl_ggml_type_block(entry.type);
    size_t bytes = pl_ggml_type_block_bytes(entry.type);
    if (!entry.file) {
        memset(out, 0, count * sizeof *out);
        return PL_OK;
    }
    if (entry.type == PL_GGML_F32)
        return pl_file_pread_exact(entry.file, out, 4 * count,
                                   entry.at + 4 * first, err);
    while (count > 0) {
        size_t skip = (size_t)(first % block);
        size_t some = count < PIECE - skip ? count : PIECE - skip;
        size_t blocks = (skip + some + block - 1) / block;
        pl_status status = pl_file_pread_exact(entry.file, raw, blocks * bytes,
                                               entry.at + first / block * bytes,
                                               err);
        if (status)
            return status;
        pl_ggml_unpack(entry.type, raw, blocks * block, values);
        memcpy(out, values + skip, some * sizeof *out);
        out += some;
        first += some;
        count -= some;
    }
    return PL_OK;
}

/* Columns [first, first + count) of the stored matrix become rows. */
static pl_status turned(const pl_weights *weights, size_t slot, size_t first,
                        size_t count, float *out, pl_error *err)
{
    pl_weights_dims stored = pl_weights_size(weights, slot, weights->layout);
    for (size_t done = 0; done < count;) {
        size_t cols = count - done < PL_WEIGHTS_SCRATCH ? count - done
                                                        : PL_WEIGHTS_SCRATCH;
        for (size_t row = 0; row < stored.rows; row++) {
            pl_status status = run(weights, slot,
                                   (uint64_t)row * stored.cols + first + done,
                                   cols, weights->scratch, err);
            if (status)
                return status;
            for (size_t c = 0; c < cols; c++)
                out[(done + c) * stored.rows + row] = weights->scratch[c];
        }
        done += cols;
    }
    return PL_OK;
}

pl_status pl_weights_rows(const pl_weights *weights, size_t slot,
                          pl_weights_layout layout, size_t first, size_t rows,
                          float *out, pl_error *err)
{
    pl_weights_dims dims = pl_weights_size(weights, slot, layout);
    pl_param param = pl_param_at(&weights->shape, slot);
    PL_CHECK(first <= dims.rows && rows <= dims.rows - first);
    if (layout != weights->layout && param.role == PL_ROLE_PRODUCT)
        return turned(weights, slot, first, rows, out, err);
    return run(weights, slot, (uint64_t)first * dims.cols, rows * dims.cols,
               out, err);
}

static pl_status are_zeros(const pl_weights *weights, size_t slot, int *yes,
                           pl_error *err)
{
    size_t count = pl_weights_size(weights, slot, weights->layout).cols;
    pl_status status = PL_OK;
    for (size_t first = 0; first < count && *yes && !status;) {
        size_t some = count - first < PL_WEIGHTS_SCRATCH ? count - first
                                                         : PL_WEIGHTS_SCRATCH;
        status = run(weights, slot, first, some, weights->scratch, err);
        for (size_t i = 0; i < some && !status; i++)
            *yes = *yes && weights->scratch[i] == 0.0f;
        first += some;
    }
    return status;
}

pl_status pl_weights_find_bias(pl_weights *weights, const pl_log *log,
                               pl_error *err)
{
    int zeros = 1;
    pl_status status = PL_OK;
    for (size_t slot = 0; !status && slot < pl_param_slots(&weights->shape);
         slot++)
        if (pl_param_at(&weights->shape, slot).is_bias)
            status = are_zeros(weights, slot, &zeros, err);
    if (!status && zeros)
        weights->shape.bias = PL_BIAS_NONE;
    else if (!status)
        pl_log_say(log, PL_LOG_NOTE,
                   "%s was written without biases and has some now: another "
                   "program has trained them",
                   pl_path_shown(weights->path));
    return status;
}

void pl_weights_close(pl_weights *weights)
{
    pl_pretrained_close(&weights->pretrained);
    pl_gguf_close(&weights->gguf);
    pl_llmc_close(&weights->llmc);
}
