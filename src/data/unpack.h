/* unpack.h: decompression, the only user of zlib, zstd, liblzma, lz4 and
 * snappy.
 *
 * The libraries' memory comes from a room: they allocate its blocks, so that a
 * file that asks for a window of a gigabyte is refused. Snappy needs no memory;
 * what lz4 allocates by itself is counted before it does. Reads no file. */
#ifndef PL_DATA_UNPACK_H
#define PL_DATA_UNPACK_H

#include "data/room.h"

#include <lz4frame.h>
#include <lzma.h>
#include <stdint.h>
#include <zlib.h>

typedef enum pl_codec {
    PL_CODEC_NONE,
    PL_CODEC_GZIP,
    PL_CODEC_ZSTD,
    PL_CODEC_SNAPPY, /* blocks only */
    PL_CODEC_XZ,     /* streams only, as is lz4 */
    PL_CODEC_LZ4,
} pl_codec;

enum { PL_UNPACK_BLOCKS = 32 }; /* zlib and zstd take six at most, xz twenty */

typedef struct pl_unpack {
    pl_room *room;
    pl_block blocks[PL_UNPACK_BLOCKS];
    z_stream gzip;
    int has_gzip;
    struct ZSTD_DCtx_s *zstd;
    lzma_allocator xz_memory;
    lzma_stream xz;
    int has_xz;
    LZ4F_dctx *lz4;
    size_t lz4_bytes; /* counted in the room */
} pl_unpack;

/* Costs nothing until used. It must not be moved afterwards: the libraries
 * keep pointers to it. `room` must outlive it. */
void pl_unpack_open(pl_unpack *unpack, pl_room *room);
void pl_unpack_close(pl_unpack *unpack);

/* "gzip", "zstd", "snappy", "xz", "lz4" or "none". */
const char *pl_codec_name(pl_codec codec);
/* The codec that these first bytes of a file are marked with, else NONE. */
pl_codec pl_codec_of(const unsigned char *begin, size_t bytes);

/* ---- a whole block ---- */

/* Unpacks `in_bytes` bytes to exactly `out_bytes`: more or fewer is
 * PL_E_FORMAT. */
PL_MUST_CHECK pl_status pl_unpack_block(pl_unpack *unpack, pl_codec codec,
                                        const unsigned char *in,
                                        size_t in_bytes, unsigned char *out,
                                        size_t out_bytes, pl_error *err);

/* ---- a stream: all but snappy ---- */

typedef struct pl_unpack_step {
    const unsigned char *in; /* moved on by what was used */
    size_t in_bytes;
    unsigned char *out; /* moved on by what was made */
    size_t out_bytes;
    int frame_ended; /* a member or frame is complete: the next may begin */
} pl_unpack_step;

/* Before the first step of a stream, and for gzip and xz of each member. */
PL_MUST_CHECK pl_status pl_unpack_begin(pl_unpack *unpack, pl_codec codec,
                                        pl_error *err);

/* Goes on as far as the input or the room in `out` lasts, or to the end of a
 * frame. */
PL_MUST_CHECK pl_status pl_unpack_some(pl_unpack *unpack, pl_codec codec,
                                       pl_unpack_step *step, pl_error *err);

/* ---- unpack_xz.c and unpack_lz4.c, for unpack.c alone ---- */

/* The libraries' memory: blocks of the room. */
void *pl_unpack_take(void *context, size_t bytes);
void pl_unpack_give_back(void *context, void *memory);
pl_status pl_unpack_no_memory(const pl_unpack *unpack, const char *name,
                              pl_error *err);

PL_MUST_CHECK pl_status pl_unpack_xz_begin(pl_unpack *unpack, pl_error *err);
PL_MUST_CHECK pl_status pl_unpack_xz_some(pl_unpack *unpack,
                                          pl_unpack_step *step, pl_error *err);
void pl_unpack_xz_close(pl_unpack *unpack);
PL_MUST_CHECK pl_status pl_unpack_lz4_begin(pl_unpack *unpack, pl_error *err);
PL_MUST_CHECK pl_status pl_unpack_lz4_some(pl_unpack *unpack,
                                           pl_unpack_step *step, pl_error *err);
void pl_unpack_lz4_close(pl_unpack *unpack);

#endif
