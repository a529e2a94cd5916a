/* weights.c: see weights.h. Tensors, slices and turning; where the bytes come
 * from is weights_folder.c's and weights_file.c's. */
#include "store/weights.h"
#include "base/check.h"

#include <string.h>

enum { PIECE = 4096 }; /* values that are unpacked at once */

/* ---- forms ---- */

static pl_param_layout layout_of(const pl_shape *shape)
{
    return pl_param_at(shape, pl_param_slot(shape, PL_ATT_W, 0)).layout;
}

pl_weights_form pl_weights_form_hf(const pl_shape *shape)
{
    return (pl_weights_form){ layout_of(shape), PL_PAIRS_HALVES };
}

pl_weights_form pl_weights_form_gguf(const pl_shape *shape)
{
    return (pl_weights_form){ PL_LAYOUT_OUT_IN, shape->family == PL_FAMILY_LLAMA
                                                    ? PL_PAIRS_ADJACENT
                                                    : PL_PAIRS_HALVES };
}

pl_weights_form pl_weights_form_llmc(void)
{
    return (pl_weights_form){ PL_LAYOUT_OUT_IN, PL_PAIRS_HALVES };
}

/* ---- tensors ---- */

size_t pl_weights_count(const pl_shape *shape)
{
    return pl_param_slots(shape) * PL_PARAM_MAX_PARTS;
}

size_t pl_weights_index(size_t slot, size_t piece)
{
    return slot * PL_PARAM_MAX_PARTS + piece;
}

pl_weights_tensor pl_weights_at(const pl_shape *shape, size_t i)
{
    pl_weights_tensor t = { .slot = i / PL_PARAM_MAX_PARTS,
                            .piece = i % PL_PARAM_MAX_PARTS };
    t.param = pl_param_at(shape, t.slot);
    t.is_there = t.piece < pl_param_pieces(shape, &t.param);
    if (!t.is_there)
        return t;
    t.is_written = pl_param_is_written(shape, &t.param);
    t.own = pl_param_piece_at(shape, &t.param, t.piece);
    return t;
}

pl_weights_dims pl_weights_size(const pl_shape *shape, size_t i,
                                pl_param_layout layout)
{
    const pl_weights_tensor t = pl_weights_at(shape, i);
    if (!t.is_there)
        return (pl_weights_dims){ 0 };
    if (!t.param.is_2d)
        return (pl_weights_dims){ 1, t.own.rows, 0 };
    if (t.param.role == PL_ROLE_PRODUCT && layout != t.param.layout)
        return (pl_weights_dims){ t.own.cols, t.own.rows, 1 };
    return (pl_weights_dims){ t.own.rows, t.own.cols, 1 };
}

pl_status pl_weights_take(pl_weights *weights, pl_heap *heap, pl_error *err)
{
    pl_status status = pl_heap_take(heap, &weights->entries,
                                    pl_weights_count(&weights->shape),
                                    sizeof *weights->entries, err);
    if (!status)
        status = pl_heap_take(heap, &weights->scratch, PL_WEIGHTS_SCRATCH,
                              sizeof *weights->scratch, err);
    return status;
}

/* Elements [first, first + count) of a tensor as it is stored. */
static pl_status run(const pl_weights *weights, size_t i, uint64_t first,
                     size_t count, float *out, pl_error *err)
{
    unsigned char raw[PIECE * 2 + 1024];
    float values[PIECE];
    pl_weights_entry entry = weights->entries[i];
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
static pl_status turned(const pl_weights *weights, size_t i, size_t first,
                        size_t count, float *out, pl_error *err)
{
    pl_weights_dims stored = pl_weights_size(&weights->shape, i,
                                             weights->form.layout);
    for (size_t done = 0; done < count;) {
        size_t cols = count - done < PL_WEIGHTS_SCRATCH ? count - done
                                                        : PL_WEIGHTS_SCRATCH;
        for (size_t row = 0; row < stored.rows; row++) {
            pl_status status = run(weights, i,
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

/* Where output `k` of queries or keys, as `pairs` has them, lies in a file that
 * has them the other way. */
static size_t pair_of(size_t k, size_t D, pl_weights_pairs pairs)
{
    const size_t head = k - k % D, at = k % D, half = D / 2;
    return head + (pairs == PL_PAIRS_ADJACENT ? at % 2 * half + at / 2
                                              : at % half * 2 + at / half);
}

/* Outputs [first, first + count), each `width` elements, pair by pair. */
static pl_status paired(const pl_weights *weights, size_t i,
                        pl_weights_pairs pairs, size_t first, size_t count,
                        size_t width, float *out, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t k = 0; k < count && !status; k++) {
        const size_t from = pair_of(first + k, weights->shape.D, pairs);
        status = run(weights, i, (uint64_t)from * width, width, out + k * width,
                     err);
    }
    return status;
}

pl_status pl_weights_rows(const pl_weights *weights, size_t i,
                          pl_weights_form form, size_t first, size_t rows,
                          float *out, pl_error *err)
{
    const pl_weights_dims dims = pl_weights_size(&weights->shape, i,
                                                 form.layout);
    const pl_weights_tensor t = pl_weights_at(&weights->shape, i);
    const int turns = form.layout != weights->form.layout &&
                      t.param.role == PL_ROLE_PRODUCT,
              pairs = form.pairs != weights->form.pairs && t.own.rotated;
    PL_CHECK(t.is_there && first <= dims.rows && rows <= dims.rows - first);
    PL_CHECK(!(turns && pairs)); /* who rotates stores [out, in] */
    if (turns)
        return turned(weights, i, first, rows, out, err);
    if (pairs)
        return dims.is_matrix
                   ? paired(weights, i, form.pairs, first, rows, dims.cols, out,
                            err)
                   : paired(weights, i, form.pairs, 0, dims.cols, 1, out, err);
    return run(weights, i, (uint64_t)first * dims.cols, rows * dims.cols, out,
               err);
}

static pl_status are_zeros(const pl_weights *weights, size_t i, int *yes,
                           pl_error *err)
{
    size_t count =
        pl_weights_size(&weights->shape, i, weights->form.layout).cols;
    pl_status status = PL_OK;
    for (size_t first = 0; first < count && *yes && !status;) {
        size_t some = count - first < PL_WEIGHTS_SCRATCH ? count - first
                                                         : PL_WEIGHTS_SCRATCH;
        status = run(weights, i, first, some, weights->scratch, err);
        for (size_t k = 0; k < some && !status; k++)
            *yes = *yes && weights->scratch[k] == 0.0f;
        first += some;
    }
    return status;
}

pl_status pl_weights_find_bias(pl_weights *weights, const pl_log *log,
                               pl_error *err)
{
    int zeros = 1;
    pl_status status = PL_OK;
    for (size_t i = 0; !status && i < pl_weights_count(&weights->shape); i++)
        if (pl_weights_at(&weights->shape, i).param.is_bias)
            status = are_zeros(weights, i, &zeros, err);
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
