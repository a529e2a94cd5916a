/* steps_update.h: the ops between the gradients of a group and the next
 * weights, from a step to a call of a kernel. Private to steps.c, which says
 * what the arguments are. */
#ifndef PL_DEVICE_STEPS_UPDATE_H
#define PL_DEVICE_STEPS_UPDATE_H

#include "device/steps.h"

void pl_steps_add(const pl_steps_context *c, const pl_step *s);
void pl_steps_move(const pl_steps_context *c, const pl_step *s);
void pl_steps_sumsq(const pl_steps_context *c, const pl_step *s);
void pl_steps_clip(const pl_steps_context *c, const pl_step *s);
void pl_steps_adamw(const pl_steps_context *c, const pl_step *s);
void pl_steps_copy(const pl_steps_context *c, const pl_step *s);
void pl_steps_outer(const pl_steps_context *c, const pl_step *s);

/* ---- steps_muon.c ---- */

void pl_steps_muon_moment(const pl_steps_context *c, const pl_step *s);
void pl_steps_muon_sumsq(const pl_steps_context *c, const pl_step *s);
void pl_steps_muon_norm(const pl_steps_context *c, const pl_step *s);
void pl_steps_muon_take(const pl_steps_context *c, const pl_step *s);
void pl_steps_muon_poly(const pl_steps_context *c, const pl_step *s);
void pl_steps_muon_put(const pl_steps_context *c, const pl_step *s);
void pl_steps_muon_apply(const pl_steps_context *c, const pl_step *s);

#endif
