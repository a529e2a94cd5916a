/* cuda_about.c: see cuda_about.h. */
#include "gpu/cuda_about.h"
#include "device/cuda_api.h"
#include "gpu/card_words.h"

#define DECLARE(name, parameters) CUresult name parameters;
PL_CUDA_CALLS(DECLARE)
#undef DECLARE

int cuda_is_ready;

CUresult cuInit(unsigned flags)
{
    if (flags)
        return INVALID_VALUE;
    if (said("none"))
        return CUDA_ERROR_NO_DEVICE;
    cuda_is_ready = 1;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return cuda_is_ready ? CUDA_SUCCESS : NOT_INITIALIZED;
}

CUresult cuDeviceGet(CUdevice *device, int number_)
{
    *device = CUDA_DEVICE;
    return number_ == 0 && cuda_is_ready ? CUDA_SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    snprintf(name, (size_t)room, "Emulated card");
    return device == CUDA_DEVICE ? CUDA_SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    *bytes = number("bytes", 1u << 29);
    return device == CUDA_DEVICE ? CUDA_SUCCESS : INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *value, int what, CUdevice device)
{
    const int capability = (int)number("cc", 89);
    if (device != CUDA_DEVICE)
        return INVALID_DEVICE;
    switch (what) {
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *value = 1000000;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 2;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT:
        *value = said("screen") != NULL;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
        *value = said("prohibited") ? CU_COMPUTEMODE_PROHIBITED : 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability / 10;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability % 10;
        return CUDA_SUCCESS;
    default:
        return INVALID_VALUE;
    }
}

/* ---- contexts ---- */

struct CUctx_st cuda_context;
static _Thread_local CUcontext current[4];
static _Thread_local int depth;

int cuda_has_context(void)
{
    return depth > 0 && current[depth - 1] == &cuda_context &&
           cuda_context.retained;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    if (!cuda_is_ready || device != CUDA_DEVICE)
        return cuda_is_ready ? INVALID_DEVICE : NOT_INITIALIZED;
    if (cuda_context.retained++ == 0) {
        cuda_context.taken = cuda_context.most = 0;
        cuda_begin();
    }
    *out = &cuda_context;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    if (device != CUDA_DEVICE || !cuda_context.retained)
        return INVALID_CONTEXT;
    if (--cuda_context.retained == 0 && cuda_context.most)
        report(cuda_context.most);
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext it)
{
    if (it != &cuda_context || depth == 4)
        return INVALID_CONTEXT;
    current[depth++] = it;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *it)
{
    if (depth == 0)
        return INVALID_CONTEXT;
    *it = current[--depth];
    return CUDA_SUCCESS;
}
