/* opencl.c: see opencl.h. One queue, in order: whatever is enqueued happens
 * after all that was enqueued before it. */
#include "device/opencl.h"
#include "base/arena.h"
#include "device/gpu_call.h"
#include "device/opencl_api.h"
#include "kernels/gpu_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pl_gpu {
    const pl_opencl_calls *cl;
    pl_gpu_card card;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernels[PL_GPU_KERNEL_COUNT];
    cl_mem banks[PL_GPU_MAX_BANKS];
    cl_mem pinned[PL_GPU_SLICES];
    void *slices[PL_GPU_SLICES];
    cl_event copies[PL_GPU_SLICES], marks[2]; /* NULL: none is under way */
    int is_bound; /* the banks are arguments of all kernels */
    int is_lost;  /* a wait failed: nothing waits for it any more */
    int is_hung;  /* it doesn't answer: not even releasing would end */
};

static pl_status refused(const pl_gpu_card *card, const char *call, cl_int code,
                         pl_error *err)
{
    const int is_memory = code == -4 || code == -61;
    return pl_gpu_refused(card, call, pl_opencl_error(code),
                          is_memory ? PL_E_MEMORY : PL_E_IO, err);
}

/* Makes a call that returns a code, or stores it in `code`; ends the function
 * where it fails. */
#define TRY(gpu, call)                                                         \
    do {                                                                       \
        const cl_int code_ = pl_gpu_seen((gpu)->cl->call);                     \
        if (code_)                                                             \
            return refused(&(gpu)->card, #call, code_, err);                   \
    } while (0)

/* ---- what is there ---- */

static void text_info(const pl_opencl_calls *cl, cl_device_id device,
                      cl_uint what, char *text, size_t size)
{
    text[0] = '\0';
    if (cl->clGetDeviceInfo(device, what, size, text, NULL))
        snprintf(text, size, "unknown");
    text[size - 1] = '\0';
}

static cl_ulong number_info(const pl_opencl_calls *cl, cl_device_id device,
                            cl_uint what, size_t bytes)
{
    cl_ulong wide = 0;
    cl_uint narrow = 0;
    if (bytes == sizeof narrow) {
        if (cl->clGetDeviceInfo(device, what, bytes, &narrow, NULL))
            return 0;
        return narrow;
    }
    return cl->clGetDeviceInfo(device, what, bytes, &wide, NULL) ? 0 : wide;
}

/* What the kernels need and this device doesn't promise. */
static const char *what_it_lacks(const pl_opencl_calls *cl, cl_device_id device)
{
    const cl_ulong fp = number_info(cl, device, CL_DEVICE_SINGLE_FP_CONFIG, 8);
    if (!number_info(cl, device, CL_DEVICE_AVAILABLE, 4))
        return "its driver says that it isn't available";
    if (!number_info(cl, device, CL_DEVICE_COMPILER_AVAILABLE, 4))
        return "its driver has no compiler";
    if (!number_info(cl, device, CL_DEVICE_ENDIAN_LITTLE, 4))
        return "its bytes are in another order";
    if (!(fp & CL_FP_FMA))
        return "it has no fused multiply-add";
    if (!(fp & CL_FP_DENORM))
        return "it takes denormal numbers for zero";
    if (!(fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT))
        return "it doesn't round divisions correctly";
    if (number_info(cl, device, CL_DEVICE_LOCAL_MEM_SIZE, 8) < 48 * 1024)
        return "it has less than 48 KiB of local memory";
    if (number_info(cl, device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)) <
        256)
        return "its groups have fewer than 256 items";
    return "";
}

