/* remedies.c: see remedies.h. A change is a number of keys of a copy of the
 * config. What costs nothing is tried first; only if it doesn't do, what costs
 * precision or parameters. */
#include "advise/remedies.h"
#include "base/log.h"
#include "device/choose.h"
#include "model/from_config.h"

#include <stddef.h>
#include <stdio.h>

typedef struct pricing {
    const pl_run_plan *plan;
    const pl_config *config;
    const pl_machine *machine;
    size_t vocab_size;
    size_t tables_bytes; /* that the reserve counts with */
    pl_remedy *changes;
    size_t count;
    pl_error *err;
} pricing;

/* Tensor arithmetic can't have everything (device/products.h), and workers
 * have float32 weights (config/check.c). */
static int is_computable(const pl_config *config)
{
    pl_device_info device;
    return !pl_device_choose(&device, config, NULL) &&
           !(config->sync_interval > 1 && config->weights == PL_WEIGHTS_BF16);
}

/* Whether the smallest plan of a config fits. */
static pl_status try_smallest(const pricing *p, const pl_config *config,
                              int *fits)
{
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    const pl_log silent = { 0 };
    const pl_fit_wish wish = pl_run_plan_wish(config);
    pl_shape shape;
    pl_gpt_layout base;
    pl_fit_option found;
    pl_machine_files files;
    pl_status status = pl_shape_make(&shape, config, p->vocab_size, &silent,
                                     p->err);
    if (!status)
        status = pl_run_plan_base(&base, &shape, config, p->machine, &heap,
                                  p->err);
    if (!status)
        status = pl_fit_smallest(&found, &shape, &base, &wish,
                                 pl_machine_rates_in(p->machine, base.dtype),
                                 &heap, p->err);
    if (!status)
        status = pl_run_plan_files(&files, p->machine, config, &shape,
                                   &found.layout, p->err);
    if (!status)
        *fits = pl_run_plan_total(&shape, &found.layout, found.arena_bytes,
                                  p->tables_bytes,
                                  files.bytes) <= p->machine->budget_bytes;
    pl_heap_close(&heap);
    return status;
}

/* Adds a row if the changed config fits. */
static pl_status offer_it(pricing *p, const pl_config *changed,
                          const char *settings)
{
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    const pl_log silent = { 0 };
    pl_run_plan plan;
    int fits;
    if (!is_computable(changed))
        return PL_OK;
    pl_status status = try_smallest(p, changed, &fits);
    if (status || !fits || p->count == PL_MAX_REMEDIES)
        return status;
    status = pl_run_plan_make(&plan, changed, p->machine, p->vocab_size,
                              &silent, &heap, p->err);
    if (!status && plan.fits) {
        pl_remedy *change = &p->changes[p->count++];
        *change = (pl_remedy){
            .total_bytes = plan.total_bytes,
            .update_change = plan.update_seconds / p->plan->update_seconds -
                             1.0,
            .parameters = pl_param_count(&plan.gpt.shape),
            .effect = pl_config_difference(p->config, changed),
            .regroups = changed->batch_size != p->config->batch_size,
        };
        snprintf(change->settings, sizeof change->settings, "%s", settings);
    }
    pl_heap_close(&heap);
    return status;
}

/* ---- what changes no number of the model ---- */

static pl_status offer_disk(pricing *p)
{
    const pl_machine *machine = p->machine;
    pl_machine with_disk = *machine;
    if (!machine->files)
        return PL_OK;
    with_disk.files = NULL;
    p->machine = &with_disk;
    const size_t before = p->count;
    pl_status status = offer_it(p, p->config, "out_dir on a disk");
    if (p->count > before) /* no key that has an effect differs */
        p->changes[before].effect = PL_EFFECT_SAME;
    p->machine = machine;
    return status;
}

/* Whether grad_checkpoint keeps the search from recomputing all it could. */
static int keeps_levels(const pl_config *config)
{
    const pl_fit_wish wish = pl_run_plan_wish(config);
    return wish.keep_levels || wish.no_products;
}

