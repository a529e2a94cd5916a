/* selftest.c: see selftest.h. Both sides begin with the same arena, run one op
 * (selftest_cases.h), and must end with the same bytes. */
#include "device/selftest.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "device/gpu_call.h"
#include "device/selftest_cases.h"

#include <stdio.h>
#include <string.h>

enum { BYTES = PL_SELFTEST_ARENA_BYTES };

typedef struct sides {
    const pl_gpu_api *api;
    pl_gpu *card;
    pl_kernels kernels;
    unsigned char *host, *back; /* BYTES each; what the card did */
    size_t bank;                /* of the card's arena */
    pl_products tensor;         /* the card's */
} sides;

/* Where the card's arena begins. */
static void *arena_address(const sides *s)
{
    return (void *)(uintptr_t)s->api->address(s->card, s->bank, 0);
}

/* ---- calls ---- */

#define CALLS(op)                                                              \
    static void ignore_##op(void *worker, const pl_##op *args)                 \
    {                                                                          \
        (void)worker, (void)args;                                              \
    }                                                                          \
    static void host_##op(void *worker, const pl_##op *args)                   \
    {                                                                          \
        ((const sides *)worker)->kernels.op(args, 0, 1);                       \
    }                                                                          \
    static void card_##op(void *stream, const pl_##op *args)                   \
    {                                                                          \
        pl_gpu_##op(stream, args);                                             \
    }
PL_KERNEL_TABLE(CALLS)

#define IGNORE_ENTRY(op) .op = ignore_##op,
#define HOST_ENTRY(op)   .op = host_##op,
#define CARD_ENTRY(op)   .op = card_##op,
static const pl_steps_calls ignored = { PL_KERNEL_TABLE(IGNORE_ENTRY) },
                            on_host = { PL_KERNEL_TABLE(HOST_ENTRY) },
                            on_card = { PL_KERNEL_TABLE(CARD_ENTRY) };

static pl_status launch(void *context, const pl_gpu_launch *it, pl_error *err)
{
    const sides *s = context;
    return s->api->launch(s->card, it, err);
}

/* ---- the arena, there and back ---- */

static pl_status send(sides *s, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t at = 0; at < BYTES && !status; at += PL_GPU_SLICE_BYTES) {
        memcpy(s->api->slice(s->card, 0), s->host + at, PL_GPU_SLICE_BYTES);
        status = s->api->copy_in(s->card, 0, s->bank, at, PL_GPU_SLICE_BYTES,
                                 err);
        if (!status)
            status = s->api->wait(s->card, 0, err);
    }
    return status;
}

static pl_status fetch(sides *s, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t at = 0; at < BYTES && !status; at += PL_GPU_SLICE_BYTES) {
        status = s->api->copy_out(s->card, 0, s->bank, at, PL_GPU_SLICE_BYTES,
                                  err);
        if (!status)
            status = s->api->wait(s->card, 0, err);
        if (!status)
            memcpy(s->back + at, s->api->slice(s->card, 0), PL_GPU_SLICE_BYTES);
    }
    return status;
}

/* ---- one case ---- */

static pl_status compare(sides *s, const pl_selftest_row *row,
                         pl_storage storage, pl_products products,
                         pl_selftest_case *out, pl_error *err)
{
    static const char *const names[] = { [PL_STORE_F32] = "float32",
                                         [PL_STORE_BF16] = "bfloat16",
                                         [PL_STORE_F16] = "float16" };
    pl_gpu_stream stream = {
        .context = s, .tensor = products, .launch = launch, .err = err
    };
    const pl_selftest_side fill = { .base = s->host,
                                    .fills = 1,
                                    .seed = 1,
                                    .calls = &ignored,
                                    .storage = storage,
                                    .products = products };
    pl_selftest_side side = fill;
    memset(s->host, 0, BYTES);
    row->run(&side);
    pl_status status = send(s, err);
    side = fill;
    side.fills = 0;
    side.calls = &on_card;
    side.worker = &stream;
    side.base = arena_address(s);
    if (!status) {
        row->run(&side);
        status = stream.status;
    }
    if (!status)
        status = fetch(s, err);
    if (status)
        return status;
    side = fill;
    side.fills = 0;
    side.calls = &on_host;
    side.worker = s;
    row->run(&side);
    *out = (pl_selftest_case){ .op = row->op,
                               .what = row->what,
                               .storage = names[storage],
                               .products = pl_products_name(products) };
    for (size_t i = 0; i < side.used; i++)
        if (i < side.scratch_first || i >= side.scratch_end) {
            out->bytes++;
            out->different += s->host[i] != s->back[i];
        }
    return PL_OK;
}