static pl_gpu_card card_at(const pl_opencl_calls *cl, cl_device_id device,
                           int number)
{
    pl_gpu_card card = {
        .api = &pl_opencl_api,
        .number = number,
        .is_processor = (number_info(cl, device, CL_DEVICE_TYPE, 8) &
                         CL_DEVICE_TYPE_CPU) != 0,
        .is_unified = number_info(cl, device, CL_DEVICE_HOST_UNIFIED_MEMORY,
                                  4) != 0,
        .has_double = number_info(cl, device, CL_DEVICE_DOUBLE_FP_CONFIG, 8) !=
                      0,
        .memory_bytes = number_info(cl, device, CL_DEVICE_GLOBAL_MEM_SIZE, 8),
        .largest_bytes = number_info(cl, device, CL_DEVICE_MAX_MEM_ALLOC_SIZE,
                                     8),
        .units = (unsigned)number_info(cl, device, CL_DEVICE_MAX_COMPUTE_UNITS,
                                       4),
        .megahertz = (unsigned)number_info(cl, device,
                                           CL_DEVICE_MAX_CLOCK_FREQUENCY, 4),
    };
    if (cl->clGetDeviceInfo(device, CL_DEVICE_BOARD_NAME_AMD, sizeof card.name,
                            card.name, NULL) ||
        !card.name[0])
        text_info(cl, device, CL_DEVICE_NAME, card.name, sizeof card.name);
    card.name[sizeof card.name - 1] = '\0';
    text_info(cl, device, CL_DRIVER_VERSION, card.driver, sizeof card.driver);
    snprintf(card.lacks, sizeof card.lacks, "%s", what_it_lacks(cl, device));
    return card;
}

/* All devices of all platforms, in the library's order. */
static size_t all_devices(const pl_opencl_calls *cl,
                          cl_device_id devices[PL_GPU_MAX_CARDS])
{
    cl_platform_id platforms[PL_GPU_MAX_CARDS];
    cl_uint n_platforms = 0, n = 0;
    size_t count = 0;
    if (!cl || cl->clGetPlatformIDs(PL_GPU_MAX_CARDS, platforms, &n_platforms))
        return 0;
    if (n_platforms > PL_GPU_MAX_CARDS)
        n_platforms = PL_GPU_MAX_CARDS;
    for (cl_uint i = 0; i < n_platforms && count < PL_GPU_MAX_CARDS; i++) {
        const cl_uint room = (cl_uint)(PL_GPU_MAX_CARDS - count);
        if (cl->clGetDeviceIDs(platforms[i], CL_ALL_TYPES, room,
                               devices + count, &n))
            continue;
        count += n < room ? n : room;
    }
    return count;
}

static pl_status list(pl_gpu_card *cards, size_t *count, pl_error *err)
{
    cl_device_id devices[PL_GPU_MAX_CARDS];
    const pl_opencl_calls *cl = pl_opencl_load();
    (void)err;
    *count = all_devices(cl, devices);
    for (size_t i = 0; i < *count; i++)
        cards[i] = card_at(cl, devices[i], (int)i);
    return PL_OK;
}

/* ---- opening ---- */

static void close_gpu(pl_gpu *g)
{
    if (!g)
        return;
    const pl_opencl_calls *cl = g->cl;
    if (g->is_hung)
        return; /* releasing would wait for it; the process's end doesn't */
    if (g->queue && !g->is_lost)
        cl->clFinish(g->queue);
    for (size_t i = 0; i < 2; i++)
        if (g->marks[i])
            cl->clReleaseEvent(g->marks[i]);
    for (size_t i = 0; i < PL_GPU_SLICES; i++) {
        if (g->copies[i])
            cl->clReleaseEvent(g->copies[i]);
        if (g->slices[i] && !g->is_lost)
            cl->clEnqueueUnmapMemObject(g->queue, g->pinned[i], g->slices[i], 0,
                                        NULL, NULL);
    }
    if (g->queue && !g->is_lost)
        cl->clFinish(g->queue);
    for (size_t i = 0; i < PL_GPU_SLICES; i++)
        if (g->pinned[i])
            cl->clReleaseMemObject(g->pinned[i]);
    for (size_t i = 0; i < PL_GPU_MAX_BANKS; i++)
        if (g->banks[i])
            cl->clReleaseMemObject(g->banks[i]);
    for (size_t i = 0; i < PL_GPU_KERNEL_COUNT; i++)
        if (g->kernels[i])
            cl->clReleaseKernel(g->kernels[i]);
    if (g->program)
        cl->clReleaseProgram(g->program);
    if (g->queue)
        cl->clReleaseCommandQueue(g->queue);
    if (g->context)
        cl->clReleaseContext(g->context);
}

