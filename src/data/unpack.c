/* unpack.c: see unpack.h. */
#include "data/unpack.h"

#include "base/check.h"
#include "base/units.h"

#include <limits.h>
#include <snappy-c.h>
#include <string.h>
/* For the decoder that allocates where it is told to. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

enum {
    GZIP_ONLY = 16 + MAX_WBITS,
    GZIP_OR_ZLIB = 32 + MAX_WBITS,
    /* The largest that zstd writes. The room says what is given. */
    MAX_WINDOW_LOG = 31,
};

/* ---- the libraries' memory ---- */

void *pl_unpack_take(void *context, size_t bytes)
{
    pl_unpack *unpack = context;
    for (int i = 0; i < PL_UNPACK_BLOCKS; i++) {
        pl_block *block = &unpack->blocks[i];
        if (!block->data)
            return pl_room_take(unpack->room, block, bytes ? bytes : 1, "",
                                NULL)
                       ? NULL
                       : block->data;
    }
    return NULL;
}

void pl_unpack_give_back(void *context, void *memory)
{
    pl_unpack *unpack = context;
    for (int i = 0; memory && i < PL_UNPACK_BLOCKS; i++)
        if (unpack->blocks[i].data == memory)
            pl_room_give_back(unpack->room, &unpack->blocks[i]);
}

static void *take_items(void *context, unsigned count, unsigned size)
{
    return pl_unpack_take(context, (size_t)count * size);
}

pl_status pl_unpack_no_memory(const pl_unpack *unpack, const char *name,
                              pl_error *err)
{
    return pl_fail(err, PL_E_MEMORY,
                   "%s needs more memory to unpack this than is left of the "
                   "%s that reading may take. Give more memory",
                   name, pl_units_bytes(unpack->room->limit_bytes).text);
}

void pl_unpack_open(pl_unpack *unpack, pl_room *room)
{
    *unpack = (pl_unpack){ .room = room };
}

void pl_unpack_close(pl_unpack *unpack)
{
    if (unpack->has_gzip)
        inflateEnd(&unpack->gzip);
    ZSTD_freeDCtx(unpack->zstd);
    pl_unpack_xz_close(unpack);
    pl_unpack_lz4_close(unpack);
    for (int i = 0; i < PL_UNPACK_BLOCKS; i++)
        pl_room_give_back(unpack->room, &unpack->blocks[i]);
    unpack->has_gzip = 0;
    unpack->zstd = NULL;
}

static pl_status ready_gzip(pl_unpack *unpack, int window_bits, pl_error *err)
{
    if (unpack->has_gzip) {
        int result = inflateReset2(&unpack->gzip, window_bits);
        PL_CHECK(result == Z_OK);
        return PL_OK;
    }
    unpack->gzip = (z_stream){ .zalloc = take_items,
                               .zfree = pl_unpack_give_back,
                               .opaque = unpack };
    int result = inflateInit2(&unpack->gzip, window_bits);
    PL_CHECK(result == Z_OK || result == Z_MEM_ERROR);
    unpack->has_gzip = result == Z_OK;
    return result == Z_OK ? PL_OK : pl_unpack_no_memory(unpack, "gzip", err);
}

static pl_status ready_zstd(pl_unpack *unpack, pl_error *err)
{
    const ZSTD_customMem memory = { pl_unpack_take, pl_unpack_give_back,
                                    unpack };
    if (!unpack->zstd) {
        unpack->zstd = ZSTD_createDCtx_advanced(memory);
        if (!unpack->zstd)
            return pl_unpack_no_memory(unpack, "zstd", err);
    }
    size_t reset = ZSTD_DCtx_reset(unpack->zstd, ZSTD_reset_session_only);
    size_t set = ZSTD_DCtx_setParameter(unpack->zstd, ZSTD_d_windowLogMax,
                                        MAX_WINDOW_LOG);
    PL_CHECK(!ZSTD_isError(reset) && !ZSTD_isError(set));
    return PL_OK;
}

/* ---- names ---- */