static pl_status offer_layouts(pricing *p)
{
    pl_config changed = *p->config;
    pl_status status = PL_OK;
    if (changed.fit == PL_FIT_EXACT) {
        changed.fit = PL_FIT_AUTO;
        status = offer_it(p, &changed, "fit = 'auto'");
    }
    if (!status && keeps_levels(&changed)) {
        changed.grad_checkpoint.kind = PL_CHECKPOINTING_ON;
        status = offer_it(p, &changed,
                          p->config->fit == PL_FIT_EXACT
                              ? "fit = 'auto', grad_checkpoint = True"
                              : "grad_checkpoint = True");
    }
    return status;
}

/* Everything that follows starts from the most frugal layout. */
static pl_config frugal(const pl_config *config)
{
    pl_config changed = *config;
    changed.fit = PL_FIT_AUTO;
    if (keeps_levels(&changed))
        changed.grad_checkpoint.kind = PL_CHECKPOINTING_ON;
    return changed;
}

static pl_status offer_batch(pricing *p)
{
    const int64_t batch = p->config->batch_size,
                  steps = p->config->gradient_accumulation_steps;
    for (int64_t parts = 2; parts <= batch; parts++) {
        pl_config changed = frugal(p->config);
        char text[96];
        size_t before = p->count;
        if (batch % parts != 0)
            continue;
        changed.batch_size = batch / parts;
        changed.gradient_accumulation_steps = steps * parts;
        if (changed.gradient_groups > pl_config_most_groups(&changed))
            continue;
        snprintf(text, sizeof text,
                 "batch_size = %lld, gradient_accumulation_steps = %lld",
                 (long long)changed.batch_size,
                 (long long)changed.gradient_accumulation_steps);
        pl_status status = offer_it(p, &changed, text);
        if (status || p->count > before)
            return status;
    }
    return PL_OK;
}

/* As many groups as fit: each process needs one. */
static pl_status offer_groups(pricing *p)
{
    pl_config changed = frugal(p->config);
    const int64_t least = p->machine->ranks ? (int64_t)p->machine->ranks : 1;
    const size_t before = p->count;
    pl_status status = PL_OK;
    if (changed.sync_interval > 1) /* each is another worker's */
        return PL_OK;
    while (changed.gradient_groups > least && !status && p->count == before) {
        char text[48];
        changed.gradient_groups /= 2;
        snprintf(text, sizeof text, "gradient_groups = %lld",
                 (long long)changed.gradient_groups);
        status = offer_it(p, &changed, text);
    }
    return status;
}

/* ---- fewer bits ---- */

static const struct bits {
    const char *text;
    int moments, weights;
} bits[] = {
    { "optimizer_state = '8bit'", 1, 0 },
    { "weights = 'bf16'", 0, 1 },
    { "optimizer_state = '8bit', weights = 'bf16'", 1, 1 },
};
enum { BITS = sizeof bits / sizeof bits[0] };

static pl_config with_bits(const pl_config *config, const struct bits *b)
{
    pl_config changed = frugal(config);
    if (b->moments)
        changed.optimizer_state = PL_OPTIMIZER_STATE_8BIT;
    if (b->weights)
        changed.weights = PL_WEIGHTS_BF16;
    return changed;
}

static pl_status offer_bits(pricing *p)
{
    pl_status status = PL_OK;
    for (int i = 0; i < BITS && !status; i++) {
        pl_config changed = with_bits(p->config, &bits[i]);
        if ((bits[i].moments &&
             p->config->optimizer_state == PL_OPTIMIZER_STATE_8BIT) ||
            (bits[i].weights && p->config->weights == PL_WEIGHTS_BF16))
            continue; /* as it is already */
        status = offer_it(p, &changed, bits[i].text);
    }
    return status;
}

/* ---- a smaller model ---- */

