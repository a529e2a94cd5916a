/* cuda_images.h: machine code for CUDA's cards that nvcc made of kernels/gpu
 * when this program was built (cmake/cuda.cmake); none where there was no
 * nvcc. */
#ifndef PL_DEVICE_CUDA_IMAGES_H
#define PL_DEVICE_CUDA_IMAGES_H

#include <stddef.h>

typedef enum pl_cuda_form {
    PL_CUDA_CUBIN, /* for one architecture */
    PL_CUDA_PTX,   /* a text, which the driver compiles, for this and later */
} pl_cuda_form;

/* From `bytes` up to `end`, where a zero stands. */
typedef struct pl_cuda_image {
    int arch; /* 89: sm_89 */
    pl_cuda_form form;
    const unsigned char *bytes, *end;
} pl_cuda_image;

extern const pl_cuda_image pl_cuda_images[];
extern const size_t pl_cuda_image_count;

#endif