/* One case, and what it adds to the result. */
static pl_status judge(sides *s, const pl_selftest_row *row, pl_storage storage,
                       pl_products products, pl_selftest_result *result,
                       const pl_selftest_wish *wish, pl_error *err)
{
    const int exact = products == PL_PRODUCTS_EXACT;
    pl_selftest_case it;
    const pl_status status = compare(s, row, storage, products, &it, err);
    if (status)
        return status;
    *(exact ? &result->cases : &result->tensor_cases) += 1;
    *(exact ? &result->bytes : &result->tensor_bytes) += it.bytes;
    *(exact ? &result->failed : &result->tensor_failed) += it.different > 0;
    if (it.different && !result->first[0])
        snprintf(result->first, sizeof result->first,
                 "%s%s%s, %s%s%s: %zu of %zu bytes differ", it.op,
                 it.what[0] ? ", " : "", it.what, it.storage, exact ? "" : ", ",
                 exact ? "" : it.products, it.different, it.bytes);
    if (wish->seen)
        wish->seen(wish->context, &it);
    return PL_OK;
}

static pl_status compare_all(sides *s, pl_selftest_result *result,
                             const pl_selftest_wish *wish, pl_error *err)
{
    pl_status status = PL_OK;
    /* the first row once more, in the second bank */
    for (size_t i = 0; i <= pl_selftest_row_count && !status; i++) {
        const pl_selftest_row *row =
            &pl_selftest_rows[i % pl_selftest_row_count];
        s->bank = i / pl_selftest_row_count;
        const int storages = row->in_storages ? PL_SELFTEST_STORAGES : 1;
        for (int k = 0; k < storages && !status; k++)
            status = judge(s, row, (pl_storage)k, PL_PRODUCTS_EXACT, result,
                           wish, err);
        for (int k = PL_STORE_BF16; k < storages && row->in_tensor && s->tensor;
             k++)
            if (!status)
                status = judge(s, row, (pl_storage)k, s->tensor, result, wish,
                               err);
    }
    return status;
}

/* ---- rates ---- */

/* How large what is measured is: so that a card is busy, and a processor that
 * poses as one isn't for long. */
typedef struct load {
    size_t side; /* of a product's matrices */
    size_t T, H; /* of attention */
    size_t bytes;
    uint32_t rounds;
} load;

static const load small_load = { 128, 64, 2, BYTES, 16 },
                  large_load = { 2048, 1024, 12, (size_t)192 << 20, 32768 };

enum { PROBE_GROUPS = 1024, PROBE_BYTES = PROBE_GROUPS * 256 * 4 };

/* Tensor cores multiply bfloat16. */
static pl_storage storage_of(const pl_gpu_stream *stream)
{
    return stream->tensor ? PL_STORE_BF16 : PL_STORE_F32;
}

static void run_product(pl_gpu_stream *stream, void *base, const load *l)
{
    const size_t n = l->side;
    float *a = base;
    const pl_gemm g = { .a_storage = storage_of(stream),
                        .b_storage = storage_of(stream),
                        .products = stream->tensor,
                        .M = n,
                        .N = n,
                        .K = n,
                        .a = a,
                        .a_row = n,
                        .a_col = 1,
                        .b = a + n * n,
                        .b_row = n,
                        .b_col = 1,
                        .c = a + 2 * n * n,
                        .c_row = n };
    pl_gpu_gemm(stream, &g);
}

static void run_attention(pl_gpu_stream *stream, void *base, const load *l)
{
    const size_t T = l->T, H = l->H, D = 64, row = 3 * H * D;
    const pl_storage kept = storage_of(stream);
    float *out = (float *)base + T * row;
    const pl_attention a = { .qkv_storage = kept,
                             .out_storage = kept,
                             .products = stream->tensor,
                             .out = out,
                             .lse = out + T * H * D,
                             .q = base,
                             .k = pl_storage_at(base, H * D, kept),
                             .v = pl_storage_at(base, 2 * H * D, kept),
                             .q_row = row,
                             .kv_row = row,
                             .B = 1,
                             .queries = T,
                             .keys = T,
                             .H = H,
                             .KV = H,
                             .D = D };
    pl_gpu_attention(stream, &a);
}

