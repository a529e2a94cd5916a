/* choose.c: the list of devices. */
#include "device/choose.h"
#include "device/absent.h"
#include "device/cpu.h"
#include "device/opencl.h"

#include <stddef.h>

/* Tests only. */
static const pl_device_kind *only;

static int auto_card = -1; /* below 0: the processor */

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

void pl_device_choose_auto(int number)
{
    auto_card = number;
}

pl_device_asked pl_device_asks(const pl_config *config)
{
    if (only || config->gpu[0])
        return PL_DEVICE_ASKS_HOST;
    switch (config->device.kind) {
    case PL_DEVICE_WISH_OPENCL:
    case PL_DEVICE_WISH_OPENCL_N:
        return PL_DEVICE_ASKS_CARD;
    case PL_DEVICE_WISH_AUTO:
    case PL_DEVICE_WISH_CUDA:
    case PL_DEVICE_WISH_CUDA_N:
        return PL_DEVICE_ASKS_ANY;
    default:
        return PL_DEVICE_ASKS_HOST;
    }
}

pl_status pl_device_choose(pl_device_info *info, const pl_config *config,
                           pl_error *err)
{
    const pl_device_asked asked = pl_device_asks(config);
    int number = auto_card;
    if (only)
        return only->describe(info, threads_of(config), err);
    if (config->gpu[0])
        return pl_absent_describe(info, config->gpu, err);
    if (asked == PL_DEVICE_ASKS_CARD)
        number = config->device.kind == PL_DEVICE_WISH_OPENCL_N
                     ? config->device.number
                     : PL_OPENCL_FIRST;
    else if (asked == PL_DEVICE_ASKS_HOST || auto_card < 0)
        return pl_device_choose_host(info, config, err);
    return pl_opencl_describe(info, number, err);
}

pl_status pl_device_choose_host(pl_device_info *info, const pl_config *config,
                                pl_error *err)
{
    return pl_device_cpu.describe(info, threads_of(config), err);
}
