/* gpu.h: a graphics card as a device: one arena in its memory, in as many banks
 * as its largest allocation asks for; steps are launched one after the other
 * and nothing in a program waits for the host.
 *
 * What differs between makers is a table of functions, pl_gpu_api; opencl.c
 * and cuda.c have one. Errors name the call, the card, and what it says. */
#ifndef PL_DEVICE_GPU_H
#define PL_DEVICE_GPU_H

#include "device/device_kind.h"
#include "device/gpu_launch.h"

enum { PL_GPU_MAX_BANKS = 4, PL_GPU_MAX_CARDS = 16 };

/* Two pieces of pinned host memory, through which bytes come and go. */
enum { PL_GPU_SLICE_BYTES = 4 * 1024 * 1024, PL_GPU_SLICES = 2 };

/* One that can be opened, as its driver describes it. */
typedef struct pl_gpu_card {
    const struct pl_gpu_api *api;
    int number; /* among all that the maker's library has */
    char name[96], driver[96];
    int is_processor; /* a processor that poses as a card: PoCL */
    int is_unified;   /* its memory is the host's */
    int has_double;   /* else doubles are emulated */
    size_t memory_bytes, largest_bytes;
    unsigned units, megahertz;
    int capability;     /* CUDA's: 89 is 8.9; 0: it isn't CUDA's */
    pl_products tensor; /* what its tensor cores compute; exact: it has none
                         * that kernels are there for */
    char code[64];   /* where its code comes from, or "": its driver compiles */
    char lacks[224]; /* what a run needs and it hasn't; or "" */
} pl_gpu_card;

typedef struct pl_gpu pl_gpu; /* an open card; each api has its own */

typedef struct pl_gpu_api {
    const char *name;  /* "opencl", as the key `device` has it */
    const char *title; /* "OpenCL" */

    /* PL_OK, or PL_E_CONFIG: what is missing of the maker's library. */
    pl_status (*is_here)(pl_error *err);

    /* All cards; none is no error. */
    pl_status (*list)(pl_gpu_card *cards, size_t *count, pl_error *err);

    /* Opens a card and compiles the program. */
    pl_status (*open)(pl_gpu **gpu, const pl_gpu_card *card, pl_heap *heap,
                      pl_error *err);
    void (*close)(pl_gpu *gpu); /* NULL is fine; frees the banks, too */

    /* Takes memory, and touches all of it: a driver may have promised more
     * than there is. */
    pl_status (*take)(pl_gpu *gpu, size_t bank, size_t bytes, pl_error *err);
    /* What kernels call that place. */
    uint64_t (*address)(const pl_gpu *gpu, size_t bank, size_t at);

    /* What a run may take of the card's memory now. NULL: nobody can say, and
     * 90 % of all of it are offered. */
    pl_status (*offer)(pl_device_offer *offer, const pl_gpu_card *card,
                       pl_error *err);

    pl_status (*launch)(pl_gpu *gpu, const pl_gpu_launch *launch,
                        pl_error *err);

    /* Zeros; copies between a bank and pinned slice `slice`. The copies begin
     * at once and are done after `wait` for that slice. */
    pl_status (*zero)(pl_gpu *gpu, size_t bank, size_t at, size_t bytes,
                      pl_error *err);
    void *(*slice)(pl_gpu *gpu, size_t slice);
    pl_status (*copy_in)(pl_gpu *gpu, size_t slice, size_t bank, size_t at,
                         size_t bytes, pl_error *err);
    pl_status (*copy_out)(pl_gpu *gpu, size_t slice, size_t bank, size_t at,
                          size_t bytes, pl_error *err);
    pl_status (*wait)(pl_gpu *gpu, size_t slice, pl_error *err);

    /* A mark in the stream of launches, and waiting until it is reached; there
     * are two of them. */
    pl_status (*mark)(pl_gpu *gpu, size_t mark, pl_error *err);
    pl_status (*reach)(pl_gpu *gpu, size_t mark, pl_error *err);
} pl_gpu_api;

