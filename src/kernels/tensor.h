/* tensor.h: the arithmetics of matrix products beside CHAIN: what units that
 * multiply matrices compute, stated so that any processor computes the same
 * bits. tensor24 and tensor25 are NVIDIA's tensor cores (mma.m16n8k16 of 16-bit
 * operands with a float32 sum), whose rules MMA-Sim (arXiv 2511.10909) found by
 * measuring the cards; amx is Intel's (TDPBF16PS of bfloat16), whose rules are
 * in its manual.
 *
 *   TENSOR(k) k is cut into groups from the chain's first k on, of 16 in
 *             tensor24 and tensor25 and of 32 in amx; what is missing in the
 *             last group is zero in both operands. An output element is c =
 *             MMA(c, group), once for each group in ascending order, started
 *             from what is stated. So a chain may be cut and carried on from
 *             memory between groups only. Without any k it is its start.
 *
 * In amx, MMA(c, group) is c + (even + odd), each sum rounded to nearest: even
 * is the chain of fused multiply-adds over the group's even k, in ascending
 * order and from +0, and odd the one over its odd k. The instruction takes
 * denormals for zero, and none can arise (halves.h): all of these sums are
 * multiples of 2^-126. A group of zeros adds +0 to c, so that -0 becomes +0.
 *
 * In the others MMA(c, group) is two sums of 8 products each in tensor24
 * (Ampere, Ada), c and the first eight, then the result and the last eight. It
 * is one sum of 16 products in tensor25 (Hopper, Blackwell). A sum of c and
 * products:
 *   - The exponent e(x) of a normal number is that of its leading bit; that of
 *     a denormal number is its format's smallest (-14 in float16, -126 in
 *     bfloat16 and float32); that of a zero is -126.
 *   - The exponent of a product is the sum of its factors' exponents, so that
 *     its significand is below 4; the exponent of c is its own.
 *   - All of them are aligned to the largest of these exponents, E, and each is
 *     cut toward zero to a multiple of 2^(E - 24), in tensor25 of 2^(E - 25).
 *   - What is left is added up exactly, and the sum is rounded toward zero to
 *     float32: it becomes infinite from 2^128 on, and a sum of zero is +0.
 *   - Where an operand or c is infinite or NaN, the sum is what adding up in
 *     float64 gives: an infinity or NaN. Payloads aren't promised.
 *
 * It is the arithmetic of products whose operands are both bfloat16 or, but for
 * amx, both float16, stored so or rounded so as they are read. All else (norms,
 * softmax, epilogues, sums of rows) has no tensor arithmetic.
 *
 * Why zeros may stand for what a mask hides, and why groups of nothing but
 * hidden elements may be appended or left out: such a product 0 * v is 0. In
 * amx that changes nothing. In the others all it can change is E, which it
 * makes at least e(v) - 126.
 *   - A bfloat16 is zero or at least 2^-56, and so a multiple of 2^-63
 *     (halves.h). Products are multiples of 2^-126. So are all sums that start
 *     from such a multiple: what is cut is cut to a multiple of 2^(E - 25),
 *     which either leaves multiples of 2^-126 as they are or is one itself, and
 *     rounding toward zero to 24 bits likewise. If |v| < 2^24, then e(v) - 126
 *     - 25 <= -128: as long as no other term has a larger exponent, the cut
 *     that 0 * v causes leaves all multiples of 2^-126 as they are, as the cut
 *     without it does; if another has, 0 * v causes none.
 *   - float16's products and their sums are multiples of 2^-48, and |v| < 2^16.
 *   - In a group of zeros alone, c has the largest exponent, or a cut at less
 *     than 2^-126, as above: the sum is c, but for -0, which becomes +0. Where
 *     groups may be left out, a result ends with "+ 0".
 * From 2^24 on nothing is promised about what a mask hides, as with infinities.
 */
#ifndef PL_KERNELS_TENSOR_H
#define PL_KERNELS_TENSOR_H

#include "kernels/halves.h"

typedef enum pl_products {
    PL_PRODUCTS_EXACT, /* CHAIN: a chain of fused multiply-adds */
    PL_PRODUCTS_TENSOR24,
    PL_PRODUCTS_TENSOR25,
    PL_PRODUCTS_AMX,
} pl_products;

/* Products of one MMA of the tensor cores, of amx, and of any. */
enum {
    PL_TENSOR_GROUP = 16,
    PL_AMX_GROUP = 32,
    PL_LARGEST_GROUP = PL_AMX_GROUP
};

/* Where a chain may be cut: at multiples of this. */
PL_INLINE int pl_products_group(pl_products products)
{
    return products == PL_PRODUCTS_EXACT ? 1
           : products == PL_PRODUCTS_AMX ? PL_AMX_GROUP
                                         : PL_TENSOR_GROUP;
}

/* Of the tensor cores: products of one sum, bits below the largest exponent. */

PL_INLINE int pl_tensor_sum(pl_products products)
{
    return products == PL_PRODUCTS_TENSOR24 ? 8 : 16;
}

PL_INLINE int pl_tensor_bits(pl_products products)
{
    return products == PL_PRODUCTS_TENSOR24 ? 24 : 25;
}

/* `products`, or exact where a product of these two operands has no other. */
PL_INLINE pl_products pl_products_of(pl_products products, pl_storage a,
                                     pl_storage b)
{
    if (a != b || a == PL_STORE_F32)
        return PL_PRODUCTS_EXACT;
    return products == PL_PRODUCTS_AMX && a != PL_STORE_BF16 ? PL_PRODUCTS_EXACT
                                                             : products;
}

#endif
