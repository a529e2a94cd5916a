/* unpack_xz.c: xz streams with liblzma (unpack.h). Its memory comes from the
 * room, and its own limit says beforehand what a file would need. */
#include "data/unpack.h"

static void *take_items(void *context, size_t count, size_t size)
{
    return pl_unpack_take(context, count * size); /* liblzma's count is 1 */
}

void pl_unpack_xz_close(pl_unpack *unpack)
{
    if (unpack->has_xz)
        lzma_end(&unpack->xz);
    unpack->has_xz = 0;
}

pl_status pl_unpack_xz_begin(pl_unpack *unpack, pl_error *err)
{
    const pl_room *room = unpack->room;
    pl_unpack_xz_close(unpack);
    unpack->xz_memory = (lzma_allocator){ .alloc = take_items,
                                          .free = pl_unpack_give_back,
                                          .opaque = unpack };
    unpack->xz = (lzma_stream)LZMA_STREAM_INIT;
    unpack->xz.allocator = &unpack->xz_memory;
    uint64_t left = room->limit_bytes - room->taken_bytes;
    lzma_ret result = lzma_stream_decoder(&unpack->xz, left ? left : 1, 0);
    unpack->has_xz = result == LZMA_OK;
    return result == LZMA_OK ? PL_OK : pl_unpack_no_memory(unpack, "xz", err);
}

static pl_status failed(pl_unpack *unpack, lzma_ret result, pl_error *err)
{
    static const struct {
        lzma_ret result;
        const char *why;
    } rows[] = {
        { LZMA_FORMAT_ERROR, "it isn't xz" },
        { LZMA_OPTIONS_ERROR, "it uses what this liblzma doesn't know" },
        { LZMA_DATA_ERROR, "a checksum or the data is wrong" },
    };
    if (result == LZMA_MEMLIMIT_ERROR)
        unpack->room->wanted_bytes = unpack->room->taken_bytes +
                                     lzma_memusage(&unpack->xz);
    if (result == LZMA_MEMLIMIT_ERROR || result == LZMA_MEM_ERROR)
        return pl_unpack_no_memory(unpack, "xz", err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].result == result)
            return pl_fail(err, PL_E_FORMAT, "its xz data is damaged (%s)",
                           rows[i].why);
    return pl_fail(err, PL_E_FORMAT, "its xz data is damaged (code %d)",
                   (int)result);
}

pl_status pl_unpack_xz_some(pl_unpack *unpack, pl_unpack_step *step,
                            pl_error *err)
{
    lzma_stream *xz = &unpack->xz;
    xz->next_in = step->in;
    xz->avail_in = step->in_bytes;
    xz->next_out = step->out;
    xz->avail_out = step->out_bytes;
    lzma_ret result = lzma_code(xz, LZMA_RUN);
    /* BUF_ERROR: nothing could be done, which the caller sees by himself. */
    if (result != LZMA_OK && result != LZMA_STREAM_END &&
        result != LZMA_BUF_ERROR)
        return failed(unpack, result, err);
    step->in = xz->next_in;
    step->in_bytes = xz->avail_in;
    step->out = xz->next_out;
    step->out_bytes = xz->avail_out;
    step->frame_ended = result == LZMA_STREAM_END;
    return PL_OK;
}