static void run_flops(pl_gpu_stream *stream, void *base, const load *l)
{
    const gpu_probe args = { .y = (uint64_t)(uintptr_t)base,
                             .rounds = l->rounds };
    const pl_gpu_launch it = { PL_GPU_probe_flops, PROBE_GROUPS, 1, &args };
    stream->status = stream->launch(stream->context, &it, stream->err);
}

static void run_reads(pl_gpu_stream *stream, void *base, const load *l)
{
    const uint64_t at = (uint64_t)(uintptr_t)base;
    const gpu_probe args = { .y = at + l->bytes - PROBE_BYTES,
                             .x = at,
                             .count = (l->bytes - PROBE_BYTES) / 16,
                             .rounds = PROBE_GROUPS };
    const pl_gpu_launch it = { PL_GPU_probe_reads, PROBE_GROUPS, 1, &args };
    stream->status = stream->launch(stream->context, &it, stream->err);
}

/* Work per second of what `run` launches, the best of some runs. */
static double
best_of(sides *s, void (*run)(pl_gpu_stream *stream, void *base, const load *l),
        const load *l, pl_products products, double work, pl_error *err)
{
    double best = 0.0;
    for (int i = 0; i < 5; i++) {
        pl_gpu_stream stream = {
            .context = s, .tensor = products, .launch = launch, .err = err
        };
        const double began = pl_clock_seconds();
        run(&stream, arena_address(s), l);
        if (stream.status || pl_gpu_finish(s->api, s->card, err))
            return 0.0;
        const double rate = work / (pl_clock_seconds() - began);
        if (i > 0 && rate > best) /* the first one warms up */
            best = rate;
    }
    return best;
}

int pl_selftest_is_small(const pl_gpu_card *card)
{
    return card->is_processor || card->memory_bytes >> 30 == 0;
}

static pl_status measure(sides *s, const pl_gpu_card *card,
                         pl_selftest_result *result, pl_error *err)
{
    const load *l = pl_selftest_is_small(card) ? &small_load : &large_load;
    const double n = (double)l->side, T = (double)l->T;
    s->bank = 0;
    if (l == &large_load) {
        s->bank = 2;
        pl_status status = s->api->take(s->card, s->bank, l->bytes, err);
        if (status)
            return status;
    }
    const double product = 2.0 * n * n * n,
                 /* half of the square, twice: scores, and weights times
                  * values */
        attention = 2.0 * T * T * (double)l->H * 64.0;
    result->product_flops = best_of(s, run_product, l, PL_PRODUCTS_EXACT,
                                    product, err);
    result->attention_flops = best_of(s, run_attention, l, PL_PRODUCTS_EXACT,
                                      attention, err);
    if (s->tensor) {
        result->tensor_flops = best_of(s, run_product, l, s->tensor, product,
                                       err);
        result->tensor_attention_flops = best_of(s, run_attention, l, s->tensor,
                                                 attention, err);
    }
    result->peak_flops = best_of(s, run_flops, l, PL_PRODUCTS_EXACT,
                                 2.0 * 32 * 256.0 * PROBE_GROUPS * l->rounds,
                                 err);
    result->read_bytes = best_of(s, run_reads, l, PL_PRODUCTS_EXACT,
                                 (double)(l->bytes - PROBE_BYTES), err);
    return PL_OK;
}

/* ---- all ---- */

pl_status pl_selftest_run(pl_selftest_result *result, const pl_gpu_card *card,
                          const pl_selftest_wish *wish, pl_heap *heap,
                          pl_error *err)
{
    const pl_gpu_api *api = card->api;
    sides s = { .api = api,
                .kernels = pl_kernels_for(pl_cpu_isa()),
                .tensor = card->tensor };
    *result = (pl_selftest_result){ 0 };
    if (s.kernels.arithmetic != PL_ARITHMETIC_FUSED)
        return pl_fail(err, PL_E_CONFIG,
                       "this processor has no fused multiply-add (avx2): "
                       "there is nothing to compare a card with");
    pl_status status = pl_heap_take(heap, &s.host, BYTES, 1, err);
    if (!status)
        status = pl_heap_take(heap, &s.back, BYTES, 1, err);
    if (status)
        return status;
    status = api->open(&s.card, card, heap, err);
    if (!status)
        status = api->take(s.card, 0, BYTES, err);
    if (!status)
        status = api->take(s.card, 1, BYTES, err);
    if (!status)
        status = compare_all(&s, result, wish, err);
    if (!status && wish->measures)
        status = measure(&s, card, result, err);
    result->date = pl_clock_date();
    api->close(s.card);
    return status;
}
