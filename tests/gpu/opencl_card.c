/* opencl_card.c: a libOpenCL.so.1 with one card, which is the emulator: what
 * programs find that run with its folder in LD_LIBRARY_PATH. So device/opencl.c
 * and all above it are tested without a driver, also under the sanitizers.
 *
 * It does everything at once, refuses what the standard refuses, and keeps
 * books: what is never released is seen by AddressSanitizer. PL_CARD
 * (card_words.h) describes the card, with these words besides:
 *
 *   largest=N    what it gives at once
 *   processor    it says that it is one
 *   soft         it has no double
 *   flushes      it says that it takes denormals for zero */
#include "device/opencl_api.h"
#include "gpu/card_words.h"
#include "gpu/emulator.h"
#include "kernels/gpu/args.h"

enum {
    OUT_OF_RESOURCES = -5,
    ALLOCATION_FAILURE = -4,
    INVALID_VALUE = -30,
    INVALID_QUEUE = -36,
    INVALID_KERNEL_NAME = -46,
    INVALID_ARG_SIZE = -51,
    INVALID_BUFFER_SIZE = -61,
    MOST_ARGS_BYTES = 256,
};

/* As opencl.c expects them. */
#define DECLARE(result, name, parameters) result name parameters;
PL_OPENCL_CALLS(DECLARE)
#undef DECLARE

struct cl_platform {
    int unused;
};
struct cl_device {
    int unused;
};
struct cl_context_ {
    size_t taken, most, pinned;
};
struct cl_queue {
    cl_context context;
};
struct cl_memory {
    cl_context context;
    unsigned char *bytes;
    size_t size;
    int is_pinned, is_mapped;
};
struct cl_program_ {
    int is_built, is_soft;
};
struct cl_kernel_ {
    const char *name;
    size_t bytes;
    unsigned char args[MOST_ARGS_BYTES];
    cl_mem banks[EMULATOR_BANKS];
    unsigned is_set; /* bits of arguments */
};
struct cl_event_ {
    int hangs;
};

static struct cl_platform the_platform;
static struct cl_device the_card;
static long launches;

/* ---- its description ---- */

static int is_lost(void)
{
    const cl_ulong nth = number("lost", 0);
    return nth && (cl_ulong)launches >= nth;
}

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    if (said("none"))
        return CL_PLATFORM_NOT_FOUND_KHR;
    if (room)
        platforms[0] = &the_platform;
    *count = 1;
    return CL_SUCCESS;
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_bitfield types, cl_uint room,
                      cl_device_id *devices, cl_uint *count)
{
    (void)types;
    if (platform != &the_platform || room == 0)
        return INVALID_VALUE;
    devices[0] = &the_card;
    *count = 1;
    return CL_SUCCESS;
}

/* A number that the standard wants in so many bytes, or 0 bytes: none. */
static cl_ulong about(cl_uint what, size_t *bytes)
{
    const cl_ulong fp = CL_FP_FMA | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT |
                        CL_FP_ROUND_TO_NEAREST |
                        (said("flushes") ? 0 : CL_FP_DENORM);
    *bytes = 8;
    switch (what) {
    case CL_DEVICE_TYPE:
        return said("processor") ? CL_DEVICE_TYPE_CPU : 4;
    case CL_DEVICE_SINGLE_FP_CONFIG:
        return fp;
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        return said("soft") ? 0 : fp;
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return number("bytes", 1u << 29);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        return number("largest", 1u << 28);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return 48 * 1024;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return 1024;
    default:
        break;
    }
    *bytes = 4;
    switch (what) {
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_ENDIAN_LITTLE:
        return 1;
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return 0;
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return 2;
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        return 1000;
    default:
        *bytes = 0;
        return 0;
    }
}

cl_int clGetDeviceInfo(cl_device_id device, cl_uint what, size_t room,
                       void *value, size_t *used)
{
    const char *text = what == CL_DEVICE_NAME      ? "Emulated card"
                       : what == CL_DRIVER_VERSION ? "1.0"
                                                   : NULL;
    size_t bytes;
    const cl_ulong wide = about(what, &bytes);
    const cl_uint narrow = (cl_uint)wide;
    (void)used;
    if (text)
        bytes = strlen(text) + 1;
    if (device != &the_card || bytes == 0 || room < bytes)
        return INVALID_VALUE;
    memcpy(value,
           text         ? (const void *)text
           : bytes == 8 ? (const void *)&wide
                        : (const void *)&narrow,
           bytes);
    return CL_SUCCESS;
}

/* ---- making and releasing ---- */

static void *made(size_t bytes, cl_int refusal, cl_int *code)
{
    void *p = refusal ? NULL : calloc(1, bytes);
    *code = refusal ? refusal : p ? CL_SUCCESS : -6;
    return p;
}

static cl_int released(void *p)
{
    free(p);
    return CL_SUCCESS;
}

