/* unpack_lz4.c: lz4's frames (unpack.h). The library allocates by itself and
 * can't be told where: the most that a frame can make it take is counted in the
 * room before. */
#include "data/unpack.h"

/* Two blocks of 4 MiB, the 64 KiB before them twice, and the context. */
enum { MOST_BYTES = 2 * (4 * 1024 * 1024) + 2 * 64 * 1024 + 64 * 1024 };

void pl_unpack_lz4_close(pl_unpack *unpack)
{
    LZ4F_freeDecompressionContext(unpack->lz4);
    unpack->room->taken_bytes -= unpack->lz4_bytes;
    unpack->lz4 = NULL;
    unpack->lz4_bytes = 0;
}

pl_status pl_unpack_lz4_begin(pl_unpack *unpack, pl_error *err)
{
    pl_room *room = unpack->room;
    pl_unpack_lz4_close(unpack);
    if (room->limit_bytes - room->taken_bytes < MOST_BYTES) {
        room->wanted_bytes = room->taken_bytes + (uint64_t)MOST_BYTES;
        return pl_unpack_no_memory(unpack, "lz4", err);
    }
    if (LZ4F_isError(
            LZ4F_createDecompressionContext(&unpack->lz4, LZ4F_VERSION))) {
        unpack->lz4 = NULL;
        return pl_unpack_no_memory(unpack, "lz4", err);
    }
    unpack->lz4_bytes = MOST_BYTES;
    room->taken_bytes += unpack->lz4_bytes;
    if (room->peak_bytes < room->taken_bytes)
        room->peak_bytes = room->taken_bytes;
    return PL_OK;
}

pl_status pl_unpack_lz4_some(pl_unpack *unpack, pl_unpack_step *step,
                             pl_error *err)
{
    size_t used = step->in_bytes, made = step->out_bytes;
    size_t result = LZ4F_decompress(unpack->lz4, step->out, &made, step->in,
                                    &used, NULL);
    if (LZ4F_isError(result))
        return pl_fail(err, PL_E_FORMAT, "its lz4 data is damaged (%s)",
                       LZ4F_getErrorName(result));
    step->in += used;
    step->in_bytes -= used;
    step->out += made;
    step->out_bytes -= made;
    step->frame_ended = result == 0;
    return PL_OK;
}
