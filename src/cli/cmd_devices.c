/* cmd_devices.c: what can compute here, and whether a card has the processor's
 * bits. */
#include "advise/trust.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/devices_update.h"
#include "cli/term.h"
#include "device/cards.h"
#include "device/choose.h"
#include "device/cuda_code.h"
#include "device/selftest.h"
#include "format/jsontext.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FLAG_JSON = 1, FLAG_SELFTEST = 2 };

/* A card with what was found out about it. */
typedef struct entry {
    pl_gpu_card card;
    char name[16];    /* as the key `device` takes it */
    pl_status status; /* of the info below */
    pl_device_info info;
    pl_device_offer offer;
    pl_error why;      /* it can't be used */
    int is_tested;     /* now, or before: */
    int is_remembered; /* the result is of an earlier test */
    pl_status test_status;
    pl_selftest_result test;
} entry;

typedef struct listing {
    pl_device_info cpu;
    pl_device_offer cpu_offer;
    entry *entries;
    size_t count;
} listing;

/* ---- finding ---- */

static void look_at(entry *e, const pl_gpu_kind *kind, const pl_gpu_card *card)
{
    e->card = *card;
    snprintf(e->name, sizeof e->name, "%s:%d", card->api->name, card->number);
    e->status = pl_gpu_describe(&e->info, &kind->base, card, &e->why);
    if (!e->status)
        e->status = pl_device_offer_make(&e->offer, &e->info, &e->why);
}

static int is_wanted(const pl_cli_args *args, const entry *e)
{
    for (size_t i = 0; i < args->path_count; i++)
        if (strcmp(args->paths[i], e->name) == 0)
            return 1;
    return args->path_count == 0;
}

static pl_status check_names(const pl_cli_args *args, const listing *all,
                             pl_error *err)
{
    for (size_t i = 0; i < args->path_count; i++) {
        int found = 0;
        for (size_t k = 0; k < all->count; k++)
            found |= strcmp(args->paths[i], all->entries[k].name) == 0;
        if (!found)
            return pl_fail(err, PL_E_USAGE,
                           "there is no device '%s' here; `plimsoll devices` "
                           "lists those that there are",
                           args->paths[i]);
    }
    return PL_OK;
}

static pl_status find_cards(listing *all, pl_heap *heap, pl_error *err)
{
    pl_gpu_card *cards;
    size_t count = 0;
    pl_status status = pl_heap_take(heap, &cards, PL_GPU_MAX_CARDS,
                                    sizeof *cards, err);
    if (!status)
        status = pl_heap_take(heap, &all->entries,
                              PL_DEVICE_CARD_KINDS * PL_GPU_MAX_CARDS,
                              sizeof *all->entries, err);
    for (size_t k = 0; k < PL_DEVICE_CARD_KINDS && !status; k++) {
        status = pl_device_cards[k]->api->list(cards, &count, err);
        for (size_t i = 0; i < count && !status; i++)
            look_at(&all->entries[all->count++], pl_device_cards[k], &cards[i]);
    }
    return status;
}

static pl_status find_all(listing *all, const pl_config *config, pl_heap *heap,
                          pl_error *err)
{
    pl_status status = pl_device_choose_host(&all->cpu, config, err);
    if (!status)
        status = pl_device_offer_make(&all->cpu_offer, &all->cpu, err);
    return status ? status : find_cards(all, heap, err);
}

/* ---- testing ---- */

static void seen(void *context, const pl_selftest_case *it)
{
    const entry *e = context;
    pl_term_progress("%s: %s, %s, %s %s", e->name, it->op, it->storage,
                     it->products, it->what);
}

static void test(entry *e, const char *folder, pl_heap *heap)
{
    const pl_selftest_wish wish = { .measures = 1, .seen = seen, .context = e };
    const pl_trust_wish memory = { .folder = folder, .log = &pl_term_log };
    pl_term_progress("%s: opening it; its kernels may have to be compiled",
                     e->name);
    e->is_tested = 1;
    e->test_status = pl_selftest_run(&e->test, &e->card, &wish, heap, &e->why);
    pl_term_clear();
    if (!e->test_status && e->test.tensor_failed)
        pl_gpu_leave_tensor(&e->card);
    if (!e->test_status && !e->test.failed)
        pl_devices_measure(&e->test, &e->card, e->name);
    if (!e->test_status)
        pl_trust_remember(&e->test, &e->card, &memory);
}

/* What a run would know of it without a test. */
static void recall(entry *e, const char *folder, pl_heap *heap)
{
    e->is_tested = e->is_remembered = pl_trust_recall(&e->test, &e->card,
                                                      folder, heap);
}

/* ---- for people ---- */

