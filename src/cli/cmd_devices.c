/* cmd_devices.c: what can compute here, and whether a card has the processor's
 * bits. */
#include "base/units.h"
#include "cli/command.h"
#include "cli/term.h"
#include "device/choose.h"
#include "device/opencl.h"
#include "device/selftest.h"

#include <stdio.h>
#include <string.h>

enum { FLAG_SELFTEST = 1 };

/* A card with what was found out about it. */
typedef struct entry {
    pl_gpu_card card;
    char name[16];    /* as the key `device` takes it */
    pl_status status; /* of the info below */
    pl_device_info info;
    pl_device_offer offer;
    pl_error why; /* it can't be used */
    int is_tested;
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

static void test(entry *e, pl_heap *heap)
{
    const pl_selftest_wish wish = { .measures = 1, .seen = seen, .context = e };
    e->is_tested = 1;
    e->test_status = pl_selftest_run(&e->test, &pl_opencl_api, &e->card, &wish,
                                     heap, &e->why);
    pl_term_clear();
}

/* ---- for people ---- */

static void print_test(const entry *e)
{
    const pl_selftest_result *r = &e->test;
    if (e->test_status) {
        pl_term_print("            %sself-test: %s%s\n",
                      pl_term_out(PL_TERM_RED), e->why.text, pl_term_out_end());
        return;
    }
    if (r->failed)
        pl_term_print("            %sself-test: %zu of %zu cases have other "
                      "bits than the processor's; the first is %s%s\n",
                      pl_term_out(PL_TERM_RED), r->failed, r->cases, r->first,
                      pl_term_out_end());
    else
        pl_term_print("            %sself-test: %zu cases, %s bytes: all are "
                      "the processor's%s\n",
                      pl_term_out(PL_TERM_GREEN), r->cases,
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

/* ---- the command ---- */

static pl_status run_devices(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    listing all = { 0 };
    pl_status status = find_all(&all, &args->config, heap, err);
    if (!status)
        status = check_names(args, &all, err);
    if (status)
        return status;
    for (size_t i = 0; i < all.count && args->flags & FLAG_SELFTEST; i++)
        if (is_wanted(args, &all.entries[i]) && !all.entries[i].status)
            test(&all.entries[i], heap);
    print_all(&all);
    for (size_t i = 0; i < all.count; i++)
        if (all.entries[i].is_tested &&
            (all.entries[i].test_status || all.entries[i].test.failed))
            return pl_fail(err, PL_E_CONFIG,
                           "%s doesn't compute what the processor computes",
                           all.entries[i].name);
    return PL_OK;
}

static const char *const flags[] = { "--selftest", NULL };

const pl_command pl_command_devices = {
    .name = "devices",
    .arguments = "[DEVICE...]",
    .summary = "what can compute here; whether a card has the processor's bits",
    .text =
        "Lists the processor and the cards that OpenCL knows, with their\n"
        "memory and what a run would get of it. The names are those that\n"
        "--device takes.\n"
        "\n"
        "  --selftest  compares every kernel's bits on a card (or only on the\n"
        "              named ones) with the processor's, and measures how "
        "fast\n"
        "              it is. A card that computes other bits is no device "
        "for\n"
        "              a run: please report it, with this output.\n",
    .flags = flags,
    .run = run_devices,
};
