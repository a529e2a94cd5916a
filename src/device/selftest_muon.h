/* selftest_muon.h: cases of what Muon computes beside its products, for the
 * table of selftest_cases.c. */
#ifndef PL_DEVICE_SELFTEST_MUON_H
#define PL_DEVICE_SELFTEST_MUON_H

#include "device/selftest_cases.h"

void pl_selftest_sumsq_part(pl_selftest_side *side);
void pl_selftest_muon_moment(pl_selftest_side *side);
void pl_selftest_muon_moment_small(pl_selftest_side *side);
void pl_selftest_muon_norm(pl_selftest_side *side);
void pl_selftest_muon_part(pl_selftest_side *side);
void pl_selftest_muon_poly(pl_selftest_side *side);
void pl_selftest_muon_apply(pl_selftest_side *side);
void pl_selftest_muon_apply_small(pl_selftest_side *side);

#endif
