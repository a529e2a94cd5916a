/* cpu.c: see cpu.h. One arena, one pool of threads that walk the step list
 * together with a barrier after every step. */
#include "device/cpu.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "base/threads.h"
#include "device/cpu_steps.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

typedef struct cpu {
    pl_device base; /* first: a pl_device is one of these */
    pl_arena arena;
    pl_threads *threads;
    cpu_context steps;
    double *profile[PL_PROGRAM_COUNT]; /* seconds by step, or NULL */
} cpu;

static cpu *cpu_of(pl_device *device)
{
    return (cpu *)(void *)device;
}

/* ---- before it is opened ---- */

/* Of a set that multiplies pairs of bfloat16, until rates are measured: the
 * peak is twice as high, and what it leaves undone isn't. */
#define BF16_SPEED 1.8
/* Likewise of tensor arithmetic, by integers: 6 to 9 times slower; and of that
 * of AMX, by multiply-adds or by its instructions. */
#define TENSOR_SPEED  0.13
#define AMX_FMA_SPEED 0.8
#define AMX_SPEED     5.0

pl_kernels pl_cpu_kernels(const pl_device_info *info)
{
    return info->variant == PL_CPU_REF ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)info->variant);
}

pl_device_info pl_cpu_info(int variant, size_t threads)
{
    pl_device_info info = { .kind = &pl_device_cpu,
                            .variant = variant,
                            .memory = PL_PLACE_IN_HOST,
                            .workers = threads,
                            .cores = threads,
                            .has_all_products = 1,
                            .bf16_speed = 1.0,
                            .tensor_speed = TENSOR_SPEED,
                            .amx_speed = AMX_FMA_SPEED,
                            .host_bytes = threads * PL_THREAD_STACK_BYTES };
    const pl_kernels kernels = pl_cpu_kernels(&info);
    info.arithmetic = kernels.arithmetic;
    if (kernels.peak_bf16)
        info.bf16_speed = BF16_SPEED;
    info.tensor = kernels.matrices;
    if (kernels.matrices == PL_PRODUCTS_AMX)
        info.amx_speed = AMX_SPEED;
    snprintf(info.kernels, sizeof info.kernels, "%s", kernels.name);
    snprintf(info.text, sizeof info.text, "%zu thread%s, %s kernels", threads,
             threads == 1 ? "" : "s", kernels.name);
    snprintf(info.key, sizeof info.key, "%s-%zu", kernels.name, threads);
    return info;
}

static pl_status describe(pl_device_info *info, size_t threads, pl_error *err)
{
    (void)err;
    *info = pl_cpu_info((int)pl_cpu_isa(), pl_threads_for(threads));
    return PL_OK;
}

static pl_status offer_memory(pl_device_offer *offer,
                              const pl_device_info *info, pl_error *err)
{
    pl_memory_offer memory;
    (void)info;
    pl_status status = pl_memory_offer_make(&memory, "", err);
    if (status)
        return status;
    offer->bytes = memory.bytes;
    pl_memory_binding_text(&memory, offer->from, sizeof offer->from);
    return PL_OK;
}

static pl_extent scratch(const pl_device_info *info, const pl_step *step,
                         pl_dtype result)
{
    switch (step->op) {
    case PL_OP_ATTENTION:
    case PL_OP_ATTENTION_CACHED:
        return (pl_extent){ info->workers,
                            pl_attention_scratch(step->T, step->inner) };
    case PL_OP_ATTENTION_BWD:
        return (pl_extent){ info->workers,
                            pl_attention_bwd_scratch(step->T, step->inner,
                                                     result == PL_F32
                                                         ? PL_STORE_F32
                                                         : PL_STORE_BF16) };
    default:
        return (pl_extent){ 0, 0 };
    }
}

/* A thread's share of the widest product. */
static pl_extent packing(const pl_device_info *info, size_t columns,
                         size_t most, pl_dtype dtype)
{
    size_t share = (columns + info->workers - 1) / info->workers;
    if (share > most)
        share = most;
    if (share == 0)
        return (pl_extent){ 0, 0 };
    return (pl_extent){
        info->workers,
        pl_gemm_scratch(share, dtype == PL_F32 ? PL_STORE_F32 : PL_STORE_BF16)
    };
}

/* ---- runs ---- */

typedef struct walk {
    cpu *device;
    const pl_program *program;
    int id;
    const pl_run_watch *watch; /* or NULL */
    size_t begin;
    /* Thread 0 may lower it to the next step, before the barrier that all pass
     * on their way there. Whoever is slow sees a bound that was lowered later
     * only as one beyond that step, so all of them end at the same one. */
    atomic_size_t end;
} walk;

/* Only what neither the host nor another round expects to find again. */
static int dies(const walk *w, const pl_buffer *buffer)
{
    size_t loop = w->program->loop_steps;
    int handed_on = buffer->first == 0 && loop > 0 && buffer->last + 1 >= loop;
    return buffer->program == w->id && buffer->host != PL_HOST_READS &&
           !handed_on && !pl_class_lives_throughout(buffer->class);
}

