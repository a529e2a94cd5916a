/* machine.c: see machine.h. */
#include "advise/machine.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/units.h"
#include "config/special.h"
#include "device/choose.h"
#include "device/products.h"
#include "model/gpt.h"

#include "format/jsontext.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_BYTES = 64 * 1024 };

/* What rates depend on; width 0: those that were measured last, of any. */
typedef struct rates_of {
    const pl_device_info *device;
    pl_dtype dtype;
    size_t width;
} rates_of;

static pl_status path_of(char path[PL_PATH_BYTES], const char *folder,
                         const rates_of *of, pl_error *err)
{
    char name[96], width[32] = "";
    if (of->width)
        snprintf(width, sizeof width, "-%zu", of->width);
    snprintf(name, sizeof name, "machine-%s-%s%s.json", of->device->key,
             pl_dtype_name(of->dtype), width);
    return pl_path_join(path, folder, name, err);
}

/* A rate that can be divided by, or nothing. */
static void read_rate(const json_t *object, const char *key, double *rate)
{
    double value = json_number_value(json_object_get(object, key));
    if (isfinite(value) && value > 0.0)
        *rate = value;
}

/* Whether there is such a file that can be read. */
static int read_rates(pl_rates *rates, const char *folder, const rates_of *of,
                      pl_heap *heap)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    json_t *root = NULL;

    if (path_of(path, folder, of, NULL) ||
        pl_file_read_all(path, MAX_BYTES, heap, &text, &bytes, NULL) ||
        pl_json_parse(text, bytes, path, &root, NULL))
        return 0;
    const json_t *ops = json_object_get(root, "units_per_second");
    for (int op = 0; op < PL_OP_COUNT; op++)
        read_rate(ops, pl_op_name((pl_op)op), &rates->per_second[op]);
    read_rate(root, "barrier_seconds", &rates->barrier_seconds);
    read_rate(root, "date", &rates->date);
    read_rate(root, "quiet", &rates->quiet);
    rates->quiet = fmin(rates->quiet, 1.0);
    json_decref(root);
    return 1;
}

/* How many times as fast as in float32 products are in a dtype, unless it was
 * measured. */
static double products_in(const pl_device_info *device, pl_dtype dtype)
{
    if (dtype == PL_BF16 && device->products == PL_PRODUCTS_AMX)
        return device->amx_speed;
    if (dtype != PL_F32 && device->products != PL_PRODUCTS_EXACT)
        return device->tensor_speed;
    return dtype == PL_BF16 ? device->bf16_speed : 1.0;
}

/* What was measured for this dtype and width; else for another dtype with this
 * width; else with another width, of this dtype first. */
static pl_rates recall(const char *folder, const rates_of *wanted,
                       pl_heap *heap)
{
    const pl_device_info *device = wanted->device;
    const size_t widths[] = { wanted->width, 0 };
    pl_rates rates = device->card_flops > 0.0
                         ? pl_rates_stated(device->card_flops,
                                           device->card_bytes_per_second,
                                           device->cores)
                         : pl_rates_built_in(device->cores);
    for (int w = 0; w < 2 && folder; w++)
        for (int d = 0; d < PL_RATE_DTYPES; d++) {
            rates_of of = *wanted;
            of.width = widths[w];
            of.dtype = (pl_dtype)(((int)wanted->dtype + d) % PL_RATE_DTYPES);
            if (!read_rates(&rates, folder, &of, heap))
                continue;
            rates.source = w + d ? PL_RATES_SIMILAR : PL_RATES_MEASURED;
            rates.units = 0; /* what was measured counts as it was */
            pl_rates_scale_products(&rates, products_in(device, wanted->dtype) /
                                                products_in(device, of.dtype));
            return rates;
        }
    pl_rates_scale_products(&rates, products_in(device, wanted->dtype));
    return rates;
}