static void print_test(const entry *e)
{
    const pl_selftest_result *r = &e->test;
    const char *tensor = pl_products_name(e->card.tensor);
    const pl_card *row;
    char when[PL_UNITS_TEXT_BYTES + 8] = "", peak[64] = "";
    if (!pl_card_find(e->card.name, &row, NULL) && row->half_gflops > 0.0)
        snprintf(peak, sizeof peak, "; its data sheet says %.1f",
                 row->half_gflops);
    if (e->is_remembered)
        snprintf(when, sizeof when, " %s ago",
                 pl_units_duration(fmax(pl_clock_date() - r->date, 0.0)).text);
    if (e->test_status) {
        pl_term_print("            %sself-test: %s%s\n",
                      pl_term_out(PL_TERM_RED), e->why.text, pl_term_out_end());
        return;
    }
    if (r->failed)
        pl_term_print("            %sself-test%s: %zu of %zu cases have other "
                      "bits than the processor's; the first is %s%s\n",
                      pl_term_out(PL_TERM_RED), when, r->failed, r->cases,
                      r->first, pl_term_out_end());
    else
        pl_term_print("            %sself-test%s: %zu cases, %s bytes: all are "
                      "the processor's%s\n",
                      pl_term_out(PL_TERM_GREEN), when, r->cases,
                      pl_units_count(r->bytes).text, pl_term_out_end());
    if (r->tensor_failed)
        pl_term_print("            %s%s: %zu of %zu cases have other bits than "
                      "the processor's; the first is %s%s\n",
                      pl_term_out(PL_TERM_RED), tensor, r->tensor_failed,
                      r->tensor_cases, r->first, pl_term_out_end());
    else if (r->tensor_cases)
        pl_term_print("            %s%s: %zu cases, %s bytes: all are the "
                      "processor's%s\n",
                      pl_term_out(PL_TERM_GREEN), tensor, r->tensor_cases,
                      pl_units_count(r->tensor_bytes).text, pl_term_out_end());
    printf("            products %.1f GFLOP/s, attention %.1f, multiply-adds "
           "alone %.1f; reads %.1f GB/s\n",
           r->product_flops * 1e-9, r->attention_flops * 1e-9,
           r->peak_flops * 1e-9, r->read_bytes * 1e-9);
    if (r->tensor_cases)
        printf("            %s: products %.1f GFLOP/s, attention %.1f%s\n",
               tensor, r->tensor_flops * 1e-9, r->tensor_attention_flops * 1e-9,
               peak);
}

/* An update of a known model, beside what the data sheet lets expect. */
static void print_update(const entry *e, const char *dtype, double seconds,
                         double predicted)
{
    if (seconds > 0.0)
        pl_term_print("            an update of %s in %s takes %s; predicted: "
                      "%s\n",
                      pl_devices_model(&e->card), dtype,
                      pl_units_duration(seconds).text,
                      pl_units_duration(predicted).text);
}

static void print_entry(const entry *e)
{
    pl_term_print("%-11s %s\n", e->name, e->card.name);
    const pl_gpu_card *c = &e->card;
    char parts[80] = "", capability[48] = "";
    if (c->largest_bytes < c->memory_bytes)
        snprintf(parts, sizeof parts, ", at most %s at once",
                 pl_units_bytes(c->largest_bytes).text);
    if (c->capability)
        snprintf(capability, sizeof capability, "; compute capability %d.%d",
                 c->capability / 10, c->capability % 10);
    pl_term_print("            driver %s; %s of memory%s%s%s\n", c->driver,
                  pl_units_bytes(c->memory_bytes).text, parts, capability,
                  c->is_processor ? "; a processor, used only where it is named"
                                  : "");
    if (c->code[0])
        pl_term_print("            code: %s\n", c->code);
    if (e->status)
        pl_term_print("            can't be used: %s\n", e->why.text);
    else
        pl_term_print("            a run would get %s (%s)\n",
                      pl_units_bytes(e->offer.bytes).text, e->offer.from);
    if (!e->is_tested)
        return;
    print_test(e);
    print_update(e, "float32", e->test.float32_update_seconds,
                 e->test.float32_update_predicted);
    print_update(e, "float16", e->test.float16_update_seconds,
                 e->test.float16_update_predicted);
}

static void print_all(const listing *all)
{
    pl_term_print("cpu         %s\n            a run would get %s (%s)\n",
                  all->cpu.text, pl_units_bytes(all->cpu_offer.bytes).text,
                  all->cpu_offer.from);
    for (size_t i = 0; i < all->count; i++)
        print_entry(&all->entries[i]);
    if (all->count == 0)
        printf("no card: neither CUDA nor OpenCL lists one (a card needs its "
               "driver, and for OpenCL libOpenCL.so.1)\n");
}

/* ---- for scripts ---- */

