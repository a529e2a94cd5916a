/* bpe_round_trip.h: what must hold for every vocabulary that was read. */
#ifndef PL_TESTS_FUZZ_BPE_ROUND_TRIP_H
#define PL_TESTS_FUZZ_BPE_ROUND_TRIP_H

#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

/* Decoding what was encoded gives the text back. */
static inline void check_round_trip(const pl_bpe *bpe, const char *text,
                                    size_t bytes)
{
    int32_t ids[512];
    size_t at = 0, length;
    bytes = bytes < 512 ? bytes : 512;
    size_t count = pl_bpe_encode_plain(bpe, text, bytes, PL_BPE_SPECIALS_FOUND,
                                       ids);
    for (size_t i = 0; i < count; i++) {
        const char *token = pl_bpe_token(bpe, ids[i], &length);
        if (!token || length > bytes - at ||
            memcmp(token, text + at, length) != 0)
            abort();
        at += length;
    }
    if (at != bytes)
        abort();
}

#endif
