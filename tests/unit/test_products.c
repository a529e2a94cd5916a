/* Tests of products: which arithmetic a config's 16-bit products get on a
 * device, and what is refused. */
#include "device/cpu.h"
#include "device/products.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const pl_products tensor24 = PL_PRODUCTS_TENSOR24,
                         tensor25 = PL_PRODUCTS_TENSOR25, amx = PL_PRODUCTS_AMX,
                         exact = PL_PRODUCTS_EXACT;

/* A processor, as any but base is. */
static pl_device_info processor(void)
{
    pl_device_info info = pl_cpu_info(PL_ISA_BASE, 2);
    info.arithmetic = PL_ARITHMETIC_FUSED;
    return info;
}

static pl_device_info card(pl_products tensor)
{
    pl_device_info info = processor();
    info.has_all_products = 0;
    info.tensor = tensor;
    snprintf(info.text, sizeof info.text, "some card");
    return info;
}

/* A processor that has AMX. */
static pl_device_info xeon(void)
{
    pl_device_info info = processor();
    info.tensor = amx;
    return info;
}

static pl_config config_of(pl_dtype_choice dtype, pl_products_choice products)
{
    pl_config config = pl_config_make_default();
    config.dtype = dtype;
    config.products = products;
    config.block_size = 64;
    return config;
}

static pl_products settled(pl_device_info info, const pl_config *config)
{
    pl_error err = { 0 };
    if (pl_products_settle(&info, config, &err))
        fail_msg("%s", err.text);
    return info.products;
}

static void expect_refused(pl_device_info info, const pl_config *config,
                           const char *why)
{
    pl_error err = { 0 };
    assert_int_equal(pl_products_settle(&info, config, &err), PL_E_CONFIG);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" doesn't say \"%s\"", err.text, why);
}

static void auto_is_what_the_card_has(void **state)
{
    const pl_config bf16 = config_of(PL_DTYPE_BFLOAT16, PL_PRODUCTS_WISH_AUTO),
                    f32 = config_of(PL_DTYPE_FLOAT32, PL_PRODUCTS_WISH_AUTO);
    pl_config mixed = config_of(PL_DTYPE_FLOAT16, PL_PRODUCTS_WISH_AUTO),
              odd = bf16;
    (void)state;
    mixed.weights = PL_WEIGHTS_BF16;
    odd.block_size = 72;
    assert_int_equal(settled(card(tensor24), &bf16), tensor24);
    assert_int_equal(settled(card(tensor25), &bf16), tensor25);
    assert_int_equal(settled(card(exact), &bf16), exact);
    assert_int_equal(settled(processor(), &bf16), exact);
    assert_int_equal(settled(card(tensor25), &f32), exact);
    assert_int_equal(settled(card(tensor25), &mixed), exact);
    assert_int_equal(settled(card(tensor25), &odd), exact);
}

/* Its groups are of 32 rows, and its operands bfloat16 alone. */
static void auto_is_amx_where_a_processor_has_it(void **state)
{
    pl_config config = config_of(PL_DTYPE_BFLOAT16, PL_PRODUCTS_WISH_AUTO);
    (void)state;
    assert_int_equal(settled(xeon(), &config), amx);
    config.dtype = PL_DTYPE_FLOAT16;
    assert_int_equal(settled(xeon(), &config), exact);
    config.dtype = PL_DTYPE_FLOAT32;
    assert_int_equal(settled(xeon(), &config), exact);
    config.dtype = PL_DTYPE_BFLOAT16;
    config.block_size = 48;
    assert_int_equal(settled(xeon(), &config), exact);
    config.kept_arithmetic = PL_ARITHMETIC_TENSOR24;
    assert_int_equal(settled(xeon(), &config), tensor24);
    config.block_size = 96;
    config.kept_arithmetic = PL_ARITHMETIC_AMX;
    assert_int_equal(settled(processor(), &config), amx);
    expect_refused(card(tensor25), &config, "device = 'cpu'");
    config.products = PL_PRODUCTS_WISH_TENSOR;
    assert_int_equal(settled(xeon(), &config), amx);
    config.products = PL_PRODUCTS_WISH_AMX;
    assert_int_equal(settled(processor(), &config), amx);
    config.dtype = PL_DTYPE_FLOAT16;
    expect_refused(processor(), &config, "operands of bfloat16");
    config.dtype = PL_DTYPE_BFLOAT16;
    config.block_size = 48;
    expect_refused(processor(), &config, "block_size is 48");
}

static void auto_is_what_the_checkpoint_has(void **state)
{
    pl_config config = config_of(PL_DTYPE_BFLOAT16, PL_PRODUCTS_WISH_AUTO);
    (void)state;
    config.kept_arithmetic = PL_ARITHMETIC_TENSOR25;
    assert_int_equal(settled(processor(), &config), tensor25);
    assert_int_equal(settled(card(tensor25), &config), tensor25);
    expect_refused(card(tensor24), &config, "device = 'cpu'");
    config.kept_arithmetic = PL_ARITHMETIC_FUSED;
    assert_int_equal(settled(card(tensor24), &config), exact);
    config.kept_arithmetic = PL_ARITHMETIC_UNSAID;
    assert_int_equal(settled(card(tensor24), &config), tensor24);
}

