/* gpu.c: see gpu.h. */
#include "device/gpu.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/units.h"
#include "device/cards.h"
#include "device/gpu_call.h"
#include "device/steps.h"

#include <stdio.h>
#include <string.h>

typedef struct gpu {
    pl_device base; /* first: a pl_device is one of these */
    const pl_gpu_api *api;
    pl_gpu *card;
    pl_gpu_card about;
    pl_arena host; /* buffers of the host's space */
    size_t bank_bytes;
    size_t taken_bytes[PL_GPU_MAX_BANKS]; /* that the driver gave */
    void **memory; /* per buffer: an address, or a pointer into host */
    pl_products products;
    pl_controls controls;
    double *profile[PL_PROGRAM_COUNT]; /* seconds by step, or NULL */
} gpu;

static gpu *gpu_of(pl_device *device)
{
    return (gpu *)(void *)device;
}

static const pl_gpu_kind *kind_of(const pl_device_kind *kind)
{
    return (const pl_gpu_kind *)(const void *)kind;
}

/* ---- before it is opened ---- */

/* What a driver keeps for itself and for a screen, of what it calls its
 * memory. */
#define OFFER_SHARE 0.9

/* As the table of cards has them; else a guess: 128 multiply-adds per unit and
 * cycle, and a byte for every 60 flops, as cards of today have it. */
static void find_rates(pl_device_info *info, const pl_gpu_card *card)
{
    const pl_card *row;
    info->bf16_speed = 1.0;
    info->tensor_speed = 2.0; /* of GeForce cards */
    if (!pl_card_find(card->name, &row, NULL) && row->gflops > 0.0) {
        info->card_flops = 1e9 * row->gflops;
        info->card_bytes_per_second = 1e9 * row->gbytes;
        if (row->half_gflops > 0.0)
            info->tensor_speed = row->half_gflops / row->gflops;
        return;
    }
    info->card_flops = 256.0 * 1e6 * (double)card->units *
                       (double)card->megahertz;
    info->card_bytes_per_second = info->card_flops / 60.0;
}

/* MMA-Sim (arXiv 2511.10909) measured them: Ampere and Ada, then Hopper and all
 * of Blackwell. Turing's have fewer k, and none of bfloat16. */
pl_products pl_gpu_tensor_of(int capability)
{
    return capability >= 90   ? PL_PRODUCTS_TENSOR25
           : capability >= 80 ? PL_PRODUCTS_TENSOR24
                              : PL_PRODUCTS_EXACT;
}

static struct {
    const pl_gpu_api *api;
    int number;
} without_tensor[PL_GPU_MAX_CARDS];

void pl_gpu_leave_tensor(const pl_gpu_card *card)
{
    for (size_t i = 0; i < PL_GPU_MAX_CARDS; i++)
        if (!without_tensor[i].api) {
            without_tensor[i].api = card->api;
            without_tensor[i].number = card->number;
            return;
        }
}

static pl_products tensor_of(const pl_gpu_card *card)
{
    for (size_t i = 0; i < PL_GPU_MAX_CARDS; i++)
        if (without_tensor[i].api == card->api &&
            without_tensor[i].number == card->number)
            return PL_PRODUCTS_EXACT;
    return card->tensor;
}

pl_status pl_gpu_describe(pl_device_info *info, const pl_device_kind *kind,
                          const pl_gpu_card *card, pl_error *err)
{
    const char *api = card->api->name;
    if (card->lacks[0])
        return pl_fail(err, PL_E_CONFIG,
                       "%s:%d (%s) can't be used: %s. Set device = 'cpu', or "
                       "another of those that `plimsoll devices` lists",
                       api, card->number, card->name, card->lacks);
    *info = (pl_device_info){
        .kind = kind,
        .variant = card->number,
        .arithmetic = PL_ARITHMETIC_FUSED,
        .memory = { .align = 256,
                    .bank_bytes = card->largest_bytes / 256 * 256,
                    .spaces = PL_SPACES_APART },
        .workers = 1,
        .cores = (size_t)card->units,
        .tensor = tensor_of(card),
        .host_bytes = PL_GPU_SLICES * PL_GPU_SLICE_BYTES,
    };
    find_rates(info, card);
    snprintf(info->text, sizeof info->text, "%.60s", card->name);
    snprintf(info->key, sizeof info->key, "%s-%d", api, card->number);
    snprintf(info->kernels, sizeof info->kernels, "%s", api);
    return PL_OK;
}

