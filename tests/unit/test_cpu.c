#include "base/cpu.h"
#include "base/cpu_amx.h"
#include "base/cpu_bf16.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__)
/* What the compilers' own library found out about the processor, and what
 * __builtin_cpu_supports looks at: the first word has AVX2. */
extern struct {
    unsigned vendor, type, subtype, features;
} __cpu_model;
#endif

static int set_up(void **state)
{
    (void)state;
    unsetenv("PLIMSOLL_ISA");
    return 0;
}

static void the_environment_can_lower_the_instruction_set(void **state)
{
    (void)state;
    pl_isa best = pl_cpu_isa();
    for (int isa = 0; isa <= (int)best; isa++) {
        setenv("PLIMSOLL_ISA", pl_cpu_isa_name((pl_isa)isa), 1);
        assert_int_equal(pl_cpu_isa(), isa);
    }
}

/* What may be there, and slow: so it is not the best, but can be named. */
static pl_isa most_that_can_be_named(pl_isa best)
{
#if PL_HAVE_AVX512BF16
    if (best == PL_ISA_AVX512 && pl_cpu_has_bf16())
        best = PL_ISA_AVX512BF16;
#endif
#if PL_HAVE_AMX
    if (best >= PL_ISA_AVX512 && pl_cpu_has_amx())
        best = PL_ISA_AMX;
#endif
    return best;
}

static void the_environment_cannot_raise_it(void **state)
{
    (void)state;
    pl_isa best = pl_cpu_isa(), most = most_that_can_be_named(best);
    setenv("PLIMSOLL_ISA", pl_cpu_isa_name(most), 1);
    assert_int_equal(pl_cpu_isa(), most);
    for (int isa = (int)most + 1; isa < PL_ISA_COUNT; isa++) {
        setenv("PLIMSOLL_ISA", pl_cpu_isa_name((pl_isa)isa), 1);
        assert_int_equal(pl_cpu_isa(), best);
    }
}

static void it_cannot_be_raised_on_an_old_processor_either(void **state)
{
    (void)state;
#if defined(__x86_64__)
    pl_cpu_isa(); /* whoever asks first fills it in */
    unsigned features = __cpu_model.features;
    __cpu_model.features = 0;
    pl_isa best = pl_cpu_isa();
    setenv("PLIMSOLL_ISA", "avx2", 1);
    pl_isa avx2 = pl_cpu_isa();
    setenv("PLIMSOLL_ISA", "avx512", 1);
    pl_isa avx512 = pl_cpu_isa();
    setenv("PLIMSOLL_ISA", "avx512bf16", 1);
    pl_isa avx512bf16 = pl_cpu_isa();
    setenv("PLIMSOLL_ISA", "amx", 1);
    pl_isa amx = pl_cpu_isa();
    __cpu_model.features = features;
    assert_int_equal(best, PL_ISA_BASE);
    assert_int_equal(avx2, PL_ISA_BASE);
    assert_int_equal(avx512, PL_ISA_BASE);
    assert_int_equal(avx512bf16, PL_ISA_BASE);
    assert_int_equal(amx, PL_ISA_BASE);
#else
    skip();
#endif
}

static void other_words_in_the_environment_change_nothing(void **state)
{
    (void)state;
    static const char *const words[] = { "",      "AVX2",    "avx",
                                         "base ", "avx5122", "0" };
    pl_isa best = pl_cpu_isa();
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        setenv("PLIMSOLL_ISA", words[i], 1);
        assert_int_equal(pl_cpu_isa(), best);
    }
}

static void instruction_sets_have_names(void **state)
{
    (void)state;
    assert_string_equal(pl_cpu_isa_name(PL_ISA_BASE), "base");
#if PL_HAVE_ARM64
    assert_string_equal(pl_cpu_isa_name(PL_ISA_NEON), "neon");
#else
    assert_string_equal(pl_cpu_isa_name(PL_ISA_AVX2), "avx2");
    assert_string_equal(pl_cpu_isa_name(PL_ISA_AVX512), "avx512");
#if PL_HAVE_AVX512BF16
    assert_string_equal(pl_cpu_isa_name(PL_ISA_AVX512BF16), "avx512bf16");
#endif
#if PL_HAVE_AMX
    assert_string_equal(pl_cpu_isa_name(PL_ISA_AMX), "amx");
#endif
#endif
}

