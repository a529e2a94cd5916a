/* cpu_amx.h: whether Intel's AMX, instructions that multiply small matrices of
 * bfloat16, does what the set amx is made for. */
#ifndef PL_BASE_CPU_AMX_H
#define PL_BASE_CPU_AMX_H

/* Whether this processor has them and the operating system lets this process
 * use them, which is asked for here; AVX-512 is asked for elsewhere. */
int pl_cpu_has_amx(void);

/* Of a processor that has them: whether a sum is c + (even + odd), two chains
 * of fused multiply-adds (kernels/tensor.h), as Intel's manual says. */
int pl_cpu_amx_rounds(void);

#endif
