/* device.c: the calls of device.h: checks what every device would have to
 * check, ends the host's views, and passes on to the kind. */
#include "base/check.h"
#include "device/device_kind.h"

pl_status pl_device_offer_make(pl_device_offer *offer,
                               const pl_device_info *info, pl_error *err)
{
    return info->kind->offer(offer, info, err);
}

pl_extent pl_device_scratch(const pl_device_info *info, const pl_step *step,
                            pl_dtype kept)
{
    return info->kind->scratch(info, step, kept);
}

pl_extent pl_device_packing(const pl_device_info *info, size_t columns,
                            size_t most, pl_dtype dtype)
{
    return info->kind->packing(info, columns, most, dtype);
}

/* ---- open ---- */

/* The argument whose dtype pl_device_scratch is told. */
static int telling_arg(pl_op op)
{
    return op == PL_OP_MATMUL_T    ? PL_ARG_MATMUL_T_X
           : op == PL_OP_MATMUL_DW ? PL_ARG_MATMUL_DW_DY
                                   : 0;
}

/* Every step has the scratch that this device wants for it. */
static void check_scratch(const pl_device_info *info, const pl_graph *graph,
                          const pl_step *step)
{
    const pl_buffer_id told = step->args[telling_arg(step->op)].buffer;
    const pl_extent want = pl_device_scratch(info, step,
                                             graph->buffers[told].dtype);
    const pl_op_info *op = pl_op_of(step->op);
    size_t has = 0;
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].access == PL_SCRATCH &&
            step->args[i].buffer != PL_NO_BUFFER)
            has = graph->buffers[step->args[i].buffer].bytes;
    PL_CHECK(has >= want.rows * want.cols * sizeof(float));
}

pl_status pl_device_open(pl_device **out, const pl_device_info *info,
                         const pl_graph *graph, const pl_placement *placement,
                         pl_heap *heap, pl_error *err)
{
    const pl_device base = { .kind = info->kind,
                             .graph = graph,
                             .placement = placement };
    const pl_place_rules *own = &info->memory, *used = &placement->rules;
    PL_CHECK(own->align == used->align && own->spaces == used->spaces &&
             own->bank_bytes == used->bank_bytes);
    for (int id = 0; id < PL_PROGRAM_COUNT; id++)
        for (size_t i = 0; i < graph->programs[id].n_steps; i++)
            check_scratch(info, graph, &graph->programs[id].steps[i]);
    return info->kind->open(out, info, &base, heap, err);
}

void pl_device_close(pl_device *device)
{
    if (device)
        device->kind->close(device);
}

/* ---- runs ---- */

static void end_views(pl_device *device)
{
    for (int i = 0; i < device->n_views; i++)
        device->kind->host_end(device, device->views[i]);
    device->n_views = 0;
}

pl_status pl_device_run_watched(pl_device *device, pl_program_id program,
                                pl_part part, const pl_run_watch *watch,
                                pl_run_end *end, pl_error *err)
{
    PL_CHECK(!watch || program != PL_UPDATE_WEIGHTS);
    end_views(device);
    *end = PL_RUN_DONE;
    return device->kind->run(device, program, part, watch, end, err);
}

pl_status pl_device_run(pl_device *device, pl_program_id program, pl_part part,
                        pl_error *err)
{
    pl_run_end end;
    pl_status status = pl_device_run_watched(device, program, part, NULL, &end,
                                             err);
    PL_CHECK(status || end == PL_RUN_DONE);
    return status;
}

pl_status pl_device_set(pl_device *device, const pl_controls *controls,
                        pl_error *err)
{
    return pl_device_write(device, device->graph->controls, 0, controls,
                           sizeof *controls, err);
}

/* ---- bytes ---- */

static const pl_buffer *check_bytes(const pl_device *device,
                                    pl_buffer_id buffer, size_t at,
                                    size_t bytes)
{
    const pl_buffer *b = &device->graph->buffers[buffer];
    PL_CHECK(b->space == PL_SPACE_DEVICE);
    PL_CHECK(at <= b->bytes && bytes <= b->bytes - at);
    return b;
}

int pl_device_is_prompt(const pl_device *device)
{
    return device->kind->is_prompt;
}

int pl_device_info_is_prompt(const pl_device_info *info)
{
    return info->kind->is_prompt;
}

pl_status pl_device_clear(pl_device *device, pl_buffer_id buffer, pl_error *err)
{
    const pl_buffer *b = check_bytes(device, buffer, 0, 0);
    if (!pl_class_lives_throughout(b->class))
        end_views(device);
    return device->kind->clear(device, buffer, err);
}

pl_status pl_device_write(pl_device *device, pl_buffer_id buffer, size_t at,
                          const void *source, size_t bytes, pl_error *err)
{
    const pl_buffer *b = check_bytes(device, buffer, at, bytes);
    if (!pl_class_lives_throughout(b->class))
        end_views(device);
    return device->kind->write(device, buffer, at, source, bytes, err);
}

pl_status pl_device_read(pl_device *device, pl_buffer_id buffer, size_t at,
                         void *target, size_t bytes, pl_error *err)
{
    check_bytes(device, buffer, at, bytes);
    return device->kind->read(device, buffer, at, target, bytes, err);
}

void *pl_device_host(pl_device *device, pl_buffer_id buffer)
{
    PL_CHECK(device->graph->buffers[buffer].space == PL_SPACE_HOST);
    int i = 0;
    while (i < device->n_views && device->views[i] != buffer)
        i++;
    PL_CHECK(i < PL_DEVICE_MAX_VIEWS);
    device->views[i] = buffer;
    if (i == device->n_views)
        device->n_views++;
    return device->kind->host(device, buffer);
}

/* ---- measuring ---- */

pl_status pl_device_backed(pl_device *device, pl_program_id program,
                           pl_device_backing *backing, pl_error *err)
{
    const pl_graph *graph = device->graph;
    const pl_placement *placement = device->placement;
    const size_t peak = pl_placement_peak(placement, program);
    size_t bytes = 0, all = 0;
    *backing = (pl_device_backing){ .is_in_host = placement->rules.spaces ==
                                                  PL_SPACES_SHARED };
    pl_status status = device->kind->backed(
        device, peak, placement->arena_bytes - peak, &backing->rest_bytes, err);
    if (!status)
        status = device->kind->backed(device, 0, peak, &backing->gap_bytes,
                                      err);
    for (size_t i = 0; i < graph->n_buffers && !status; i++) {
        const pl_buffer *buffer = &graph->buffers[i];
        if (!pl_placement_counts(placement, buffer, program))
            continue;
        status = device->kind->backed(device, placement->offsets[i],
                                      buffer->bytes, &bytes, err);
        backing->class_bytes[buffer->class] += bytes;
        all += bytes;
    }
    /* pages may have gone since they were asked for together */
    backing->gap_bytes -= all < backing->gap_bytes ? all : backing->gap_bytes;
    return status;
}

void pl_device_profile(pl_device *device, pl_program_id program,
                       double *seconds)
{
    device->kind->profile(device, program, seconds);
}

double pl_device_peak_flops(pl_device *device, pl_dtype dtype)
{
    return device->kind->probe(device, dtype == PL_BF16 ? PL_PROBE_FLOPS_BF16
                                                        : PL_PROBE_FLOPS);
}

double pl_device_read_bytes(pl_device *device)
{
    return device->kind->probe(device, PL_PROBE_READS);
}
