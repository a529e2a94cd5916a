/* tensor.h: what a value is stored as, and how many bytes that takes. Sizes
 * are checked for overflow here, once, so that no one else has to. */
#ifndef PL_PLAN_TENSOR_H
#define PL_PLAN_TENSOR_H

#include "base/status.h"

#include <stddef.h>

typedef enum pl_dtype {
    PL_F32,
    PL_BF16,
    PL_F16,
    PL_F64,
    PL_I32,
    PL_U8,
} pl_dtype;

size_t pl_dtype_bytes(pl_dtype dtype);
const char *pl_dtype_name(pl_dtype dtype); /* "float32", ... */

/* A matrix: `rows` of `cols` elements. Vectors have one column; anything of
 * higher rank is flattened to rows, since a row range is all that is ever cut
 * from a tensor. Zero sizes are refused. */
typedef struct pl_extent {
    size_t rows, cols;
} pl_extent;

/* *bytes_out = rows * cols * sizeof(dtype). PL_E_MEMORY names the tensor if it
 * is empty or its size leaves what an address can count. */
PL_MUST_CHECK pl_status pl_tensor_bytes(const char *name, pl_dtype dtype,
                                        pl_extent shape, size_t *bytes_out,
                                        pl_error *err);

/* Overflow-checked sum and product; 0 on success, like the builtins. */
int pl_size_add(size_t a, size_t b, size_t *out);
int pl_size_mul(size_t a, size_t b, size_t *out);

#endif
