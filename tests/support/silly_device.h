/* silly_device.h: a device for tests alone: what a graphics card would be, as
 * far as the rest of the program could notice.
 *
 * Its memory is elsewhere: in banks that no pointer of the host's may touch (a
 * read or write outside its own calls is a SIGSEGV), with an alignment of its
 * own. What is in the host's space has a mapping of its own, which is gone when
 * a view ends. Its workers are one thread, one after the other. It computes
 * with the processor's kernels, so that every bit is the same. */
#ifndef PL_TESTS_SUPPORT_SILLY_DEVICE_H
#define PL_TESTS_SUPPORT_SILLY_DEVICE_H

#include "device/device_kind.h"

enum { SILLY_ALIGN = 256, SILLY_BANK_BYTES = 312 * 1024 };

extern const pl_device_kind silly_device;

/* With the kernels of a variant of the processor (device/cpu.h). */
pl_device_info silly_device_info(int variant, size_t threads);

/* All configs ask for it from now on, if the environment variable
 * PLIMSOLL_TEST_DEVICE is 'silly'. Returns whether. */
int silly_device_if_asked(void);

/* The nth call from now (1 = next) that can fail fails; 0 switches it off.
 * SILLY_LOST: and all that follow until the device is closed. */
typedef enum silly_fault { SILLY_LOST, SILLY_ONCE } silly_fault;
void silly_device_fail_at(long nth, silly_fault how);
/* Calls since then. */
long silly_device_calls(void);

#endif
