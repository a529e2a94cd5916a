/* only.c: makes the program that it is linked into know the tests' own device
 * and no other. */
#include "device/choose.h"
#include "support/silly_device.h"

__attribute__((constructor)) static void choose(void)
{
    pl_device_choose_only(&silly_device);
}
