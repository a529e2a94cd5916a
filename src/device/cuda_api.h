/* cuda_api.h: what we use of CUDA's driver API and of NVRTC, its compiler,
 * declared here and opened at run time, so that nothing of CUDA is needed to
 * build or to run without it. Names and numbers are NVIDIA's; "_v2" is how the
 * driver exports what its header calls by the short name. Private to cuda.c and
 * cuda_code.c. */
#ifndef PL_DEVICE_CUDA_API_H
#define PL_DEVICE_CUDA_API_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr; /* an address of the card, for kernels too */
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef int nvrtcResult;
typedef struct nvrtc_program *nvrtcProgram;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_LAUNCH_FAILED = 719,

    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13, /* kHz */
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17, /* it has a screen */
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_COMPUTEMODE_PROHIBITED = 2,

    CU_STREAM_NON_BLOCKING = 1, /* the stream 0 has no part in it */
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

/* What cuLaunchKernel's last argument is made of. */
#define CU_LAUNCH_PARAM_END            ((void *)0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)

/* name, parameters; all return a CUresult */
#define PL_CUDA_CALLS(X)                                                       \
    X(cuInit, (unsigned))                                                      \
    X(cuDriverGetVersion, (int *))                                             \
    X(cuDeviceGetCount, (int *))                                               \
    X(cuDeviceGet, (CUdevice *, int))                                          \
    X(cuDeviceGetName, (char *, int, CUdevice))                                \
    X(cuDeviceTotalMem_v2, (size_t *, CUdevice))                               \
    X(cuDeviceGetAttribute, (int *, int, CUdevice))                            \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                       \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                \
    X(cuCtxPushCurrent_v2, (CUcontext))                                        \
    X(cuCtxPopCurrent_v2, (CUcontext *))                                       \
    X(cuMemGetInfo_v2, (size_t *, size_t *))                                   \
    X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                  \
    X(cuMemFree_v2, (CUdeviceptr))                                             \
    X(cuMemHostAlloc, (void **, size_t, unsigned))                             \
    X(cuMemFreeHost, (void *))                                                 \
    X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))         \
    X(cuMemsetD32Async, (CUdeviceptr, unsigned, size_t, CUstream))             \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))     \
    X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))           \
    X(cuStreamCreate, (CUstream *, unsigned))                                  \
    X(cuStreamSynchronize, (CUstream))                                         \
    X(cuStreamDestroy_v2, (CUstream))                                          \
    X(cuEventCreate, (CUevent *, unsigned))                                    \
    X(cuEventRecord, (CUevent, CUstream))                                      \
    X(cuEventQuery, (CUevent))                                                 \
    X(cuEventDestroy_v2, (CUevent))                                            \
    X(cuModuleLoadDataEx,                                                      \
      (CUmodule *, const void *, unsigned, int *, void **))                    \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))             \
    X(cuFuncSetAttribute, (CUfunction, int, int))                              \
    X(cuModuleUnload, (CUmodule))                                              \
    X(cuLaunchKernel,                                                          \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
       unsigned, CUstream, void **, void **))

/* The same for NVRTC; all return an nvrtcResult. */
#define PL_NVRTC_CALLS(X)                                                      \
    X(nvrtcVersion, (int *, int *))                                            \
    X(nvrtcGetNumSupportedArchs, (int *))                                      \
    X(nvrtcGetSupportedArchs, (int *))                                         \
    X(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int,    \
                           const char *const *, const char *const *))          \
    X(nvrtcDestroyProgram, (nvrtcProgram *))                                   \
    X(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))           \
    X(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                        \
    X(nvrtcGetProgramLog, (nvrtcProgram, char *))                              \
    X(nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                             \
    X(nvrtcGetCUBIN, (nvrtcProgram, char *))                                   \
    X(nvrtcGetPTXSize, (nvrtcProgram, size_t *))                               \
    X(nvrtcGetPTX, (nvrtcProgram, char *))

typedef struct pl_cuda_calls {
#define PL_CUDA_POINTER(name, parameters) int(*name) parameters;
    PL_CUDA_CALLS(PL_CUDA_POINTER)
} pl_cuda_calls;

typedef struct pl_nvrtc_calls {
    PL_NVRTC_CALLS(PL_CUDA_POINTER)
#undef PL_CUDA_POINTER
} pl_nvrtc_calls;

/* Open the libraries once, for the life of the program: libcuda.so.1, and
 * libnvrtc.so.13, .12 or .11.2; or the ones that PLIMSOLL_CUDA_DRIVER and
 * PLIMSOLL_NVRTC name in the environment. NULL where there is none, or one that
 * lacks a function: no error. */
const pl_cuda_calls *pl_cuda_load(void);
const pl_nvrtc_calls *pl_nvrtc_load(void);

/* "CUDA_ERROR_OUT_OF_MEMORY", or "error 2" for a number without a name here.
 * The driver's own names would need the driver. */
const char *pl_cuda_error(CUresult code);

#endif
