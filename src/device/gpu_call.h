/* gpu_call.h: what all makers' calls have in common: a refusal's message,
 * waiting, and faults for tests. For files that have a pl_gpu_api, and tests.
 */
#ifndef PL_DEVICE_GPU_CALL_H
#define PL_DEVICE_GPU_CALL_H

#include "device/gpu.h"

/* "opencl:0 (RTX 4070): clFlush: CL_OUT_OF_RESOURCES": which call of which card
 * failed, and the name of its error. */
pl_status pl_gpu_refused(const pl_gpu_card *card, const char *call,
                         const char *error, pl_status status, pl_error *err);

/* The card doesn't give its memory: PL_E_MEMORY, and what to do. */
pl_status pl_gpu_ungiven(const pl_gpu_card *card, size_t bytes,
                         const char *error, pl_error *err);

/* A card that hasn't reached a mark, which it does every few steps, after so
 * many seconds is given up as hung. Processors may take their time. */
extern double pl_gpu_patience;

/* Waits until is_over says so, without spinning: the longer it takes, the less
 * often it asks. What blocks in a driver could not be left again. PL_E_IO, and
 * *is_hung, once patience has an end. */
PL_MUST_CHECK pl_status pl_gpu_wait(const pl_gpu_card *card,
                                    int (*is_over)(void *context),
                                    void *context, int *is_hung, pl_error *err);

/* Waits for everything, by both marks. */
PL_MUST_CHECK pl_status pl_gpu_finish(const pl_gpu_api *api, pl_gpu *gpu,
                                      pl_error *err);

/* For tests: the nth call from now on that can fail does, with this code;
 * 0: none. Returns how many there were since it was last asked. */
long pl_gpu_fail_at(long nth, int code);

/* The code of a call, or that of the fault that is due. */
int pl_gpu_seen(int code);

#endif
