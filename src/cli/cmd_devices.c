/* cmd_devices.c: what can compute here, and whether a card has the processor's
 * bits. */
#include "advise/trust.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/term.h"
#include "device/choose.h"
#include "device/opencl.h"
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

static void look_at(entry *e, const pl_gpu_card *card)
{
    e->card = *card;
    snprintf(e->name, sizeof e->name, "opencl:%d", card->number);
    e->status = pl_opencl_describe(&e->info, card->number, &e->why);
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

static pl_status find_all(listing *all, const pl_config *config, pl_heap *heap,
                          pl_error *err)
{
    pl_gpu_card *cards;
    pl_status status = pl_device_choose_host(&all->cpu, config, err);
    if (!status)
        status = pl_device_offer_make(&all->cpu_offer, &all->cpu, err);
    if (!status)
        status = pl_heap_take(heap, &cards, PL_GPU_MAX_CARDS, sizeof *cards,
                              err);
    if (!status)
        status = pl_opencl_api.list(cards, &all->count, err);
    if (!status)
        status = pl_heap_take(heap, &all->entries, all->count + 1,
                              sizeof *all->entries, err);
    for (size_t i = 0; i < all->count && !status; i++)
        look_at(&all->entries[i], &cards[i]);
    return status;
}

/* ---- testing ---- */

static void seen(void *context, const pl_selftest_case *it)
{
    const entry *e = context;
    pl_term_progress("%s: %s, %s %s", e->name, it->op, it->storage, it->what);
}

static void test(entry *e, const char *folder, pl_heap *heap)
{
    const pl_selftest_wish wish = { .measures = 1, .seen = seen, .context = e };
    const pl_trust_wish memory = { folder, &pl_term_log, NULL };
    e->is_tested = 1;
    e->test_status = pl_selftest_run(&e->test, &pl_opencl_api, &e->card, &wish,
                                     heap, &e->why);
    pl_term_clear();
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
    char when[PL_UNITS_TEXT_BYTES + 8] = "";
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
    printf("            products %.1f GFLOP/s, attention %.1f, multiply-adds "
           "alone %.1f; reads %.1f GB/s\n",
           r->product_flops * 1e-9, r->attention_flops * 1e-9,
           r->peak_flops * 1e-9, r->read_bytes * 1e-9);
}

static void print_entry(const entry *e)
{
    pl_term_print("%-11s %s\n", e->name, e->card.name);
    pl_term_print("            driver %s; %s of memory, at most %s at once%s\n",
                  e->card.driver, pl_units_bytes(e->card.memory_bytes).text,
                  pl_units_bytes(e->card.largest_bytes).text,
                  e->card.is_processor
                      ? "; a processor, used only where it is named"
                      : "");
    if (e->status)
        pl_term_print("            can't be used: %s\n", e->why.text);
    else
        printf("            a run would get %s\n",
               pl_units_bytes(e->offer.bytes).text);
    if (e->is_tested)
        print_test(e);
}

static void print_all(const listing *all)
{
    pl_term_print("cpu         %s\n            a run would get %s (%s)\n",
                  all->cpu.text, pl_units_bytes(all->cpu_offer.bytes).text,
                  all->cpu_offer.from);
    for (size_t i = 0; i < all->count; i++)
        print_entry(&all->entries[i]);
    if (all->count == 0)
        printf("no card: OpenCL lists none (a card needs its driver, and "
               "libOpenCL.so.1)\n");
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
    pl_json_text_whole(j, "cases", r->cases);
    pl_json_text_whole(j, "failed", r->failed);
    pl_json_text_whole(j, "bytes", r->bytes);
    pl_json_text_string(j, "first", r->first);
    pl_json_text_real(j, "product_flops", r->product_flops);
    pl_json_text_real(j, "attention_flops", r->attention_flops);
    pl_json_text_real(j, "peak_flops", r->peak_flops);
    pl_json_text_real(j, "read_bytes", r->read_bytes);
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
    pl_status status = find_all(&all, &args->config, heap, err);
    if (!status)
        status = check_names(args, &all, err);
    if (!status)
        status = pl_cli_cache_folder(&folder, heap, err);
    if (status)
        return status;
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
        "Lists the processor and the cards that OpenCL knows, with their\n"
        "memory and what a run would get of it. The names are those that\n"
        "--device takes.\n"
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
