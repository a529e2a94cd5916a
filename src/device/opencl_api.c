/* opencl_api.c: see opencl_api.h. */
#include "device/opencl_api.h"

#include <dlfcn.h>
#include <stdio.h>

static pl_opencl_calls calls;
static int state; /* 0: not tried, 1: there, -1: not there */

const pl_opencl_calls *pl_opencl_load(void)
{
    if (state)
        return state > 0 ? &calls : NULL;
    state = -1;
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return NULL;
        /* POSIX: a pointer to a function is read through one to data */
#define FIND(result, name, parameters)                                         \
    *(void **)(void *)&calls.name = dlsym(library, #name);                     \
    if (!calls.name)                                                           \
        return NULL;
    PL_OPENCL_CALLS(FIND)
#undef FIND
    state = 1;
    return &calls;
}

const char *pl_opencl_error(cl_int code)
{
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
        { -1, "CL_DEVICE_NOT_FOUND" },
        { -2, "CL_DEVICE_NOT_AVAILABLE" },
        { -3, "CL_COMPILER_NOT_AVAILABLE" },
        { -4, "CL_MEM_OBJECT_ALLOCATION_FAILURE: not so much memory is free" },
        { -5, "CL_OUT_OF_RESOURCES: the card gave up, or its memory is full" },
        { -6, "CL_OUT_OF_HOST_MEMORY" },
        { -11, "CL_BUILD_PROGRAM_FAILURE" },
        { -14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST: the card is "
               "lost, or a kernel failed" },
        { -30, "CL_INVALID_VALUE" },
        { -33, "CL_INVALID_DEVICE" },
        { -34, "CL_INVALID_CONTEXT: the card is lost" },
        { -36, "CL_INVALID_COMMAND_QUEUE: the card is lost" },
        { -38, "CL_INVALID_MEM_OBJECT" },
        { -45, "CL_INVALID_PROGRAM_EXECUTABLE" },
        { -46, "CL_INVALID_KERNEL_NAME" },
        { -51, "CL_INVALID_ARG_SIZE" },
        { -52, "CL_INVALID_KERNEL_ARGS" },
        { -54, "CL_INVALID_WORK_GROUP_SIZE" },
        { -55, "CL_INVALID_WORK_ITEM_SIZE" },
        { -59, "CL_INVALID_OPERATION" },
        { -61, "CL_INVALID_BUFFER_SIZE: more than it gives at once" },
        { -63, "CL_INVALID_GLOBAL_WORK_SIZE" },
        { -1001, "CL_PLATFORM_NOT_FOUND_KHR: no driver is installed" },
        { -9999, "NVIDIA's error for an access that isn't allowed: the card is "
                 "lost" },
    };
    static char other[32];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code)
            return names[i].name;
    snprintf(other, sizeof other, "error %d", code);
    return other;
}
