/* steps_family.h: the ops that the blocks of Llama and Qwen3 have beside
 * GPT-2's. Private to steps.c. */
#ifndef PL_DEVICE_STEPS_FAMILY_H
#define PL_DEVICE_STEPS_FAMILY_H

#include "device/steps.h"

void pl_steps_qk(const pl_steps_context *c, const pl_step *s);
void pl_steps_qk_bwd(const pl_steps_context *c, const pl_step *s);
void pl_steps_qk_dw(const pl_steps_context *c, const pl_step *s);
void pl_steps_glu(const pl_steps_context *c, const pl_step *s);
void pl_steps_glu_bwd(const pl_steps_context *c, const pl_step *s);
void pl_steps_softcap(const pl_steps_context *c, const pl_step *s);

#endif
