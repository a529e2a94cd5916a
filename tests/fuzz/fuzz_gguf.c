/* A GGUF file from outside. Refused with a message, or a table whose tensors
 * lie in the file without overlapping, and whose arrays can be walked. */
#include "format/gguf.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void require(int condition)
{
    if (!condition)
        abort();
}

static void walk_array(pl_gguf *gguf, const pl_gguf_key *key)
{
    static char text[1 << 16];
    pl_error err = { .status = PL_OK };
    pl_gguf_walk walk;
    size_t bytes;
    int32_t value;
    if (key->element != PL_GGUF_TEXT && key->element != PL_GGUF_I32)
        return;
    require(pl_gguf_walk_begin(&walk, gguf, key->name, key->element, &err) ==
            PL_OK);
    require(walk.left == key->count);
    while (walk.left) {
        pl_status status = key->element == PL_GGUF_TEXT
                               ? pl_gguf_walk_text(&walk, text, sizeof text,
                                                   &bytes, &err)
                               : pl_gguf_walk_i32(&walk, &value, &err);
        require(status == PL_OK || status == PL_E_FORMAT);
        if (status)
            return;
    }
}

static void check_tensor(const pl_gguf *gguf, const pl_gguf_tensor *t,
                         size_t size, uint64_t *end)
{
    pl_error err = { .status = PL_OK };
    require(t->rank >= 1 && t->rank <= PL_GGUF_MAX_RANK);
    require(t->offset >= *end);
    *end = t->offset + t->bytes;
    require(gguf->data_at + *end <= size);
    require(pl_gguf_find(gguf, t->name) == t);
    unsigned char *out = malloc(t->bytes);
    require(out != NULL);
    require(pl_gguf_read(gguf, t, 0, out, t->bytes, &err) == PL_OK);
    uint64_t rows = t->dims[1] * t->dims[2] * t->dims[3];
    size_t count = (size_t)(t->dims[0] * rows);
    float *values = malloc(count * sizeof *values);
    require(values != NULL);
    pl_ggml_unpack(t->type, out, count, values);
    free(values);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_heap heap = pl_heap_make(64 << 20);
    pl_error err = { .status = PL_OK };
    pl_gguf gguf;
    char path[64];
    int fd = memfd_create("gguf", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pl_status status = pl_gguf_open(&gguf, path, &heap, &err);
    if (status) {
        require(status == PL_E_FORMAT || status == PL_E_UNSUPPORTED ||
                status == PL_E_MEMORY);
        require(err.status == status && err.text[0] != '\0');
    } else {
        uint64_t end = 0;
        int64_t whole;
        for (size_t i = 0; i < gguf.key_count; i++) {
            const pl_gguf_key *key = &gguf.keys[i];
            require(pl_gguf_find_key(&gguf, key->name) == key);
            if (key->type == PL_GGUF_ARRAY)
                walk_array(&gguf, key);
            status = pl_gguf_want_whole(&gguf, key->name, 0, 9, &whole, &err);
            require(status == PL_E_FORMAT || (whole >= 0 && whole <= 9));
        }
        for (size_t i = 0; i < gguf.tensor_count; i++)
            check_tensor(&gguf, &gguf.tensors[i], size, &end);
        pl_gguf_close(&gguf);
    }
    pl_heap_close(&heap);
    close(fd);
    return 0;
}
