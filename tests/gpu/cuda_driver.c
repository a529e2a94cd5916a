/* cuda_driver.c: a library with CUDA's driver API and one card, which is the
 * emulator, for programs that run with its path in PLIMSOLL_CUDA_DRIVER. So
 * device/cuda.c and all above it are tested without a driver, also under the
 * sanitizers. It isn't named libcuda: NVIDIA's own libraries would open it.
 *
 * A stream does nothing until somebody waits: then all that was put there
 * happens, in its order. So a copy that nobody waits for leaves the host's
 * memory as it was, and host memory that is used again too early spoils what
 * was to be copied. Waiting takes a while: an event isn't reached when it is
 * first asked for.
 *
 * The driver refuses what CUDA refuses. What CUDA wouldn't see ends the
 * process: memory that is freed while a stream uses it or used after that, what
 * is never released, a launch whose argument isn't the kernel's. PL_CARD
 * (card_words.h and cuda_about.h) describes the card. */
#include "device/cuda_api.h"
#include "gpu/card_words.h"
#include "gpu/cuda_about.h"
#include "gpu/cuda_image.h"
#include "gpu/emulator.h"
#include "kernels/gpu/args.h"

enum {
    INVALID_HANDLE = 400,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    NOT_FOUND = 500,

    MOST_ARGS_BYTES = 256,
    MOST_OPS = 4096,
    MOST_BLOCKS = 64,
    MOST_STREAMS = 4,
    EXIT_WRONG = 97,
};

#define DECLARE(name, parameters) CUresult name parameters;
PL_CUDA_CALLS(DECLARE)
#undef DECLARE

struct CUfunc_st {
    const char *name;
    uint32_t items;
    size_t bytes, declared;  /* by args.h, and by the image */
    unsigned local, allowed; /* local memory that it needs, and may have */
};
struct CUmod_st {
    cuda_image image;
    struct CUfunc_st functions[CUDA_IMAGE_MOST];
    size_t count;
};
struct CUevent_st {
    CUstream stream;
    uint64_t place; /* in the stream, behind the ops up to there */
    int asked;
};

/* Memory of the card, or pinned memory of the host. */
typedef struct block {
    unsigned char *bytes;
    size_t size;
    int is_host;
} block;

typedef enum op_kind { OP_LAUNCH, OP_FILL, OP_IN, OP_OUT } op_kind;

typedef struct op {
    op_kind kind;
    CUfunction function;
    uint32_t groups, groups_y;
    unsigned char args[MOST_ARGS_BYTES];
    unsigned char *to;
    const unsigned char *from;
    size_t size;
    uint32_t pattern;
    size_t pattern_bytes;
} op;

struct CUstream_st {
    op ops[MOST_OPS]; /* a ring */
    uint64_t first, end;
};

static CUstream streams[MOST_STREAMS]; /* NULL: none */
static block blocks[MOST_BLOCKS];
static int is_failed, has_hung;
static long launches, events, modules;

/* ---- what is wrong ---- */

static void give_up(const char *what)
{
    fprintf(stderr, "emulated CUDA: %s\n", what);
    fflush(NULL);
    _Exit(EXIT_WRONG);
}

__attribute__((destructor)) static void look_for_leaks(void)
{
    size_t left = 0;
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        left += blocks[i].bytes != NULL;
    for (size_t i = 0; i < MOST_STREAMS; i++)
        left += streams[i] != NULL;
    if (!has_hung && (left || events || modules || cuda_context.retained))
        give_up("something was never released");
}

static int is_lost(void)
{
    const uint64_t nth = number("lost", 0);
    return is_failed || (nth && (uint64_t)launches >= nth);
}

static int hangs(void)
{
    const uint64_t nth = number("hangs", 0);
    const int does = nth && (uint64_t)launches >= nth;
    has_hung |= does;
    return does;
}

