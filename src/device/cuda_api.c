/* cuda_api.c: see cuda_api.h. */
#include "device/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The first of these libraries that is there, or the one that a variable of the
 * environment names. */
static void *open_library(const char *variable, const char *const *names)
{
    const char *named = getenv(variable);
    if (named)
        return named[0] ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *library = NULL;
    for (; *names && !library; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* POSIX: a pointer to a function is read through one to data. */
#define FIND(name, parameters)                                                 \
    *(void **)(void *)&calls.name = dlsym(library, #name);                     \
    if (!calls.name)                                                           \
        return NULL;

const pl_cuda_calls *pl_cuda_load(void)
{
    static const char *const names[] = { "libcuda.so.1", NULL };
    static pl_cuda_calls calls;
    static int state; /* 0: not tried, 1: there, -1: not there */
    if (state)
        return state > 0 ? &calls : NULL;
    state = -1;
    void *library = open_library("PLIMSOLL_CUDA_DRIVER", names);
    if (!library)
        return NULL;
    PL_CUDA_CALLS(FIND)
    state = 1;
    return &calls;
}

const pl_nvrtc_calls *pl_nvrtc_load(void)
{
    static const char *const names[] = { "libnvrtc.so.13", "libnvrtc.so.12",
                                         "libnvrtc.so.11.2", NULL };
    static pl_nvrtc_calls calls;
    static int state;
    if (state)
        return state > 0 ? &calls : NULL;
    state = -1;
    void *library = open_library("PLIMSOLL_NVRTC", names);
    if (!library)
        return NULL;
    PL_NVRTC_CALLS(FIND)
    state = 1;
    return &calls;
}

const char *pl_cuda_error(CUresult code)
{
    static const struct {
        CUresult code;
        const char *name;
    } names[] = {
        { 1, "CUDA_ERROR_INVALID_VALUE" },
        { 2, "CUDA_ERROR_OUT_OF_MEMORY: not so much memory is free" },
        { 3, "CUDA_ERROR_NOT_INITIALIZED" },
        { 4, "CUDA_ERROR_DEINITIALIZED" },
        { 34, "CUDA_ERROR_STUB_LIBRARY: this libcuda is a toolkit's stub, no "
              "driver" },
        { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE: another process has it" },
        { 100, "CUDA_ERROR_NO_DEVICE" },
        { 101, "CUDA_ERROR_INVALID_DEVICE" },
        { 200, "CUDA_ERROR_INVALID_IMAGE" },
        { 201, "CUDA_ERROR_INVALID_CONTEXT" },
        { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU" },
        { 214, "CUDA_ERROR_ECC_UNCORRECTABLE: its memory is damaged" },
        { 218, "CUDA_ERROR_INVALID_PTX" },
        { 221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND" },
        { 222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the driver is older than "
               "the compiler" },
        { 304, "CUDA_ERROR_OPERATING_SYSTEM" },
        { 400, "CUDA_ERROR_INVALID_HANDLE" },
        { 500, "CUDA_ERROR_NOT_FOUND" },
        { 600, "CUDA_ERROR_NOT_READY" },
        { 700, "CUDA_ERROR_ILLEGAL_ADDRESS: the card is lost" },
        { 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" },
        { 702, "CUDA_ERROR_LAUNCH_TIMEOUT: the watchdog of a screen ended a "
               "kernel" },
        { 709, "CUDA_ERROR_CONTEXT_IS_DESTROYED" },
        { 715, "CUDA_ERROR_ILLEGAL_INSTRUCTION: the card is lost" },
        { 716, "CUDA_ERROR_MISALIGNED_ADDRESS: the card is lost" },
        { 717, "CUDA_ERROR_INVALID_ADDRESS_SPACE: the card is lost" },
        { 718, "CUDA_ERROR_INVALID_PC: the card is lost" },
        { 719, "CUDA_ERROR_LAUNCH_FAILED: the card is lost" },
        { 802, "CUDA_ERROR_SYSTEM_NOT_READY" },
        { 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: the driver was updated: "
               "start the machine anew" },
        { 804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" },
        { 999, "CUDA_ERROR_UNKNOWN" },
    };
    static char other[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code)
            return names[i].name;
    snprintf(other, sizeof other, "error %d", code);
    return other;
}
