/* opencl.h: cards by OpenCL 1.2, of any maker that has a driver for it. */
#ifndef PL_DEVICE_OPENCL_H
#define PL_DEVICE_OPENCL_H

#include "device/gpu.h"

extern const pl_gpu_kind pl_device_opencl;
extern const pl_gpu_api pl_opencl_api;

/* A card that hasn't reached a mark, which it does every few steps, after so
 * many seconds is given up as hung. Processors may take their time. */
extern double pl_opencl_patience;

/* The device with number `number` among those that OpenCL lists, or the best
 * card among them: the first that isn't a processor, lacks nothing and has
 * memory of its own, else the first of the others. */
enum { PL_OPENCL_FIRST = -1 };
PL_MUST_CHECK pl_status pl_opencl_describe(pl_device_info *info, int number,
                                           pl_error *err);

#endif
