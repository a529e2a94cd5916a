#include "support/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

char *pack_bytes(pack_kind kind, const void *data, size_t bytes, size_t *packed)
{
    size_t room = bytes + bytes / 8 + 1024;
    char *out = malloc(room);
    assert_non_null(out);
    if (kind == PACK_ZSTD) {
        *packed = ZSTD_compress(out, room, data, bytes, 3);
        assert_false(ZSTD_isError(*packed));
        return out;
    }
    z_stream z = { 0 };
    assert_int_equal(
        deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY),
        Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)data;
    z.avail_in = (unsigned)bytes;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed = z.total_out;
    deflateEnd(&z);
    return out;
}