/* ---- which one ---- */

pl_status pl_gpu_card_of(pl_gpu_card *card, const pl_device_info *info,
                         pl_error *err)
{
    const pl_gpu_api *api = kind_of(info->kind)->api;
    pl_gpu_card cards[PL_GPU_MAX_CARDS];
    size_t count = 0;
    pl_status status = api->list(cards, &count, err);
    if (status)
        return status;
    if ((size_t)info->variant >= count)
        return pl_fail(err, PL_E_CONFIG,
                       "%s:%d is gone: %s lists %zu devices now", api->name,
                       info->variant, api->title, count);
    *card = cards[info->variant];
    return PL_OK;
}

/* `count`: none that isn't a processor. */
static size_t best_card(const pl_gpu_card *cards, size_t count)
{
    size_t best = count;
    int most = 0;
    for (size_t i = 0; i < count; i++) {
        const int worth = cards[i].is_processor ? 0
                          : cards[i].lacks[0]   ? 1
                          : cards[i].is_unified ? 2
                                                : 3;
        if (worth > most) {
            most = worth;
            best = i;
        }
    }
    return best;
}

pl_status pl_gpu_find(pl_device_info *info, const pl_gpu_kind *kind, int number,
                      pl_error *err)
{
    const pl_gpu_api *api = kind->api;
    pl_gpu_card cards[PL_GPU_MAX_CARDS];
    size_t count = 0;
    pl_status status = api->is_here(err);
    if (!status)
        status = api->list(cards, &count, err);
    if (status)
        return status;
    const size_t i = number >= 0 ? (size_t)number : best_card(cards, count);
    if (i >= count && number >= 0)
        return pl_fail(err, PL_E_CONFIG,
                       "there is no %s:%d: %s lists %zu device%s. `plimsoll "
                       "devices` names them",
                       api->name, number, api->title, count,
                       count == 1 ? "" : "s");
    if (i >= count)
        return pl_fail(err, PL_E_CONFIG,
                       "%s lists no card here%s. Install the card's driver, or "
                       "set device = 'cpu'",
                       api->title,
                       count ? ", only a processor, which has to be asked for "
                               "by its number"
                             : "");
    return pl_gpu_describe(info, &kind->base, &cards[i], err);
}

/* ---- what it offers ---- */

pl_status pl_gpu_offer(pl_device_offer *offer, const pl_device_info *info,
                       pl_error *err)
{
    pl_gpu_card card;
    const pl_gpu_kind *kind = kind_of(info->kind);
    pl_status status = kind->card_of(&card, info, err);
    if (status)
        return status;
    const size_t banks = PL_GPU_MAX_BANKS * info->memory.bank_bytes;
    if (card.api->offer && !card.is_unified)
        return card.api->offer(offer, &card, err);
    offer->bytes = (size_t)(OFFER_SHARE * (double)card.memory_bytes);
    snprintf(offer->from, sizeof offer->from,
             "%s: 90 %% of its %s; a driver and a screen take some", card.name,
             pl_units_bytes(card.memory_bytes).text);
    if (card.is_unified && !card.is_processor) {
        pl_memory_offer host;
        status = pl_memory_offer_make(&host, "", err);
        if (status)
            return status;
        offer->bytes = host.bytes / 2;
        snprintf(offer->from, sizeof offer->from,
                 "%s: its memory is the host's, of which half may be taken",
                 card.name);
    }
    if (banks < offer->bytes) {
        offer->bytes = banks;
        snprintf(offer->from, sizeof offer->from,
                 "%s: %d times its largest allocation, %s", card.name,
                 PL_GPU_MAX_BANKS, pl_units_bytes(card.largest_bytes).text);
    }
    return PL_OK;
}

pl_extent pl_gpu_scratch(const pl_device_info *info, const pl_step *step,
                         pl_dtype result)
{
    const size_t halves = result == PL_F32 ? sizeof(uint16_t) : 0;
    const int exact = info->products == PL_PRODUCTS_EXACT;
    size_t bytes = 0;
    if (step->op == PL_OP_ATTENTION_BWD)
        bytes = pl_gpu_attention_bwd_scratch(step->rows / step->T, step->T,
                                             step->heads);
    if (step->op == PL_OP_MATMUL_T)
        bytes = exact ? pl_gpu_gemm_scratch(step->rows, step->cols, step->inner)
                      : step->rows * step->inner * halves;
    if (step->op == PL_OP_MATMUL_DW && !exact)
        bytes = step->rows * step->cols * halves;
    return (pl_extent){ bytes > 0, bytes / sizeof(float) };
}

