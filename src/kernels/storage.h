/* storage.h: where an element lies and what it is, by the storage that a value
 * is kept in. halves.h has the formats. */
#ifndef PL_KERNELS_STORAGE_H
#define PL_KERNELS_STORAGE_H

#include "kernels/halves.h"

#include <stddef.h>

static inline size_t pl_storage_bytes(pl_storage storage)
{
    return storage == PL_STORE_F32 ? 4 : 2;
}

/* Where element i of x lies. */
static inline void *pl_storage_at(const void *x, size_t i, pl_storage storage)
{
    return (unsigned char *)x + i * pl_storage_bytes(storage);
}

/* Element i of x. */
static inline float pl_storage_get(const void *x, size_t i, pl_storage storage)
{
    const void *at = pl_storage_at(x, i, storage);
    uint16_t half;
    float whole;
    if (storage == PL_STORE_F32) {
        memcpy(&whole, at, sizeof whole);
        return whole;
    }
    memcpy(&half, at, sizeof half);
    return storage == PL_STORE_BF16 ? pl_bf16_value(half) : pl_f16_value(half);
}

static inline void pl_storage_put(void *x, size_t i, float value,
                                  pl_storage storage)
{
    void *at = pl_storage_at(x, i, storage);
    if (storage == PL_STORE_F32) {
        memcpy(at, &value, sizeof value);
        return;
    }
    const uint16_t half = storage == PL_STORE_BF16 ? pl_bf16_make(value)
                                                   : pl_f16_make(value);
    memcpy(at, &half, sizeof half);
}

/* What is left of `value` after it was stored. */
static inline float pl_storage_round(float value, pl_storage storage)
{
    float rounded = value;
    if (storage != PL_STORE_F32) {
        uint16_t half;
        pl_storage_put(&half, 0, value, storage);
        rounded = pl_storage_get(&half, 0, storage);
    }
    return rounded;
}

#endif