/* What a call that needs a context begins with. */
static CUresult entered(void)
{
    if (!cuda_is_ready)
        return NOT_INITIALIZED;
    if (!cuda_has_context())
        return INVALID_CONTEXT;
    return is_lost() ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

void cuda_begin(void)
{
    is_failed = 0;
    launches = 0;
}

/* ---- the stream ---- */

static unsigned char *pointer(CUdeviceptr address)
{
    return (unsigned char *)(uintptr_t)address;
}

/* Whether these bytes lie in one block of that kind. */
static int is_within(const unsigned char *at, size_t size, int is_host)
{
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        const block *b = &blocks[i];
        if (b->bytes && b->is_host == is_host && at >= b->bytes &&
            at <= b->bytes + b->size &&
            size <= (size_t)(b->bytes + b->size - at))
            return 1;
    }
    return 0;
}

static void launch(op *it)
{
    const char *wrong = emulator_run(it->function->name, it->groups,
                                     it->groups_y, it->args,
                                     it->function->bytes);
    uint64_t address;
    if (wrong) {
        fprintf(stderr, "emulated CUDA: %s\n", wrong);
        is_failed = 1;
    }
    memcpy(&address, it->args, sizeof address);
    if (is_wrong(it->function->name))
        *pointer(address) ^= 1;
}

static int is_stream(CUstream it)
{
    for (size_t i = 0; i < MOST_STREAMS; i++)
        if (it && streams[i] == it)
            return 1;
    return 0;
}

static void run_up_to(CUstream stream, uint64_t place)
{
    for (; stream->first < place && !is_lost(); stream->first++) {
        op *it = &stream->ops[stream->first % MOST_OPS];
        if (it->kind == OP_LAUNCH)
            launch(it);
        else if (it->kind == OP_FILL)
            for (size_t i = 0; i < it->size; i += it->pattern_bytes)
                memcpy(it->to + i, &it->pattern, it->pattern_bytes);
        else
            memcpy(it->to, it->from, it->size);
    }
    if (is_lost())
        stream->first = stream->end;
}

/* Room for one more; a driver with none left would wait, too. */
static op *next(CUstream on)
{
    if (!is_stream(on))
        give_up("work for no stream of this program");
    if (on->end - on->first == MOST_OPS)
        run_up_to(on, on->first + 1);
    return &on->ops[on->end++ % MOST_OPS];
}

static CUresult put_copy(op_kind kind, unsigned char *to,
                         const unsigned char *from, size_t size, CUstream on)
{
    const CUresult code = entered();
    if (code)
        return code;
    if (size == 0 || !is_within(to, size, kind == OP_OUT) ||
        !is_within(from, size, kind == OP_IN))
        return INVALID_VALUE;
    *next(on) = (op){ .kind = kind, .to = to, .from = from, .size = size };
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size,
                              CUstream on)
{
    return put_copy(OP_IN, pointer(to), from, size, on);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size,
                              CUstream on)
{
    return put_copy(OP_OUT, to, pointer(from), size, on);
}

