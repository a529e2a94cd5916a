/* fragments.c: what the emulator's warps do, for check_fragments.py, which has
 * another emulation to compare it with. Reads words from standard input and
 * prints words, item by item:
 *   mma        a fragment of A (4 words of each item), of B (2): the 4 sums
 *   a, b       a matrix of 16 lines of 16 k, in 16 bits: the 4 words that
 *   a_turned,  tensor_take gives each item, of a tile in local memory that
 *   b_turned   begins with it */
#include "gpu/emulated.h"
#include "gpu/emulator.h"

#include <stdio.h>
#include <stdlib.h>

/* The functions of the kernels, and none of the kernels. */
#undef KERNEL
#define KERNEL(name, items, type)                                              \
    static void unused_##name(const type g);                                   \
    static void unused_##name(const type g)

#pragma GCC diagnostic ignored "-Wunused-function"

#include "gpu_text.h"

enum { MOST_WORDS = 32 * 6 };

static uint32_t given[MOST_WORDS];
static uint32_t made[32][4];
static _Alignas(16) uint8_t tile[64 * 64 * 2];

static void read_words(size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (scanf("%x", &given[i]) != 1) {
            fprintf(stderr, "fragments: %zu words expected\n", count);
            exit(2);
        }
}

static void product(const void *args)
{
    const uint32_t l = tensor_lane();
    float d[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
    (void)args;
    MMA(d, given + 4 * l, given + 128 + 2 * l, 1);
    memcpy(made[l], d, sizeof d);
}

/* args: "a", "b", "a_turned", "b_turned". Every word of the tile is put, so
 * that what is taken was written. */
static void take(const void *args)
{
    const char *what = args;
    const int turned = strlen(what) > 1, is_a = what[0] == 'a';
    const uint32_t l = tensor_lane();
    for (uint32_t i = l; i < 64 * 32; i += 32) {
        const uint32_t row = i / 32, block = i % 32 / 4, pair = i % 4;
        uint32_t word = 0;
        for (uint32_t e = 0; e < 2; e++) {
            const uint32_t at = 8 * block + 2 * pair + e,
                           line = turned ? at : row, k = turned ? row : at,
                           n = line * 16 + k;
            if (line < 16 && k < 16)
                word |= (given[n / 2] >> 16 * (n % 2) & 0xffffu) << 16 * e;
        }
        PUT((uint32_t *)(void *)(tile + tensor_block(row, block, 8) + 4 * pair),
            word);
    }
    BARRIER();
    tensor_take(made[l], tile,
                is_a ? tensor_a_at(0, turned, 8) : tensor_b_at(0, turned, 8), 0,
                0, turned, 8);
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    const int is_product = strcmp(what, "mma") == 0;
    if (!is_product && (!what[0] || !strchr("ab", what[0]))) {
        fprintf(stderr, "usage: fragments mma|a|b|a_turned|b_turned\n");
        return 2;
    }
    read_words(is_product ? 32 * 6 : 128);
    const char *wrong = emulator_run_warp(is_product ? product : take, what);
    if (wrong) {
        fprintf(stderr, "fragments: %s\n", wrong);
        return 1;
    }
    for (size_t l = 0; l < 32; l++)
        for (size_t i = 0; i < 4; i++)
            printf("%08x\n", made[l][i]);
    return 0;
}
