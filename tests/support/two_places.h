/* two_places.h: runs of tests that compute now on the processor, now on the
 * device that the environment variable PLIMSOLL_TEST_DEVICE names: 'silly'
 * (silly_device.h) or a value of the key `device`, such as 'opencl:0'. Fails
 * the running test itself (cmocka). */
#ifndef PL_TESTS_SUPPORT_TWO_PLACES_H
#define PL_TESTS_SUPPORT_TWO_PLACES_H

#include "support/tiny_run.h"

typedef enum place { ON_PROCESSOR, ON_TEST_DEVICE } place;

/* From now on runs compute there; on the processor, where no device is asked
 * for. */
void two_places_go(place where);

/* Sets the run's key `device` to where runs compute now. */
void two_places_set(tiny_run *run);

/* What a config with so many threads gets there. */
pl_device_info two_places_info(size_t threads);

#endif
