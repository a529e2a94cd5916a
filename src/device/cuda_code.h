/* cuda_code.h: where a card's machine code comes from: what nvcc made when the
 * program was built, or what NVRTC makes of the same text at first use, kept in
 * a file of the user's cache. */
#ifndef PL_DEVICE_CUDA_CODE_H
#define PL_DEVICE_CUDA_CODE_H

#include "device/cuda_images.h"
#include "device/gpu.h"

/* The image that a card of this compute capability (89: 8.9) runs: the machine
 * code for exactly this one, else the newest PTX that is no newer than it.
 * NULL: none. */
const pl_cuda_image *pl_cuda_image_for(const pl_cuda_image *images,
                                       size_t count, int capability);

/* Where a card's code would come from, for people ("sm_89, in this program"),
 * and for which architecture it was made; or 0, and what is missing. */
int pl_cuda_code_describe(int capability, char *text, size_t size);

/* The code itself, in memory of the program or of the heap. Compiling takes
 * half a minute and several hundred megabytes, which NVRTC takes and gives
 * back. */
PL_MUST_CHECK pl_status pl_cuda_code_get(pl_cuda_image *image,
                                         const pl_gpu_card *card, pl_heap *heap,
                                         pl_error *err);

/* Where compiled code is kept, from now on; NULL, and at first: nowhere. */
void pl_cuda_code_keep_in(const char *folder);

#endif