/* The compiler's own words, from its first error on. */
static pl_status build_failed(pl_gpu *g, cl_int code, pl_heap *heap,
                              pl_error *err)
{
    const size_t most = (size_t)16 << 20;
    size_t bytes = 0;
    char *log;
    if (g->cl->clGetProgramBuildInfo(g->program, g->device,
                                     CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes))
        bytes = 0;
    bytes = bytes < most ? bytes : most;
    pl_status status = pl_heap_take(heap, &log, bytes + 1, 1, err);
    if (status)
        return status;
    if (bytes == 0 ||
        g->cl->clGetProgramBuildInfo(g->program, g->device,
                                     CL_PROGRAM_BUILD_LOG, bytes, log, NULL))
        log[0] = '\0';
    const char *first = strstr(log, "error:");
    return pl_fail(err, PL_E_IO,
                   "opencl:%d (%s): its driver %s can't compile the kernels "
                   "(%s): %.300s",
                   g->card.number, g->card.name, g->card.driver,
                   pl_opencl_error(code),
                   first    ? first
                   : log[0] ? log
                            : "it left no log");
}

static pl_status build(pl_gpu *g, pl_heap *heap, pl_error *err)
{
    const char *text = (const char *)pl_gpu_source;
    char options[160];
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt%s%s",
             g->card.is_processor ? "" : " -DPL_CARD",
             g->card.has_double ? "" : " -DPL_SOFT_DOUBLE");
    cl_int code = 0;
    g->program = g->cl->clCreateProgramWithSource(g->context, 1, &text,
                                                  &pl_gpu_source_bytes, &code);
    code = pl_gpu_seen(code);
    if (code)
        return refused(&g->card, "clCreateProgramWithSource", code, err);
    code = pl_gpu_seen(
        g->cl->clBuildProgram(g->program, 1, &g->device, options, NULL, NULL));
    if (code)
        return build_failed(g, code, heap, err);
    for (size_t i = 0; i < PL_GPU_KERNEL_COUNT; i++) {
        if (pl_gpu_kernels[i].is_tensor)
            continue; /* OpenCL C has no words for them */
        g->kernels[i] = g->cl->clCreateKernel(g->program,
                                              pl_gpu_kernels[i].name, &code);
        code = pl_gpu_seen(code);
        if (code)
            return refused(&g->card, "clCreateKernel", code, err);
    }
    return PL_OK;
}

static pl_status make_slices(pl_gpu *g, pl_error *err)
{
    cl_int code = 0;
    for (size_t i = 0; i < PL_GPU_SLICES; i++) {
        g->pinned[i] = g->cl->clCreateBuffer(
            g->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
            PL_GPU_SLICE_BYTES, NULL, &code);
        code = pl_gpu_seen(code);
        if (code)
            return refused(&g->card, "clCreateBuffer (pinned)", code, err);
        g->slices[i] = g->cl->clEnqueueMapBuffer(
            g->queue, g->pinned[i], 1, CL_MAP_READ | CL_MAP_WRITE, 0,
            PL_GPU_SLICE_BYTES, 0, NULL, NULL, &code);
        code = pl_gpu_seen(code);
        if (code)
            return refused(&g->card, "clEnqueueMapBuffer", code, err);
    }
    return PL_OK;
}

