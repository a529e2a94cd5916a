/* A safetensors file from outside. Refused with a message, or a table whose
 * tensors lie one after the other in the file, from its header to its end, and
 * can be read. */
#include "format/safetensors.h"
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

static size_t element_bytes(pl_tensor_dtype dtype)
{
    switch (dtype) {
    case PL_TENSOR_F64:
    case PL_TENSOR_I64:
        return 8;
    case PL_TENSOR_F32:
    case PL_TENSOR_I32:
        return 4;
    case PL_TENSOR_F16:
    case PL_TENSOR_BF16:
        return 2;
    case PL_TENSOR_U8:
    case PL_TENSOR_BOOL:
        return 1;
    }
    abort();
}

static void check_tensor(const pl_safetensors *st, const pl_tensor_info *info,
                         const uint8_t *data)
{
    pl_error err = { .status = PL_OK };
    size_t bytes = element_bytes(info->dtype);
    require(info->rank <= PL_TENSOR_MAX_RANK);
    for (size_t i = 0; i < info->rank; i++)
        bytes *= info->dims[i];
    require(info->bytes == bytes);
    require(memchr(info->name, '\0', sizeof info->name) != NULL);
    require(pl_safetensors_find(st, info->name) == info);
    uint8_t *out = malloc(bytes ? bytes : 1);
    require(out != NULL);
    require(pl_safetensors_read(st, info, 0, out, bytes, &err) == PL_OK);
    require(memcmp(out, data + st->data_at + info->offset, bytes) == 0);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_heap heap = pl_heap_make(32 << 20);
    pl_error err = { .status = PL_OK };
    pl_safetensors st;
    char path[64];
    int fd = memfd_create("safetensors", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pl_status status = pl_safetensors_open(&st, path, &heap, &err);
    if (status) {
        require(status == PL_E_FORMAT || status == PL_E_MEMORY);
        require(err.status == status && err.text[0] != '\0');
    } else {
        uint64_t at = st.data_at;
        for (size_t i = 0; i < st.count; i++) {
            const pl_tensor_info *info = &st.tensors[i];
            require(info->bytes == 0 || st.data_at + info->offset == at);
            require(st.data_at + info->offset + info->bytes <= size);
            at += info->bytes;
            check_tensor(&st, info, data);
        }
        require(at == size);
        pl_safetensors_close(&st);
    }
    pl_heap_close(&heap);
    close(fd);
    return 0;
}
