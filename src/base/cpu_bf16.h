/* cpu_bf16.h: whether vdpbf16ps, the instruction that multiplies pairs of
 * bfloat16, does what the set avx512bf16 is made for. */
#ifndef PL_BASE_CPU_BF16_H
#define PL_BASE_CPU_BF16_H

/* Whether this processor has the instruction; AVX-512 is asked for elsewhere.
 */
int pl_cpu_has_bf16(void);

/* Of a processor that has it: whether it adds the product of the high halves
 * first, then that of the low halves, each as a fused multiply-add. Intel's
 * manual says so, AMD's processors do it; where one doesn't, its bits would
 * differ from all other sets'. */
int pl_cpu_bf16_rounds(void);

/* Likewise: whether products gain by it, which some processors' do not. Timed
 * in some tenths of a millisecond, by most of several tries on the thread's own
 * clock, so that others on the machine hardly matter. Only the speed of a
 * run depends on the answer. */
int pl_cpu_bf16_is_fast(void);

#endif
