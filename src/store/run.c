/* run.c: see run.h. */
#include "store/run.h"
#include "model/rotary.h"

#include <math.h>

pl_run pl_run_make(pl_run_purpose purpose, const pl_config *config,
                   const pl_log *log, pl_heap *heap)
{
    return (pl_run){
        .purpose = purpose,
        .config = config,
        .log = log,
        .heap = heap,
        .best_val_loss = HUGE_VAL,
        .best_val_bpb = HUGE_VAL,
        .val_loss = HUGE_VAL,
        .val_bpb = HUGE_VAL,
        .outdir = { .folder = PL_FILE_CLOSED, .lock = PL_FILE_CLOSED },
        .metrics = PL_METRICS_CLOSED,
    };
}

pl_status pl_run_write_rotary(pl_run *run, pl_error *err)
{
    const pl_shape *shape = &run->gpt.shape;
    const size_t count = shape->T * shape->D,
                 most = PL_RUN_STAGE_BYTES / sizeof(float);
    pl_status status = PL_OK;
    if (run->gpt.rotary == PL_NO_BUFFER)
        return PL_OK;
    for (size_t at = 0; at < count && !status; at += most) {
        const size_t some = count - at < most ? count - at : most;
        pl_rotary_fill(shape, at, some, (float *)(void *)run->stage);
        status = pl_device_write(run->device, run->gpt.rotary,
                                 at * sizeof(float), run->stage,
                                 some * sizeof(float), err);
    }
    return status;
}

/* `count` floats of the stage, rounded, into a buffer of 16-bit elements. */
static pl_status write_halves(pl_run *run, pl_buffer_id buffer, size_t first,
                              size_t count, pl_error *err)
{
    const float *stage = (const float *)(const void *)run->stage;
    const pl_storage storage = run->gpt.graph.buffers[buffer].dtype == PL_BF16
                                   ? PL_STORE_BF16
                                   : PL_STORE_F16;
    for (size_t i = 0; i < count; i++)
        pl_storage_put(run->halves, i, stage[i], storage);
    return pl_device_write(run->device, buffer, first * sizeof *run->halves,
                           run->halves, count * sizeof *run->halves, err);
}

pl_status pl_run_write_copy(pl_run *run, size_t slot, size_t first,
                            size_t count, pl_error *err)
{
    pl_buffer_id copy = run->gpt.copies[slot];
    return copy == PL_NO_BUFFER ? PL_OK
                                : write_halves(run, copy, first, count, err);
}

pl_status pl_run_write_weights(pl_run *run, size_t slot, size_t first,
                               size_t count, pl_error *err)
{
    pl_buffer_id buffer = run->gpt.weights[slot];
    pl_status status;
    if (run->gpt.graph.buffers[buffer].dtype != PL_F32)
        status = write_halves(run, buffer, first, count, err);
    else
        status = pl_device_write(run->device, buffer, first * sizeof(float),
                                 run->stage, count * sizeof(float), err);
    return status ? status : pl_run_write_copy(run, slot, first, count, err);
}
