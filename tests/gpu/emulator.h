/* emulator.h: runs the kernels of kernels/gpu on this processor as a GPU would,
 * and looks at what they do:
 *
 *   - all items of a group meet at every barrier, or none does;
 *   - no item uses a word of local memory that another one uses between the
 *     same two barriers, if one of them writes it; nor a word that nobody
 * wrote;
 *   - the same of global memory, where no barrier is between two groups;
 *   - accesses are aligned; what lies outside of an allocation is
 *     AddressSanitizer's to find;
 *   - how many segments of 128 bytes the 32 items of a warp touch together, and
 *     how often they meet in a bank of local memory.
 *
 * Items run in ascending order up to the first barrier, in descending order up
 * to the second, and so on, so that a barrier that is missing shows in the
 * result, too. */
#ifndef PL_TESTS_GPU_EMULATOR_H
#define PL_TESTS_GPU_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

/* What was counted; each beside the least that these accesses could take. */
typedef struct emulator_count {
    uint64_t segments, segments_ideal; /* of global memory */
    uint64_t phases, phases_ideal;     /* of local memory */
    uint64_t barriers, groups;
} emulator_count;

typedef struct emulator_options {
    int counts;      /* fill in emulator_total */
    int is_checked;  /* look for races */
    int soft_double; /* kernels that have no double */
} emulator_options;

extern emulator_options emulator;

/* Memory that addresses with a bank in them mean. */
enum { EMULATOR_BANKS = 4 };
extern unsigned char *emulator_banks[EMULATOR_BANKS];
extern emulator_count emulator_total;

/* Runs all groups of a kernel of PL_GPU_KERNELS. Returns NULL, or what it did
 * wrong. `bytes` is checked against the size of its argument. */
const char *emulator_run(const char *kernel, uint32_t groups, uint32_t groups_y,
                         const void *args, size_t bytes);

#endif
