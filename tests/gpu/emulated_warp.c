/* emulated_warp.c: what the 32 items of a warp do together, for emulator.c:
 * products of tensor cores, by integers; matrices and copies into local memory;
 * shuffles. See kernels/gpu/tensor.clh. */
#include "gpu/emulated.h"
#include "gpu/emulator.h"

#include <stdlib.h>

enum { ITEMS = 256, WARP = 32, MOST_COPIES = 64 };

/* ---- one group ---- */

/* Eight integers: what is done to each of them is one instruction. */
typedef int32_t eight __attribute__((vector_size(32)));

/* Numbers of 16 bits: significand * 2^(exponent - fraction), all with the same
 * fraction. */
typedef struct numbers {
    eight significand[2];
    eight exponent[2];
    uint32_t infinite; /* bit k: number k is none, or infinite */
    int is_zero;       /* all of them are */
    uint16_t bits[16];
} numbers;

static int fraction_of(int bf16)
{
    return bf16 ? 7 : 10;
}

static void put_number(numbers *n, uint32_t k, uint16_t bits, int bf16)
{
    const int fraction = fraction_of(bf16), bias = bf16 ? 127 : 15;
    const int field = bits >> fraction & (bf16 ? 0xff : 0x1f);
    int32_t s = bits & ((1 << fraction) - 1);
    n->bits[k] = bits;
    n->infinite |= (uint32_t)(field == 2 * bias + 1) << k;
    if (field)
        s |= 1 << fraction;
    n->exponent[k / 8][k % 8] = s ? (field ? field : 1) - bias : -126;
    n->significand[k / 8][k % 8] = bits >> 15 ? -s : s;
}

/* Also of what isn't finite. */
static double value_of(uint16_t bits, int bf16)
{
    numbers n = { .infinite = 0 };
    const int fraction = fraction_of(bf16);
    put_number(&n, 0, bits, bf16);
    if (!n.infinite)
        return ldexp(n.significand[0][0], n.exponent[0][0] - fraction);
    return bits & ((1 << fraction) - 1) ? (double)NAN
           : bits >> 15                 ? (double)-INFINITY
                                        : (double)INFINITY;
}

/* s * 2^up, cut towards zero; below 2^27, so that all fits 32 bits. */
static eight shifted(eight s, eight up)
{
    const eight is_negative = s<0, is_up = up> 0, is_far = up < -31,
                m = (s ^ is_negative) - is_negative,
                down = (-up & ~is_up & ~is_far) | (31 & is_far),
                cut = m << (up & is_up) >> down;
    return (cut ^ is_negative) - is_negative;
}

/* sum * 2^scale as a float32, rounded towards zero. */
static float float_of(int64_t sum, int scale)
{
    uint64_t m = (uint64_t)(sum < 0 ? -sum : sum);
    if (m == 0)
        return 0.0f;
    const int top = 63 - __builtin_clzll(m);
    int last = scale + top - 23; /* of the bits that stay */
    if (last < -149)
        last = -149;
    const int cut = last - scale;
    m = cut > 0 ? m >> cut : m << -cut;
    const float x = top + scale > 127 ? INFINITY : ldexpf((float)m, last);
    return sum < 0 ? -x : x;
}

/* c and `count` products from `first` on, where one isn't finite. */
static float plain_sum(float c, const numbers *x, const numbers *y, int first,
                       int count, int bf16)
{
    double plain = (double)c;
    for (int k = first; k < first + count; k++)
        plain += value_of(x->bits[k], bf16) * value_of(y->bits[k], bf16);
    return (float)plain;
}

/* The same where all are: 8 or 16 of them. */
static float sum_of(float c, const numbers *x, const numbers *y, int first,
                    int count, int fraction, int bits)
{
    uint32_t u;
    memcpy(&u, &c, sizeof u);
    const int32_t field = (int32_t)(u >> 23 & 0xff),
                  exponent = (field ? field : 1) - 127,
                  m = (int32_t)(u & 0x7fffff) | (field ? 1 << 23 : 0);
    int32_t most = exponent;
    eight exponents[2];
    for (int i = 0; i < count / 8; i++) {
        const int at = first / 8 + i;
        exponents[i] = x->exponent[at] + y->exponent[at];
        for (int k = 0; k < 8; k++)
            most = exponents[i][k] > most ? exponents[i][k] : most;
    }
    /* in units of 2^(most - bits) */
    int64_t sum = shifted((eight){ u >> 31 ? -m : m },
                          (eight){ bits - 23 + exponent - most })[0];
    for (int i = 0; i < count / 8; i++) {
        const int at = first / 8 + i;
        const eight terms = shifted(x->significand[at] * y->significand[at],
                                    exponents[i] +
                                        (bits - 2 * fraction - most));
        for (int k = 0; k < 8; k++)
            sum += terms[k];
    }
    return float_of(sum, most - bits);
}

/* ---- together ---- */

/* What an item shows to its warp. Two of them in turns: one may be shown while
 * another is still looked at. */
typedef struct shown {
    uint32_t words[6];
    float sums[4];
    const void *p;
} shown;

static shown all[2][ITEMS];
/* How often each has shown something, which is the same in a warp, and up to
 * which of these its warp has multiplied. */
static uint64_t shown_by[ITEMS], multiplied[ITEMS / WARP];

static shown *show(const shown *mine, int line)
{
    const uint32_t id = emulated.id;
    const int turn = (int)(++shown_by[id] % 2);
    all[turn][id] = *mine;
    emulator_meet(line);
    return all[turn] + id / WARP * WARP;
}