static pl_status open_parts(pl_gpu *g, pl_heap *heap, pl_error *err)
{
    cl_device_id devices[PL_GPU_MAX_CARDS];
    const size_t count = all_devices(g->cl, devices);
    cl_int code = 0;
    if ((size_t)g->card.number >= count)
        return refused(&g->card, "clGetDeviceIDs", CL_DEVICE_NOT_FOUND, err);
    g->device = devices[g->card.number];
    g->context = g->cl->clCreateContext(NULL, 1, &g->device, NULL, NULL, &code);
    code = pl_gpu_seen(code);
    if (code)
        return refused(&g->card, "clCreateContext", code, err);
    g->queue = g->cl->clCreateCommandQueue(g->context, g->device, 0, &code);
    code = pl_gpu_seen(code);
    if (code)
        return refused(&g->card, "clCreateCommandQueue", code, err);
    pl_status status = build(g, heap, err);
    return status ? status : make_slices(g, err);
}

static pl_status open_gpu(pl_gpu **out, const pl_gpu_card *card, pl_heap *heap,
                          pl_error *err)
{
    pl_gpu *g;
    pl_status status = pl_heap_take(heap, &g, 1, sizeof *g, err);
    if (status)
        return status;
    *out = g;
    g->cl = pl_opencl_load();
    g->card = *card;
    return open_parts(g, heap, err);
}

/* ---- work ---- */

/* All banks, to all kernels; one that isn't there is the first. */
static cl_int bind_banks(pl_gpu *g)
{
    cl_int code = 0;
    for (size_t k = 0; k < PL_GPU_KERNEL_COUNT && !code; k++)
        for (cl_uint i = 0; i < PL_GPU_MAX_BANKS && g->kernels[k] && !code;
             i++) {
            const cl_mem *bank = g->banks[i] ? &g->banks[i] : &g->banks[0];
            code = g->cl->clSetKernelArg(g->kernels[k], i, sizeof(cl_mem),
                                         bank);
        }
    g->is_bound = !code;
    return code;
}

static pl_status launch(pl_gpu *g, const pl_gpu_launch *it, pl_error *err)
{
    const pl_gpu_kernel_info *about = &pl_gpu_kernels[it->kernel];
    const size_t local[2] = { about->items, 1 },
                 global[2] = { (size_t)it->groups * about->items,
                               it->groups_y };
    cl_kernel kernel = g->kernels[it->kernel];
    cl_int code = g->is_bound ? 0 : bind_banks(g);
    if (!code)
        code = g->cl->clSetKernelArg(kernel, PL_GPU_MAX_BANKS, about->bytes,
                                     it->args);
    if (!code)
        code = g->cl->clEnqueueNDRangeKernel(g->queue, kernel, 2, NULL, global,
                                             local, 0, NULL, NULL);
    code = pl_gpu_seen(code);
    if (code)
        return refused(&g->card, about->name, code, err);
    return PL_OK;
}

static void *slice_at(pl_gpu *g, size_t slice)
{
    return g->slices[slice];
}

/* An event that is waited for. */
typedef struct look {
    const pl_opencl_calls *cl;
    cl_event event;
    cl_int state, code;
} look;

static int is_over(void *context)
{
    look *l = context;
    l->code = pl_gpu_seen(
        l->cl->clGetEventInfo(l->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                              sizeof l->state, &l->state, NULL));
    return l->code || l->state <= CL_COMPLETE;
}

static pl_status wait_for(pl_gpu *g, cl_event *event, pl_error *err)
{
    look l = { g->cl, *event, 1, 0 };
    if (!*event)
        return PL_OK;
    pl_status status = pl_gpu_wait(&g->card, is_over, &l, &g->is_hung, err);
    if (status)
        return status;
    cl_int code = l.code ? l.code : l.state;
    if (!code) /* at once; what was copied may be read after this alone */
        code = pl_gpu_seen(g->cl->clWaitForEvents(1, event));
    g->cl->clReleaseEvent(*event);
    *event = NULL;
    g->is_lost |= code != 0;
    return code ? refused(&g->card, "clWaitForEvents", code, err) : PL_OK;
}

