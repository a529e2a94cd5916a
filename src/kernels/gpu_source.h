/* gpu_source.h: the text of a GPU's program (cmake/gpu_source.cmake), which
 * ends with a zero that doesn't count. */
#ifndef PL_KERNELS_GPU_SOURCE_H
#define PL_KERNELS_GPU_SOURCE_H

#include <stddef.h>

extern const unsigned char pl_gpu_source[];
extern const size_t pl_gpu_source_bytes;

#endif
