/* hash.c: see hash.h. The only user of libxxhash. */
#include "base/hash.h"

/* The size of the state is a part of the ABI that is stable since 0.8.0. */
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(pl_hash), "xxhash's state");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(pl_hash), "xxhash's state");

void pl_hash_begin(pl_hash *hash)
{
    XXH3_128bits_reset((XXH3_state_t *)(void *)hash);
}

void pl_hash_add(pl_hash *hash, const void *data, size_t bytes)
{
    XXH3_128bits_update((XXH3_state_t *)(void *)hash, data, bytes);
}

pl_hash_text pl_hash_end(const pl_hash *hash)
{
    static const char digits[] = "0123456789abcdef";
    XXH128_canonical_t canonical;
    pl_hash_text out = { "" };
    XXH128_hash_t value = XXH3_128bits_digest(
        (const XXH3_state_t *)(const void *)hash);
    XXH128_canonicalFromHash(&canonical, value);
    for (size_t i = 0; i < sizeof canonical.digest; i++) {
        out.text[2 * i] = digits[canonical.digest[i] >> 4];
        out.text[2 * i + 1] = digits[canonical.digest[i] & 15];
    }
    return out;
}

/* All but the address of a table, which each process has its own of. */
void pl_hash_adopt(pl_hash *hash)
{
    pl_hash own;
    pl_hash_begin(&own);
    ((XXH3_state_t *)(void *)hash)->extSecret =
        ((const XXH3_state_t *)(const void *)&own)->extSecret;
}

unsigned pl_hash_version(void)
{
    return XXH_versionNumber();
}

pl_hash_text pl_hash_of(const void *data, size_t bytes)
{
    pl_hash hash;
    pl_hash_begin(&hash);
    pl_hash_add(&hash, data, bytes);
    return pl_hash_end(&hash);
}

uint64_t pl_hash_chain(uint64_t before, const void *data, size_t bytes)
{
    return XXH3_64bits_withSeed(data, bytes, before);
}
