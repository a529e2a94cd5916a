/* silly_device.c: see silly_device.h. */
#include "support/silly_device.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/threads.h"
#include "device/choose.h"
#include "device/cpu.h"
#include "device/cpu_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A mapping that is closed unless somebody opened it. */
typedef struct mapping {
    unsigned char *base;
    size_t bytes;
} mapping;

typedef struct silly {
    pl_device base;
    mapping *banks;
    size_t n_banks;
    mapping host;
    cpu_context steps;
    size_t workers;
    double *profile[PL_PROGRAM_COUNT];
    int lost;
} silly;

static silly *silly_of(pl_device *device)
{
    return (silly *)(void *)device;
}

/* ---- faults ---- */

static long fail_countdown, calls;
static silly_fault fault;

void silly_device_fail_at(long nth, silly_fault how)
{
    fail_countdown = nth;
    fault = how;
    calls = 0;
}

long silly_device_calls(void)
{
    return calls;
}

static pl_status may_fail(int *lost, const char *call, pl_error *err)
{
    calls++;
    const int now = fail_countdown > 0 && --fail_countdown == 0;
    if (now && fault == SILLY_LOST)
        *lost = 1;
    if (!*lost && !now)
        return PL_OK;
    return pl_fail(err, PL_E_IO, "the silly device is lost (at %s)", call);
}

/* ---- mappings ---- */