static pl_status find_budget(pl_machine *machine, pl_machine_use use,
                             const pl_config *config, pl_error *err)
{
    const int stated = pl_config_states_memory(config);
    pl_device_offer offer;
    pl_status status = PL_OK;
    machine->budget_bytes = machine->stated_bytes = SIZE_MAX;
    if (stated) {
        snprintf(machine->budget_from, sizeof machine->budget_from,
                 "memory = '%.200s'", config->memory);
        status = pl_memory_parse(config->memory, &machine->stated_bytes, err);
        machine->budget_bytes = machine->stated_bytes;
    }
    if (status || (stated && use == PL_MACHINE_PLAN))
        return status;
    status = pl_device_offer_make(&offer, &machine->device, err);
    if (status)
        return stated ? PL_OK : status; /* it asks for a stated budget */
    if (offer.bytes >= machine->budget_bytes)
        return PL_OK;
    machine->budget_bytes = offer.bytes;
    snprintf(machine->budget_from, sizeof machine->budget_from, "%s",
             offer.from);
    return PL_OK;
}

/* What the host may add where the device has memory of its own. */
static pl_status find_host_budget(pl_machine *machine, pl_machine_use use,
                                  const pl_config *config, pl_error *err)
{
    pl_memory_offer offer;
    size_t stated = SIZE_MAX;
    pl_status status = PL_OK;
    machine->host_budget_bytes = SIZE_MAX;
    if (pl_config_states_host_memory(config))
        status = pl_memory_parse(config->host_memory, &stated, err);
    if (status || machine->device.memory.spaces != PL_SPACES_APART)
        return status;
    machine->host_budget_bytes = stated;
    if (use == PL_MACHINE_RUN && !pl_memory_offer_make(&offer, "", NULL) &&
        offer.bytes < stated)
        machine->host_budget_bytes = offer.bytes;
    return PL_OK;
}

/* The device of a config as it would be in another dtype, in which 'auto' may
 * mean other products. */
static pl_device_info device_in(const pl_device_info *device,
                                const pl_config *config, pl_dtype dtype)
{
    static const pl_dtype_choice choices[PL_RATE_DTYPES] = {
        [PL_F32] = PL_DTYPE_FLOAT32,
        [PL_BF16] = PL_DTYPE_BFLOAT16,
        [PL_F16] = PL_DTYPE_FLOAT16,
    };
    pl_device_info other = *device;
    pl_config changed = *config;
    changed.dtype = choices[dtype];
    changed.kept_arithmetic = PL_ARITHMETIC_UNSAID;
    if (device->products != PL_PRODUCTS_EXACT ||
        changed.dtype == config->dtype ||
        pl_products_settle(&other, &changed, NULL))
        return *device;
    return other;
}

pl_status pl_machine_make(pl_machine *machine, pl_machine_use use,
                          const pl_config *config, const char *cache_folder,
                          pl_heap *heap, pl_error *err)
{
    *machine = (pl_machine){ .cache_folder = cache_folder };
    machine->width = (size_t)config->n_embd;
    machine->dtype = pl_layout_dtype(config);
    pl_status status = use == PL_MACHINE_HOST
                           ? pl_device_choose_host(&machine->device, config,
                                                   err)
                           : pl_device_choose(&machine->device, config, err);
    if (status)
        return status;
    rates_of of = { .device = &machine->device, .width = machine->width };
    for (int i = 0; i < PL_RATE_DTYPES; i++) {
        const pl_device_info device = device_in(&machine->device, config,
                                                (pl_dtype)i);
        of.device = &device;
        of.dtype = (pl_dtype)i;
        machine->rates[i] = recall(cache_folder, &of, heap);
    }
    of.device = &machine->device;
    pl_rates similar = { .source = PL_RATES_SIMILAR };
    of.dtype = machine->dtype;
    of.width = 0;
    if (cache_folder && read_rates(&similar, cache_folder, &of, heap))
        machine->similar_trust = pl_rates_trust(&similar, pl_clock_date());
    status = find_host_budget(machine, use, config, err);
    return status ? status : find_budget(machine, use, config, err);
}

const pl_rates *pl_machine_rates_in(const pl_machine *machine, pl_dtype dtype)
{
    PL_CHECK((int)dtype < PL_RATE_DTYPES);
    return &machine->rates[dtype];
}

const pl_rates *pl_machine_rates(const pl_machine *machine)
{
    return pl_machine_rates_in(machine, machine->dtype);
}

static size_t sum_of(size_t bytes, uint64_t more)
{
    return more < SIZE_MAX - bytes ? bytes + (size_t)more : SIZE_MAX;
}

