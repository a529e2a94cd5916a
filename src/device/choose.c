/* choose.c: the list of devices. */
#include "device/choose.h"
#include "device/cpu.h"

#include <stddef.h>

static const struct {
    pl_device_choice wish;
    const pl_device_kind *kind;
} kinds[] = {
    { PL_DEVICE_WISH_CPU, &pl_device_cpu },
};

/* Tests only. */
static const pl_device_kind *only;

void pl_device_choose_only(const pl_device_kind *kind)
{
    only = kind;
}

static const pl_device_kind *find(const pl_device_wish *device)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (device->kind == kinds[i].wish)
            return kinds[i].kind;
    return NULL;
}

int pl_device_is_here(const pl_device_wish *device)
{
    return device->kind == PL_DEVICE_WISH_AUTO || find(device) != NULL;
}

static size_t threads_of(const pl_config *config)
{
    return config->threads == PL_NONE ? 0 : (size_t)config->threads;
}

pl_status pl_device_choose(pl_device_info *info, const pl_config *config,
                           pl_error *err)
{
    const pl_device_kind *kind = only ? only : find(&config->device);
    if (!kind)
        kind = &pl_device_cpu;
    return kind->describe(info, threads_of(config), err);
}

pl_status pl_device_choose_host(pl_device_info *info, const pl_config *config,
                                pl_error *err)
{
    return pl_device_cpu.describe(info, threads_of(config), err);
}
