/* tensor.c: see tensor.h. */
#include "plan/tensor.h"

#include <stdint.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [PL_F32] = { "float32", 4 }, [PL_BF16] = { "bfloat16", 2 },
    [PL_F16] = { "float16", 2 }, [PL_F64] = { "float64", 8 },
    [PL_I32] = { "int32", 4 },   [PL_U8] = { "uint8", 1 },
};

size_t pl_dtype_bytes(pl_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *pl_dtype_name(pl_dtype dtype)
{
    return dtypes[dtype].name;
}

int pl_size_add(size_t a, size_t b, size_t *out)
{
    return __builtin_add_overflow(a, b, out);
}

int pl_size_mul(size_t a, size_t b, size_t *out)
{
    return __builtin_mul_overflow(a, b, out);
}

pl_status pl_tensor_bytes(const char *name, pl_dtype dtype, pl_extent shape,
                          size_t *bytes_out, pl_error *err)
{
    size_t elements, bytes;
    if (shape.rows == 0 || shape.cols == 0)
        return pl_fail(err, PL_E_MEMORY, "tensor %s is empty: %zu x %zu", name,
                       shape.rows, shape.cols);
    if (pl_size_mul(shape.rows, shape.cols, &elements) ||
        pl_size_mul(elements, pl_dtype_bytes(dtype), &bytes) ||
        bytes > SIZE_MAX / 4)
        return pl_fail(err, PL_E_MEMORY,
                       "tensor %s of %zu x %zu %s is larger than any address "
                       "space",
                       name, shape.rows, shape.cols, pl_dtype_name(dtype));
    *bytes_out = bytes;
    return PL_OK;
}
