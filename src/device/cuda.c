/* cuda.c: see cuda.h. One stream, in order: whatever is put there happens after
 * all that was put there before it, copies too; nothing would overlap, since a
 * program ends before its results are read.
 *
 * The context is the card's primary one: making an own one has had four
 * versions, and an own one would take some hundred megabytes beside it. */
#include "device/cuda.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/units.h"
#include "device/cuda_api.h"
#include "device/cuda_code.h"
#include "device/gpu_call.h"

#include <stdio.h>
#include <string.h>

/* A place in the stream that can be waited for. */
typedef struct flag {
    CUevent event;
    int is_set; /* and nobody has waited for it yet */
} flag;

struct pl_gpu {
    const pl_cuda_calls *cu;
    pl_gpu_card card;
    CUdevice device;
    CUcontext context; /* NULL: none was retained */
    int is_current;    /* the context, on this thread */
    CUmodule module;
    CUfunction kernels[PL_GPU_KERNEL_COUNT];
    CUstream stream;
    CUdeviceptr banks[PL_GPU_MAX_BANKS];
    void *slices[PL_GPU_SLICES]; /* pinned */
    flag copies[PL_GPU_SLICES], marks[2];
    int is_hung; /* it doesn't answer: not even releasing would end */
};

/* The oldest for which nvcc still makes code, and the oldest whose tensor cores
 * kernels/gpu/tensor.clh has words for. */
enum { LEAST_CAPABILITY = 75, TENSOR_CAPABILITY = 80 };

static pl_status refused(const pl_gpu_card *card, const char *call,
                         CUresult code, pl_error *err)
{
    return pl_gpu_refused(
        card, call, pl_cuda_error(code),
        code == CUDA_ERROR_OUT_OF_MEMORY ? PL_E_MEMORY : PL_E_IO, err);
}

/* Makes a call; ends the function where it fails. */
#define TRY(gpu, call)                                                         \
    do {                                                                       \
        const CUresult code_ = pl_gpu_seen((gpu)->cu->call);                   \
        if (code_)                                                             \
            return refused(&(gpu)->card, #call, code_, err);                   \
    } while (0)

/* ---- what is there ---- */

static int attribute(const pl_cuda_calls *cu, CUdevice device, int what)
{
    int value = 0;
    return cu->cuDeviceGetAttribute(&value, what, device) ? 0 : value;
}

/* "580.65.06, CUDA 13.0": the first only where its kernel module says it. */
static void find_driver(const pl_cuda_calls *cu, char *text, size_t size)
{
    char about[1024], release[32] = "";
    size_t bytes = 0;
    int version = 0;
    cu->cuDriverGetVersion(&version);
    if (pl_file_read_into("/proc/driver/nvidia/version", about, sizeof about,
                          &bytes, NULL))
        about[0] = '\0';
    for (const char *at = about; *at && !release[0];) {
        const size_t word = strcspn(at, " \n"),
                     digits = strspn(at, "0123456789.");
        if (word == digits && memchr(at, '.', word))
            snprintf(release, sizeof release, "%.*s, ", (int)word, at);
        at += word + strspn(at + word, " \n");
    }
    snprintf(text, size, "%sCUDA %d.%d", release, version / 1000,
             version % 1000 / 10);
}

/* What a run needs and this card hasn't, and where its code comes from. */
static void find_lacks(const pl_cuda_calls *cu, CUdevice device,
                       pl_gpu_card *card)
{
    if (card->capability < LEAST_CAPABILITY)
        snprintf(card->lacks, sizeof card->lacks,
                 "its compute capability is %d.%d, and CUDA needs 7.5 here",
                 card->capability / 10, card->capability % 10);
    else if (attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) ==
             CU_COMPUTEMODE_PROHIBITED)
        snprintf(card->lacks, sizeof card->lacks,
                 "its compute mode is 'prohibited' (`nvidia-smi -c 0` makes "
                 "it the default one)");
    if (card->lacks[0])
        return;
    const int arch = pl_cuda_code_describe(card->capability, card->code,
                                           sizeof card->code);
    if (arch >= TENSOR_CAPABILITY) /* the code has those kernels */
        card->tensor = pl_gpu_tensor_of(card->capability);
    if (arch)
        return;
    pl_cuda_code_describe(card->capability, card->lacks, sizeof card->lacks);
    card->code[0] = '\0';
}

