/* absent.c: see absent.h. */
#include "device/absent.h"
#include "device/cards.h"
#include "device/gpu.h"

#include <stdio.h>

/* NVIDIA's OpenCL gives a quarter of the memory at once; others give more. */
enum { LARGEST_SHARE = 4 };

static const pl_gpu_kind absent;

static pl_status open_gpu(pl_gpu **gpu, const pl_gpu_card *card, pl_heap *heap,
                          pl_error *err)
{
    (void)gpu, (void)heap;
    return pl_fail(err, PL_E_CONFIG,
                   "the %s isn't here: it is only planned for", card->name);
}

static void close_gpu(pl_gpu *gpu)
{
    (void)gpu;
}

static const pl_gpu_api api = { .name = "gpu",
                                .open = open_gpu,
                                .close = close_gpu };

static pl_gpu_card card_from(const pl_card *row, int number)
{
    pl_gpu_card card = {
        .api = &api,
        .number = number,
        .has_double = 1,
        .memory_bytes = (size_t)(row->shown_gib * 1024.0 * 1024.0 * 1024.0),
        .units = (unsigned)row->units,
        .tensor = pl_gpu_tensor_of(row->capability),
    };
    card.largest_bytes = card.memory_bytes / LARGEST_SHARE;
    snprintf(card.name, sizeof card.name, "%s", row->name);
    return card;
}

static pl_status card_of(pl_gpu_card *card, const pl_device_info *info,
                         pl_error *err)
{
    (void)err;
    *card = card_from(pl_card_at((size_t)info->variant), info->variant);
    return PL_OK;
}

pl_status pl_absent_describe(pl_device_info *info, const char *name,
                             pl_error *err)
{
    const pl_card *row;
    pl_status status = pl_card_find(name, &row, err);
    if (status)
        return status;
    const pl_gpu_card card = card_from(row, (int)(row - pl_card_at(0)));
    return pl_gpu_describe(info, &absent.base, &card, err);
}

static pl_status describe(pl_device_info *info, size_t threads, pl_error *err)
{
    (void)threads;
    return pl_absent_describe(info, "", err);
}

static const pl_gpu_kind absent = PL_GPU_KIND("gpu", describe, &api, card_of);