static CUresult put_fill(CUdeviceptr to, uint32_t pattern, size_t pattern_bytes,
                         size_t count, CUstream on)
{
    const CUresult code = entered();
    const size_t size = count * pattern_bytes;
    if (code)
        return code;
    if (count == 0 || to % pattern_bytes || !is_within(pointer(to), size, 0))
        return INVALID_VALUE;
    *next(on) = (op){ .kind = OP_FILL,
                      .to = pointer(to),
                      .size = size,
                      .pattern = pattern,
                      .pattern_bytes = pattern_bytes };
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count,
                         CUstream on)
{
    return put_fill(to, value, 1, count, on);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count,
                          CUstream on)
{
    return put_fill(to, value, 4, count, on);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    const CUresult code = entered();
    if (code)
        return code;
    if (flags != CU_STREAM_NON_BLOCKING)
        return INVALID_VALUE;
    for (size_t i = 0; i < MOST_STREAMS; i++)
        if (!streams[i]) {
            *out = streams[i] = calloc(1, sizeof **out);
            return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamSynchronize(CUstream on)
{
    const CUresult code = entered();
    if (!is_stream(on))
        return INVALID_HANDLE;
    while (hangs())
        continue;
    run_up_to(on, on->end);
    return code ? code : entered();
}

CUresult cuStreamDestroy_v2(CUstream on)
{
    for (size_t i = 0; i < MOST_STREAMS; i++) {
        if (!on || streams[i] != on)
            continue;
        if (on->first != on->end)
            give_up("a stream is destroyed while work is in it");
        free(on);
        streams[i] = NULL;
        return CUDA_SUCCESS;
    }
    return INVALID_HANDLE;
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    const CUresult code = entered();
    if (code)
        return code;
    if (!(flags & CU_EVENT_DISABLE_TIMING))
        return INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    events += *out != NULL;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventRecord(CUevent event, CUstream on)
{
    const CUresult code = entered();
    if (code)
        return code;
    if (!is_stream(on))
        return INVALID_HANDLE;
    *event = (struct CUevent_st){ .stream = on, .place = on->end };
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    const CUresult code = entered();
    if (code)
        return code;
    if (!is_stream(event->stream))
        give_up("an event of no stream is asked");
    if (hangs())
        return CUDA_ERROR_NOT_READY;
    if (event->stream->first < event->place && event->asked++ < 1)
        return CUDA_ERROR_NOT_READY;
    run_up_to(event->stream, event->place);
    return entered();
}

CUresult cuEventDestroy_v2(CUevent event)
{
    events--;
    free(event);
    return CUDA_SUCCESS;
}

/* ---- memory ---- */

static CUresult take(unsigned char **out, size_t size, int is_host)
{
    size_t i = 0;
    while (i < MOST_BLOCKS && blocks[i].bytes)
        i++;
    if (i == MOST_BLOCKS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    blocks[i] = (block){ aligned_alloc(256, (size + 255) / 256 * 256), size,
                         is_host };
    if (!blocks[i].bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(blocks[i].bytes, 0x5a, size); /* nobody promised zeros */
    *out = blocks[i].bytes;
    return CUDA_SUCCESS;
}

/* Whether work that is still to come in some stream uses what `uses` knows. */
static int is_used(int (*uses)(const op *it, const void *what),
                   const void *what)
{
    for (size_t k = 0; k < MOST_STREAMS; k++) {
        const struct CUstream_st *on = streams[k];
        for (uint64_t i = on ? on->first : 0; on && i < on->end; i++)
            if (uses(&on->ops[i % MOST_OPS], what))
                return 1;
    }
    return 0;
}

static int is_in(const unsigned char *at, const block *b)
{
    return at >= b->bytes && at < b->bytes + b->size;
}

/* A launch may use what its addresses mean, wherever they stand in it. */
static int uses_block(const op *it, const void *what)
{
    const block *b = what;
    for (size_t i = 0; it->kind == OP_LAUNCH && i < it->function->bytes;
         i += sizeof(uint64_t)) {
        uint64_t address;
        memcpy(&address, it->args + i, sizeof address);
        if (is_in(pointer(address), b))
            return 1;
    }
    return is_in(it->to, b) || is_in(it->from, b);
}

static int uses_module(const op *it, const void *what)
{
    const struct CUmod_st *module = what;
    return it->kind == OP_LAUNCH && it->function >= module->functions &&
           it->function < module->functions + CUDA_IMAGE_MOST;
}

static CUresult give_back(const unsigned char *bytes, int is_host)
{
    for (size_t i = 0; i < MOST_BLOCKS; i++) {
        block *b = &blocks[i];
        if (!bytes || b->bytes != bytes || b->is_host != is_host)
            continue;
        if (is_used(uses_block, b))
            give_up("memory is freed while a stream uses it");
        if (!is_host)
            cuda_context.taken -= b->size;
        free(b->bytes);
        *b = (block){ 0 };
        return entered();
    }
    give_up("what is freed was never taken, or is free already");
    return INVALID_VALUE;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *all)
{
    *all = number("bytes", 1u << 29);
    *free_bytes = *all - cuda_context.taken;
    return entered();
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
    unsigned char *bytes = NULL;
    CUresult code = entered();
    if (!code && size == 0)
        code = INVALID_VALUE;
    if (!code &&
        cuda_context.taken + size > number("gives", number("bytes", 1u << 29)))
        code = CUDA_ERROR_OUT_OF_MEMORY;
    if (!code)
        code = take(&bytes, size, 0);
    if (code)
        return code;
    cuda_context.taken += size;
    if (cuda_context.taken > cuda_context.most)
        cuda_context.most = cuda_context.taken;
    *out = (CUdeviceptr)(uintptr_t)bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    return give_back(pointer(address), 0);
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
    unsigned char *bytes = NULL;
    CUresult code = entered();
    if (!code && (flags || size == 0))
        code = INVALID_VALUE;
    if (!code)
        code = take(&bytes, size, 1);
    *out = bytes;
    return code;
}

CUresult cuMemFreeHost(void *bytes)
{
    return give_back(bytes, 1);
}

/* ---- modules ---- */

static const struct CUfunc_st table[] = {
#define ROW(name, items, type) { #name, items, sizeof(type), 0, 0, 0 },
    PL_GPU_KERNELS(ROW) PL_GPU_SMALL_TENSOR_KERNELS(ROW)
#undef ROW
#define ROW(name, items, type)                                                 \
    { #name, items, sizeof(type), 0, GPU_TENSOR_LOCAL, 48 * 1024 },
        PL_GPU_LARGE_TENSOR_KERNELS(ROW)
#undef ROW
};

static CUresult refuse(const char *why, char *log, size_t room, CUresult code)
{
    if (log)
        snprintf(log, room, "error: %s", why);
    return code;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *bytes, unsigned count,
                            int *options, void **values)
{
    const int capability = (int)number("cc", 89);
    char *log = NULL;
    size_t room = 0;
    CUresult code = entered();
    if (code)
        return code;
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log = values[i];
        else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            room = (size_t)(uintptr_t)values[i];
    CUmodule module = calloc(1, sizeof *module);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const char *wrong = cuda_image_read(&module->image, bytes);
    if (wrong)
        code = refuse(wrong, log, room, INVALID_PTX);
    else if (said("broken"))
        code = refuse("this card has no compiler", log, room, INVALID_PTX);
    else if (module->image.is_ptx && said("old"))
        code = UNSUPPORTED_PTX_VERSION;
    else if (module->image.is_ptx ? module->image.arch > capability
                                  : module->image.arch != capability)
        code = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (code) {
        free(module);
        return code;
    }
    emulator.is_checked = !said("blind");
    emulator.tensor_bits = capability < 90 ? 24 : 25;
    modules++;
    *out = module;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    const cuda_image *image = &module->image;
    const CUresult code = entered();
    for (size_t i = 0; i < image->count && !code; i++)
        for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
            if (strcmp(image->entries[i].name, name) == 0 &&
                strcmp(table[k].name, name) == 0) {
                *out = &module->functions[module->count++];
                **out = table[k];
                (*out)->declared = image->entries[i].bytes;
                return CUDA_SUCCESS;
            }
    return code ? code : NOT_FOUND;
}

CUresult cuFuncSetAttribute(CUfunction f, int what, int value)
{
    const CUresult code = entered();
    if (code)
        return code;
    if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > 99 * 1024)
        return INVALID_VALUE;
    f->allowed = (unsigned)value;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    if (is_used(uses_module, module))
        give_up("code is unloaded while a stream uses it");
    modules--;
    free(module);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction f, unsigned groups, unsigned groups_y,
                        unsigned groups_z, unsigned items, unsigned items_y,
                        unsigned items_z, unsigned shared, CUstream on,
                        void **one_by_one, void **extra)
{
    CUresult code = entered();
    if (code)
        return code;
    if (one_by_one || extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER ||
        extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != CU_LAUNCH_PARAM_END)
        return INVALID_VALUE;
    const size_t bytes = *(const size_t *)extra[3];
    if (bytes != f->declared || bytes != f->bytes || bytes > MOST_ARGS_BYTES)
        give_up("a launch whose argument isn't the kernel's");
    if ((uintptr_t)extra[1] % 8)
        give_up("a launch whose argument isn't aligned");
    if (groups == 0 || groups_y == 0 || groups_z != 1 || items != f->items ||
        items_y != 1 || items_z != 1 || shared > f->allowed)
        return INVALID_VALUE;
    if (shared != f->local)
        give_up("a launch with other local memory than its kernel uses");
    launches++;
    if (is_lost())
        return CUDA_ERROR_LAUNCH_FAILED;
    op *it = next(on);
    *it = (op){
        .kind = OP_LAUNCH, .function = f, .groups = groups, .groups_y = groups_y
    };
    memcpy(it->args, extra[1], bytes);
    return CUDA_SUCCESS;
}
