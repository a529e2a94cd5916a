/* opencl_api.h: what we use of OpenCL 1.2, declared here and opened at run time
 * (libOpenCL.so.1), so that neither its headers nor its loader are needed to
 * build or to run without it. Names and numbers are the standard's. Private to
 * opencl.c. */
#ifndef PL_DEVICE_OPENCL_API_H
#define PL_DEVICE_OPENCL_API_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;
typedef struct cl_platform *cl_platform_id;
typedef struct cl_device *cl_device_id;
typedef struct cl_context_ *cl_context;
typedef struct cl_queue *cl_command_queue;
typedef struct cl_memory *cl_mem;
typedef struct cl_program_ *cl_program;
typedef struct cl_kernel_ *cl_kernel;
typedef struct cl_event_ *cl_event;

enum {
    CL_SUCCESS = 0,
    CL_DEVICE_NOT_FOUND = -1,
    CL_OUT_OF_RESOURCES = -5,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_PLATFORM_NOT_FOUND_KHR = -1001,

    CL_DEVICE_TYPE_CPU = 2,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_CLOCK_FREQUENCY = 0x100C,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_DEVICE_HOST_UNIFIED_MEMORY = 0x1035,
    CL_DEVICE_BOARD_NAME_AMD = 0x4038, /* where the name is "gfx1032" */

    CL_FP_DENORM = 1,
    CL_FP_ROUND_TO_NEAREST = 4,
    CL_FP_FMA = 32,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 128,

    CL_MEM_READ_WRITE = 1,
    CL_MEM_ALLOC_HOST_PTR = 16,
    CL_MAP_READ = 1,
    CL_MAP_WRITE = 2,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_COMPLETE = 0, /* a status; below 0: the code of a failure */
};
/* CL_DEVICE_TYPE_ALL */
#define CL_ALL_TYPES 0xFFFFFFFFu

/* result, name, parameters */
#define PL_OPENCL_CALLS(X)                                                     \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))        \
    X(cl_int, clGetDeviceIDs,                                                  \
      (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))       \
    X(cl_int, clGetDeviceInfo,                                                 \
      (cl_device_id, cl_uint, size_t, void *, size_t *))                       \
    X(cl_context, clCreateContext,                                             \
      (const intptr_t *, cl_uint, const cl_device_id *,                        \
       void (*)(const char *, const void *, size_t, void *), void *,           \
       cl_int *))                                                              \
    X(cl_int, clReleaseContext, (cl_context))                                  \
    X(cl_command_queue, clCreateCommandQueue,                                  \
      (cl_context, cl_device_id, cl_bitfield, cl_int *))                       \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue))                       \
    X(cl_program, clCreateProgramWithSource,                                   \
      (cl_context, cl_uint, const char **, const size_t *, cl_int *))          \
    X(cl_int, clBuildProgram,                                                  \
      (cl_program, cl_uint, const cl_device_id *, const char *,                \
       void (*)(cl_program, void *), void *))                                  \
    X(cl_int, clGetProgramBuildInfo,                                           \
      (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))           \
    X(cl_int, clReleaseProgram, (cl_program))                                  \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))         \
    X(cl_int, clReleaseKernel, (cl_kernel))                                    \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))      \
    X(cl_mem, clCreateBuffer,                                                  \
      (cl_context, cl_bitfield, size_t, void *, cl_int *))                     \
    X(cl_int, clReleaseMemObject, (cl_mem))                                    \
    X(cl_int, clEnqueueNDRangeKernel,                                          \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,   \
       const size_t *, cl_uint, const cl_event *, cl_event *))                 \
    X(cl_int, clEnqueueFillBuffer,                                             \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t,         \
       cl_uint, const cl_event *, cl_event *))                                 \
    X(cl_int, clEnqueueWriteBuffer,                                            \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *,        \
       cl_uint, const cl_event *, cl_event *))                                 \
    X(cl_int, clEnqueueReadBuffer,                                             \
      (cl_command_queue, cl_mem, cl_bool, size_t, size_t, void *, cl_uint,     \
       const cl_event *, cl_event *))                                          \
    X(void *, clEnqueueMapBuffer,                                              \
      (cl_command_queue, cl_mem, cl_bool, cl_bitfield, size_t, size_t,         \
       cl_uint, const cl_event *, cl_event *, cl_int *))                       \
    X(cl_int, clEnqueueUnmapMemObject,                                         \
      (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *,            \
       cl_event *))                                                            \
    X(cl_int, clEnqueueMarkerWithWaitList,                                     \
      (cl_command_queue, cl_uint, const cl_event *, cl_event *))               \
    X(cl_int, clFlush, (cl_command_queue))                                     \
    X(cl_int, clFinish, (cl_command_queue))                                    \
    X(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                    \
    X(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void *, size_t *))   \
    X(cl_int, clReleaseEvent, (cl_event))

typedef struct pl_opencl_calls {
#define PL_OPENCL_POINTER(result, name, parameters) result(*name) parameters;
    PL_OPENCL_CALLS(PL_OPENCL_POINTER)
#undef PL_OPENCL_POINTER
} pl_opencl_calls;

/* Opens the library once, for the life of the program. NULL where there is
 * none: no error. */
const pl_opencl_calls *pl_opencl_load(void);

/* "CL_OUT_OF_RESOURCES", or "error -5" for a number without a name here. */
const char *pl_opencl_error(cl_int code);

#endif
