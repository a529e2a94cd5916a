/* checkpoint_tensors.c: see checkpoint_tensors.h. */
#include "store/checkpoint_tensors.h"
#include "base/check.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK_BYTES = PL_CHECKPOINT_BLOCK_BYTES };

/* ---- files ---- */

enum { OF_WORKER_0 = 2 };

size_t pl_checkpoint_files(const pl_gpt *gpt)
{
    const size_t workers = pl_gpt_workers(&gpt->layout);
    return OF_WORKER_0 + (workers > 1 ? workers - 1 : 0);
}

pl_tensors_name pl_checkpoint_file(const pl_gpt *gpt, size_t i)
{
    PL_CHECK(i < pl_checkpoint_files(gpt));
    if (i == 0)
        return (pl_tensors_name){ "model.safetensors", PL_TENSORS_MODEL, 0 };
    if (i == 1)
        return (pl_tensors_name){ "optimizer.safetensors", PL_TENSORS_OPTIMIZER,
                                  0 };
    pl_tensors_name name = { .file = PL_TENSORS_WORKER,
                             .worker = i - OF_WORKER_0 + 1 };
    snprintf(name.text, sizeof name.text, "worker-%05zu.safetensors",
             name.worker);
    return name;
}

/* ---- what is in them ---- */

static pl_tensors_row row_of(const pl_kept *k, size_t i)
{
    pl_tensors_row row = pl_tensors_at(k->gpt, k->file, i);
    row.worker = k->worker;
    return row;
}

static void describe(void *context, size_t i, pl_tensor_info *info)
{
    *info = row_of(context, i).info;
}

/* What this process has of it. */
static pl_status read_own(const pl_run *run, const pl_tensors_row *row,
                          size_t at, void *out, size_t bytes, pl_error *err)
{
    const size_t each = pl_tensor_dtype_bytes(row->info.dtype);
    const pl_tensors_share own = pl_tensors_own(&run->gpt, row, run->rank);
    PL_CHECK(at / each >= own.first &&
             at + bytes <= (own.first + own.count) * each);
    return pl_device_read(run->device, row->buffer,
                          (own.at - own.first) * each + at, out, bytes, err);
}

static pl_status read_tensor(void *context, size_t i, size_t at, void *out,
                             size_t bytes, pl_error *err)
{
    const pl_kept *k = context;
    const pl_run_others *others = k->run->others;
    const pl_tensors_row row = row_of(k, i);
    const size_t each = pl_tensor_dtype_bytes(row.info.dtype);
    if (row.buffer == PL_NO_BUFFER) {
        memset(out, 0, bytes);
        return PL_OK;
    }
    if (k->run->rank > 0)
        return read_own(k->run, &row, at, out, bytes, err);
    if (others && !row.is_weight)
        return others->read(others->context, &row, at / each, bytes / each, out,
                            err);
    return pl_device_read(k->run->device, row.buffer, row.first * each + at,
                          out, bytes, err);
}

/* ---- who writes them ---- */

/* The run of blocks that `place` of the file is in, of one writer. */
static pl_tensor_part part_of(void *context, size_t i, uint64_t at,
                              uint64_t place)
{
    const pl_kept *k = context;
    const pl_tensors_row row = row_of(k, i);
    const uint64_t each = pl_tensor_dtype_bytes(row.info.dtype),
                   begin = place - at;
    uint64_t end = begin + pl_tensors_elements(&row) * each;
    if (row.buffer == PL_NO_BUFFER || begin % each != 0)
        return (pl_tensor_part){ end - place, 0 };
    for (size_t rank = 1; rank < pl_gpt_ranks(&k->gpt->layout); rank++) {
        const pl_tensors_share own = pl_tensors_own(k->gpt, &row, rank);
        const uint64_t first = begin + own.first * each,
                       last = first + own.count * each,
                       from = (first + BLOCK_BYTES - 1) / BLOCK_BYTES *
                              BLOCK_BYTES,
                       to = last / BLOCK_BYTES * BLOCK_BYTES;
        if (from <= place && place < to)
            return (pl_tensor_part){ to - place, rank };
        if (place < from && from < to && from < end)
            end = from;
    }
    return (pl_tensor_part){ end - place, 0 };
}

/* Weights are the same everywhere: they are read here. */
static pl_status sum_weights(const pl_run *run, const pl_tensors_row *row,
                             size_t at, size_t bytes, pl_hash *hash,
                             pl_error *err)
{
    const size_t first = row->first * pl_tensor_dtype_bytes(row->info.dtype),
                 most = run->gpt.layout.slice_bytes, end = at + bytes;
    void *slice = pl_device_host(run->device, run->gpt.slice);
    pl_status status = PL_OK;
    for (size_t n; at < end && !status; at += n) {
        n = end - at < most ? end - at : most;
        status = pl_device_read(run->device, row->buffer, first + at, slice, n,
                                err);
        if (!status)
            pl_hash_add(hash, slice, n);
    }
    return status;
}

static pl_status sum_part(void *context, size_t i, size_t at,
                          const pl_tensor_part *part, pl_hash *hash,
                          pl_error *err)
{
    const pl_kept *k = context;
    const pl_run_others *others = k->run->others;
    const pl_tensors_row row = row_of(k, i);
    const size_t each = pl_tensor_dtype_bytes(row.info.dtype),
                 bytes = (size_t)part->bytes;
    if (row.is_weight)
        return sum_weights(k->run, &row, at, bytes, hash, err);
    return others->sum(others->context, &row, part->writer, at / each,
                       bytes / each, hash, err);
}

pl_tensor_source pl_kept_source(pl_kept *kept)
{
    return (pl_tensor_source){
        .context = kept,
        .count = pl_tensors_rows(kept->gpt, kept->file),
        .describe = describe,
        .read = read_tensor,
        .writer = kept->run ? kept->run->rank : 0,
        .part = kept->is_shared ? part_of : NULL,
        .sum = sum_part,
    };
}

pl_status pl_checkpoint_fill(const pl_run *run, const char *folder,
                             uint64_t *bytes, pl_error *err)
{
    pl_status status = PL_OK;
    *bytes = 0;
    for (size_t i = 0; i < pl_checkpoint_files(&run->gpt) && !status; i++) {
        const pl_tensors_name name = pl_checkpoint_file(&run->gpt, i);
        pl_kept k = { &run->gpt, run, name.file, name.worker, 1 };
        const pl_tensor_source source = pl_kept_source(&k);
        char path[PL_PATH_BYTES];
        uint64_t written = 0;
        status = pl_path_join(path, folder, name.text, err);
        if (!status)
            status = pl_safetensors_fill(
                path, &source, pl_device_host(run->device, run->gpt.slice),
                run->gpt.layout.slice_bytes, &written, err);
        *bytes += written;
    }
    return status;
}
