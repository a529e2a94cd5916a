/* opencl.h: cards by OpenCL 1.2, of any maker that has a driver for it. */
#ifndef PL_DEVICE_OPENCL_H
#define PL_DEVICE_OPENCL_H

#include "device/gpu.h"

extern const pl_gpu_kind pl_device_opencl;
extern const pl_gpu_api pl_opencl_api;

#endif