void pl_machine_add_held(pl_machine *machine, uint64_t bytes)
{
    const size_t used = strlen(machine->budget_from),
                 offered = machine->budget_bytes;
    machine->host_budget_bytes = sum_of(machine->host_budget_bytes, bytes);
    if (machine->device.memory.spaces == PL_SPACES_APART || bytes == 0 ||
        offered >= machine->stated_bytes || offered == SIZE_MAX)
        return;
    machine->budget_bytes = sum_of(offered, bytes);
    if (machine->budget_bytes > machine->stated_bytes)
        machine->budget_bytes = machine->stated_bytes;
    snprintf(machine->budget_from + used, sizeof machine->budget_from - used,
             ", and %s are this run's files", pl_units_bytes(bytes).text);
}

pl_status pl_machine_take_off(pl_machine *machine, size_t bytes,
                              const char *what, pl_error *err)
{
    const int apart = machine->device.memory.spaces == PL_SPACES_APART;
    size_t *budget = apart ? &machine->host_budget_bytes
                           : &machine->budget_bytes;
    const size_t used = strlen(machine->budget_from);
    if (*budget == SIZE_MAX)
        return PL_OK;
    if (*budget <= bytes)
        return pl_fail(err, PL_E_MEMORY,
                       "%s takes %s, and the budget is %s in all: leave it "
                       "out, or allow more",
                       what, pl_units_bytes(bytes).text,
                       pl_units_bytes(*budget).text);
    *budget -= bytes;
    if (apart)
        return PL_OK;
    if (machine->stated_bytes != SIZE_MAX)
        machine->stated_bytes -= bytes;
    snprintf(machine->budget_from + used, sizeof machine->budget_from - used,
             ", less %s for %s", pl_units_bytes(bytes).text, what);
    return PL_OK;
}

void pl_machine_give_back(pl_machine *machine, size_t bytes)
{
    const int apart = machine->device.memory.spaces == PL_SPACES_APART;
    size_t *budget = apart ? &machine->host_budget_bytes
                           : &machine->budget_bytes;
    if (*budget == SIZE_MAX)
        return;
    *budget += bytes;
    if (!apart && machine->stated_bytes != SIZE_MAX)
        machine->stated_bytes += bytes;
}

pl_load pl_machine_load(const pl_machine *machine)
{
    return machine->read_load ? machine->read_load() : pl_load_read();
}

int pl_machine_wants_rates(const pl_machine *machine)
{
    const double enough = 0.5;
    const pl_rates *rates = pl_machine_rates(machine);
    return rates->source != PL_RATES_MEASURED ||
           pl_rates_trust(rates, pl_clock_date()) < enough;
}

void pl_machine_learn(pl_machine *machine, const pl_looks *looks)
{
    pl_rates_learn(&machine->rates[machine->dtype], looks, pl_clock_date());
}

pl_status pl_machine_remember(const pl_machine *machine, char *text,
                              size_t capacity, pl_error *err)
{
    const pl_rates *rates = pl_machine_rates(machine);
    char path[PL_PATH_BYTES];
    if (!machine->cache_folder)
        return PL_OK;
    pl_json_text j = pl_json_text_begin(text, capacity);
    pl_json_text_real(&j, "date", rates->date);
    pl_json_text_real(&j, "quiet", rates->quiet);
    pl_json_text_real(&j, "barrier_seconds", rates->barrier_seconds);
    pl_json_text_open(&j, "units_per_second", '{');
    for (int op = 0; op < PL_OP_COUNT; op++)
        pl_json_text_real(&j, pl_op_name((pl_op)op), rates->per_second[op]);
    pl_json_text_close(&j, '}');
    pl_status status = pl_json_text_end(&j, err);
    if (!status)
        status = pl_folder_make(machine->cache_folder, err);
    const size_t widths[] = { machine->width, 0 };
    const int files = rates->quiet >= PL_LOOKS_QUIET ||
                              rates->quiet >= machine->similar_trust
                          ? 2
                          : 1;
    for (int i = 0; i < files && !status; i++) {
        const rates_of of = { .device = &machine->device,
                              .dtype = machine->dtype,
                              .width = widths[i] };
        status = path_of(path, machine->cache_folder, &of, err);
        if (!status)
            status = pl_file_replace(path, text, j.used, err);
    }
    return status;
}
