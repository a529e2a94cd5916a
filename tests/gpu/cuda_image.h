/* cuda_image.h: what an image for CUDA holds: the kernels and the sizes of
 * their arguments, as the driver would find them; and an image for the emulated
 * NVRTC to give. */
#ifndef PL_TESTS_GPU_CUDA_IMAGE_H
#define PL_TESTS_GPU_CUDA_IMAGE_H

#include <stddef.h>

enum { CUDA_IMAGE_MOST = 256, CUDA_IMAGE_NAME_BYTES = 64 };

typedef struct cuda_entry {
    char name[CUDA_IMAGE_NAME_BYTES];
    size_t bytes;
} cuda_entry;

typedef struct cuda_image {
    int arch;
    int is_ptx;
    size_t count;
    cuda_entry entries[CUDA_IMAGE_MOST];
} cuda_image;

/* Reads nvcc's PTX or cubin, or the emulated NVRTC's image. Returns NULL, or
 * what is wrong with it: PTX whose arithmetic isn't exact, too. */
const char *cuda_image_read(cuda_image *image, const void *bytes);

/* The emulated NVRTC's: as PTX has it, from the table of args.h. Returns its
 * bytes, with a zero. */
size_t cuda_image_write(char *text, size_t room, int arch, int is_ptx);

#endif
