/* test_amx.c: the arithmetic of AMX against what TDPBF16PS of a processor left
 * (Intel's Xeon, family 6, model 207, Emerald Rapids), with every kernel set of
 * the machine: some sums, and a hash of 16384 of each kind. */
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 16, DEEP = 32, ROUNDS = 64 };

/* Numbers of about 1; of 2^-56 to 2^23; the smallest there are; zeros nearly
 * all. */
typedef enum kind { ALIKE, WIDE, TINY, ZEROS, KINDS } kind;

static const struct {
    uint32_t hash, some[4]; /* some: row 3 of the first tile */
} found[KINDS] = {
    { 0xf17593acu, { 0xc11f00e6u, 0x413b288bu, 0xc1592f82u, 0xc0e6266eu } },
    { 0x5c4372fau, { 0x4d45755au, 0xd0ff6a60u, 0x4ef1bb63u, 0xd0b149f2u } },
    { 0xbbcd8664u, { 0x0b0ad848u, 0x8bc015fau, 0x0b10ffc0u, 0x0ab5a198u } },
    { 0x94b6dbdeu, { 0x402aea00u, 0xbe079000u, 0xbf471654u, 0xbf0e7a90u } },
};

static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Biased; 0 is that of zeros. */
static uint32_t draw_exponent(kind of, uint32_t *seed)
{
    const uint32_t any = draw(seed);
    return of == ALIKE  ? 125u + any % 4u
           : of == WIDE ? 71u + any % 80u
           : of == TINY ? 71u + any % 4u
           : any % 7u   ? 0u
                        : 120u + any % 9u;
}

static uint16_t draw_half(kind of, uint32_t *seed)
{
    const uint32_t exponent = draw_exponent(of, seed), any = draw(seed);
    return (uint16_t)((any & 0x8000u) | exponent << 7 |
                      (exponent ? any & 0x7fu : 0u));
}

static float draw_start(kind of, uint32_t *seed)
{
    const uint32_t exponent = of == TINY ? 0u : draw_exponent(of, seed),
                   any = draw(seed);
    return pl_bits_float((any & 1u) << 31 | exponent << 23 |
                         (exponent ? any >> 1 & 0x7fffffu : 0u));
}

/* One product of a tile: b's pairs of k are what the instruction takes. */
static void run_round(const pl_kernels *set, kind of, int round,
                      float c[SIDE][SIDE])
{
    uint32_t seed = (uint32_t)of * 1000u + (uint32_t)round;
    uint16_t a[SIDE][DEEP], b[DEEP][SIDE];
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < DEEP; k++) {
            a[i][k] = draw_half(of, &seed);
            b[2 * i + k % 2][k / 2] = draw_half(of, &seed);
        }
    for (int i = 0; i < SIDE; i++)
        for (int n = 0; n < SIDE; n++)
            c[i][n] = draw_start(of, &seed);
    const pl_gemm g = { .M = SIDE,
                        .N = SIDE,
                        .K = DEEP,
                        .a = a,
                        .a_row = DEEP,
                        .a_col = 1,
                        .b = b,
                        .b_row = SIDE,
                        .b_col = 1,
                        .c = c,
                        .c_row = SIDE,
                        .start = PL_GEMM_KEEP,
                        .a_storage = PL_STORE_BF16,
                        .b_storage = PL_STORE_BF16,
                        .products = PL_PRODUCTS_AMX };
    set->gemm(&g, 0, 1);
}

static void expect_found(const pl_kernels *set)
{
    for (int of = 0; of < KINDS; of++) {
        uint32_t hash = 2166136261u;
        for (int round = 0; round < ROUNDS; round++) {
            float c[SIDE][SIDE];
            run_round(set, (kind)of, round, c);
            for (int i = 0; i < 4 && round == 0; i++)
                if (pl_float_bits(c[3][i]) != found[of].some[i])
                    fail_msg("%s, kind %d: sum %d is 0x%08x, not 0x%08x",
                             set->name, of, i, pl_float_bits(c[3][i]),
                             found[of].some[i]);
            for (int i = 0; i < SIDE * SIDE; i++)
                hash = (hash ^ pl_float_bits(c[i / SIDE][i % SIDE])) *
                       16777619u;
        }
        if (hash != found[of].hash)
            fail_msg("%s, kind %d: the hash is 0x%08x, not 0x%08x", set->name,
                     of, hash, found[of].hash);
    }
}

static void the_reference_has_the_bits_of_a_processor(void **state)
{
    const pl_kernels ref = pl_kernels_ref();
    (void)state;
    expect_found(&ref);
}

static void every_set_has_the_bits_of_a_processor(void **state)
{
    (void)state;
    for (int isa = PL_ISA_BASE; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        expect_found(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_has_the_bits_of_a_processor),
        cmocka_unit_test(every_set_has_the_bits_of_a_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
