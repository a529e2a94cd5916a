/* only.c: a program that this is linked into knows the emulated card and no
 * other device. */
#include "device/choose.h"
#include "gpu/emulated_device.h"

__attribute__((constructor)) static void choose(void)
{
    pl_device_choose_only(&emulated_device.base);
}
