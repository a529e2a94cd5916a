/* cpu.c: the processor as a device. One arena, one pool of threads that walk
 * the step list together with a barrier after every step. */
#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/threads.h"
#include "device/cpu_steps.h"
#include "device/device.h"

#include <stdatomic.h>
#include <string.h>

struct pl_device {
    const pl_graph *graph;
    pl_arena arena;
    pl_threads *threads;
    cpu_context steps;
    double *profile[PL_PROGRAM_COUNT]; /* seconds by step, or NULL */
    size_t throughout_bytes;
};

typedef struct walk {
    pl_device *device;
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
    const pl_graph *graph = w->device->graph;
    for (size_t i = 0; i < graph->n_buffers; i++) {
        const pl_buffer *buffer = &graph->buffers[i];
        if (buffer->program == w->id && buffer->first == at &&
            !pl_class_lives_throughout(buffer->class))
            pl_arena_raise(w->device->steps.memory[i], buffer->bytes);
    }
}

static void bury_dead(const walk *w, size_t at)
{
    const pl_graph *graph = w->device->graph;
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
    const pl_graph *graph = w->device->graph;
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

void pl_device_profile(pl_device *device, pl_program_id program,
                       double *seconds)
{
    device->profile[program] = seconds;
}

pl_run_end pl_device_run_watched(pl_device *device, pl_program_id program,
                                 pl_part part, const pl_run_watch *watch)
{
    const pl_program *p = &device->graph->programs[program];
    const size_t end = part == PL_PART_LOOP ? p->loop_steps : p->n_steps;
    walk w = { .device = device,
               .program = p,
               .id = (int)program,
               .watch = watch,
               .begin = part == PL_PART_LOOP ? 0 : p->loop_steps };
    PL_CHECK(!watch || program != PL_UPDATE_WEIGHTS);
    atomic_init(&w.end, end);
    if (w.begin < end)
        pl_threads_run(device->threads, walk_steps, &w);
    if (atomic_load(&w.end) == end)
        return PL_RUN_DONE;
    bury_all(&w);
    return PL_RUN_STOPPED;
}

void pl_device_run(pl_device *device, pl_program_id program, pl_part part)
{
    pl_run_end end = pl_device_run_watched(device, program, part, NULL);
    PL_CHECK(end == PL_RUN_DONE);
}

void pl_device_clear(pl_device *device, pl_buffer_id buffer)
{
    memset(device->steps.memory[buffer], 0,
           device->graph->buffers[buffer].bytes);
}

/* Every buffer's memory, claimed from the arena, which is then sealed. */
static pl_status claim_all(pl_device *device, const pl_placement *placement,
                           pl_heap *heap, pl_error *err)
{
    const pl_graph *graph = device->graph;
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

pl_status pl_device_open_cpu(pl_device **out, const pl_graph *graph,
                             const pl_placement *placement,
                             const pl_kernels *kernels, int threads,
                             pl_heap *heap, pl_error *err)
{
    pl_device *device;
    pl_status status = pl_heap_take(heap, &device, 1, sizeof *device, err);
    if (status)
        return status;
    device->graph = graph;
    device->steps.graph = graph;
    device->throughout_bytes = placement->throughout_bytes;
    device->steps.kernels = *kernels;
    status = pl_arena_open(&device->arena, placement->arena_bytes, err);
    if (status)
        return status;
    status = claim_all(device, placement, heap, err);
    if (status)
        goto close_arena;
    status = pl_threads_open(&device->threads, threads, heap, err);
    if (status)
        goto close_arena;
    *out = device;
    return PL_OK;
close_arena:
    pl_arena_close(&device->arena);
    return status;
}

void pl_device_close(pl_device *device)
{
    if (!device)
        return;
    pl_threads_close(device->threads);
    pl_arena_close(&device->arena);
}

static unsigned char *at_bytes(pl_device *device, pl_buffer_id buffer,
                               size_t at, size_t bytes)
{
    const pl_buffer *b = &device->graph->buffers[buffer];
    PL_CHECK(at <= b->bytes && bytes <= b->bytes - at);
    return (unsigned char *)device->steps.memory[buffer] + at;
}

void pl_device_write(pl_device *device, pl_buffer_id buffer, size_t at,
                     const void *source, size_t bytes)
{
    memcpy(at_bytes(device, buffer, at, bytes), source, bytes);
}

void pl_device_read(pl_device *device, pl_buffer_id buffer, size_t at,
                    void *target, size_t bytes)
{
    memcpy(target, at_bytes(device, buffer, at, bytes), bytes);
}

void *pl_device_host(pl_device *device, pl_buffer_id buffer)
{
    const pl_buffer *b = &device->graph->buffers[buffer];
    void *memory = device->steps.memory[buffer];
    if (!pl_class_lives_throughout(b->class))
        pl_arena_raise(memory, b->bytes);
    return memory;
}

size_t pl_device_used_bytes(const pl_device *device)
{
    return device->arena.used_bytes;
}

/* ---- the machine's best ---- */

/* One measurement: what all threads did together, by a kernel's own count. */
typedef struct best_run {
    pl_device *device;
    size_t rounds;
    double work[PL_MAX_THREADS];
} best_run;

static void run_peak(void *context, int ith, int nth)
{
    best_run *run = context;
    volatile float kept; /* so that nothing is optimised away */
    float sink;
    (void)nth;
    run->work[ith] = run->device->steps.kernels.peak(run->rounds, &sink);
    kept = sink;
    (void)kept;
}

static void run_read(void *context, int ith, int nth)
{
    best_run *run = context;
    const pl_device *device = run->device;
    volatile float kept;
    float sink = 0.0f;
    size_t begin, end, line = 4096;
    pl_threads_slice(device->throughout_bytes / line, ith, nth, &begin, &end);
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

double pl_device_peak_flops(pl_device *device)
{
    best_run run = { .device = device, .rounds = 200000 };
    return device->steps.kernels.peak ? best_of(&run, run_peak) : 0.0;
}

double pl_device_read_bytes(pl_device *device)
{
    const size_t enough = 16 << 20; /* a run should outlast its start */
    best_run run = { .device = device, .rounds = 1 };
    if (!device->steps.kernels.read || device->throughout_bytes < 4096)
        return 0.0;
    if (device->throughout_bytes < enough)
        run.rounds = enough / device->throughout_bytes;
    return best_of(&run, run_read);
}
