/* products.c: see products.h. */
#include "device/products.h"

#include <stdio.h>
#include <string.h>

static int has_halves(const pl_config *config)
{
    return config->dtype != PL_DTYPE_FLOAT32;
}

/* Products of weights have two kinds of operands, which no card multiplies. */
static int is_mixed(const pl_config *config)
{
    return config->dtype == PL_DTYPE_FLOAT16 &&
           config->weights == PL_WEIGHTS_BF16;
}

/* AMX multiplies bfloat16 alone. */
static int has_operands(const pl_config *config, pl_products products)
{
    return has_halves(config) &&
           (products != PL_PRODUCTS_AMX || config->dtype == PL_DTYPE_BFLOAT16);
}

/* The gradients of weights are chains over rows, which are cut between
 * sequences. */
static int has_whole_groups(const pl_config *config, pl_products products)
{
    return config->block_size % pl_products_group(products) == 0;
}

/* What 'auto' asks for. */
static pl_products automatic(const pl_device_info *info,
                             const pl_config *config)
{
    if (!has_halves(config))
        return PL_PRODUCTS_EXACT;
    if (config->kept_arithmetic != PL_ARITHMETIC_UNSAID)
        return pl_arithmetic_products(config->kept_arithmetic);
    return is_mixed(config) || !has_operands(config, info->tensor) ||
                   !has_whole_groups(config, info->tensor)
               ? PL_PRODUCTS_EXACT
               : info->tensor;
}

static pl_products wanted(const pl_device_info *info, const pl_config *config)
{
    switch (config->products) {
    case PL_PRODUCTS_WISH_EXACT:
        return PL_PRODUCTS_EXACT;
    case PL_PRODUCTS_WISH_TENSOR24:
        return PL_PRODUCTS_TENSOR24;
    case PL_PRODUCTS_WISH_TENSOR25:
        return PL_PRODUCTS_TENSOR25;
    case PL_PRODUCTS_WISH_AMX:
        return PL_PRODUCTS_AMX;
    case PL_PRODUCTS_WISH_TENSOR:
        return info->tensor == PL_PRODUCTS_EXACT ? PL_PRODUCTS_TENSOR24
                                                 : info->tensor;
    case PL_PRODUCTS_WISH_AUTO:
        break;
    }
    return automatic(info, config);
}

static pl_status check_config(const pl_config *config, pl_products products,
                              pl_error *err)
{
    const char *name = pl_products_name(products);
    const int group = pl_products_group(products);
    if (!has_halves(config))
        return pl_fail(err, PL_E_CONFIG,
                       "products = '%s' needs operands of 16 bits, and dtype "
                       "is 'float32'. Set dtype = 'bfloat16' or 'float16', or "
                       "products = 'exact'",
                       name);
    if (!has_operands(config, products))
        return pl_fail(err, PL_E_CONFIG,
                       "products = '%s' needs operands of bfloat16, and dtype "
                       "is 'float16'. Set dtype = 'bfloat16', or products = "
                       "'exact'",
                       name);
    if (is_mixed(config))
        return pl_fail(err, PL_E_CONFIG,
                       "products = '%s' needs two operands of one kind, and "
                       "with dtype = 'float16' and weights = 'bf16' there are "
                       "two. Set dtype = 'bfloat16', weights = 'float32' or "
                       "products = 'exact'",
                       name);
    if (!has_whole_groups(config, products))
        return pl_fail(err, PL_E_CONFIG,
                       "products = '%s' adds up groups of %d rows, and "
                       "block_size is %lld. Set block_size to a multiple of "
                       "%d, or products = 'exact'",
                       name, group, (long long)config->block_size, group);
    return PL_OK;
}

static pl_status check_device(const pl_device_info *info, pl_products products,
                              pl_error *err)
{
    const char *name = pl_products_name(products);
    if (products != info->tensor && !info->has_all_products)
        return pl_fail(err, PL_E_CONFIG,
                       "products = '%s' can't be computed by %s. The processor "
                       "can, slowly: set device = 'cpu', or products = 'exact'",
                       name, info->text);
    if (pl_arithmetic_with(info->arithmetic, products) == PL_ARITHMETIC_UNSAID)
        return pl_fail(err, PL_E_CONFIG,
                       "products = '%s' needs fused multiply-adds around it, "
                       "as cards have them, and the %s kernels have none. Use "
                       "a processor with AVX2 or a 64-bit ARM, without "
                       "PLIMSOLL_ISA=base, or set products = 'exact'",
                       name, info->kernels);
    return PL_OK;
}

/* Appends to a text of `size` bytes what fits. */
static void append(char *text, size_t size, const char *before,
                   const char *name)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", before, name);
}

pl_status pl_products_settle(pl_device_info *info, const pl_config *config,
                             pl_error *err)
{
    const pl_products products = wanted(info, config);
    const char *name = pl_products_name(products);
    if (products == PL_PRODUCTS_EXACT)
        return PL_OK;
    pl_status status = check_config(config, products, err);
    if (!status)
        status = check_device(info, products, err);
    if (status)
        return status;
    info->products = products;
    info->arithmetic = pl_arithmetic_with(info->arithmetic, products);
    append(info->key, sizeof info->key, "-", name);
    append(info->text, sizeof info->text, ", products ", name);
    return PL_OK;
}

void pl_products_say(const pl_device_info *info, const pl_config *config,
                     const pl_log *log)
{
    if (config->products == PL_PRODUCTS_WISH_TENSOR &&
        info->tensor == PL_PRODUCTS_EXACT &&
        info->products != PL_PRODUCTS_EXACT)
        pl_log_say(log, PL_LOG_NOTE,
                   "products = 'tensor': there are no tensor cores here, so it "
                   "is '%s', which Ampere and Ada have",
                   pl_products_name(info->products));
    if (config->products == PL_PRODUCTS_WISH_AUTO && has_halves(config) &&
        info->tensor != PL_PRODUCTS_EXACT &&
        !has_whole_groups(config, info->tensor) &&
        info->products == PL_PRODUCTS_EXACT)
        pl_log_say(log, PL_LOG_NOTE,
                   "products are exact, and slower than %s could: its "
                   "instructions for matrices need a block_size that is a "
                   "multiple of %d",
                   info->text, pl_products_group(info->tensor));
}