static void words_are_taken_as_they_are(void **state)
{
    const struct {
        pl_products_choice wish;
        pl_products on_processor, on_card25;
    } cases[] = {
        { PL_PRODUCTS_WISH_EXACT, exact, exact },
        { PL_PRODUCTS_WISH_TENSOR, tensor24, tensor25 },
        { PL_PRODUCTS_WISH_TENSOR25, tensor25, tensor25 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_config config = config_of(PL_DTYPE_FLOAT16, cases[i].wish);
        config.kept_arithmetic = PL_ARITHMETIC_TENSOR24; /* is for 'auto' */
        assert_int_equal(settled(processor(), &config), cases[i].on_processor);
        assert_int_equal(settled(card(tensor25), &config), cases[i].on_card25);
    }
    const pl_config other = config_of(PL_DTYPE_FLOAT16,
                                      PL_PRODUCTS_WISH_TENSOR24);
    assert_int_equal(settled(processor(), &other), tensor24);
    expect_refused(card(tensor25), &other, "some card");
    expect_refused(card(exact), &other, "The processor can");
}

static void what_cannot_be_computed_is_refused(void **state)
{
    pl_config config = config_of(PL_DTYPE_FLOAT32, PL_PRODUCTS_WISH_TENSOR24);
    (void)state;
    expect_refused(processor(), &config, "dtype is 'float32'");
    config = config_of(PL_DTYPE_FLOAT16, PL_PRODUCTS_WISH_TENSOR);
    config.weights = PL_WEIGHTS_BF16;
    expect_refused(processor(), &config, "weights = 'bf16'");
    config.dtype = PL_DTYPE_BFLOAT16;
    assert_int_equal(settled(processor(), &config), tensor24);
    config.block_size = 72;
    expect_refused(processor(), &config, "block_size is 72");
    config.block_size = 80;
    expect_refused(pl_cpu_info(PL_ISA_BASE, 1), &config, "base kernels");
    assert_int_equal(settled(processor(), &config), tensor24);
}

/* Rates of one arithmetic say nothing about another, and people see it. */
static void a_device_is_named_by_its_products(void **state)
{
    pl_device_info info = processor();
    const pl_device_info plain = info;
    pl_config config = config_of(PL_DTYPE_FLOAT16, PL_PRODUCTS_WISH_EXACT);
    (void)state;
    assert_int_equal(pl_products_settle(&info, &config, NULL), PL_OK);
    assert_string_equal(info.key, plain.key);
    assert_string_equal(info.text, plain.text);
    assert_int_equal(info.arithmetic, PL_ARITHMETIC_FUSED);
    config.products = PL_PRODUCTS_WISH_TENSOR25;
    assert_int_equal(pl_products_settle(&info, &config, NULL), PL_OK);
    assert_string_equal(info.key, "base-2-tensor25");
    assert_string_equal(info.text,
                        "2 threads, base kernels, products tensor25");
    assert_int_equal(info.arithmetic, PL_ARITHMETIC_TENSOR25);
}

static void listen(void *context, pl_log_level level, const char *text)
{
    (void)level;
    snprintf(context, 512, "%s", text);
}

static void what_the_words_leave_open_is_said(void **state)
{
    char heard[512] = "";
    const pl_log log = { listen, heard };
    pl_device_info info = processor();
    pl_config config = config_of(PL_DTYPE_FLOAT16, PL_PRODUCTS_WISH_TENSOR24);
    (void)state;
    assert_int_equal(pl_products_settle(&info, &config, NULL), PL_OK);
    pl_products_say(&info, &config, &log);
    assert_string_equal(heard, "");
    config.products = PL_PRODUCTS_WISH_TENSOR;
    pl_products_say(&info, &config, &log);
    assert_non_null(strstr(heard, "it is 'tensor24'"));
    heard[0] = '\0';
    info = card(tensor25);
    config.products = PL_PRODUCTS_WISH_AUTO;
    pl_products_say(&info, &config, &log);
    assert_string_equal(heard, "");
    config.block_size = 72;
    pl_products_say(&info, &config, &log);
    assert_non_null(strstr(heard, "a multiple of 16"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_what_the_card_has),
        cmocka_unit_test(auto_is_amx_where_a_processor_has_it),
        cmocka_unit_test(auto_is_what_the_checkpoint_has),
        cmocka_unit_test(words_are_taken_as_they_are),
        cmocka_unit_test(what_cannot_be_computed_is_refused),
        cmocka_unit_test(a_device_is_named_by_its_products),
        cmocka_unit_test(what_the_words_leave_open_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
