/* ggml_type.c: see ggml_type.h. */
#include "format/ggml_type.h"
#include "base/check.h"
#include "kernels/storage.h"

#include <math.h>
#include <string.h>

enum { QUANTS = 127 };

int pl_ggml_type_known(uint32_t number)
{
    return number == PL_GGML_F32 || number == PL_GGML_F16 ||
           number == PL_GGML_Q8_0 || number == PL_GGML_BF16;
}

const char *pl_ggml_type_name(pl_ggml_type type)
{
    switch (type) {
    case PL_GGML_F32:
        return "f32";
    case PL_GGML_F16:
        return "f16";
    case PL_GGML_Q8_0:
        return "q8_0";
    case PL_GGML_BF16:
        return "bf16";
    }
    PL_CHECK(0 && "no such type");
    return "";
}

size_t pl_ggml_type_block(pl_ggml_type type)
{
    return type == PL_GGML_Q8_0 ? PL_GGML_MAX_BLOCK : 1;
}

size_t pl_ggml_type_block_bytes(pl_ggml_type type)
{
    if (type == PL_GGML_Q8_0)
        return PL_GGML_Q8_0_BYTES;
    return type == PL_GGML_F32 ? 4 : 2;
}

static pl_storage storage_of(pl_ggml_type type)
{
    return type == PL_GGML_F32   ? PL_STORE_F32
           : type == PL_GGML_F16 ? PL_STORE_F16
                                 : PL_STORE_BF16;
}

/* ggml's order of operations: the scale divides in float, values are
 * multiplied with its reciprocal, and halves are rounded away from zero. The
 * scale that is stored is rounded after that, and isn't used here. */
static void pack_block(const float *values, unsigned char *bytes)
{
    float most = 0.0f;
    for (int i = 0; i < PL_GGML_MAX_BLOCK; i++) {
        float size = fabsf(values[i]);
        most = size > most ? size : most;
    }
    const float scale = most / QUANTS;
    const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
    pl_storage_put(bytes, 0, scale, PL_STORE_F16);
    for (int i = 0; i < PL_GGML_MAX_BLOCK; i++) {
        float q = roundf(values[i] * inverse);
        /* beyond a byte only if something isn't finite */
        int whole = q >= -QUANTS && q <= QUANTS ? (int)q : 0;
        bytes[2 + i] = (unsigned char)whole;
    }
}

static void unpack_block(const unsigned char *bytes, float *values)
{
    const float scale = pl_storage_get(bytes, 0, PL_STORE_F16);
    for (int i = 0; i < PL_GGML_MAX_BLOCK; i++)
        values[i] = scale * (float)(signed char)bytes[2 + i];
}

void pl_ggml_pack(pl_ggml_type type, const float *values, size_t count,
                  void *bytes)
{
    unsigned char *out = bytes;
    PL_CHECK(count % pl_ggml_type_block(type) == 0);
    if (type == PL_GGML_Q8_0) {
        for (size_t i = 0; i < count; i += PL_GGML_MAX_BLOCK)
            pack_block(values + i,
                       out + i / PL_GGML_MAX_BLOCK * PL_GGML_Q8_0_BYTES);
        return;
    }
    for (size_t i = 0; i < count; i++)
        pl_storage_put(out, i, values[i], storage_of(type));
}

void pl_ggml_unpack(pl_ggml_type type, const void *bytes, size_t count,
                    float *values)
{
    const unsigned char *in = bytes;
    PL_CHECK(count % pl_ggml_type_block(type) == 0);
    if (type == PL_GGML_Q8_0) {
        for (size_t i = 0; i < count; i += PL_GGML_MAX_BLOCK)
            unpack_block(in + i / PL_GGML_MAX_BLOCK * PL_GGML_Q8_0_BYTES,
                         values + i);
        return;
    }
    for (size_t i = 0; i < count; i++)
        values[i] = pl_storage_get(in, i, storage_of(type));
}
