/* JSON lines from outside, the first byte is the size of a buffer: strings, or
 * an error with a message, and the same for every buffer. Where jansson reads
 * a single line, so do we, and find the same. */
#include "base/json.h"
#include "data/jsonl.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM_BYTES = 1 << 16, DOCUMENT_BYTES = 1 << 14 };

typedef struct outcome {
    pl_status status;
    size_t count, bytes; /* strings, and the bytes of the last one */
    uint64_t sum, line;
    char last[DOCUMENT_BYTES];
} outcome;

static void read_lines(const char *path, size_t buffer_bytes, outcome *o)
{
    static unsigned char packed[256], buffer[4096];
    static pl_jsonl jsonl;
    pl_room room = pl_room_make(ROOM_BYTES);
    pl_unpack unpack;
    pl_stream stream;
    pl_error err = { .status = PL_OK };
    const char *text;
    *o = (outcome){ .status = PL_OK };
    pl_unpack_open(&unpack, &room);
    o->status = pl_stream_open(&stream, path, packed, sizeof packed, &unpack,
                               NULL, NULL, &err);
    if (!o->status) {
        o->status = pl_jsonl_open(&jsonl, &stream, "text", 0, DOCUMENT_BYTES,
                                  buffer, buffer_bytes, &room, &err);
        while (!o->status) {
            size_t bytes;
            o->status = pl_jsonl_next(&jsonl, &text, &bytes, &err);
            if (o->status || !text)
                break;
            memcpy(o->last, text, bytes);
            o->bytes = bytes;
            for (size_t i = 0; i < bytes; i++)
                o->sum = o->sum * 31 + (unsigned char)text[i];
            o->count++;
        }
        o->line = jsonl.line;
        pl_jsonl_close(&jsonl);
        pl_stream_close(&stream);
    }
    pl_unpack_close(&unpack);
    if (room.taken_bytes != 0 || room.peak_bytes > ROOM_BYTES ||
        (o->status && err.text[0] == '\0'))
        abort();
}

/* jansson is stricter about UTF-8 and numbers, so only its yes counts. */
static void compare_with_jansson(const char *data, size_t size,
                                 const outcome *ours)
{
    json_t *root = NULL;
    if (memchr(data, '\n', size) || size > 300 ||
        pl_json_parse(data, size, "line", &root, NULL))
        return;
    const json_t *text = json_object_get(root, "text");
    if (json_is_string(text) &&
        (ours->status || ours->count != 1 ||
         ours->bytes != json_string_length(text) ||
         memcmp(ours->last, json_string_value(text), ours->bytes) != 0))
        abort();
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static outcome one, other;
    char path[64];
    if (size < 1)
        return 0;
    int fd = memfd_create("jsonl", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_lines(path, 4096, &one);
    /* Three bytes at least: a byte order mark is seen in one piece. */
    read_lines(path, 3 + data[0], &other);
    /* Damaged packed data shows sooner where the buffer is larger. */
    int damaged = one.status && pl_codec_of(data + 1, size - 1);
    if (one.status != other.status ||
        (!damaged && (one.count != other.count || one.sum != other.sum ||
                      one.line != other.line)))
        abort();
    compare_with_jansson((const char *)data + 1, size - 1, &one);
    close(fd);
    return 0;
}