#if defined(__x86_64__)
/* Whether the kernel lists a flag of the processor. */
static int kernel_lists(const char *flag)
{
    static char line[16384];
    FILE *file = fopen("/proc/cpuinfo", "r");
    int found = 0;
    if (!file)
        return 0;
    while (!found && fgets(line, sizeof line, file)) {
        if (strncmp(line, "flags", 5) != 0)
            continue;
        char *rest = NULL, *word = strtok_r(line, " \t\n", &rest);
        for (; word && !found; word = strtok_r(NULL, " \t\n", &rest))
            found = strcmp(word, flag) == 0;
    }
    fclose(file);
    return found;
}
#endif

/* Everything that the compiler may use in kernels built for it. */
static void the_machine_has_all_that_its_instruction_set_uses(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static const char *const avx2[] = { "avx2", "fma", "f16c", "bmi2" };
    static const char *const avx512[] = { "avx512f", "avx512bw", "avx512dq",
                                          "avx512vl" };
    int has_avx2 = 1, has_avx512 = 1;
    for (int i = 0; i < 4; i++) {
        has_avx2 &= kernel_lists(avx2[i]);
        has_avx512 &= kernel_lists(avx512[i]);
    }
    has_avx512 &= has_avx2;
    pl_isa most = has_avx512 ? PL_ISA_AVX512
                  : has_avx2 ? PL_ISA_AVX2
                             : PL_ISA_BASE;
    pl_isa found = pl_cpu_isa();
    /* named: whether they are faster is another matter */
#if PL_HAVE_AVX512BF16
    setenv("PLIMSOLL_ISA", "avx512bf16", 1);
    found = pl_cpu_isa();
    if (has_avx512 && kernel_lists("avx512_bf16"))
        most = PL_ISA_AVX512BF16;
#endif
#if PL_HAVE_AMX
    if (has_avx512 && kernel_lists("amx_bf16") && kernel_lists("amx_tile")) {
        assert_int_equal(found, most);
        setenv("PLIMSOLL_ISA", "amx", 1);
        found = pl_cpu_isa();
        most = PL_ISA_AMX;
    }
#endif
    assert_int_equal(found, most);
#elif PL_HAVE_ARM64
    assert_int_equal(pl_cpu_isa(), PL_ISA_NEON);
#else
    assert_int_equal(pl_cpu_isa(), PL_ISA_BASE);
#endif
}

/* Every test that compares sets says so too, with more numbers. */
static void pairs_of_bfloat16_are_added_high_half_first(void **state)
{
    (void)state;
    if (!pl_cpu_has_bf16())
        skip();
    assert_true(pl_cpu_bf16_rounds());
    const int fast = pl_cpu_bf16_is_fast();
    for (int i = 0; i < 100; i++)
        assert_int_equal(pl_cpu_bf16_is_fast(), fast);
}

/* Likewise of whole tiles. */
static void tiles_are_added_as_the_manual_says(void **state)
{
    (void)state;
    if (!pl_cpu_has_amx())
        skip();
    assert_true(pl_cpu_amx_rounds());
}

static void only_processors_that_we_may_use_are_counted(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(pl_cpu_count(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (size_t cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int count = pl_cpu_count();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(count, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_environment_can_lower_the_instruction_set),
        TEST(the_environment_cannot_raise_it),
        TEST(it_cannot_be_raised_on_an_old_processor_either),
        TEST(other_words_in_the_environment_change_nothing),
        TEST(instruction_sets_have_names),
        TEST(the_machine_has_all_that_its_instruction_set_uses),
        TEST(pairs_of_bfloat16_are_added_high_half_first),
        TEST(tiles_are_added_as_the_manual_says),
        TEST(only_processors_that_we_may_use_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