pl_extent pl_gpu_packing(const pl_device_info *info, size_t columns,
                         size_t most, pl_dtype dtype)
{
    (void)info, (void)columns, (void)most, (void)dtype;
    return (pl_extent){ 0, 0 };
}

/* ---- addresses ---- */

typedef struct place {
    size_t bank, at;
} place;

static place place_of(const gpu *g, pl_buffer_id buffer, size_t at)
{
    const size_t offset = g->base.placement->offsets[buffer];
    return (place){ offset / g->bank_bytes, offset % g->bank_bytes + at };
}

static void *address_of(const gpu *g, place p)
{
    return (void *)(uintptr_t)g->api->address(g->card, p.bank, p.at);
}

/* ---- opening ---- */

static void place_all(gpu *g)
{
    const pl_graph *graph = g->base.graph;
    const pl_placement *placement = g->base.placement;
    const size_t align = placement->rules.align;
    for (size_t i = 0; i < graph->n_buffers; i++)
        if (pl_placement_in_host(placement, &graph->buffers[i]))
            g->memory[i] = pl_arena_claim(
                &g->host, placement->offsets[i],
                (graph->buffers[i].bytes + align - 1) / align * align);
        else
            g->memory[i] = address_of(g, place_of(g, (pl_buffer_id)i, 0));
    pl_arena_seal(&g->host);
}

static pl_status take_banks(gpu *g, pl_error *err)
{
    const size_t all = g->base.placement->arena_bytes;
    size_t bank = 0;
    pl_status status = PL_OK;
    for (size_t at = 0; at < all && !status; at += g->bank_bytes, bank++) {
        const size_t left = all - at,
                     wanted = left < g->bank_bytes ? left : g->bank_bytes;
        if (bank == PL_GPU_MAX_BANKS)
            return pl_fail(err, PL_E_MEMORY,
                           "the arena of %s has more than %d pieces of %s, "
                           "which %s gives at once",
                           pl_units_bytes(all).text, PL_GPU_MAX_BANKS,
                           pl_units_bytes(g->bank_bytes).text, g->about.name);
        status = g->api->take(g->card, bank, wanted, err);
        if (!status)
            g->taken_bytes[bank] = wanted;
    }
    return status;
}

pl_status pl_gpu_open(pl_device **out, const pl_device_info *info,
                      const pl_device *base, pl_heap *heap, pl_error *err)
{
    gpu *g;
    PL_CHECK(info->products == PL_PRODUCTS_EXACT ||
             info->products == info->tensor);
    pl_status status = pl_heap_take(heap, &g, 1, sizeof *g, err);
    if (!status)
        status = pl_heap_take(heap, &g->memory, base->graph->n_buffers,
                              sizeof *g->memory, err);
    if (!status)
        status = kind_of(info->kind)->card_of(&g->about, info, err);
    if (status)
        return status;
    g->base = *base;
    g->api = kind_of(info->kind)->api;
    g->products = info->products;
    g->bank_bytes = base->placement->rules.bank_bytes;
    status = g->api->open(&g->card, &g->about, heap, err);
    if (!status)
        status = take_banks(g, err);
    if (!status)
        status = pl_arena_open(&g->host, base->placement->host_bytes, err);
    if (status)
        goto close_card;
    place_all(g);
    *out = &g->base;
    return PL_OK;
close_card:
    g->api->close(g->card);
    return status;
}

void pl_gpu_close(pl_device *device)
{
    gpu *g = gpu_of(device);
    g->api->close(g->card);
    pl_arena_close(&g->host);
}

/* ---- runs ---- */

#define CALL(op)                                                               \
    static void call_##op(void *stream, const pl_##op *args)                   \
    {                                                                          \
        pl_gpu_##op(stream, args);                                             \
    }
PL_KERNEL_TABLE(CALL)

static pl_status launch(void *context, const pl_gpu_launch *it, pl_error *err)
{
    const gpu *g = context;
    return g->api->launch(g->card, it, err);
}

/* So many steps are between two marks; the host is at most two such pieces
 * ahead of the card, so that a stop and the progress are of now. */
