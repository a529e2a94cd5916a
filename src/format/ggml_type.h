/* ggml_type.h: how ggml stores numbers: f32, f16, bf16, and q8_0, blocks of 32
 * signed bytes that share one f16 scale. Bit for bit what ggml's own reference
 * writes. Pure: pointers and sizes in, bytes out. */
#ifndef PL_FORMAT_GGML_TYPE_H
#define PL_FORMAT_GGML_TYPE_H

#include <stddef.h>
#include <stdint.h>

/* Numbers as in files. */
typedef enum pl_ggml_type {
    PL_GGML_F32 = 0,
    PL_GGML_F16 = 1,
    PL_GGML_Q8_0 = 8,
    PL_GGML_BF16 = 30,
} pl_ggml_type;

enum { PL_GGML_MAX_BLOCK = 32, PL_GGML_Q8_0_BYTES = 34 };

/* Whether `number` is one of these. */
int pl_ggml_type_known(uint32_t number);
const char *pl_ggml_type_name(pl_ggml_type type); /* "q8_0" */
/* Values that are stored together: rows are whole blocks. */
size_t pl_ggml_type_block(pl_ggml_type type);
/* Bytes of one block. */
size_t pl_ggml_type_block_bytes(pl_ggml_type type);

/* `count` values, a multiple of the block. Neither overlaps the other; bytes
 * may be unaligned. A q8_0 block with a value that isn't finite, or whose
 * scale is beyond f16, has an infinite or NaN scale, as in ggml. */
void pl_ggml_pack(pl_ggml_type type, const float *values, size_t count,
                  void *bytes);
void pl_ggml_unpack(pl_ggml_type type, const void *bytes, size_t count,
                    float *values);

#endif
