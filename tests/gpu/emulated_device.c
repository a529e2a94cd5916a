/* emulated_device.c: see emulated_device.h. */
#include "gpu/emulated_device.h"
#include "base/arena.h"
#include "gpu/emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t emulated_memory_bytes = (size_t)1 << 30, emulated_bank_bytes = 1 << 22;

struct pl_gpu {
    size_t bytes[PL_GPU_MAX_BANKS];
    unsigned char slices[PL_GPU_SLICES][PL_GPU_SLICE_BYTES];
    int lost;
};

static size_t taken;
static long countdown, calls;

size_t emulated_taken_bytes(void)
{
    return taken;
}

void emulated_fail_at(long nth)
{
    countdown = nth;
    calls = 0;
}

long emulated_calls(void)
{
    return calls;
}

static pl_status may_fail(pl_gpu *gpu, const char *call, pl_error *err)
{
    calls++;
    if (countdown > 0 && --countdown == 0)
        gpu->lost = 1;
    if (!gpu->lost)
        return PL_OK;
    return pl_fail(err, PL_E_IO, "the emulated card is lost (at %s)", call);
}

static pl_status list(pl_gpu_card *cards, size_t *count, pl_error *err)
{
    (void)err;
    *count = 1;
    cards[0] = (pl_gpu_card){ .name = "the emulated card",
                              .driver = "none",
                              .has_double = 1,
                              .memory_bytes = emulated_memory_bytes,
                              .largest_bytes = emulated_bank_bytes,
                              .local_bytes = 48 * 1024,
                              .align = 256,
                              .units = 1,
                              .megahertz = 1 };
    return PL_OK;
}

static pl_status open_gpu(pl_gpu **out, const pl_gpu_card *card, pl_heap *heap,
                          pl_error *err)
{
    (void)card, (void)heap;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return pl_fail(err, PL_E_MEMORY, "no memory for a test");
    return may_fail(*out, "open", err);
}

static void close_gpu(pl_gpu *gpu)
{
    if (!gpu)
        return;
    for (size_t i = 0; i < PL_GPU_MAX_BANKS; i++)
        if (gpu->bytes[i]) {
            taken -= gpu->bytes[i];
            free(emulator_banks[i]);
            emulator_banks[i] = NULL;
        }
    free(gpu);
}

static pl_status take(pl_gpu *gpu, size_t bank, size_t bytes, pl_error *err)
{
    pl_status status = may_fail(gpu, "take", err);
    if (status)
        return status;
    if (bytes > emulated_bank_bytes || taken + bytes > emulated_memory_bytes)
        return pl_fail(err, PL_E_MEMORY, "the emulated card has no %zu bytes",
                       bytes);
    emulator_banks[bank] = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!emulator_banks[bank])
        return pl_fail(err, PL_E_MEMORY, "no memory for a test");
    memset(emulator_banks[bank], 0, bytes);
    gpu->bytes[bank] = bytes;
    taken += bytes;
    return PL_OK;
}

static pl_status launch(pl_gpu *gpu, const pl_gpu_launch *it, pl_error *err)
{
    const pl_gpu_kernel_info *kernel = &pl_gpu_kernels[it->kernel];
    pl_status status = may_fail(gpu, "launch", err);
    if (status)
        return status;
    const char *wrong = emulator_run(kernel->name, it->groups, it->groups_y,
                                     it->args, kernel->bytes);
    return wrong ? pl_fail(err, PL_E_IO, "%s", wrong) : PL_OK;
}

static pl_status zero(pl_gpu *gpu, size_t bank, size_t at, size_t bytes,
                      pl_error *err)
{
    pl_status status = may_fail(gpu, "zero", err);
    if (!status)
        memset(emulator_banks[bank] + at, 0, bytes);
    return status;
}

static void *slice_at(pl_gpu *gpu, size_t slice)
{
    return gpu->slices[slice];
}

static pl_status copy_in(pl_gpu *gpu, size_t slice, size_t bank, size_t at,
                         size_t bytes, pl_error *err)
{
    pl_status status = may_fail(gpu, "copy_in", err);
    if (!status)
        memcpy(emulator_banks[bank] + at, gpu->slices[slice], bytes);
    return status;
}

static pl_status copy_out(pl_gpu *gpu, size_t slice, size_t bank, size_t at,
                          size_t bytes, pl_error *err)
{
    pl_status status = may_fail(gpu, "copy_out", err);
    if (!status)
        memcpy(gpu->slices[slice], emulator_banks[bank] + at, bytes);
    return status;
}

static pl_status wait_slice(pl_gpu *gpu, size_t slice, pl_error *err)
{
    (void)slice;
    return may_fail(gpu, "wait", err);
}

static pl_status mark(pl_gpu *gpu, size_t which, pl_error *err)
{
    (void)which;
    return may_fail(gpu, "mark", err);
}

static pl_status finish(pl_gpu *gpu, pl_error *err)
{
    return may_fail(gpu, "finish", err);
}

static const pl_gpu_api api = {
    .name = "emulated",
    .list = list,
    .open = open_gpu,
    .close = close_gpu,
    .take = take,
    .launch = launch,
    .zero = zero,
    .slice = slice_at,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .wait = wait_slice,
    .mark = mark,
    .reach = mark,
    .finish = finish,
};

static pl_status card_of(pl_gpu_card *card, const pl_device_info *info,
                         pl_error *err)
{
    size_t count;
    (void)info;
    return list(card, &count, err);
}

static pl_status describe(pl_device_info *info, size_t threads, pl_error *err)
{
    pl_gpu_card card;
    size_t count;
    (void)threads;
    pl_status status = list(&card, &count, err);
    if (status)
        return status;
    return pl_gpu_describe(info, &emulated_device.base, &api, &card, err);
}

const pl_gpu_kind emulated_device = PL_GPU_KIND("emulated", describe, &api,
                                                card_of);