enum { STEPS_BETWEEN_MARKS = 16 };

/* One step, and its time if that is wanted. */
static pl_status run_step(gpu *g, const pl_steps_context *steps,
                          pl_gpu_stream *stream, pl_program_id program,
                          size_t at, pl_error *err)
{
    const double began = pl_clock_seconds();
    pl_steps_run(steps, &g->base.graph->programs[program].steps[at]);
    if (stream->status || !g->profile[program])
        return stream->status;
    const pl_status status = pl_gpu_finish(g->api, g->card, err);
    g->profile[program][at] += pl_clock_seconds() - began;
    return status;
}

pl_status pl_gpu_run(pl_device *device, pl_program_id program, pl_part part,
                     const pl_run_watch *watch, pl_run_end *end, pl_error *err)
{
#define ENTRY(op) .op = call_##op,
    static const pl_steps_calls calls = { PL_KERNEL_TABLE(ENTRY) };
    gpu *g = gpu_of(device);
    const pl_program *p = &device->graph->programs[program];
    const size_t first = part == PL_PART_LOOP ? 0 : p->loop_steps,
                 last = part == PL_PART_LOOP ? p->loop_steps : p->n_steps;
    pl_gpu_stream stream = {
        .context = g, .tensor = g->products, .launch = launch, .err = err
    };
    const pl_steps_context steps = { .graph = device->graph,
                                     .products = g->products,
                                     .memory = g->memory,
                                     .controls = &g->controls,
                                     .calls = &calls,
                                     .worker = &stream };
    pl_status status = PL_OK;
    size_t marks = 0;
    for (size_t at = first; at < last && !status; at++) {
        status = run_step(g, &steps, &stream, program, at, err);
        if (!status &&
            (at - first) % STEPS_BETWEEN_MARKS == STEPS_BETWEEN_MARKS - 1) {
            if (marks >= 2)
                status = g->api->reach(g->card, marks % 2, err);
            if (!status)
                status = g->api->mark(g->card, marks % 2, err);
            marks++;
        }
        if (!status && watch && at + 1 < last &&
            watch->between(watch->context, &p->steps[at])) {
            *end = PL_RUN_STOPPED;
            break;
        }
    }
    return status ? status : pl_gpu_finish(g->api, g->card, err);
}

void pl_gpu_profile(pl_device *device, pl_program_id program, double *seconds)
{
    gpu_of(device)->profile[program] = seconds;
}

pl_status pl_gpu_backed(pl_device *device, size_t at, size_t bytes,
                        size_t *backed_bytes, pl_error *err)
{
    const gpu *g = gpu_of(device);
    (void)err;
    *backed_bytes = 0;
    for (size_t bank = 0; bank < PL_GPU_MAX_BANKS; bank++) {
        const size_t first = bank * g->bank_bytes,
                     last = first + g->taken_bytes[bank],
                     from = at > first ? at : first,
                     to = at + bytes < last ? at + bytes : last;
        if (g->taken_bytes[bank] && from < to)
            *backed_bytes += to - from;
    }
    return PL_OK;
}

/* ---- bytes ---- */

pl_status pl_gpu_clear_buffer(pl_device *device, pl_buffer_id buffer,
                              pl_error *err)
{
    gpu *g = gpu_of(device);
    const place p = place_of(g, buffer, 0);
    return g->api->zero(g->card, p.bank, p.at,
                        device->graph->buffers[buffer].bytes, err);
}

static size_t piece_of(size_t done, size_t bytes)
{
    const size_t left = bytes - done;
    return left < PL_GPU_SLICE_BYTES ? left : PL_GPU_SLICE_BYTES;
}

/* What the host writes as controls stays with it: launches carry the numbers.
 */
pl_status pl_gpu_write(pl_device *device, pl_buffer_id buffer, size_t at,
                       const void *source, size_t bytes, pl_error *err)
{
    gpu *g = gpu_of(device);
    pl_status status = PL_OK;
    size_t turn = 0;
    if (buffer == device->graph->controls) {
        PL_CHECK(at + bytes <= sizeof g->controls);
        memcpy((unsigned char *)&g->controls + at, source, bytes);
        return PL_OK;
    }
    for (size_t done = 0; done < bytes && !status; turn++) {
        const size_t some = piece_of(done, bytes), slice = turn % PL_GPU_SLICES;
        const place p = place_of(g, buffer, at + done);
        status = g->api->wait(g->card, slice, err);
        if (status)
            return status;
        memcpy(g->api->slice(g->card, slice),
               (const unsigned char *)source + done, some);
        status = g->api->copy_in(g->card, slice, p.bank, p.at, some, err);
        done += some;
    }
    for (size_t slice = 0; slice < PL_GPU_SLICES && !status; slice++)
        status = g->api->wait(g->card, slice, err);
    return status;
}