/* Zeros, in pieces: NVIDIA's driver has hung on 2 GiB at once. */
static pl_status zero(pl_gpu *g, size_t bank, size_t at, size_t bytes,
                      pl_error *err)
{
    const size_t most = (size_t)1 << 30;
    const cl_uint nothing = 0;
    const size_t pattern = at % 4 || bytes % 4 ? 1 : 4;
    for (size_t done = 0; done < bytes; done += most)
        TRY(g, clEnqueueFillBuffer(
                   g->queue, g->banks[bank], &nothing, pattern, at + done,
                   bytes - done < most ? bytes - done : most, 0, NULL, NULL));
    return PL_OK;
}

static pl_status copy_in(pl_gpu *g, size_t slice, size_t bank, size_t at,
                         size_t bytes, pl_error *err)
{
    TRY(g, clEnqueueWriteBuffer(g->queue, g->banks[bank], 0, at, bytes,
                                g->slices[slice], 0, NULL, &g->copies[slice]));
    TRY(g, clFlush(g->queue));
    return PL_OK;
}

static pl_status copy_out(pl_gpu *g, size_t slice, size_t bank, size_t at,
                          size_t bytes, pl_error *err)
{
    TRY(g, clEnqueueReadBuffer(g->queue, g->banks[bank], 0, at, bytes,
                               g->slices[slice], 0, NULL, &g->copies[slice]));
    TRY(g, clFlush(g->queue));
    return PL_OK;
}

static pl_status wait_slice(pl_gpu *g, size_t slice, pl_error *err)
{
    return wait_for(g, &g->copies[slice], err);
}

static pl_status mark(pl_gpu *g, size_t which, pl_error *err)
{
    TRY(g, clEnqueueMarkerWithWaitList(g->queue, 0, NULL, &g->marks[which]));
    TRY(g, clFlush(g->queue));
    return PL_OK;
}

static pl_status reach(pl_gpu *g, size_t which, pl_error *err)
{
    return wait_for(g, &g->marks[which], err);
}

/* ---- memory ---- */

static pl_status take(pl_gpu *g, size_t bank, size_t bytes, pl_error *err)
{
    cl_int code = 0;
    g->banks[bank] = g->cl->clCreateBuffer(g->context, CL_MEM_READ_WRITE, bytes,
                                           NULL, &code);
    code = pl_gpu_seen(code);
    if (code)
        return pl_gpu_ungiven(&g->card, bytes, pl_opencl_error(code), err);
    g->is_bound = 0;
    pl_status status = zero(g, bank, 0, bytes, err);
    return status ? status : pl_gpu_finish(&pl_opencl_api, g, err);
}

/* Bank and offset: words.clh. */
static uint64_t address(const pl_gpu *g, size_t bank, size_t at)
{
    (void)g;
    return (uint64_t)(bank + 1) << 48 | at;
}

static pl_status is_here(pl_error *err)
{
    if (pl_opencl_load())
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "there is no OpenCL here (libOpenCL.so.1). Install the "
                   "card's driver and, on Debian and Ubuntu, "
                   "ocl-icd-libopencl1; or set device = 'cpu'");
}

const pl_gpu_api pl_opencl_api = {
    .name = "opencl",
    .title = "OpenCL",
    .is_here = is_here,
    .list = list,
    .open = open_gpu,
    .close = close_gpu,
    .take = take,
    .address = address,
    .launch = launch,
    .zero = zero,
    .slice = slice_at,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .wait = wait_slice,
    .mark = mark,
    .reach = reach,
};

static pl_status describe(pl_device_info *info, size_t threads, pl_error *err)
{
    (void)threads;
    return pl_gpu_find(info, &pl_device_opencl, PL_GPU_BEST, err);
}

const pl_gpu_kind pl_device_opencl = PL_GPU_KIND(
    "opencl", describe, &pl_opencl_api, pl_gpu_card_of);
