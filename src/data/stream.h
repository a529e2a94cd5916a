/* stream.h: the bytes of a file or of standard input, unpacked (decompressed).
 *
 * Whether they are packed is seen from the first bytes (gzip, zstd, xz, lz4),
 * not from the name; but a name that ends in .gz, .zst, .xz or .lz4 must be
 * what it says. Several members or frames, one after another, are one stream.
 * Its memory is the caller's buffer, and what the unpacker takes from its room.
 */
#ifndef PL_DATA_STREAM_H
#define PL_DATA_STREAM_H

#include "base/file.h"
#include "data/unpack.h"

typedef enum pl_stream_kind { PL_STREAM_FILE, PL_STREAM_INPUT } pl_stream_kind;

/* Asked before every read of the file, and ten times a second while a pipe has
 * nothing to read, so that nothing is too long to be stopped in: reading then
 * fails with PL_E_STOPPED. */
typedef enum pl_stream_wish { PL_STREAM_GO_ON, PL_STREAM_STOP } pl_stream_wish;
typedef pl_stream_wish pl_stream_ask(void *context);

typedef struct pl_stream {
    pl_file file;
    pl_stream_kind kind;
    pl_codec codec;
    pl_unpack *unpack;
    unsigned char *buffer; /* bytes as they are in the file */
    size_t buffer_bytes;
    size_t at, have;      /* the unread ones: buffer[at..have) */
    uint64_t file_offset; /* in the file, behind buffer[have) */
    uint64_t offset;      /* unpacked bytes that were given */
    uint64_t frames;      /* members or frames that are complete */
    int between_frames;
    pl_stream_ask *ask; /* NULL: go on */
    void *ask_context;
} pl_stream;

/* `path` "-" is standard input; a pipe is read as that is. `buffer` is used
 * until it is closed; 64 KiB or more are sensible. `ask` may be NULL. On
 * failure nothing stays open. */
PL_MUST_CHECK pl_status pl_stream_open(pl_stream *stream, const char *path,
                                       unsigned char *buffer,
                                       size_t buffer_bytes, pl_unpack *unpack,
                                       pl_stream_ask *ask, void *ask_context,
                                       pl_error *err);
void pl_stream_close(pl_stream *stream);

/* The next unpacked bytes; *got < capacity at the end only, 0 when nothing is
 * left. */
PL_MUST_CHECK pl_status pl_stream_read(pl_stream *stream, void *out,
                                       size_t capacity, size_t *got,
                                       pl_error *err);

/* Passes over `bytes` unpacked bytes: at once in a plain file, else by
 * unpacking them into `scratch`. PL_E_FORMAT if there are fewer. */
PL_MUST_CHECK pl_status pl_stream_skip(pl_stream *stream, uint64_t bytes,
                                       void *scratch, size_t scratch_bytes,
                                       pl_error *err);

/* Bytes of the file that were used: for progress. */
uint64_t pl_stream_used_bytes(const pl_stream *stream);

/* Whether the file, unpacked or not, begins with these bytes as they are on
 * the disk. Right after opening. */
int pl_stream_begins_with(const pl_stream *stream, const char *magic);

#endif
