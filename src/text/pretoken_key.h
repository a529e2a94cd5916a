/* pretoken_key.h: a pre-token as two numbers, for tables of pre-tokens. Up to
 * 15 bytes are their own key: two keys are equal if and only if the pieces are.
 * An empty slot of zeros equals no piece. Pure. */
#ifndef PL_TEXT_PRETOKEN_KEY_H
#define PL_TEXT_PRETOKEN_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PL_PRETOKEN_SHORT_BYTES = 15 };

typedef struct pl_pretoken_key {
    uint64_t low, high; /* the bytes, zeros, and the length in the last */
} pl_pretoken_key;

/* Of 1 to PL_PRETOKEN_SHORT_BYTES bytes. `readable`: how many may be read. */
static inline pl_pretoken_key pl_pretoken_key_of(const char *text, size_t bytes,
                                                 size_t readable)
{
    static const unsigned char mask[32] = {
        255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255,
    };
    pl_pretoken_key key = { 0, 0 }, keep;
    if (readable >= sizeof key) {
        memcpy(&key, text, sizeof key);
        memcpy(&keep, mask + sizeof key - bytes, sizeof keep);
        key.low &= keep.low;
        key.high &= keep.high;
    } else {
        memcpy(&key, text, bytes);
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    key.high |= (uint64_t)bytes << 56;
#else
    key.high |= bytes;
#endif
    return key;
}

static inline size_t pl_pretoken_short_length(pl_pretoken_key key)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return key.high >> 56;
#else
    return key.high & 0xff;
#endif
}

static inline int pl_pretoken_same(pl_pretoken_key a, pl_pretoken_key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

static inline uint64_t pl_pretoken_hash(pl_pretoken_key key)
{
    uint64_t hash = key.low * 0x9e3779b97f4a7c15u;
    hash ^= key.high * 0xc2b2ae3d27d4eb4fu;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

#endif