/* What tensor cores of this compute capability compute. */
pl_products pl_gpu_tensor_of(int capability);

/* For the rest of this process a card has no tensor cores: they compute
 * something else. */
void pl_gpu_leave_tensor(const pl_gpu_card *card);

/* The device that a card is, or PL_E_CONFIG: what it lacks. */
PL_MUST_CHECK pl_status pl_gpu_describe(pl_device_info *info,
                                        const pl_device_kind *kind,
                                        const pl_gpu_card *card, pl_error *err);

/* The functions of a kind whose cards `api` opens. A kind has its own describe;
 * `card_of` finds the card of an info again. */
typedef struct pl_gpu_kind {
    pl_device_kind base; /* first: a pl_device_kind is one of these */
    const pl_gpu_api *api;
    pl_status (*card_of)(pl_gpu_card *card, const pl_device_info *info,
                         pl_error *err);
} pl_gpu_kind;

/* The device with this number among those that the kind's api lists, or the
 * best card among them: the first that isn't a processor, lacks nothing and has
 * memory of its own, else the first of the others. */
enum { PL_GPU_BEST = -1 };
PL_MUST_CHECK pl_status pl_gpu_find(pl_device_info *info,
                                    const pl_gpu_kind *kind, int number,
                                    pl_error *err);

/* card_of, for kinds whose variant is a number in their api's list. */
pl_status pl_gpu_card_of(pl_gpu_card *card, const pl_device_info *info,
                         pl_error *err);

pl_status pl_gpu_offer(pl_device_offer *offer, const pl_device_info *info,
                       pl_error *err);
pl_extent pl_gpu_scratch(const pl_device_info *info, const pl_step *step,
                         pl_dtype result);
pl_extent pl_gpu_packing(const pl_device_info *info, size_t columns,
                         size_t most, pl_dtype dtype);
pl_status pl_gpu_open(pl_device **out, const pl_device_info *info,
                      const pl_device *base, pl_heap *heap, pl_error *err);
void pl_gpu_close(pl_device *device);
pl_status pl_gpu_run(pl_device *device, pl_program_id program, pl_part part,
                     const pl_run_watch *watch, pl_run_end *end, pl_error *err);
pl_status pl_gpu_clear_buffer(pl_device *device, pl_buffer_id buffer,
                              pl_error *err);
pl_status pl_gpu_write(pl_device *device, pl_buffer_id buffer, size_t at,
                       const void *source, size_t bytes, pl_error *err);
pl_status pl_gpu_read(pl_device *device, pl_buffer_id buffer, size_t at,
                      void *target, size_t bytes, pl_error *err);
void *pl_gpu_host(pl_device *device, pl_buffer_id buffer);
void pl_gpu_host_end(pl_device *device, pl_buffer_id buffer);
pl_status pl_gpu_backed(pl_device *device, size_t at, size_t bytes,
                        size_t *backed_bytes, pl_error *err);
void pl_gpu_profile(pl_device *device, pl_program_id program, double *seconds);
double pl_gpu_probe(pl_device *device, pl_probe what);

#define PL_GPU_KIND(kind_name, kind_describe, kind_api, kind_card_of)          \
    {                                                                          \
        .base = { .name = kind_name,                                           \
                  .describe = kind_describe,                                   \
                  .offer = pl_gpu_offer,                                       \
                  .scratch = pl_gpu_scratch,                                   \
                  .packing = pl_gpu_packing,                                   \
                  .open = pl_gpu_open,                                         \
                  .close = pl_gpu_close,                                       \
                  .run = pl_gpu_run,                                           \
                  .clear = pl_gpu_clear_buffer,                                \
                  .write = pl_gpu_write,                                       \
                  .read = pl_gpu_read,                                         \
                  .host = pl_gpu_host,                                         \
                  .host_end = pl_gpu_host_end,                                 \
                  .backed = pl_gpu_backed,                                     \
                  .profile = pl_gpu_profile,                                   \
                  .probe = pl_gpu_probe },                                     \
        .api = kind_api, .card_of = kind_card_of                               \
    }

#endif
