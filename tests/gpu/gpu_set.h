/* gpu_set.h: included before a test of tests/ops, it makes the emulated GPU one
 * more set of kernels, behind the last that this processor has. Whatever those
 * tests ask of a set they then ask of the GPU's kernels, too. */
#ifndef PL_TESTS_GPU_GPU_SET_H
#define PL_TESTS_GPU_GPU_SET_H

#include "base/cpu.h"
#include "kernels/kernels.h"

pl_kernels gpu_set_for(pl_isa isa);
pl_isa gpu_set_last(void);

#ifndef GPU_SET_ITSELF
#define pl_kernels_for gpu_set_for
#define pl_cpu_isa     gpu_set_last
#endif

#endif
