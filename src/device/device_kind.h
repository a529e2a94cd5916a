/* device_kind.h: what a device is to those who make one: its table of
 * functions. device.h has the contract of each; the calls there check their
 * arguments (bounds, spaces, programs) before they come here, and end views.
 * Only for files of device kinds, and for the tests' own device. */
#ifndef PL_DEVICE_DEVICE_KIND_H
#define PL_DEVICE_DEVICE_KIND_H

#include "device/device.h"

typedef enum pl_probe {
    PL_PROBE_FLOPS,      /* pl_device_peak_flops */
    PL_PROBE_FLOPS_BF16, /* the same, of a run in bfloat16 */
    PL_PROBE_READS,      /* pl_device_read_bytes */
} pl_probe;

struct pl_device_kind {
    const char *name; /* by which the key `device` asks for it */
    int is_prompt;    /* pl_device_is_prompt */

    /* Before it is opened. `threads`: the key's, 0 where it leaves the choice
     * to the device. */
    pl_status (*describe)(pl_device_info *info, size_t threads, pl_error *err);
    pl_status (*offer)(pl_device_offer *offer, const pl_device_info *info,
                       pl_error *err);
    pl_extent (*scratch)(const pl_device_info *info, const pl_step *step,
                         pl_dtype result);
    pl_extent (*packing)(const pl_device_info *info, size_t columns,
                         size_t most, pl_dtype dtype);

    /* Takes memory of `heap` for its own struct, which begins with a
     * pl_device; what stands in `base` has to be copied there. */
    pl_status (*open)(pl_device **out, const pl_device_info *info,
                      const pl_device *base, pl_heap *heap, pl_error *err);
    void (*close)(pl_device *device);
    pl_status (*run)(pl_device *device, pl_program_id program, pl_part part,
                     const pl_run_watch *watch, pl_run_end *end, pl_error *err);
    pl_status (*clear)(pl_device *device, pl_buffer_id buffer, pl_error *err);
    pl_status (*write)(pl_device *device, pl_buffer_id buffer, size_t at,
                       const void *source, size_t bytes, pl_error *err);
    pl_status (*read)(pl_device *device, pl_buffer_id buffer, size_t at,
                      void *target, size_t bytes, pl_error *err);
    /* The host's memory of a buffer, and its end: whoever uses it from there
     * on should be seen, in builds that bury. */
    void *(*host)(pl_device *device, pl_buffer_id buffer);
    void (*host_end)(pl_device *device, pl_buffer_id buffer);
    /* Of so many bytes of the device's arena, from `at` on, what is backed. */
    pl_status (*backed)(pl_device *device, size_t at, size_t bytes,
                        size_t *backed_bytes, pl_error *err);
    void (*profile)(pl_device *device, pl_program_id program, double *seconds);
    double (*probe)(pl_device *device, pl_probe what);
};

/* More buffers than are ever the host's. */
enum { PL_DEVICE_MAX_VIEWS = 4 };

struct pl_device {
    const pl_device_kind *kind;
    const pl_graph *graph;
    const pl_placement *placement;
    /* device.c's: buffers of the host's space that were handed out */
    pl_buffer_id views[PL_DEVICE_MAX_VIEWS];
    int n_views;
};

#endif