cl_context clCreateContext(const intptr_t *properties, cl_uint count,
                           const cl_device_id *devices,
                           void (*notify)(const char *, const void *, size_t,
                                          void *),
                           void *user, cl_int *code)
{
    (void)properties, (void)notify, (void)user;
    launches = 0;
    return made(sizeof(struct cl_context_),
                count == 1 && devices[0] == &the_card ? 0 : -33, code);
}

cl_int clReleaseContext(cl_context context)
{
    report(context->most);
    return released(context);
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_bitfield properties, cl_int *code)
{
    cl_command_queue queue = made(
        sizeof *queue, device == &the_card && !properties ? 0 : -33, code);
    if (queue)
        queue->context = context;
    return queue;
}

cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    return released(queue);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count,
                                     const char **texts, const size_t *bytes,
                                     cl_int *code)
{
    const int is_text = count == 1 && strlen(texts[0]) == bytes[0];
    (void)context;
    return made(sizeof(struct cl_program_), is_text ? 0 : INVALID_VALUE, code);
}

cl_int clBuildProgram(cl_program program, cl_uint count,
                      const cl_device_id *devices, const char *options,
                      void (*notify)(cl_program, void *), void *user)
{
    (void)count, (void)devices, (void)notify, (void)user;
    program->is_soft = strstr(options, "-DPL_SOFT_DOUBLE") != NULL;
    if (said("broken") || program->is_soft != (said("soft") != NULL) ||
        !strstr(options, "-cl-fp32-correctly-rounded-divide-sqrt"))
        return CL_BUILD_PROGRAM_FAILURE;
    program->is_built = 1;
    return CL_SUCCESS;
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device,
                             cl_uint what, size_t room, void *value,
                             size_t *used)
{
    static const char log[] = "<source>:7:1: error: this card has no compiler";
    (void)program, (void)device;
    if (what != CL_PROGRAM_BUILD_LOG || (value && room < sizeof log))
        return INVALID_VALUE;
    if (value)
        memcpy(value, log, sizeof log);
    if (used)
        *used = sizeof log;
    return CL_SUCCESS;
}

cl_int clReleaseProgram(cl_program program)
{
    return released(program);
}

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    static const struct {
        const char *name;
        size_t bytes;
    } rows[] = {
#define ROW(name, items, type) { #name, sizeof(type) },
        PL_GPU_KERNELS(ROW)
#undef ROW
    };
    emulator.soft_double = program->is_soft;
    emulator.is_checked = !said("blind");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0 && program->is_built) {
            cl_kernel kernel = made(sizeof *kernel, 0, code);
            if (kernel) {
                kernel->name = rows[i].name;
                kernel->bytes = rows[i].bytes;
            }
            return kernel;
        }
    *code = INVALID_KERNEL_NAME;
    return NULL;
}

cl_int clReleaseKernel(cl_kernel kernel)
{
    return released(kernel);
}

cl_mem clCreateBuffer(cl_context context, cl_bitfield flags, size_t bytes,
                      void *host, cl_int *code)
{
    const int is_pinned = (flags & CL_MEM_ALLOC_HOST_PTR) != 0;
    (void)host;
    if (bytes == 0 || (!is_pinned && bytes > number("largest", 1u << 28))) {
        *code = INVALID_BUFFER_SIZE;
        return NULL;
    }
    if (!is_pinned && context->taken + bytes > number("bytes", 1u << 29)) {
        *code = ALLOCATION_FAILURE;
        return NULL;
    }
    cl_mem memory = made(sizeof *memory, 0, code);
    if (!memory)
        return NULL;
    *memory = (struct cl_memory){ context, NULL, bytes, is_pinned, 0 };
    memory->bytes = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!memory->bytes) {
        free(memory);
        *code = ALLOCATION_FAILURE;
        return NULL;
    }
    memset(memory->bytes, 0x5a, bytes); /* nobody promised zeros */
    if (!is_pinned)
        context->taken += bytes;
    if (context->taken > context->most)
        context->most = context->taken;
    return memory;
}

cl_int clReleaseMemObject(cl_mem memory)
{
    if (!memory->is_pinned)
        memory->context->taken -= memory->size;
    free(memory->bytes);
    return released(memory);
}

/* ---- work ---- */

/* What an enqueueing call ends with. */
static cl_int enqueued(cl_int code, cl_event *event)
{
    const cl_ulong nth = number("hangs", 0);
    if (!code && is_lost())
        code = OUT_OF_RESOURCES;
    if (code || !event)
        return code;
    *event = made(sizeof **event, 0, &code);
    if (*event)
        (*event)->hangs = nth && (cl_ulong)launches >= nth;
    return code;
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes,
                      const void *value)
{
    if (index > EMULATOR_BANKS)
        return INVALID_VALUE;
    if (bytes !=
        (index < EMULATOR_BANKS ? sizeof kernel->banks[0] : kernel->bytes))
        return INVALID_ARG_SIZE;
    if (index < EMULATOR_BANKS)
        memcpy(&kernel->banks[index], value, bytes);
    else
        memcpy(kernel->args, value, bytes);
    kernel->is_set |= 1u << index;
    return CL_SUCCESS;
}

