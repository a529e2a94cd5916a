/* piece.h: a piece of text as two numbers, for tables of pieces. Up to 15
 * bytes are their own key: two keys are equal if and only if the pieces are.
 * An empty slot of zeros equals no piece. Pure. */
#ifndef PL_TEXT_PIECE_H
#define PL_TEXT_PIECE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PL_PIECE_SHORT_BYTES = 15 };

typedef struct pl_piece_key {
    uint64_t low, high; /* the bytes, zeros, and the length in the last */
} pl_piece_key;

/* Of 1 to PL_PIECE_SHORT_BYTES bytes. `readable`: how many may be read. */
static inline pl_piece_key pl_piece_key_of(const char *text, size_t bytes,
                                           size_t readable)
{
    static const unsigned char mask[32] = {
        255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255,
    };
    pl_piece_key key = { 0, 0 }, keep;
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

static inline size_t pl_piece_short_length(pl_piece_key key)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return key.high >> 56;
#else
    return key.high & 0xff;
#endif
}

static inline int pl_piece_same(pl_piece_key a, pl_piece_key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

static inline uint64_t pl_piece_hash(pl_piece_key key)
{
    uint64_t hash = key.low * 0x9e3779b97f4a7c15u;
    hash ^= key.high * 0xc2b2ae3d27d4eb4fu;
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    return hash ^ hash >> 32;
}

#endif
