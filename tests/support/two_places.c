/* two_places.c: see two_places.h. */
#include "support/two_places.h"
#include "device/choose.h"
#include "support/silly_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One that stands for all of its kind is asked for without the key. */
static const char *device = "cpu";

void two_places_go(place where)
{
    const char *wish = getenv("PLIMSOLL_TEST_DEVICE");
    pl_device_choose_only(NULL);
    device = "cpu";
    if (where == ON_PROCESSOR || !wish)
        return;
    if (strchr(wish, ':'))
        device = wish;
    else
        silly_device_if_asked();
}

typedef struct argument {
    char text[64];
} argument;

static argument as_argument(void)
{
    argument out;
    snprintf(out.text, sizeof out.text, "--device=%s", device);
    return out;
}

void two_places_set(tiny_run *run)
{
    tiny_run_set(run, as_argument().text);
}

pl_device_info two_places_info(size_t threads)
{
    pl_config config = pl_config_make_default();
    pl_heap heap = pl_heap_make(1 << 20);
    pl_device_info info;
    pl_error err;
    config.threads = (int64_t)threads;
    if (pl_config_override(&config, as_argument().text, PL_FOR_ALL, &heap,
                           &err) ||
        pl_device_choose(&info, &config, &err))
        fail_msg("%s", err.text);
    pl_heap_close(&heap);
    return info;
}
