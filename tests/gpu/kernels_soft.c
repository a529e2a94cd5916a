/* kernels_soft.c: the kernels as a card without double gets them. */
#define PL_SOFT_DOUBLE 1

#include "gpu/kernels.c"