/* The lowest bit of what a kernel's first address means. */
static void spoil(cl_kernel kernel)
{
    uint64_t address;
    if (!is_wrong(kernel->name))
        return;
    memcpy(&address, kernel->args, sizeof address);
    kernel->banks[(address >> 48) - 1]->bytes[address & 0xffffffffffffu] ^= 1;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                              cl_uint dimensions, const size_t *offset,
                              const size_t *global, const size_t *local,
                              cl_uint waits, const cl_event *wait,
                              cl_event *event)
{
    (void)queue, (void)offset, (void)waits, (void)wait;
    launches++;
    if (dimensions != 2 || kernel->is_set != (2u << EMULATOR_BANKS) - 1 ||
        global[0] % local[0] || local[1] != 1)
        return -52;
    if (is_lost())
        return OUT_OF_RESOURCES;
    for (size_t i = 0; i < EMULATOR_BANKS; i++)
        emulator_banks[i] = kernel->banks[i]->bytes;
    const char *wrong = emulator_run(
        kernel->name, (uint32_t)(global[0] / local[0]), (uint32_t)global[1],
        kernel->args, kernel->bytes);
    if (wrong) {
        fprintf(stderr, "emulated card: %s\n", wrong);
        return OUT_OF_RESOURCES;
    }
    spoil(kernel);
    return enqueued(CL_SUCCESS, event);
}

static int is_within(cl_mem memory, size_t at, size_t bytes)
{
    return at <= memory->size && bytes <= memory->size - at && bytes > 0;
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem memory,
                           const void *pattern, size_t pattern_bytes, size_t at,
                           size_t bytes, cl_uint waits, const cl_event *wait,
                           cl_event *event)
{
    (void)queue, (void)waits, (void)wait;
    if (!is_within(memory, at, bytes) || at % pattern_bytes ||
        bytes % pattern_bytes)
        return INVALID_VALUE;
    for (size_t i = 0; i < bytes; i += pattern_bytes)
        memcpy(memory->bytes + at + i, pattern, pattern_bytes);
    return enqueued(CL_SUCCESS, event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory,
                            cl_bool blocks, size_t at, size_t bytes,
                            const void *source, cl_uint waits,
                            const cl_event *wait, cl_event *event)
{
    (void)queue, (void)blocks, (void)waits, (void)wait;
    if (!is_within(memory, at, bytes))
        return INVALID_VALUE;
    memcpy(memory->bytes + at, source, bytes);
    return enqueued(CL_SUCCESS, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory,
                           cl_bool blocks, size_t at, size_t bytes,
                           void *target, cl_uint waits, const cl_event *wait,
                           cl_event *event)
{
    (void)queue, (void)blocks, (void)waits, (void)wait;
    if (!is_within(memory, at, bytes))
        return INVALID_VALUE;
    memcpy(target, memory->bytes + at, bytes);
    return enqueued(CL_SUCCESS, event);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocks,
                         cl_bitfield flags, size_t at, size_t bytes,
                         cl_uint waits, const cl_event *wait, cl_event *event,
                         cl_int *code)
{
    (void)queue, (void)blocks, (void)flags, (void)waits, (void)wait;
    *code = is_within(memory, at, bytes) && memory->is_pinned
                ? enqueued(CL_SUCCESS, event)
                : INVALID_VALUE;
    memory->is_mapped += *code == CL_SUCCESS;
    return *code ? NULL : memory->bytes + at;
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memory,
                               void *mapped, cl_uint waits,
                               const cl_event *wait, cl_event *event)
{
    (void)queue, (void)waits, (void)wait;
    if (mapped != memory->bytes || !memory->is_mapped)
        return INVALID_VALUE;
    memory->is_mapped--;
    return enqueued(CL_SUCCESS, event);
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits,
                                   const cl_event *wait, cl_event *event)
{
    (void)queue, (void)waits, (void)wait;
    return enqueued(CL_SUCCESS, event);
}

cl_int clFlush(cl_command_queue queue)
{
    (void)queue;
    return is_lost() ? INVALID_QUEUE : CL_SUCCESS;
}

cl_int clFinish(cl_command_queue queue)
{
    return clFlush(queue);
}

cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
    for (cl_uint i = 0; i < count; i++)
        while (events[i]->hangs)
            continue;
    return is_lost() ? OUT_OF_RESOURCES : CL_SUCCESS;
}

cl_int clGetEventInfo(cl_event event, cl_uint what, size_t room, void *value,
                      size_t *used)
{
    const cl_int state = event->hangs ? 1 : CL_COMPLETE;
    (void)used;
    if (what != CL_EVENT_COMMAND_EXECUTION_STATUS || room < sizeof state)
        return INVALID_VALUE;
    memcpy(value, &state, sizeof state);
    return CL_SUCCESS;
}

cl_int clReleaseEvent(cl_event event)
{
    return released(event);
}
