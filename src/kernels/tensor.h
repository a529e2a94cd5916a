/* tensor.h: tensor arithmetic, the second arithmetic of matrix products: what
 * NVIDIA's tensor cores compute (mma.m16n8k16 of 16-bit operands with a float32
 * sum), stated so that any processor computes the same bits. MMA-Sim (arXiv
 * 2511.10909) found these rules by measuring the cards.
 *
 *   TENSOR(k) k is cut into groups of 16 from the chain's first k on; what is
 *             missing in the last group is zero in both operands. An output
 *             element is c = MMA(c, group), once for each group in ascending
 *             order, started from what is stated. So a chain may be cut and
 *             carried on from memory at multiples of 16 only. Without any k it
 *             is its start.
 *
 * MMA(c, group) is two sums of 8 products each in tensor24 (Ampere, Ada), c and
 * the first eight, then the result and the last eight. It is one sum of 16
 * products in tensor25 (Hopper, Blackwell). A sum of c and products:
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
 * It is the arithmetic of products whose operands are both bfloat16 or both
 * float16, stored so or rounded so as they are read. All else (norms, softmax,
 * epilogues, sums of rows) has no tensor arithmetic.
 *
 * Why zeros may stand for what a mask hides, and why groups of nothing but
 * hidden elements may be appended or left out: such a product 0 * v is 0, so
 * that all it can change is E, which it makes at least e(v) - 126.
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
} pl_products;

/* Products of one MMA, and of one sum in it; bits below the largest exponent.
 */
enum { PL_TENSOR_GROUP = 16 };

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
    return a == b && a != PL_STORE_F32 ? products : PL_PRODUCTS_EXACT;
}

#endif
