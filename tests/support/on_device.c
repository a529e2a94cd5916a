/* on_device.c: see on_device.h. */
#include "support/on_device.h"
#include "device/choose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void require(pl_status status, const pl_error *err)
{
    if (status)
        fail_msg("%s", err->text);
}

pl_device_info on_device_info(size_t threads)
{
    pl_config config = pl_config_make_default();
    pl_device_info info;
    pl_error err;
    config.threads = (int64_t)threads;
    require(pl_device_choose(&info, &config, &err), &err);
    return info;
}

void on_device_read(pl_device *device, pl_buffer_id buffer, size_t at,
                    void *target, size_t bytes)
{
    pl_error err;
    require(pl_device_read(device, buffer, at, target, bytes, &err), &err);
}

void on_device_write(pl_device *device, pl_buffer_id buffer, size_t at,
                     const void *source, size_t bytes)
{
    pl_error err;
    require(pl_device_write(device, buffer, at, source, bytes, &err), &err);
}

void *on_device_copy(pl_device *device, const pl_graph *graph,
                     pl_buffer_id buffer)
{
    size_t bytes = graph->buffers[buffer].bytes;
    void *copy = malloc(bytes);
    assert_non_null(copy);
    on_device_read(device, buffer, 0, copy, bytes);
    return copy;
}