/* Dev and asan builds: what a wrong lifetime would read is NaN, or poisoned. */
static void raise_born(const walk *w, size_t at)
{
    const pl_graph *graph = w->device->base.graph;
    for (size_t i = 0; i < graph->n_buffers; i++) {
        const pl_buffer *buffer = &graph->buffers[i];
        if (buffer->program == w->id && buffer->first == at &&
            !pl_class_lives_throughout(buffer->class))
            pl_arena_raise(w->device->steps.memory[i], buffer->bytes);
    }
}

static void bury_dead(const walk *w, size_t at)
{
    const pl_graph *graph = w->device->base.graph;
    for (size_t i = 0; i < graph->n_buffers; i++) {
        const pl_buffer *buffer = &graph->buffers[i];
        if (dies(w, buffer) && buffer->last == at)
            pl_arena_bury(w->device->steps.memory[i],
                          pl_arena_round(buffer->bytes));
    }
}

/* After a stop: all that isn't kept between programs. */
static void bury_all(const walk *w)
{
    const pl_graph *graph = w->device->base.graph;
    for (size_t i = 0; i < graph->n_buffers; i++) {
        const pl_buffer *buffer = &graph->buffers[i];
        if (buffer->program == w->id &&
            !pl_class_lives_throughout(buffer->class))
            pl_arena_bury(w->device->steps.memory[i],
                          pl_arena_round(buffer->bytes));
    }
}

static void ask_watch(walk *w, size_t at)
{
    const pl_run_watch *watch = w->watch;
    if (at + 1 < atomic_load(&w->end) &&
        watch->between(watch->context, &w->program->steps[at]))
        atomic_store(&w->end, at + 1);
}

static void walk_steps(void *context, int ith, int nth)
{
    walk *w = context;
    pl_threads *threads = w->device->threads;
    int buries = pl_arena_buries();
    double *profile = ith == 0 ? w->device->profile[w->id] : NULL;
    double then = profile ? pl_clock_seconds() : 0.0;

    for (size_t at = w->begin; at < atomic_load(&w->end); at++) {
        if (buries) {
            if (ith == 0)
                raise_born(w, at);
            pl_threads_barrier(threads);
        }
        pl_cpu_run_step(&w->device->steps, &w->program->steps[at], ith, nth);
        if (w->watch && ith == 0)
            ask_watch(w, at);
        pl_threads_barrier(threads);
        if (profile) {
            double now = pl_clock_seconds();
            profile[at] += now - then;
            then = now;
        }
        if (buries && ith == 0)
            bury_dead(w, at);
    }
}

static pl_status run(pl_device *device, pl_program_id program, pl_part part,
                     const pl_run_watch *watch, pl_run_end *stopped,
                     pl_error *err)
{
    const pl_program *p = &device->graph->programs[program];
    const size_t end = part == PL_PART_LOOP ? p->loop_steps : p->n_steps;
    walk w = { .device = cpu_of(device),
               .program = p,
               .id = (int)program,
               .watch = watch,
               .begin = part == PL_PART_LOOP ? 0 : p->loop_steps };
    (void)err;
    atomic_init(&w.end, end);
    if (w.begin < end)
        pl_threads_run(w.device->threads, walk_steps, &w);
    if (atomic_load(&w.end) == end)
        return PL_OK;
    bury_all(&w);
    *stopped = PL_RUN_STOPPED;
    return PL_OK;
}

static void profile(pl_device *device, pl_program_id program, double *seconds)
{
    cpu_of(device)->profile[program] = seconds;
}

/* ---- bytes ---- */

/* What the host fills is born by that. */
static unsigned char *raised(pl_device *device, pl_buffer_id buffer)
{
    const pl_buffer *b = &device->graph->buffers[buffer];
    void *memory = cpu_of(device)->steps.memory[buffer];
    if (!pl_class_lives_throughout(b->class))
        pl_arena_raise(memory, b->bytes);
    return memory;
}

static pl_status clear(pl_device *device, pl_buffer_id buffer, pl_error *err)
{
    (void)err;
    memset(raised(device, buffer), 0, device->graph->buffers[buffer].bytes);
    return PL_OK;
}

static pl_status write_bytes(pl_device *device, pl_buffer_id buffer, size_t at,
                             const void *source, size_t bytes, pl_error *err)
{
    (void)err;
    memcpy(raised(device, buffer) + at, source, bytes);
    return PL_OK;
}

static pl_status read_bytes(pl_device *device, pl_buffer_id buffer, size_t at,
                            void *target, size_t bytes, pl_error *err)
{
    const unsigned char *memory = cpu_of(device)->steps.memory[buffer];
    (void)err;
    memcpy(target, memory + at, bytes);
    return PL_OK;
}

static void *host(pl_device *device, pl_buffer_id buffer)
{
    return raised(device, buffer);
}

static void host_end(pl_device *device, pl_buffer_id buffer)
{
    pl_arena_bury(cpu_of(device)->steps.memory[buffer],
                  pl_arena_round(device->graph->buffers[buffer].bytes));
}