float emulated_shuffle(float x, uint32_t mask, int line)
{
    shown mine = { 0 };
    float y;
    memcpy(mine.words, &x, sizeof x);
    const shown *warp = show(&mine, line);
    memcpy(&y, warp[(emulated.id % WARP) ^ mask].words, sizeof y);
    return y;
}

/* Row or column `at` of a warp's A or B, whose 16 k begin in word `first` of
 * its items; a word further for every 8 of them. */
static void numbers_of(numbers *n, const shown *warp, uint32_t at,
                       uint32_t first, uint32_t step, int bf16)
{
    uint32_t any = 0;
    n->infinite = 0;
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t w = warp[at * 4 + k % 8 / 2].words[first + k / 8 * step];
        put_number(n, k, (uint16_t)(w >> k % 2 * 16), bf16);
        any |= w & 0x7fff7fff;
    }
    n->is_zero = !any;
}

/* All sums of a warp, in place: lane l shows rows l/4 and l/4 + 8 of A, columns
 * 2(l%4) .. and 8 further, and the same of B, whose rows are its columns; it
 * gets the sums of its rows of A with columns 2(l%4) and the next. */
static void multiply(shown *warp, int bf16)
{
    const int bits = emulator.tensor_bits, group = bits == 25 ? 16 : 8,
              fraction = fraction_of(bf16);
    numbers a[16], b[8];
    for (uint32_t i = 0; i < 16; i++)
        numbers_of(&a[i], warp, i % 8, i / 8, 2, bf16);
    for (uint32_t i = 0; i < 8; i++)
        numbers_of(&b[i], warp, i, 4, 1, bf16);
    for (uint32_t l = 0; l < WARP; l++)
        for (uint32_t i = 0; i < 4; i++) {
            const numbers *x = &a[l / 4 + i / 2 * 8],
                          *y = &b[l % 4 * 2 + i % 2];
            const uint32_t infinite = x->infinite | y->infinite;
            float *sum = &warp[l].sums[i];
            /* most of a tile, where a model is small */
            if (!infinite && (x->is_zero || y->is_zero) && *sum == 0.0f) {
                *sum = 0.0f;
                continue;
            }
            for (int k = 0; k < 16; k += group)
                *sum = infinite >> k & ((1u << group) - 1) || !isfinite(*sum)
                           ? plain_sum(*sum, x, y, k, group, bf16)
                           : sum_of(*sum, x, y, k, group, fraction, bits);
        }
}

/* The first of a warp that goes on multiplies for all. */
void emulated_mma(float d[4], const uint32_t a[4], const uint32_t b[2],
                  int bf16, int line)
{
    const uint32_t id = emulated.id;
    shown mine = { .words = { a[0], a[1], a[2], a[3], b[0], b[1] } };
    memcpy(mine.sums, d, sizeof mine.sums);
    shown *warp = show(&mine, line);
    if (multiplied[id / WARP] != shown_by[id])
        multiply(warp, bf16);
    multiplied[id / WARP] = shown_by[id];
    memcpy(d, warp[id % WARP].sums, sizeof mine.sums);
}

/* Lane l shows where row l%8 of matrix l/8 is: 8 numbers of 16 bits. */
void emulated_ldmatrix(uint32_t r[4], const void *p, int turned, int line)
{
    const shown mine = { .p = emulated_local(p, 16, 0, line) };
    const shown *warp = show(&mine, line);
    const uint32_t lane = emulated.id % WARP;
    for (uint32_t i = 0; i < 4; i++) {
        uint16_t two[2];
        for (uint32_t e = 0; e < 2; e++) {
            const uint32_t row = turned ? lane % 4 * 2 + e : lane / 4,
                           column = turned ? lane / 4 : lane % 4 * 2 + e;
            memcpy(&two[e], (const char *)warp[8 * i + row].p + 2 * column, 2);
        }
        r[i] = two[0] | (uint32_t)two[1] << 16;
    }
}

/* ---- copies ---- */

typedef struct copy {
    void *to;
    unsigned char bytes[16];
    uint32_t batch;
} copy;

/* An item's copies that are under way, the oldest first. */
static struct {
    copy copies[MOST_COPIES];
    uint32_t count, batch;
} under_way[ITEMS];

void emulator_forget(void)
{
    for (size_t i = 0; i < ITEMS; i++)
        under_way[i].count = under_way[i].batch = 0;
    memset(shown_by, 0, sizeof shown_by);
    memset(multiplied, 0, sizeof multiplied);
}

/* Local memory is written from here on, at any time up to the wait. */
void emulated_async(void *to, const void *from, uint32_t bytes, int line)
{
    copy c = { .to = emulated_local(to, 16, 1, line),
               .batch = under_way[emulated.id].batch };
    if (bytes > 16)
        emulator_complain("line %d copies %u bytes of 16", line, bytes);
    else if (bytes)
        memcpy(c.bytes, emulated_global(from, 16, 0, line), bytes);
    if (under_way[emulated.id].count == MOST_COPIES)
        emulator_complain("line %d: more than %d copies", line, MOST_COPIES);
    else
        under_way[emulated.id].copies[under_way[emulated.id].count++] = c;
    memset(to, 0xa5, 16); /* what was there is gone */
}

void emulated_async_commit(void)
{
    under_way[emulated.id].batch++;
}

/* All but the last `left` batches. */
void emulated_async_wait(uint32_t left, int line)
{
    const uint32_t id = emulated.id, batch = under_way[id].batch;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < under_way[id].count; i++) {
        copy *c = &under_way[id].copies[i];
        if (c->batch + left < batch)
            memcpy(emulated_local(c->to, 16, 1, line), c->bytes, 16);
        else
            under_way[id].copies[kept++] = *c;
    }
    under_way[id].count = kept;
}
