/* choose.c: the list of devices. */
#include "device/choose.h"
#include "device/cpu.h"
#include "device/opencl.h"

#include <stddef.h>

/* Tests only. */
static const pl_device_kind *only;

void pl_device_choose_only(const pl_device_kind *kind)
{
    only = kind;
}

int pl_device_is_here(const pl_device_wish *device)
{
    return device->kind != PL_DEVICE_WISH_CUDA &&
           device->kind != PL_DEVICE_WISH_CUDA_N &&
           device->kind != PL_DEVICE_WISH_MPS;
}

static size_t threads_of(const pl_config *config)
{
    return config->threads == PL_NONE ? 0 : (size_t)config->threads;
}

pl_status pl_device_choose(pl_device_info *info, const pl_config *config,
                           pl_error *err)
{
    if (only)
        return only->describe(info, threads_of(config), err);
    switch (config->device.kind) {
    case PL_DEVICE_WISH_OPENCL:
        return pl_opencl_describe(info, -1, err);
    case PL_DEVICE_WISH_OPENCL_N:
        return pl_opencl_describe(info, config->device.number, err);
    default:
        return pl_device_choose_host(info, config, err);
    }
}

pl_status pl_device_choose_host(pl_device_info *info, const pl_config *config,
                                pl_error *err)
{
    return pl_device_cpu.describe(info, threads_of(config), err);
}