const char *pl_codec_name(pl_codec codec)
{
    static const char *const names[] = { "none",   "gzip", "zstd",
                                         "snappy", "xz",   "lz4" };
    return names[codec];
}

pl_codec pl_codec_of(const unsigned char *begin, size_t bytes)
{
    if (bytes >= 3 && !memcmp(begin, "\x1f\x8b\x08", 3))
        return PL_CODEC_GZIP;
    if (bytes >= 4 && !memcmp(begin, "\x28\xb5\x2f\xfd", 4))
        return PL_CODEC_ZSTD;
    if (bytes >= 6 && !memcmp(begin,
                              "\xfd"
                              "7zXZ",
                              6))
        return PL_CODEC_XZ;
    if (bytes >= 4 && !memcmp(begin, "\x04\x22\x4d\x18", 4))
        return PL_CODEC_LZ4;
    /* A skippable frame, as pzstd puts first. */
    if (bytes >= 4 && (begin[0] & 0xf0) == 0x50 &&
        !memcmp(begin + 1, "\x2a\x4d\x18", 3))
        return PL_CODEC_ZSTD;
    return PL_CODEC_NONE;
}

/* ---- a whole block ---- */

static pl_status wrong_size(pl_codec codec, size_t expected, pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "its %s data doesn't unpack to the %s that the header says",
                   pl_codec_name(codec), pl_units_exact(expected).text);
}

static pl_status failed_gzip(const pl_unpack *unpack, int result, pl_error *err)
{
    if (result == Z_MEM_ERROR)
        return pl_unpack_no_memory(unpack, "gzip", err);
    return pl_fail(err, PL_E_FORMAT, "its gzip data is damaged (%s)",
                   unpack->gzip.msg ? unpack->gzip.msg : "unknown reason");
}

static pl_status failed_zstd(const pl_unpack *unpack, size_t result,
                             pl_error *err)
{
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return pl_unpack_no_memory(unpack, "zstd", err);
    return pl_fail(err, PL_E_FORMAT, "its zstd data is damaged (%s)",
                   ZSTD_getErrorName(result));
}

static pl_status gzip_block(pl_unpack *unpack, const unsigned char *in,
                            size_t in_bytes, unsigned char *out,
                            size_t out_bytes, pl_error *err)
{
    PL_CHECK(in_bytes <= UINT_MAX && out_bytes <= UINT_MAX);
    pl_status status = ready_gzip(unpack, GZIP_OR_ZLIB, err);
    if (status)
        return status;
    z_stream *z = &unpack->gzip;
    z->next_in = (unsigned char *)(uintptr_t)in;
    z->avail_in = (unsigned)in_bytes;
    z->next_out = out;
    z->avail_out = (unsigned)out_bytes;
    for (;;) {
        int result = inflate(z, Z_NO_FLUSH);
        if (result == Z_STREAM_END && z->avail_in > 0) {
            result = inflateReset2(z, GZIP_OR_ZLIB);
            PL_CHECK(result == Z_OK);
            continue;
        }
        if (result == Z_STREAM_END && z->avail_out == 0)
            return PL_OK;
        if (result == Z_STREAM_END || result == Z_BUF_ERROR)
            return wrong_size(PL_CODEC_GZIP, out_bytes, err);
        if (result != Z_OK)
            return failed_gzip(unpack, result, err);
    }
}

static pl_status zstd_block(pl_unpack *unpack, const unsigned char *in,
                            size_t in_bytes, unsigned char *out,
                            size_t out_bytes, pl_error *err)
{
    pl_status status = ready_zstd(unpack, err);
    if (status)
        return status;
    size_t made = ZSTD_decompressDCtx(unpack->zstd, out, out_bytes, in,
                                      in_bytes);
    if (ZSTD_isError(made) &&
        ZSTD_getErrorCode(made) != ZSTD_error_dstSize_tooSmall)
        return failed_zstd(unpack, made, err);
    return made == out_bytes ? PL_OK
                             : wrong_size(PL_CODEC_ZSTD, out_bytes, err);
}

