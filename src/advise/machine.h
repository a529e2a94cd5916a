/* machine.h: what a run may assume of this machine: which device computes, how
 * much memory it may take, and how fast the ops are.
 *
 * The rates are remembered from one run to the next in a small JSON file per
 * device (instruction set, number of threads), dtype and n_embd, in a folder
 * that the caller names (the user's cache), with the date and how quiet it was.
 * A missing or strange file is no error: then the built-in rates hold. */
#ifndef PL_ADVISE_MACHINE_H
#define PL_ADVISE_MACHINE_H

#include "advise/load.h"
#include "comm/comm.h"
#include "config/config.h"
#include "device/device.h"
#include "model/gpt.h"
#include "model/looks.h"

enum { PL_MACHINE_TEXT_BYTES = 256, PL_RATE_DTYPES = PL_F16 + 1 };

/* The files of a run at their largest, where they take memory. */
typedef struct pl_machine_files {
    size_t checkpoints;        /* that may be there at once */
    uint64_t checkpoint_bytes; /* of each */
    uint64_t metrics_bytes;
    uint64_t bytes; /* of all of them */
} pl_machine_files;
typedef pl_machine_files pl_machine_files_of(const void *context,
                                             const pl_config *config,
                                             const pl_gpt *gpt);

typedef struct pl_machine {
    pl_device_info device;
    /* of arena, reserve and files in memory, or of the arena alone where the
     * device has memory of its own; SIZE_MAX: no limit known */
    size_t budget_bytes;
    size_t stated_bytes; /* by the key `memory`; SIZE_MAX: nothing was */
    char budget_from[PL_MACHINE_TEXT_BYTES]; /* who says so, for people */
    size_t host_budget_bytes; /* of the rest there; SIZE_MAX likewise */
    size_t tokenizer_bytes;   /* by a tokenizer and tasks, beside the plan's own
                               * tables
                               */
    size_t opened_bytes; /* that drivers hold which were opened to look for a
                          * card, and aren't used; off the budget already */
    pl_machine_files_of
        *files; /* NULL: they are on a disk, or there are none */
    const void *files_context;
    pl_rates rates[PL_RATE_DTYPES]; /* by PL_F32, PL_BF16, PL_F16 */
    pl_dtype dtype;                 /* the config's, */
    size_t width;             /* and its n_embd, which the rates depend on */
    const char *cache_folder; /* where rates are remembered; NULL: nowhere */
    double similar_trust;     /* in the rates for any width that are there */
    size_t ranks, rank;       /* processes that share the run, and which this
                               * is; 0: there is one */
    size_t engine_bytes; /* off the budget already, for what lets them talk,
                          * where they are only planned */
    pl_comm *comm;       /* between them, where they are there; else NULL */
    pl_load_reader *read_load; /* NULL: this machine's */
} pl_machine;

/* Whether a model is going to run here, or is only planned, perhaps for another
 * machine; or the host works for itself: on text, in its own memory. */
typedef enum pl_machine_use {
    PL_MACHINE_RUN,
    PL_MACHINE_PLAN,
    PL_MACHINE_HOST,
} pl_machine_use;

/* From the keys `device`, `threads` and `memory`. 'auto' asks it; a stated
 * budget is believed for a plan, and capped by what the device offers for a
 * run. */
PL_MUST_CHECK pl_status pl_machine_make(pl_machine *machine, pl_machine_use use,
                                        const pl_config *config,
                                        const char *cache_folder, pl_heap *heap,
                                        pl_error *err);

/* How fast the ops are in a run of the config's dtype. */
const pl_rates *pl_machine_rates(const pl_machine *machine);
/* The same in another dtype: PL_F32, PL_BF16 or PL_F16. */
const pl_rates *pl_machine_rates_in(const pl_machine *machine, pl_dtype dtype);

/* What is offered becomes `bytes` more, which the run holds already: as files
 * in memory, which a budget that is stated includes. */
void pl_machine_add_held(pl_machine *machine, uint64_t bytes);

/* What is offered becomes `bytes` less, for a process beside the run that
 * `what` names. PL_E_MEMORY where nothing is left. */
PL_MUST_CHECK pl_status pl_machine_take_off(pl_machine *machine, size_t bytes,
                                            const char *what, pl_error *err);

/* And so many more again, without them. */
void pl_machine_give_back(pl_machine *machine, size_t bytes);

/* What a look at the ops begins and ends with. */
pl_load pl_machine_load(const pl_machine *machine);

/* Whether it is worth a second to measure before planning: nothing is known of
 * this width and dtype, or only something old or from a busy moment. */
int pl_machine_wants_rates(const pl_machine *machine);

/* Takes what was seen into the rates, now. */
void pl_machine_learn(pl_machine *machine, const pl_looks *looks);

/* Writes the rates to the cache folder, if there is one; those for any width
 * only if what is there isn't to be trusted more. Allocates nothing: `text`
 * holds `capacity` bytes for the JSON. */
PL_MUST_CHECK pl_status pl_machine_remember(const pl_machine *machine,
                                            char *text, size_t capacity,
                                            pl_error *err);

#endif
