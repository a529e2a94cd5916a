/* checkpoint_load.c: reading tensors that checkpoint.c wrote, as they are. */
#include "base/file.h"
#include "format/safetensors.h"
#include "store/checkpoint.h"
#include "store/checkpoint_tensors.h"

#include <string.h>

/* ---- tensors ---- */

/* What a dtype says about the key that chose it. */
static const char *reason_of(const pl_tensors_row *row)
{
    return row->is_weight ? "weights" : "optimizer_state";
}

static pl_status find_tensor(const pl_safetensors *st,
                             const pl_tensors_row *row,
                             const pl_tensor_info **out, pl_error *err)
{
    const pl_tensor_info *want = &row->info,
                         *info = pl_safetensors_find(st, want->name);
    if (!info)
        return pl_fail(err, PL_E_FORMAT, "%s: tensor %s is missing",
                       st->file.path, want->name);
    if (info->rank != want->rank || info->dims[0] != want->dims[0] ||
        (want->rank == 2 && info->dims[1] != want->dims[1]))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: expected %zu x %zu, found %zu x %zu",
                       st->file.path, want->name, want->dims[0],
                       want->rank > 1 ? want->dims[1] : 1,
                       info->rank > 0 ? info->dims[0] : 0,
                       info->rank > 1 ? info->dims[1] : 1);
    if (info->dtype != want->dtype)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: expected dtype %s, found %s. The key "
                       "'%s' must be as it was when the checkpoint was written",
                       st->file.path, want->name,
                       pl_tensor_dtype_name(want->dtype),
                       pl_tensor_dtype_name(info->dtype), reason_of(row));
    *out = info;
    return PL_OK;
}

/* bfloat16 obeys kernels/storage.h's rule wherever it came from; what Plimsoll
 * wrote does. */
static void round_again(char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint16_t)) {
        uint16_t half;
        memcpy(&half, memory + i, sizeof half);
        half = pl_bf16_make(pl_bf16_value(half));
        memcpy(memory + i, &half, sizeof half);
    }
}

/* A tensor, and the working copy of a weight that has one. */
static pl_status load_tensor(pl_run *run, const pl_safetensors *st,
                             const pl_tensor_info *info,
                             const pl_tensors_row *row, pl_error *err)
{
    const size_t each = pl_tensor_dtype_bytes(info->dtype),
                 first = row->first * each;
    pl_status status = PL_OK;
    for (uint64_t at = 0; at < info->bytes && !status;) {
        uint64_t left = info->bytes - at;
        size_t bytes = left < PL_RUN_STAGE_BYTES ? (size_t)left
                                                 : PL_RUN_STAGE_BYTES;
        status = pl_safetensors_read(st, info, at, run->stage, bytes, err);
        if (!status && info->dtype == PL_TENSOR_BF16)
            round_again(run->stage, bytes);
        if (!status && run->others && !row->is_weight)
            status = run->others->write(run->others->context, row,
                                        (size_t)at / each, bytes / each,
                                        run->stage, err);
        else if (!status)
            status = pl_device_write(run->device, row->buffer,
                                     first + (size_t)at, run->stage, bytes,
                                     err);
        if (!status && row->is_weight && info->dtype == PL_TENSOR_F32)
            status = pl_run_write_copy(run, row->slot,
                                       (first + (size_t)at) / sizeof(float),
                                       bytes / sizeof(float), err);
        at += bytes;
    }
    return status;
}

/* Finds every tensor of a file; loads it too, or only looks. */
static pl_status visit_file(pl_run *loader, const pl_run *run,
                            const pl_safetensors *st, pl_tensors_file file,
                            size_t worker, pl_error *err)
{
    const pl_gpt *gpt = &run->gpt;
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_tensors_rows(gpt, file) && !status; i++) {
        pl_tensors_row row = pl_tensors_at(gpt, file, i);
        const pl_tensor_info *info = NULL;
        if (row.buffer == PL_NO_BUFFER)
            continue;
        row.worker = worker;
        status = find_tensor(st, &row, &info, err);
        if (!status && loader)
            status = load_tensor(loader, st, info, &row, err);
    }
    return status;
}

static pl_status visit_part(pl_run *loader, const pl_run *run,
                            const char *folder, const pl_tensors_name *name,
                            pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_safetensors st;
    pl_status status = pl_path_join(path, folder, name->text, err);
    if (!status)
        status = pl_safetensors_open(&st, path, heap, err);
    if (status)
        return status;
    status = visit_file(loader, run, &st, name->file, name->worker, err);
    pl_safetensors_close(&st);
    return status;
}

/* Those of workers one after the other, so that the header of one is there at
 * once. */
static pl_status visit(pl_run *loader, const pl_run *run, const char *folder,
                       pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_checkpoint_files(&run->gpt) && !status; i++) {
        const pl_tensors_name name = pl_checkpoint_file(&run->gpt, i);
        pl_heap scratch = pl_heap_make(run->heap->limit_bytes);
        status = visit_part(
            loader, run, folder, &name,
            name.file == PL_TENSORS_WORKER ? &scratch : run->heap, err);
        pl_heap_close(&scratch);
    }
    return status;
}

pl_status pl_checkpoint_check(const pl_run *run, const char *folder,
                              pl_error *err)
{
    return visit(NULL, run, folder, err);
}

pl_status pl_checkpoint_load(pl_run *run, const char *folder, pl_error *err)
{
    return visit(run, run, folder, err);
}
