/* on_device.h: bytes in and out of a device, for tests. Fails the running test
 * itself (cmocka). */
#ifndef PL_TESTS_SUPPORT_ON_DEVICE_H
#define PL_TESTS_SUPPORT_ON_DEVICE_H

#include "device/device.h"

/* The device that a config with so many threads asks for. */
pl_device_info on_device_info(size_t threads);

void on_device_read(pl_device *device, pl_buffer_id buffer, size_t at,
                    void *target, size_t bytes);
void on_device_write(pl_device *device, pl_buffer_id buffer, size_t at,
                     const void *source, size_t bytes);
/* A copy of a whole buffer; malloc'ed. */
void *on_device_copy(pl_device *device, const pl_graph *graph,
                     pl_buffer_id buffer);

#endif