static pl_status snappy_block(const unsigned char *in, size_t in_bytes,
                              unsigned char *out, size_t out_bytes,
                              pl_error *err)
{
    size_t says;
    if (snappy_uncompressed_length((const char *)in, in_bytes, &says) ||
        says != out_bytes)
        return wrong_size(PL_CODEC_SNAPPY, out_bytes, err);
    if (snappy_uncompress((const char *)in, in_bytes, (char *)out, &says))
        return pl_fail(err, PL_E_FORMAT, "its snappy data is damaged");
    return PL_OK;
}

pl_status pl_unpack_block(pl_unpack *unpack, pl_codec codec,
                          const unsigned char *in, size_t in_bytes,
                          unsigned char *out, size_t out_bytes, pl_error *err)
{
    switch (codec) {
    case PL_CODEC_GZIP:
        return gzip_block(unpack, in, in_bytes, out, out_bytes, err);
    case PL_CODEC_ZSTD:
        return zstd_block(unpack, in, in_bytes, out, out_bytes, err);
    case PL_CODEC_SNAPPY:
        return snappy_block(in, in_bytes, out, out_bytes, err);
    case PL_CODEC_NONE:
    case PL_CODEC_XZ:
    case PL_CODEC_LZ4:
        break;
    }
    PL_CHECK(codec == PL_CODEC_NONE);
    if (in_bytes != out_bytes)
        return pl_fail(err, PL_E_FORMAT, "it holds %s, the header says %s",
                       pl_units_exact(in_bytes).text,
                       pl_units_exact(out_bytes).text);
    memcpy(out, in, out_bytes);
    return PL_OK;
}

/* ---- a stream ---- */

pl_status pl_unpack_begin(pl_unpack *unpack, pl_codec codec, pl_error *err)
{
    PL_CHECK(codec != PL_CODEC_NONE && codec != PL_CODEC_SNAPPY);
    return codec == PL_CODEC_GZIP   ? ready_gzip(unpack, GZIP_ONLY, err)
           : codec == PL_CODEC_ZSTD ? ready_zstd(unpack, err)
           : codec == PL_CODEC_XZ   ? pl_unpack_xz_begin(unpack, err)
                                    : pl_unpack_lz4_begin(unpack, err);
}

static pl_status gzip_some(pl_unpack *unpack, pl_unpack_step *step,
                           pl_error *err)
{
    z_stream *z = &unpack->gzip;
    PL_CHECK(step->in_bytes <= UINT_MAX && step->out_bytes <= UINT_MAX);
    z->next_in = (unsigned char *)(uintptr_t)step->in;
    z->avail_in = (unsigned)step->in_bytes;
    z->next_out = step->out;
    z->avail_out = (unsigned)step->out_bytes;
    int result = inflate(z, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return failed_gzip(unpack, result, err);
    step->in = z->next_in;
    step->in_bytes = z->avail_in;
    step->out = z->next_out;
    step->out_bytes = z->avail_out;
    step->frame_ended = result == Z_STREAM_END;
    return PL_OK;
}

static pl_status zstd_some(pl_unpack *unpack, pl_unpack_step *step,
                           pl_error *err)
{
    ZSTD_inBuffer in = { step->in, step->in_bytes, 0 };
    ZSTD_outBuffer out = { step->out, step->out_bytes, 0 };
    size_t result = ZSTD_decompressStream(unpack->zstd, &out, &in);
    if (ZSTD_isError(result))
        return failed_zstd(unpack, result, err);
    step->in += in.pos;
    step->in_bytes -= in.pos;
    step->out += out.pos;
    step->out_bytes -= out.pos;
    step->frame_ended = result == 0;
    return PL_OK;
}

pl_status pl_unpack_some(pl_unpack *unpack, pl_codec codec,
                         pl_unpack_step *step, pl_error *err)
{
    return codec == PL_CODEC_GZIP   ? gzip_some(unpack, step, err)
           : codec == PL_CODEC_ZSTD ? zstd_some(unpack, step, err)
           : codec == PL_CODEC_XZ   ? pl_unpack_xz_some(unpack, step, err)
                                    : pl_unpack_lz4_some(unpack, step, err);
}
