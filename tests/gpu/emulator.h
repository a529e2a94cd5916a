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
 *   - all items of a warp take part in what a warp does together;
 *   - what is copied asynchronously arrives when it is waited for, and not
 *     before;
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
    int tensor_bits; /* of a warp's products: 24, or 25 */
} emulator_options;

extern emulator_options emulator;

/* Memory that addresses with a bank in them mean. */
enum { EMULATOR_BANKS = 4 };
extern unsigned char *emulator_banks[EMULATOR_BANKS];
extern emulator_count emulator_total;

/* ---- for emulated_warp.c ---- */

/* Lets the others of the warp come to the same line. */
void emulator_meet(int line);

/* Says what the running item does wrong; the first of these is kept. */
void emulator_complain(const char *format, ...);

/* Forgets what earlier groups have left under way. */
void emulator_forget(void);

/* ---- */

/* Runs all groups of a kernel of PL_GPU_KERNELS. Returns NULL, or what it did
 * wrong. `bytes` is checked against the size of its argument. */
const char *emulator_run(const char *kernel, uint32_t groups, uint32_t groups_y,
                         const void *args, size_t bytes);

/* Runs one group of 32 items of a function that is no kernel: a warp. */
const char *emulator_run_warp(void (*run)(const void *args), const void *args);

#endif