/* The next piece is on its way while the last one is copied. */
pl_status pl_gpu_read(pl_device *device, pl_buffer_id buffer, size_t at,
                      void *target, size_t bytes, pl_error *err)
{
    gpu *g = gpu_of(device);
    pl_status status = PL_OK;
    size_t asked = 0, turn = 0;
    if (buffer == device->graph->controls) {
        memcpy(target, (const unsigned char *)&g->controls + at, bytes);
        return PL_OK;
    }
    for (size_t done = 0; done < bytes && !status; turn++) {
        for (; asked < bytes &&
               asked < done + PL_GPU_SLICES * PL_GPU_SLICE_BYTES && !status;) {
            const place p = place_of(g, buffer, at + asked);
            const size_t some = piece_of(asked, bytes),
                         slice = asked / PL_GPU_SLICE_BYTES % PL_GPU_SLICES;
            status = g->api->copy_out(g->card, slice, p.bank, p.at, some, err);
            asked += some;
        }
        if (!status)
            status = g->api->wait(g->card, turn % PL_GPU_SLICES, err);
        if (status)
            return status;
        memcpy((unsigned char *)target + done,
               g->api->slice(g->card, turn % PL_GPU_SLICES),
               piece_of(done, bytes));
        done += piece_of(done, bytes);
    }
    return status;
}

void *pl_gpu_host(pl_device *device, pl_buffer_id buffer)
{
    void *memory = gpu_of(device)->memory[buffer];
    pl_arena_raise(memory, device->graph->buffers[buffer].bytes);
    return memory;
}

void pl_gpu_host_end(pl_device *device, pl_buffer_id buffer)
{
    pl_arena_bury(gpu_of(device)->memory[buffer],
                  pl_arena_round(device->graph->buffers[buffer].bytes));
}

/* ---- the card's best ---- */

enum { PROBE_GROUPS = 1024 };

/* Launches a probe until some 40 ms have passed: the best rate of its work. */
static double best_of(gpu *g, pl_gpu_kernel kernel, const gpu_probe *args,
                      double work)
{
    pl_error err = { 0 };
    pl_gpu_launch it = { kernel, PROBE_GROUPS, 1, args };
    double best = 0.0, end = pl_clock_seconds() + 0.04;
    do {
        const double began = pl_clock_seconds();
        if (g->api->launch(g->card, &it, &err) ||
            pl_gpu_finish(g->api, g->card, &err))
            return 0.0;
        const double rate = work / (pl_clock_seconds() - began);
        if (rate > best)
            best = rate;
    } while (pl_clock_seconds() < end);
    return best;
}

/* A probe leaves a number for each item in memory that no program holds now. */
double pl_gpu_probe(pl_device *device, pl_probe what)
{
    gpu *g = gpu_of(device);
    const pl_placement *placement = device->placement;
    const size_t room = PROBE_GROUPS * 256 * sizeof(float),
                 throughout = placement->throughout_bytes,
                 free_at = (throughout + 255) / 256 * 256;
    const size_t read = throughout < g->bank_bytes ? throughout : g->bank_bytes;
    if (free_at / g->bank_bytes != (free_at + room) / g->bank_bytes ||
        free_at + room > placement->arena_bytes)
        return 0.0;
    const place at = { free_at / g->bank_bytes, free_at % g->bank_bytes };
    gpu_probe args = { .y = (uint64_t)(uintptr_t)address_of(g, at),
                       .x = (uint64_t)(uintptr_t)address_of(g, (place){ 0 }),
                       .count = read / 16,
                       .rounds = g->about.is_processor ? 1024 : 16384 };
    if (what == PL_PROBE_READS) {
        args.rounds = PROBE_GROUPS;
        return read < 4096
                   ? 0.0
                   : best_of(g, PL_GPU_probe_reads, &args, (double)read);
    }
    return best_of(g, PL_GPU_probe_flops, &args,
                   2.0 * 32.0 * args.rounds * 256.0 * PROBE_GROUPS);
}
