/* cuda.h: NVIDIA's cards by CUDA's driver API, from compute capability 7.5 on
 * (GeForce RTX 20 and GTX 16, Tesla T4). */
#ifndef PL_DEVICE_CUDA_H
#define PL_DEVICE_CUDA_H

#include "device/gpu.h"

extern const pl_gpu_kind pl_device_cuda;
extern const pl_gpu_api pl_cuda_api;

#endif