static pl_gpu_card card_at(const pl_cuda_calls *cu, CUdevice device, int number)
{
    const int kilohertz = attribute(cu, device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    pl_gpu_card card = {
        .api = &pl_cuda_api,
        .number = number,
        .is_unified = attribute(cu, device, CU_DEVICE_ATTRIBUTE_INTEGRATED) !=
                      0,
        .has_double = 1,
        .units = (unsigned)attribute(cu, device,
                                     CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .megahertz = (unsigned)kilohertz / 1000,
        .capability =
            10 * attribute(cu, device,
                           CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
            attribute(cu, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    };
    if (cu->cuDeviceGetName(card.name, sizeof card.name, device))
        snprintf(card.name, sizeof card.name, "unknown");
    if (cu->cuDeviceTotalMem_v2(&card.memory_bytes, device))
        card.memory_bytes = 0;
    card.largest_bytes = card.memory_bytes; /* one bank, which is a pointer */
    find_driver(cu, card.driver, sizeof card.driver);
    find_lacks(cu, device, &card);
    return card;
}

static pl_status list(pl_gpu_card *cards, size_t *count, pl_error *err)
{
    const pl_cuda_calls *cu = pl_cuda_load();
    int all = 0;
    (void)err;
    *count = 0;
    if (!cu || cu->cuInit(0) || cu->cuDeviceGetCount(&all))
        return PL_OK;
    for (int i = 0; i < all && i < PL_GPU_MAX_CARDS; i++) {
        CUdevice device;
        if (cu->cuDeviceGet(&device, i))
            break;
        cards[(*count)++] = card_at(cu, device, i);
    }
    return PL_OK;
}

static pl_status is_here(pl_error *err)
{
    const pl_cuda_calls *cu = pl_cuda_load();
    if (!cu)
        return pl_fail(err, PL_E_CONFIG,
                       "there is no CUDA here (libcuda.so.1). Install NVIDIA's "
                       "driver (script/setup --cuda says which package has "
                       "it), or set device = 'auto' or 'cpu'");
    const CUresult code = cu->cuInit(0);
    if (code)
        return pl_fail(err, PL_E_CONFIG,
                       "CUDA's driver finds no card it can use: cuInit: %s. "
                       "`nvidia-smi` may say more; or set device = 'auto' or "
                       "'cpu'",
                       pl_cuda_error(code));
    return PL_OK;
}

/* ---- opening ---- */

static void close_gpu(pl_gpu *g)
{
    CUcontext current;
    if (!g)
        return;
    const pl_cuda_calls *cu = g->cu;
    if (g->is_hung)
        return;    /* releasing would wait for it; the process's end doesn't */
    if (g->stream) /* at once where the card is lost */
        cu->cuStreamSynchronize(g->stream);
    for (size_t i = 0; i < 2; i++)
        if (g->marks[i].event)
            cu->cuEventDestroy_v2(g->marks[i].event);
    for (size_t i = 0; i < PL_GPU_SLICES; i++) {
        if (g->copies[i].event)
            cu->cuEventDestroy_v2(g->copies[i].event);
        if (g->slices[i])
            cu->cuMemFreeHost(g->slices[i]);
    }
    for (size_t i = 0; i < PL_GPU_MAX_BANKS; i++)
        if (g->banks[i])
            cu->cuMemFree_v2(g->banks[i]);
    if (g->module)
        cu->cuModuleUnload(g->module);
    if (g->stream)
        cu->cuStreamDestroy_v2(g->stream);
    if (g->is_current)
        cu->cuCtxPopCurrent_v2(&current);
    if (g->context)
        cu->cuDevicePrimaryCtxRelease_v2(g->device);
}

static pl_status enter(pl_gpu *g, pl_error *err)
{
    TRY(g, cuInit(0));
    TRY(g, cuDeviceGet(&g->device, g->card.number));
    TRY(g, cuDevicePrimaryCtxRetain(&g->context, g->device));
    TRY(g, cuCtxPushCurrent_v2(g->context));
    g->is_current = 1;
    return PL_OK;
}

static pl_status find_kernels(pl_gpu *g, pl_error *err)
{
    for (size_t i = 0; i < PL_GPU_KERNEL_COUNT; i++) {
        const pl_gpu_kernel_info *about = &pl_gpu_kernels[i];
        if (about->is_tensor && g->card.tensor == PL_PRODUCTS_EXACT)
            continue;
        TRY(g, cuModuleGetFunction(&g->kernels[i], g->module, about->name));
        if (about->local_bytes) /* more than a kernel may have unasked */
            TRY(g, cuFuncSetAttribute(
                       g->kernels[i],
                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       (int)about->local_bytes));
    }
    return PL_OK;
}

/* Loads the code; the driver compiles what is PTX, and says what it can't. */
static pl_status load(pl_gpu *g, pl_heap *heap, pl_error *err)
{
    pl_cuda_image image;
    char log[4096] = "";
    int options[] = { CU_JIT_ERROR_LOG_BUFFER,
                      CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { log, (void *)(uintptr_t)sizeof log };
    pl_status status = pl_cuda_code_get(&image, &g->card, heap, err);
    if (status)
        return status;
    const CUresult code = pl_gpu_seen(
        g->cu->cuModuleLoadDataEx(&g->module, image.bytes, 2, options, values));
    if (code)
        return pl_fail(err, PL_E_IO,
                       "cuda:%d (%s): its driver %s can't load the kernels for "
                       "%s_%d: %s: %.300s. A newer driver, or device = "
                       "'opencl', may help",
                       g->card.number, g->card.name, g->card.driver,
                       image.form == PL_CUDA_PTX ? "compute" : "sm", image.arch,
                       pl_cuda_error(code), log[0] ? log : "it left no log");
    return find_kernels(g, err);
}

static pl_status open_parts(pl_gpu *g, pl_error *err)
{
    const unsigned how = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC;
    TRY(g, cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));
    for (size_t i = 0; i < 2; i++)
        TRY(g, cuEventCreate(&g->marks[i].event, how));
    for (size_t i = 0; i < PL_GPU_SLICES; i++) {
        TRY(g, cuEventCreate(&g->copies[i].event, how));
        TRY(g, cuMemHostAlloc(&g->slices[i], PL_GPU_SLICE_BYTES, 0));
    }
    return PL_OK;
}

static pl_status open_gpu(pl_gpu **out, const pl_gpu_card *card, pl_heap *heap,
                          pl_error *err)
{
    pl_gpu *g;
    pl_status status = pl_heap_take(heap, &g, 1, sizeof *g, err);
    if (status)
        return status;
    *out = g;
    g->cu = pl_cuda_load();
    g->card = *card;
    status = enter(g, err);
    if (status)
        return status;
    /* code that NVRTC made is given back: the driver has a copy */
    pl_heap code = pl_heap_make((size_t)256 << 20);
    status = load(g, &code, err);
    pl_heap_close(&code);
    return status ? status : open_parts(g, err);
}

/* ---- work ---- */

/* The argument goes with its size, which the driver compares with the
 * kernel's. */
static pl_status launch(pl_gpu *g, const pl_gpu_launch *it, pl_error *err)
{
    const pl_gpu_kernel_info *about = &pl_gpu_kernels[it->kernel];
    size_t bytes = about->bytes;
    union {
        const void *read;
        void *given; /* which the driver copies, and leaves as it is */
    } args = { it->args };
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, args.given,
                      CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                      CU_LAUNCH_PARAM_END };
    const CUresult code = pl_gpu_seen(g->cu->cuLaunchKernel(
        g->kernels[it->kernel], it->groups, it->groups_y, 1, about->items, 1, 1,
        about->local_bytes, g->stream, NULL, extra));
    return code ? refused(&g->card, about->name, code, err) : PL_OK;
}

static void *slice_at(pl_gpu *g, size_t slice)
{
    return g->slices[slice];
}

static pl_status set_flag(pl_gpu *g, flag *f, pl_error *err)
{
    TRY(g, cuEventRecord(f->event, g->stream));
    f->is_set = 1;
    return PL_OK;
}

/* An event that is waited for. */
typedef struct look {
    const pl_cuda_calls *cu;
    CUevent event;
    CUresult code;
} look;

static int is_over(void *context)
{
    look *l = context;
    l->code = pl_gpu_seen(l->cu->cuEventQuery(l->event));
    return l->code != CUDA_ERROR_NOT_READY;
}

static pl_status wait_for(pl_gpu *g, flag *f, pl_error *err)
{
    look l = { g->cu, f->event, 0 };
    if (!f->is_set)
        return PL_OK;
    pl_status status = pl_gpu_wait(&g->card, is_over, &l, &g->is_hung, err);
    if (status)
        return status;
    f->is_set = 0;
    return l.code ? refused(&g->card, "cuEventQuery", l.code, err) : PL_OK;
}

static pl_status zero(pl_gpu *g, size_t bank, size_t at, size_t bytes,
                      pl_error *err)
{
    const CUdeviceptr from = g->banks[bank] + at;
    if (from % 4 || bytes % 4)
        TRY(g, cuMemsetD8Async(from, 0, bytes, g->stream));
    else
        TRY(g, cuMemsetD32Async(from, 0, bytes / 4, g->stream));
    return PL_OK;
}

static pl_status copy_in(pl_gpu *g, size_t slice, size_t bank, size_t at,
                         size_t bytes, pl_error *err)
{
    TRY(g, cuMemcpyHtoDAsync_v2(g->banks[bank] + at, g->slices[slice], bytes,
                                g->stream));
    return set_flag(g, &g->copies[slice], err);
}

static pl_status copy_out(pl_gpu *g, size_t slice, size_t bank, size_t at,
                          size_t bytes, pl_error *err)
{
    TRY(g, cuMemcpyDtoHAsync_v2(g->slices[slice], g->banks[bank] + at, bytes,
                                g->stream));
    return set_flag(g, &g->copies[slice], err);
}

static pl_status wait_slice(pl_gpu *g, size_t slice, pl_error *err)
{
    return wait_for(g, &g->copies[slice], err);
}

static pl_status mark(pl_gpu *g, size_t which, pl_error *err)
{
    return set_flag(g, &g->marks[which], err);
}

static pl_status reach(pl_gpu *g, size_t which, pl_error *err)
{
    return wait_for(g, &g->marks[which], err);
}

/* ---- memory ---- */

static pl_status take(pl_gpu *g, size_t bank, size_t bytes, pl_error *err)
{
    const CUresult code = pl_gpu_seen(
        g->cu->cuMemAlloc_v2(&g->banks[bank], bytes));
    if (code)
        return pl_gpu_ungiven(&g->card, bytes, pl_cuda_error(code), err);
    pl_status status = zero(g, bank, 0, bytes, err);
    return status ? status : pl_gpu_finish(&pl_cuda_api, g, err);
}

static uint64_t address(const pl_gpu *g, size_t bank, size_t at)
{
    return g->banks[bank] + at;
}

static pl_status ask_free(pl_gpu *g, size_t *free_bytes, size_t *all,
                          pl_error *err)
{
    TRY(g, cuMemGetInfo_v2(free_bytes, all));
    return PL_OK;
}

/* What is free beside a context, less what a screen may want during the run, or
 * the driver for itself. */
static pl_status offer(pl_device_offer *out, const pl_gpu_card *card,
                       pl_error *err)
{
    pl_gpu g = { .cu = pl_cuda_load(), .card = *card };
    size_t free_bytes = 0, all = 0;
    pl_status status = enter(&g, err);
    if (!status)
        status = ask_free(&g, &free_bytes, &all, err);
    const int has_screen = !status &&
                           attribute(g.cu, g.device,
                                     CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
    close_gpu(&g);
    if (status)
        return status;
    const size_t kept = (size_t)(has_screen ? 512 : 128) << 20;
    out->bytes = free_bytes > kept ? free_bytes - kept : 0;
    snprintf(out->from, sizeof out->from,
             "%.60s: %s of its %s are free; %s of them are left for %s",
             card->name, pl_units_bytes(free_bytes).text,
             pl_units_bytes(all).text, pl_units_bytes(kept).text,
             has_screen ? "the screen" : "the driver");
    return PL_OK;
}

const pl_gpu_api pl_cuda_api = {
    .name = "cuda",
    .title = "CUDA",
    .is_here = is_here,
    .list = list,
    .open = open_gpu,
    .close = close_gpu,
    .take = take,
    .address = address,
    .offer = offer,
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
    return pl_gpu_find(info, &pl_device_cuda, PL_GPU_BEST, err);
}

const pl_gpu_kind pl_device_cuda = PL_GPU_KIND("cuda", describe, &pl_cuda_api,
                                               pl_gpu_card_of);
