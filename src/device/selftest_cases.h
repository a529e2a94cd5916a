/* selftest_cases.h: the cases of selftest.c. A case takes its operands from an
 * arena and calls one op on them. It is run three times: to fill the arena,
 * with calls that do nothing, then on either side, where the arena's base is a
 * pointer or an address. */
#ifndef PL_DEVICE_SELFTEST_CASES_H
#define PL_DEVICE_SELFTEST_CASES_H

#include "device/steps.h"

enum {
    PL_SELFTEST_ARENA_BYTES = 8 * 1024 * 1024,
    PL_SELFTEST_ALIGN = 256,
    PL_SELFTEST_STORAGES = 3
};

typedef struct pl_selftest_side {
    unsigned char *base; /* of its arena */
    int fills;
    size_t used;
    size_t scratch_first, scratch_end; /* what need not be the same */
    uint32_t seed;
    const pl_steps_calls *calls;
    void *worker;
    pl_storage storage;
    pl_products products;
} pl_selftest_side;

typedef struct pl_selftest_row {
    const char *op, *what;
    void (*run)(pl_selftest_side *side);
    int in_storages; /* in each of them, else in float32 */
    int in_tensor;   /* once more in tensor arithmetic, in those of 16 bits */
} pl_selftest_row;

extern const pl_selftest_row pl_selftest_rows[];
extern const size_t pl_selftest_row_count;

#endif
