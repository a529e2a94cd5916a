/* choose.c: the list of devices. */
#include "device/choose.h"
#include "device/absent.h"
#include "device/cpu.h"
#include "device/cuda.h"
#include "device/opencl.h"
#include "device/products.h"

#include <stddef.h>

const pl_gpu_kind *const pl_device_cards[PL_DEVICE_CARD_KINDS] = {
    &pl_device_cuda,
    &pl_device_opencl,
};

/* Tests only. */
static const pl_device_kind *only;

static const pl_gpu_kind *auto_kind; /* NULL: the processor */
static int auto_number;

void pl_device_choose_only(const pl_device_kind *kind)
{
    only = kind;
}

static size_t threads_of(const pl_config *config)
{
    return config->threads == PL_NONE ? 0 : (size_t)config->threads;
}

void pl_device_choose_auto(const pl_gpu_kind *kind, int number)
{
    auto_kind = kind;
    auto_number = number;
}

const pl_gpu_kind *pl_device_named(const pl_device_wish *device, int *number)
{
    *number = PL_GPU_BEST;
    switch (device->kind) {
    case PL_DEVICE_WISH_OPENCL_N:
        *number = device->number;
        return &pl_device_opencl;
    case PL_DEVICE_WISH_OPENCL:
        return &pl_device_opencl;
    case PL_DEVICE_WISH_CUDA_N:
        *number = device->number;
        return &pl_device_cuda;
    case PL_DEVICE_WISH_CUDA:
        return &pl_device_cuda;
    default:
        return NULL;
    }
}

pl_device_asked pl_device_asks(const pl_config *config)
{
    const int is_typed = config->origin[PL_KEY_device].source ==
                         PL_FROM_COMMAND_LINE;
    if (only || config->gpu[0])
        return PL_DEVICE_ASKS_HOST;
    switch (config->device.kind) {
    case PL_DEVICE_WISH_OPENCL:
    case PL_DEVICE_WISH_OPENCL_N:
        return PL_DEVICE_ASKS_CARD;
    case PL_DEVICE_WISH_CUDA:
    case PL_DEVICE_WISH_CUDA_N:
        return is_typed ? PL_DEVICE_ASKS_CARD : PL_DEVICE_ASKS_ANY;
    case PL_DEVICE_WISH_AUTO:
        return PL_DEVICE_ASKS_ANY;
    default:
        return PL_DEVICE_ASKS_HOST;
    }
}

int pl_device_is_another(const pl_config *config, const pl_device_info *info)
{
    int number;
    const pl_gpu_kind *named = pl_device_named(&config->device, &number);
    if (config->device.kind == PL_DEVICE_WISH_MPS)
        return 1;
    return named && !only && !config->gpu[0] &&
           (info->kind != &named->base ||
            (number != PL_GPU_BEST && info->variant != number));
}

static pl_status choose(pl_device_info *info, const pl_config *config,
                        pl_error *err)
{
    int number = PL_GPU_BEST;
    const pl_gpu_kind *kind;
    if (only)
        return only->describe(info, threads_of(config), err);
    if (config->gpu[0])
        return pl_absent_describe(info, config->gpu, err);
    switch (pl_device_asks(config)) {
    case PL_DEVICE_ASKS_CARD:
        kind = pl_device_named(&config->device, &number);
        break;
    case PL_DEVICE_ASKS_ANY:
        kind = auto_kind;
        number = auto_number;
        break;
    default:
        kind = NULL;
        break;
    }
    return kind ? pl_gpu_find(info, kind, number, err)
                : pl_device_choose_host(info, config, err);
}

pl_status pl_device_choose(pl_device_info *info, const pl_config *config,
                           pl_error *err)
{
    pl_status status = choose(info, config, err);
    return status ? status : pl_products_settle(info, config, err);
}

pl_status pl_device_choose_host(pl_device_info *info, const pl_config *config,
                                pl_error *err)
{
    return pl_device_cpu.describe(info, threads_of(config), err);
}
