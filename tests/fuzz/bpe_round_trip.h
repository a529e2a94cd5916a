/* bpe_round_trip.h: what must hold for every vocabulary that was read. */
#ifndef PL_TESTS_FUZZ_BPE_ROUND_TRIP_H
#define PL_TESTS_FUZZ_BPE_ROUND_TRIP_H

#include "text/bpe.h"
#include "text/nfc.h"

#include <stdlib.h>
#include <string.h>

/* Decoding what was encoded gives the text back, normalized if that is asked
 * for. */
static inline void check_round_trip(const pl_bpe *bpe, const char *text,
                                    size_t bytes)
{
    int32_t ids[PL_BPE_NORMAL_IDS * 512];
    char normal[PL_NFC_ROOM * 512];
    size_t at = 0, length;
    bytes = bytes < 512 ? bytes : 512;
    size_t count = pl_bpe_encode_plain(bpe, text, bytes, PL_BPE_SPECIALS_FOUND,
                                       ids);
    if (pl_bpe_special_at(bpe, 0) >= 0 &&
        pl_bpe_splitting(bpe).normal != PL_NORMAL_NONE)
        return; /* what is between special tokens is normalized apart */
    if (pl_bpe_splitting(bpe).normal != PL_NORMAL_NONE) {
        bytes = pl_nfc_write(text, bytes, normal);
        text = normal;
    }
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
