/* convert.c: what all conversions share, and that to llm.c's files. */
#include "store/convert.h"
#include "base/file.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SLICE_COUNT = 1024 * 1024 };

/* ---- slices ---- */

/* In either layout. */
static size_t longest_row(const pl_weights *weights)
{
    size_t longest = 0;
    for (size_t i = 0; i < pl_weights_count(&weights->shape); i++)
        for (int layout = 0; layout < 2; layout++) {
            size_t row = pl_weights_size(&weights->shape, i,
                                         (pl_param_layout)layout)
                             .cols;
            longest = row > longest ? row : longest;
        }
    return longest;
}

pl_status pl_convert_open(pl_convert *convert, const pl_weights *weights,
                          const pl_convert_watch *watch, const pl_log *log,
                          pl_heap *heap, pl_error *err)
{
    size_t row = longest_row(weights);
    *convert = (pl_convert){
        .weights = weights,
        .log = log,
        .slice_count = row > SLICE_COUNT ? row : SLICE_COUNT,
        .watch = *watch,
    };
    pl_status status = pl_heap_take(heap, &convert->slice, convert->slice_count,
                                    sizeof *convert->slice, err);
    if (!status)
        status = pl_heap_take(heap, &convert->packed, convert->slice_count, 4,
                              err);
    return status;
}

pl_status pl_convert_check(const pl_convert *convert, const char *program,
                           pl_error *err)
{
    const pl_shape *s = &convert->weights->shape;
    const char *path = pl_path_shown(convert->weights->path);
    const pl_shape_field other = pl_shape_stranger(s);
    char all[PL_SHAPE_STRANGERS_BYTES];
    if (other == PL_SHAPE_FIELDS)
        return PL_OK;
    if (other == PL_SHAPE_D)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: this model has a head_dim of its own: n_head %zu "
                       "heads don't share its n_embd %zu channels, as others' "
                       "do, so %s could not run it. Train with n_embd a "
                       "multiple of n_head, and no head_dim; --format=hf "
                       "writes a folder that Plimsoll loads",
                       path, s->H, s->C, program);
    pl_shape_strangers_text(s, all);
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: a %s has no %s, this model has: %s would compute "
                   "something else. Train without it; --format=hf writes a "
                   "folder that Plimsoll loads",
                   path, pl_shape_title(s), all, program);
}

size_t pl_convert_rows(const pl_convert *convert, pl_weights_dims dims,
                       size_t first)
{
    size_t fit = convert->slice_count / dims.cols, left = dims.rows - first;
    return left < fit ? left : fit;
}

pl_status pl_convert_room(pl_convert *convert, const char *path, uint64_t bytes,
                          pl_error *err)
{
    uint64_t room = 0;
    pl_status status = pl_disk_free_bytes(path, &room, err);
    if (!status && room < bytes)
        status = pl_fail(err, PL_E_IO,
                         "%s needs %s (%s), its disk has %s left (%s)",
                         pl_path_shown(path), pl_units_bytes(bytes).text,
                         pl_units_exact(bytes).text, pl_units_bytes(room).text,
                         pl_units_exact(room).text);
    convert->total_bytes = bytes;
    return status;
}

pl_status pl_convert_step(pl_convert *convert, uint64_t bytes, pl_error *err)
{
    convert->done_bytes += bytes;
    if (convert->watch.progress(convert->watch.context, convert->done_bytes,
                                convert->total_bytes))
        return pl_fail(err, PL_E_STOPPED, "stopped: nothing was written");
    return PL_OK;
}

/* ---- llm.c ---- */

/* Its own count of tokens is the tokenizer's: the rest is padding, which it
 * never chooses. */
static pl_llmc_shape llmc_shape(const pl_weights *w)
{
    pl_llmc_shape s = { .T = w->shape.T,
                        .V = w->shape.V,
                        .L = w->shape.L,
                        .H = w->shape.H,
                        .C = w->shape.C };
    if (w->tokenizer.kind != PL_TOKENIZER_NONE)
        s.V = (size_t)w->tokenizer.vocab_size;
    else if (s.V == PL_VOCAB_GPT2)
        s.V = 50257;
    s.padded_V = (w->shape.V + PL_LLMC_VOCAB_ROUND - 1) / PL_LLMC_VOCAB_ROUND *
                 PL_LLMC_VOCAB_ROUND;
    return s;
}