static const struct size {
    const char *name;
    size_t key; /* offset of an int64_t in pl_config */
} sizes[] = {
    { "block_size", offsetof(pl_config, block_size) },
    { "n_layer", offsetof(pl_config, n_layer) },
    { "n_embd", offsetof(pl_config, n_embd) },
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static int64_t *key_of(pl_config *config, const struct size *size)
{
    return (int64_t *)(void *)((char *)config + size->key);
}

/* In what steps a size is made smaller: whole heads of an even width, and a
 * context that is easy to remember. */
static int64_t unit_of(const pricing *p, const pl_config *config,
                       const struct size *size)
{
    const int group = pl_products_group(p->machine->device.products);
    const int64_t value = *key_of((pl_config *)(uintptr_t)config, size);
    int64_t unit = 1;
    if (size->key == offsetof(pl_config, n_embd))
        unit = 2 * config->n_head;
    else if (size->key == offsetof(pl_config, block_size))
        unit = group == 1 || value > 64 ? 64 : group;
    return unit < value ? unit : 1;
}

/* Sets the key to the largest value below its own with which the config fits.
 * Fewer never need more. *found is 0 if none fits. */
static pl_status shrink(const pricing *p, pl_config *changed,
                        const struct size *size, int *found)
{
    int64_t *key = key_of(changed, size), unit = unit_of(p, changed, size);
    int64_t low = 0, high = (*key - 1) / unit; /* low fits, or is 0 */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        int fits;
        *key = middle * unit;
        pl_status status = try_smallest(p, changed, &fits);
        if (status)
            return status;
        if (fits)
            low = middle;
        else
            high = middle - 1;
    }
    *found = low > 0;
    *key = low * unit;
    return PL_OK;
}

/* Each size alone; and, where fewer bits alone don't do, the width with
 * them. */
static pl_status offer_models(pricing *p)
{
    static const struct bits none = { "", 0, 0 };
    const int most = p->count > 0 ? SIZES : SIZES + 1;
    pl_status status = PL_OK;
    for (int i = 0; i < most && !status; i++) {
        const struct bits *b = i < SIZES ? &none : &bits[BITS - 1];
        const struct size *size = &sizes[i < SIZES ? i : SIZES - 1];
        pl_config changed = with_bits(p->config, b);
        const int64_t context = changed.eval_block_size;
        char text[128];
        int found;
        changed.eval_block_size =
            PL_NONE; /* it may be longer than block_size */
        if (!is_computable(&changed))
            continue;
        status = shrink(p, &changed, size, &found);
        if (status || !found)
            continue;
        int64_t value = *key_of(&changed, size);
        snprintf(text, sizeof text, "%s%s%s%s = %lld", b->text,
                 *b->text ? ", " : "",
                 context > changed.block_size ? "eval_block_size = None, " : "",
                 size->name, (long long)value);
        status = offer_it(p, &changed, text);
    }
    return status;
}

/* More recomputation makes longer lists: those of the most frugal layout are
 * counted with, whatever is changed. */
static pl_status count_tables(pricing *p)
{
    const pl_config most = frugal(p->config);
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    pl_gpt_layout base;
    pl_status status = pl_run_plan_base(&base, &p->plan->gpt.shape, &most,
                                        p->machine, &heap, p->err);
    if (!status)
        status = pl_run_plan_tables(&p->plan->gpt.shape, &base, &heap,
                                    &p->tables_bytes, p->err);
    p->tables_bytes += pl_run_plan_tokenizer_tables(p->machine);
    pl_heap_close(&heap);
    return status;
}

pl_status pl_remedies_make(pl_remedy changes[PL_MAX_REMEDIES], size_t *count,
                           const pl_run_plan *plan, const pl_config *config,
                           const pl_machine *machine, size_t vocab_size,
                           pl_error *err)
{
    pricing p = { .plan = plan,
                  .config = config,
                  .machine = machine,
                  .vocab_size = vocab_size,
                  .changes = changes,
                  .err = err };
    pl_status status = count_tables(&p);
    if (!status)
        status = offer_disk(&p);
    if (!status)
        status = offer_layouts(&p);
    if (!status && p.count == 0)
        status = offer_batch(&p);
    if (!status && p.count == 0)
        status = offer_groups(&p);
    if (!status && p.count == 0) {
        status = offer_bits(&p);
        if (!status)
            status = offer_models(&p);
    }
    *count = p.count;
    return status;
}
