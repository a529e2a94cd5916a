/* tensorboard.h: TensorBoard's event files: scalars, and texts.
 *
 * A file is a list of records: u64 length, u32 masked CRC-32C of those 8
 * bytes, the message, u32 masked CRC-32C of it; all little-endian. A message
 * is a protobuf Event: 1 wall_time (double), 2 step, 3 file_version (the first
 * record: "brain.Event:2"), 5 summary { 1 value { 1 tag, 2 simple_value } }. A
 * text has in place of the number 8 tensor { 1 dtype, 2 shape, 8 string_val }
 * and 9 metadata { 1 plugin_data { 1 plugin_name "text" } }.
 * TensorBoard reads files that have "tfevents" in their name, and a file that
 * grows, up to the last whole record.
 *
 * Appends to one file. Takes no memory. A failed write loses nothing: what
 * was told stays in the buffer and is tried again, in the same place. */
#ifndef PL_FORMAT_TENSORBOARD_H
#define PL_FORMAT_TENSORBOARD_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A name that TensorBoard looks for. */
#define PL_TENSORBOARD_NAME "events.out.tfevents.plimsoll"

enum {
    PL_TENSORBOARD_BUFFER_BYTES = 16 * 1024,
    PL_TENSORBOARD_TAG_BYTES = 128,   /* with its zero */
    PL_TENSORBOARD_TEXT_BYTES = 2048, /* the longest text */
    PL_TENSORBOARD_FIRST_BYTES =
        40, /* of the record that every file begins with */
};

/* The most that a value under a tag of `bytes` bytes takes: lengths and sums
 * (16), time (9), step (11), summary (3), value (3), tag (3), number (5). */
#define PL_TENSORBOARD_MOST_BYTES(bytes) (16 + 9 + 11 + 3 + 3 + 3 + (bytes) + 5)

/* Likewise a text: what surrounds it takes less than a scalar does twice. */
#define PL_TENSORBOARD_MOST_TEXT(bytes)                                        \
    (2 * PL_TENSORBOARD_MOST_BYTES(bytes) + PL_TENSORBOARD_TEXT_BYTES)

#define PL_TENSORBOARD_KEEP_ALL  UINT64_MAX
#define PL_TENSORBOARD_KEEP_NONE ((uint64_t)0)

typedef struct pl_tensorboard {
    pl_file file;
    uint64_t size_bytes; /* of whole records in the file */
    size_t used;         /* of the buffer: whole records that wait */
    unsigned char buffer[PL_TENSORBOARD_BUFFER_BYTES];
} pl_tensorboard;

/* Opens `path` to go on behind the last whole record in its first `keep_bytes`
 * bytes; what follows is cut off: a torn record, steps that a resumed run takes
 * again. PL_TENSORBOARD_KEEP_NONE, or no such file, begins
 * a new one at `wall_time` (seconds since 1970); so does a file whose very
 * first record is broken, which no reader would read. */
PL_MUST_CHECK pl_status pl_tensorboard_open(pl_tensorboard *events,
                                            const char *path,
                                            uint64_t keep_bytes,
                                            double wall_time, pl_error *err);

/* The same, but records are kept by what they are of: from the first on, up to
 * one that `keeps` doesn't want (NULL: wants none). Those without a tag are
 * always wanted, one without a step is of step 0. */
typedef int pl_tensorboard_keeps(const void *context, uint64_t step,
                                 const char *tag);
PL_MUST_CHECK pl_status pl_tensorboard_open_past(
    pl_tensorboard *events, const char *path, pl_tensorboard_keeps *keeps,
    const void *context, double wall_time, pl_error *err);

/* One value. It is written when the buffer is full, flushed or closed. On
 * PL_E_IO (the buffer is full and can't be written) this value is lost. */
PL_MUST_CHECK pl_status pl_tensorboard_scalar(pl_tensorboard *events,
                                              const char *tag, int64_t step,
                                              double wall_time, float value,
                                              pl_error *err);

/* A text of at most PL_TENSORBOARD_TEXT_BYTES bytes of UTF-8, which TensorBoard
 * reads as Markdown. Likewise. */
PL_MUST_CHECK pl_status pl_tensorboard_text(pl_tensorboard *events,
                                            const char *tag, int64_t step,
                                            double wall_time, const char *text,
                                            size_t bytes, pl_error *err);

/* Hands what waits to the system; on failure it goes on waiting. */
PL_MUST_CHECK pl_status pl_tensorboard_flush(pl_tensorboard *events,
                                             pl_error *err);

/* Flushes, and returns once it is on the disk. Closed in any case. */
PL_MUST_CHECK pl_status pl_tensorboard_close(pl_tensorboard *events,
                                             pl_error *err);

/* The CRC-32C (Castagnoli) of `bytes` bytes after those that gave `crc`, which
 * is 0 for the first; and how records store it. */
uint32_t pl_crc32c(uint32_t crc, const void *data, size_t bytes);
uint32_t pl_crc32c_masked(uint32_t crc);

#endif