static void map(mapping *m, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    m->bytes = (bytes + page) / page * page; /* at least one */
    m->base = mmap(NULL, m->bytes + page, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PL_CHECK(m->base != MAP_FAILED);
    munmap(m->base + m->bytes, page); /* so that no two touch */
}

static void protect(const mapping *m, int how)
{
    PL_CHECK(mprotect(m->base, m->bytes, how) == 0);
}

/* The device's own calls begin and end with these. */
static void enter(const silly *s)
{
    for (size_t i = 0; i < s->n_banks; i++)
        protect(&s->banks[i], PROT_READ | PROT_WRITE);
}

static void leave(const silly *s)
{
    for (size_t i = 0; i < s->n_banks; i++)
        protect(&s->banks[i], PROT_NONE);
}

/* ---- before it is opened ---- */

pl_device_info silly_device_info(int variant, size_t threads)
{
    pl_device_info info = pl_cpu_info(variant, threads);
    info.kind = &silly_device;
    info.memory = (pl_place_rules){ .align = SILLY_ALIGN,
                                    .bank_bytes = SILLY_BANK_BYTES,
                                    .spaces = PL_SPACES_APART };
    info.host_bytes = 0;
    snprintf(info.text, sizeof info.text, "the tests' own device");
    snprintf(info.key, sizeof info.key, "silly-%zu", threads);
    return info;
}

static pl_status describe(pl_device_info *info, size_t threads, pl_error *err)
{
    (void)err;
    *info = silly_device_info((int)pl_cpu_isa(), pl_threads_for(threads));
    return PL_OK;
}

static pl_status offer(pl_device_offer *out, const pl_device_info *info,
                       pl_error *err)
{
    (void)info, (void)err;
    out->bytes = (size_t)1 << 30;
    snprintf(out->from, sizeof out->from, "the silly device");
    return PL_OK;
}

static pl_extent scratch(const pl_device_info *info, const pl_step *step,
                         pl_dtype result)
{
    return pl_device_cpu.scratch(info, step, result);
}

/* None: its products do with their stacks. */
static pl_extent packing(const pl_device_info *info, size_t columns,
                         size_t most, pl_dtype dtype)
{
    (void)info, (void)columns, (void)most, (void)dtype;
    return (pl_extent){ 0, 0 };
}

/* ---- opening ---- */

static void *place_of(const silly *s, size_t i)
{
    const pl_placement *placement = s->base.placement;
    const size_t at = placement->offsets[i];
    if (pl_placement_in_host(placement, &s->base.graph->buffers[i]))
        return s->host.base + at;
    return s->banks[at / SILLY_BANK_BYTES].base + at % SILLY_BANK_BYTES;
}

/* What lives throughout is zero; the rest is anything. */
static void fill(const silly *s)
{
    const pl_graph *graph = s->base.graph;
    enter(s);
    for (int throughout = 0; throughout < 2; throughout++)
        for (size_t i = 0; i < graph->n_buffers; i++) {
            const pl_buffer *b = &graph->buffers[i];
            if (b->space == PL_SPACE_DEVICE &&
                pl_class_lives_throughout(b->class) == throughout)
                memset(s->steps.memory[i], throughout ? 0 : 0xa5, b->bytes);
        }
    leave(s);
}

static pl_status open_silly(pl_device **out, const pl_device_info *info,
                            const pl_device *base, pl_heap *heap, pl_error *err)
{
    const pl_placement *placement = base->placement;
    silly *s;
    int lost = 0;
    pl_status status = may_fail(&lost, "open", err);
    if (!status)
        status = pl_heap_take(heap, &s, 1, sizeof *s, err);
    if (status)
        return status;
    s->base = *base;
    s->workers = info->workers;
    s->steps.graph = base->graph;
    s->steps.kernels = pl_cpu_kernels(info);
    s->steps.products = info->products;
    s->n_banks = (placement->arena_bytes + SILLY_BANK_BYTES - 1) /
                 SILLY_BANK_BYTES;
    status = pl_heap_take(heap, &s->banks, s->n_banks, sizeof *s->banks, err);
    if (!status)
        status = pl_heap_take(heap, &s->steps.memory, base->graph->n_buffers,
                              sizeof *s->steps.memory, err);
    if (status)
        return status;
    for (size_t i = 0; i < s->n_banks; i++) {
        const size_t left = placement->arena_bytes - i * SILLY_BANK_BYTES;
        map(&s->banks[i], left < SILLY_BANK_BYTES ? left : SILLY_BANK_BYTES);
    }
    map(&s->host, placement->host_bytes);
    for (size_t i = 0; i < base->graph->n_buffers; i++)
        s->steps.memory[i] = place_of(s, i);
    fill(s);
    *out = &s->base;
    return PL_OK;
}

static void close_silly(pl_device *device)
{
    silly *s = silly_of(device);
    for (size_t i = 0; i < s->n_banks; i++)
        munmap(s->banks[i].base, s->banks[i].bytes);
    munmap(s->host.base, s->host.bytes);
}

/* ---- runs ---- */

static void run_step(const silly *s, pl_program_id program, size_t at)
{
    double began = pl_clock_seconds();
    enter(s);
    for (size_t ith = 0; ith < s->workers; ith++)
        pl_cpu_run_step(&s->steps, &s->base.graph->programs[program].steps[at],
                        (int)ith, (int)s->workers);
    leave(s);
    if (s->profile[program])
        s->profile[program][at] += pl_clock_seconds() - began;
}

static pl_status run(pl_device *device, pl_program_id program, pl_part part,
                     const pl_run_watch *watch, pl_run_end *end, pl_error *err)
{
    silly *s = silly_of(device);
    const pl_program *p = &device->graph->programs[program];
    const size_t last = part == PL_PART_LOOP ? p->loop_steps : p->n_steps;
    pl_status status = may_fail(&s->lost, "run", err);
    for (size_t at = part == PL_PART_LOOP ? 0 : p->loop_steps;
         at < last && !status; at++) {
        run_step(s, program, at);
        if (watch && at + 1 < last &&
            watch->between(watch->context, &p->steps[at])) {
            *end = PL_RUN_STOPPED;
            break;
        }
    }
    return status;
}

static pl_status clear(pl_device *device, pl_buffer_id buffer, pl_error *err)
{
    silly *s = silly_of(device);
    pl_status status = may_fail(&s->lost, "clear", err);
    if (status)
        return status;
    enter(s);
    memset(s->steps.memory[buffer], 0, device->graph->buffers[buffer].bytes);
    leave(s);
    return PL_OK;
}

static pl_status write_bytes(pl_device *device, pl_buffer_id buffer, size_t at,
                             const void *source, size_t bytes, pl_error *err)
{
    silly *s = silly_of(device);
    pl_status status = may_fail(&s->lost, "write", err);
    if (status)
        return status;
    enter(s);
    memcpy((unsigned char *)s->steps.memory[buffer] + at, source, bytes);
    leave(s);
    return PL_OK;
}

static pl_status read_bytes(pl_device *device, pl_buffer_id buffer, size_t at,
                            void *target, size_t bytes, pl_error *err)
{
    silly *s = silly_of(device);
    pl_status status = may_fail(&s->lost, "read", err);
    if (status)
        return status;
    enter(s);
    memcpy(target, (unsigned char *)s->steps.memory[buffer] + at, bytes);
    leave(s);
    return PL_OK;
}

static void *host(pl_device *device, pl_buffer_id buffer)
{
    const silly *s = silly_of(device);
    protect(&s->host, PROT_READ | PROT_WRITE);
    return s->steps.memory[buffer];
}

static void host_end(pl_device *device, pl_buffer_id buffer)
{
    const silly *s = silly_of(device);
    (void)buffer;
    protect(&s->host, PROT_NONE);
}

static pl_status backed(pl_device *device, size_t at, size_t bytes,
                        size_t *backed_bytes, pl_error *err)
{
    const silly *s = silly_of(device);
    (void)err;
    *backed_bytes = 0;
    for (; bytes; at++, bytes--) /* slowly, and surely */
        *backed_bytes += at / SILLY_BANK_BYTES < s->n_banks &&
                         at % SILLY_BANK_BYTES <
                             s->banks[at / SILLY_BANK_BYTES].bytes;
    return PL_OK;
}

static void profile(pl_device *device, pl_program_id program, double *seconds)
{
    silly_of(device)->profile[program] = seconds;
}

static double probe(pl_device *device, pl_probe what)
{
    const silly *s = silly_of(device);
    const double began = pl_clock_seconds();
    double work = 0.0;
    float sink = 0.0f;
    if (what != PL_PROBE_READS && s->steps.kernels.peak)
        work = s->steps.kernels.peak(1000, &sink);
    if (what == PL_PROBE_READS && s->steps.kernels.read) {
        const mapping *bank = &s->banks[0];
        enter(s);
        s->steps.kernels.read((const float *)(const void *)bank->base,
                              bank->bytes / sizeof(float), &sink);
        leave(s);
        work = (double)bank->bytes;
    }
    return work / (pl_clock_seconds() - began);
}

const pl_device_kind silly_device = {
    .name = "silly",
    .describe = describe,
    .offer = offer,
    .scratch = scratch,
    .packing = packing,
    .open = open_silly,
    .close = close_silly,
    .run = run,
    .clear = clear,
    .write = write_bytes,
    .read = read_bytes,
    .host = host,
    .host_end = host_end,
    .backed = backed,
    .profile = profile,
    .probe = probe,
};

int silly_device_if_asked(void)
{
    const char *wish = getenv("PLIMSOLL_TEST_DEVICE");
    const int asked = wish && strcmp(wish, "silly") == 0;
    if (asked)
        pl_device_choose_only(&silly_device);
    for (size_t k = 0; wish && k < PL_DEVICE_CARD_KINDS; k++) /* tests/gpu's */
        if (strcmp(wish, pl_device_cards[k]->base.name) == 0)
            pl_device_choose_only(&pl_device_cards[k]->base);
    return asked;
}
