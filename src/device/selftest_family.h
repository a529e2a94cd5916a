/* selftest_family.h: cases of what models of other families than GPT-2 ask for,
 * for the table of selftest_cases.c. */
#ifndef PL_DEVICE_SELFTEST_FAMILY_H
#define PL_DEVICE_SELFTEST_FAMILY_H

#include "device/selftest_cases.h"

void pl_selftest_embed(pl_selftest_side *side);
void pl_selftest_embed_bwd(pl_selftest_side *side);
void pl_selftest_rotated(pl_selftest_side *side);
void pl_selftest_rotated_apart(pl_selftest_side *side);
void pl_selftest_normed(pl_selftest_side *side);
void pl_selftest_both(pl_selftest_side *side);
void pl_selftest_both_odd(pl_selftest_side *side);
void pl_selftest_rotated_bwd(pl_selftest_side *side);
void pl_selftest_normed_bwd(pl_selftest_side *side);
void pl_selftest_both_bwd(pl_selftest_side *side);
void pl_selftest_odd_bwd(pl_selftest_side *side);
void pl_selftest_glu(pl_selftest_side *side);
void pl_selftest_glu_odd(pl_selftest_side *side);
void pl_selftest_capped(pl_selftest_side *side);
void pl_selftest_softcap(pl_selftest_side *side);

#endif