static void put_test(pl_json_text *j, const entry *e)
{
    const pl_selftest_result *r = &e->test;
    if (!e->is_tested || e->test_status)
        return;
    pl_json_text_open(j, "selftest", '{');
    pl_json_text_raw(j, "passed", r->failed ? "false" : "true");
    pl_json_text_raw(j, "now", e->is_remembered ? "false" : "true");
    pl_json_text_string(j, "first", r->first);
#define COUNT(name) pl_json_text_whole(j, #name, r->name);
    PL_SELFTEST_COUNTS(COUNT)
#undef COUNT
#define REAL(name) pl_json_text_real(j, #name, r->name);
    PL_SELFTEST_REALS(REAL)
#undef REAL
    pl_json_text_close(j, '}');
}

static void put_entry(pl_json_text *j, const entry *e)
{
    pl_json_text_open(j, NULL, '{');
    pl_json_text_string(j, "device", e->name);
    pl_json_text_string(j, "name", e->card.name);
    pl_json_text_string(j, "driver", e->card.driver);
    pl_json_text_raw(j, "is_processor",
                     e->card.is_processor ? "true" : "false");
    if (e->card.capability) {
        char text[16];
        snprintf(text, sizeof text, "%d.%d", e->card.capability / 10,
                 e->card.capability % 10);
        pl_json_text_string(j, "compute_capability", text);
        pl_json_text_string(j, "code", e->card.code);
        pl_json_text_string(j, "tensor", pl_products_name(e->card.tensor));
    }
    pl_json_text_whole(j, "memory_bytes", e->card.memory_bytes);
    pl_json_text_whole(j, "largest_bytes", e->card.largest_bytes);
    pl_json_text_whole(j, "offer_bytes", e->status ? 0 : e->offer.bytes);
    if (e->status || e->test_status)
        pl_json_text_string(j, "error", e->why.text);
    put_test(j, e);
    pl_json_text_close(j, '}');
}

static pl_status print_json(const listing *all, pl_heap *heap, pl_error *err)
{
    enum { TEXT_BYTES = 64 * 1024 };
    char *text;
    pl_status status = pl_heap_take(heap, &text, TEXT_BYTES, 1, err);
    if (status)
        return status;
    pl_json_text j = pl_json_text_begin(text, TEXT_BYTES);
    pl_json_text_open(&j, "devices", '[');
    pl_json_text_open(&j, NULL, '{');
    pl_json_text_string(&j, "device", "cpu");
    pl_json_text_string(&j, "name", all->cpu.text);
    pl_json_text_whole(&j, "offer_bytes", all->cpu_offer.bytes);
    pl_json_text_close(&j, '}');
    for (size_t i = 0; i < all->count; i++)
        put_entry(&j, &all->entries[i]);
    pl_json_text_close(&j, ']');
    status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}

/* ---- the command ---- */

static pl_status run_devices(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    listing all = { 0 };
    const char *folder;
    pl_status status = pl_cli_cache_folder(&folder, heap, err);
    if (!status)
        status = find_all(&all, &args->config, heap, err);
    if (!status)
        status = check_names(args, &all, err);
    if (status)
        return status;
    pl_cuda_code_keep_in(folder);
    for (size_t i = 0; i < all.count; i++)
        if (all.entries[i].status)
            continue;
        else if (args->flags & FLAG_SELFTEST &&
                 is_wanted(args, &all.entries[i]))
            test(&all.entries[i], folder, heap);
        else
            recall(&all.entries[i], folder, heap);
    if (args->flags & FLAG_JSON)
        status = print_json(&all, heap, err);
    else
        print_all(&all);
    for (size_t i = 0; i < all.count && !status; i++) {
        const entry *e = &all.entries[i];
        if (e->is_tested && !e->is_remembered &&
            (e->test_status || e->test.failed))
            return pl_fail(err, PL_E_CONFIG,
                           "%s doesn't compute what the processor computes",
                           e->name);
    }
    return status;
}

static const char *const flags[] = { "--json", "--selftest", NULL };

const pl_command pl_command_devices = {
    .name = "devices",
    .arguments = "[DEVICE...]",
    .summary = "what can compute here; whether a card has the processor's bits",
    .text =
        "Lists the processor and the cards that CUDA and OpenCL know, with\n"
        "their memory and what a run would get of it. A card that both know\n"
        "is listed twice. The names are those that --device takes.\n"
        "\n"
        "  --json      prints the same for scripts.\n"
        "  --selftest  compares every kernel's bits on a card (or only on the\n"
        "              named ones) with the processor's, and measures how "
        "fast\n"
        "              it is. A card that computes other bits is no device "
        "for\n"
        "              a run: please report it, with this output. A run "
        "tests\n"
        "              a card by itself before it uses it for the first "
        "time.\n",
    .flags = flags,
    .run = run_devices,
};