static pl_status backed(pl_device *device, size_t at, size_t bytes,
                        size_t *backed_bytes, pl_error *err)
{
    return pl_arena_resident(&cpu_of(device)->arena, at, bytes, backed_bytes,
                             err);
}

/* ---- opening ---- */

/* Every buffer's memory, claimed from the arena, which is then sealed. */
static pl_status claim_all(cpu *device, pl_heap *heap, pl_error *err)
{
    const pl_graph *graph = device->base.graph;
    const pl_placement *placement = device->base.placement;
    void **memory;
    pl_status status = pl_heap_take(heap, &memory, graph->n_buffers,
                                    sizeof *memory, err);
    if (status)
        return status;
    for (size_t i = 0; i < graph->n_buffers; i++)
        memory[i] = pl_arena_claim(&device->arena, placement->offsets[i],
                                   graph->buffers[i].bytes);
    pl_arena_seal(&device->arena);
    pl_arena_bury(device->arena.base + placement->throughout_bytes,
                  placement->arena_bytes - placement->throughout_bytes);
    device->steps.memory = memory;
    return PL_OK;
}

static pl_status open_cpu(pl_device **out, const pl_device_info *info,
                          const pl_device *base, pl_heap *heap, pl_error *err)
{
    cpu *device;
    pl_status status = pl_heap_take(heap, &device, 1, sizeof *device, err);
    if (status)
        return status;
    device->base = *base;
    device->steps.graph = base->graph;
    device->steps.kernels = pl_cpu_kernels(info);
    device->steps.products = info->products;
    status = pl_arena_open(&device->arena, base->placement->arena_bytes, err);
    if (status)
        return status;
    status = claim_all(device, heap, err);
    if (status)
        goto close_arena;
    status = pl_threads_open(&device->threads, (int)info->workers, heap, err);
    if (status)
        goto close_arena;
    *out = &device->base;
    return PL_OK;
close_arena:
    pl_arena_close(&device->arena);
    return status;
}

static void close_cpu(pl_device *device)
{
    pl_threads_close(cpu_of(device)->threads);
    pl_arena_close(&cpu_of(device)->arena);
}

/* ---- the machine's best ---- */

/* One measurement: what all threads did together, by a kernel's own count. */
typedef struct best_run {
    cpu *device;
    double (*peak)(size_t rounds, float *sink);
    size_t rounds;
    double work[PL_MAX_THREADS];
} best_run;

static void run_peak(void *context, int ith, int nth)
{
    best_run *run = context;
    volatile float kept; /* so that nothing is optimised away */
    float sink;
    (void)nth;
    run->work[ith] = run->peak(run->rounds, &sink);
    kept = sink;
    (void)kept;
}

static void run_read(void *context, int ith, int nth)
{
    best_run *run = context;
    const cpu *device = run->device;
    volatile float kept;
    float sink = 0.0f;
    size_t begin, end, line = 4096;
    pl_threads_slice(device->base.placement->throughout_bytes / line, ith, nth,
                     &begin, &end);
    size_t bytes = (end - begin) * line;
    for (size_t i = 0; i < run->rounds; i++)
        device->steps.kernels.read(
            (const float *)(const void *)(device->arena.base + begin * line),
            bytes / sizeof(float), &sink);
    kept = sink;
    (void)kept;
    run->work[ith] = (double)bytes * (double)run->rounds;
}

/* The best of the runs that fit some 40 ms, at least one. */
static double best_of(best_run *run, pl_thread_fn *fn)
{
    double best = 0.0, end = pl_clock_seconds() + 0.04;
    do {
        double began = pl_clock_seconds(), work = 0.0;
        pl_threads_run(run->device->threads, fn, run);
        double seconds = pl_clock_seconds() - began;
        for (int i = 0; i < pl_threads_count(run->device->threads); i++)
            work += run->work[i];
        if (work / seconds > best)
            best = work / seconds;
    } while (pl_clock_seconds() < end);
    return best;
}

static double probe(pl_device *device, pl_probe what)
{
    const size_t enough = 16 << 20; /* a run should outlast its start */
    const size_t all = device->placement->throughout_bytes;
    cpu *own = cpu_of(device);
    const pl_kernels *set = &own->steps.kernels;
    best_run run = { .device = own, .peak = set->peak, .rounds = 200000 };
    if (what == PL_PROBE_FLOPS_BF16 && set->peak_bf16)
        run.peak = set->peak_bf16;
    if (what == PL_PROBE_FLOPS_BF16 && set->peak_matrices &&
        own->steps.products == set->matrices)
        run.peak = set->peak_matrices;
    if (what != PL_PROBE_READS)
        return run.peak ? best_of(&run, run_peak) : 0.0;
    if (!set->read || all < 4096)
        return 0.0;
    run.rounds = all < enough ? enough / all : 1;
    return best_of(&run, run_read);
}

const pl_device_kind pl_device_cpu = {
    .is_prompt = 1,
    .name = "cpu",
    .describe = describe,
    .offer = offer_memory,
    .scratch = scratch,
    .packing = packing,
    .open = open_cpu,
    .close = close_cpu,
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