static pl_status append_slot(pl_convert *c, pl_llmc *llmc, size_t slot,
                             pl_error *err)
{
    const size_t i = pl_weights_index(slot, 0);
    const pl_weights_form form = pl_weights_form_llmc();
    pl_weights_dims dims = pl_weights_size(&c->weights->shape, i, form.layout);
    size_t stored = pl_param_at(&c->weights->shape, slot).kind == PL_WTE
                        ? llmc->shape.padded_V
                        : dims.rows;
    uint64_t each = llmc->version == PL_LLMC_F32 ? 4 : 2;
    pl_status status = PL_OK;
    for (size_t row = 0; row < stored && !status;) {
        size_t rows;
        if (row < dims.rows) {
            rows = pl_convert_rows(c, dims, row);
            status = pl_weights_rows(c->weights, i, form, row, rows, c->slice,
                                     err);
        } else { /* padding: less than 128 rows, one at a time */
            rows = 1;
            memset(c->slice, 0, dims.cols * sizeof *c->slice);
        }
        if (!status)
            status = pl_llmc_append(llmc, c->slice, rows * dims.cols, err);
        if (!status)
            status = pl_convert_step(c, rows * dims.cols * each, err);
        row += rows;
    }
    return status;
}

/* The file has all layers of one kind, then those of the next. */
static pl_status append_all(pl_convert *c, pl_llmc *llmc, pl_error *err)
{
    const pl_shape *shape = &c->weights->shape;
    pl_status status = PL_OK;
    for (int at = 0; at < PL_LLMC_TENSORS && !status; at++) {
        pl_llmc_tensor t = pl_llmc_tensor_at(&llmc->shape, (size_t)at);
        pl_param_kind kind = pl_param_of_llmc(at);
        for (size_t layer = 0; layer < t.layers && !status; layer++)
            status = append_slot(c, llmc,
                                 pl_param_slot(shape, kind, (int)layer), err);
    }
    return status;
}

static pl_status check_llmc(const pl_convert *c, pl_ggml_type type,
                            pl_error *err)
{
    if (type != PL_GGML_F32 && type != PL_GGML_BF16)
        return pl_fail(err, PL_E_CONFIG,
                       "llm.c's models are f32 or bf16, not %s: use "
                       "--type=f32 or --type=bf16",
                       pl_ggml_type_name(type));
    if (c->weights->shape.family != PL_FAMILY_GPT2)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s is a %s, and llm.c's files hold a GPT-2: use "
                       "--format=gguf or --format=hf",
                       pl_path_shown(c->weights->path),
                       pl_shape_title(&c->weights->shape));
    if (c->weights->shape.head == PL_HEAD_OWN)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s has a classifier of its own (lm_head.weight); in "
                       "llm.c it is the token table",
                       c->weights->path);
    pl_status status = pl_convert_check(c, "llm.c", err);
    if (status)
        return status;
    if (c->weights->shape.norm_eps < 0.99e-5 ||
        c->weights->shape.norm_eps > 1.01e-5)
        pl_log_say(c->log, PL_LOG_WARN,
                   "layer_norm_epsilon is %g, llm.c computes with 1e-5",
                   c->weights->shape.norm_eps);
    return PL_OK;
}

pl_status pl_convert_to_llmc(pl_convert *convert, const char *path,
                             pl_ggml_type type, pl_error *err)
{
    char fresh[PL_PATH_BYTES];
    pl_llmc llmc;
    pl_llmc_shape shape = llmc_shape(convert->weights);
    pl_llmc_version version = type == PL_GGML_BF16 ? PL_LLMC_BF16 : PL_LLMC_F32;
    pl_llmc_biases biases = convert->weights->shape.bias == PL_BIAS_NONE
                                ? PL_LLMC_NO_BIASES
                                : PL_LLMC_BIASES;
    pl_status status = check_llmc(convert, type, err);
    if (!status)
        status = pl_path_add(fresh, path, ".tmp", err);
    if (!status)
        status = pl_convert_room(convert, path, pl_llmc_bytes(&shape, version),
                                 err);
    if (!status)
        status = pl_llmc_begin(&llmc, fresh, &shape, version, biases, err);
    if (status)
        return status;
    status = append_all(convert, &llmc, err);
    if (status) {
        pl_llmc_drop(&llmc);
        return status;
    }
    status = pl_llmc_end(&llmc, err);
    if (!status)
        status = pl_file_rename(fresh, path, err);
    return status ? status : pl_folder_sync_of(path, err);
}
