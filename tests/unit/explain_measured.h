/* explain_measured.h: what PyTorch 2.15.0 took on the CPU in float32 with 2
 * threads, by tools/measure_torch_memory.py: the profiler's highest running
 * total of live bytes in each phase. Also in docs/explain_measured.json. */
#ifndef PL_TESTS_EXPLAIN_MEASURED_H
#define PL_TESTS_EXPLAIN_MEASURED_H

#include <stddef.h>

typedef enum measured_variant {
    MEASURED_FLASH,
    MEASURED_SCORES,
    MEASURED_CHECKPOINT, /* flash, blocks computed again */
} measured_variant;

typedef struct measured_row {
    const char *name;
    size_t B, T, C, L, H, V, accumulation;
    int bias;
    double dropout;
    measured_variant variant;
    size_t peak_bytes[4]; /* evaluation, update, update, evaluation */
} measured_row;

enum { MEASURED_THREADS = 2 };

/* clang-format off */
static const measured_row measured[] = {
    { "char", 12, 64, 128, 4, 4, 65, 1, 0, 0.0,
      MEASURED_FLASH,
      { 8192524, 30961160, 37394036, 14825084 } },
    { "char", 12, 64, 128, 4, 4, 65, 1, 0, 0.0,
      MEASURED_SCORES,
      { 8258060, 34139688, 40572564, 14890620 } },
    { "char", 12, 64, 128, 4, 4, 65, 1, 0, 0.0,
      MEASURED_CHECKPOINT,
      { 8192524, 14380488, 20813364, 14825084 } },
    { "char dropout", 16, 128, 192, 4, 6, 65, 1, 0, 0.2,
      MEASURED_FLASH,
      { 26804748, 206768136, 221234292, 41803388 } },
    { "char dropout", 16, 128, 192, 4, 6, 65, 1, 0, 0.2,
      MEASURED_SCORES,
      { 30229004, 207095848, 221562004, 45227644 } },
    { "char dropout", 16, 128, 192, 4, 6, 65, 1, 0, 0.2,
      MEASURED_CHECKPOINT,
      { 26804748, 70430152, 84896308, 41803388 } },
    { "wide", 4, 128, 512, 3, 8, 1000, 2, 1, 0.0,
      MEASURED_FLASH,
      { 55053324, 175042632, 224525480, 137387184 } },
    { "wide", 4, 128, 512, 3, 8, 1000, 2, 1, 0.0,
      MEASURED_SCORES,
      { 55249932, 175239240, 231013568, 137583792 } },
    { "wide", 4, 128, 512, 3, 8, 1000, 2, 1, 0.0,
      MEASURED_CHECKPOINT,
      { 55053324, 175042632, 193032168, 137387184 } },
    { "long", 2, 1024, 256, 2, 4, 4096, 2, 0, 0.0,
      MEASURED_FLASH,
      { 117519380, 228804616, 251883588, 174152788 } },
    { "long", 2, 1024, 256, 2, 4, 4096, 2, 0, 0.0,
      MEASURED_SCORES,
      { 135345164, 306333720, 329412692, 191978572 } },
    { "long", 2, 1024, 256, 2, 4, 4096, 2, 0, 0.0,
      MEASURED_CHECKPOINT,
      { 117519380, 165769096, 188848068, 174152788 } },
    { "long dropout", 1, 768, 192, 3, 6, 2048, 2, 1, 0.1,
      MEASURED_FLASH,
      { 28177172, 204799496, 219804840, 49473976 } },
    { "long dropout", 1, 768, 192, 3, 6, 2048, 2, 1, 0.1,
      MEASURED_SCORES,
      { 53932812, 210107936, 225113280, 75229616 } },
    { "long dropout", 1, 768, 192, 3, 6, 2048, 2, 1, 0.1,
      MEASURED_CHECKPOINT,
      { 28177172, 87206216, 102211560, 49473976 } },
    { "gpt2 vocabulary", 4, 256, 256, 2, 4, 50304, 3, 0, 0.0,
      MEASURED_FLASH,
      { 678599700, 976072712, 1092212804, 1000784980 } },
    { "gpt2 vocabulary", 4, 256, 256, 2, 4, 50304, 3, 0, 0.0,
      MEASURED_SCORES,
      { 679123988, 985083928, 1101224020, 1001309268 } },
    { "gpt2 vocabulary", 4, 256, 256, 2, 4, 50304, 3, 0, 0.0,
      MEASURED_CHECKPOINT,
      { 678599700, 944560008, 1060700100, 1000784980 } },
    { "one sequence", 1, 512, 384, 6, 12, 50304, 1, 0, 0.0,
      MEASURED_FLASH,
      { 431988244, 739687544, 850999972, 776092340 } },
    { "one sequence", 1, 512, 384, 6, 12, 50304, 1, 0, 0.0,
      MEASURED_SCORES,
      { 438279700, 745979000, 934214356, 782383796 } },
    { "one sequence", 1, 512, 384, 6, 12, 50304, 1, 0, 0.0,
      MEASURED_CHECKPOINT,
      { 431988244, 739687544, 780054820, 776092340 } },
    { "odd", 3, 100, 160, 5, 5, 777, 2, 0, 0.0,
      MEASURED_FLASH,
      { 10023132, 32962648, 46387420, 24380308 } },
    { "odd", 3, 100, 160, 5, 5, 777, 2, 0, 0.0,
      MEASURED_SCORES,
      { 10281132, 36182688, 49607460, 24638308 } },
    { "odd", 3, 100, 160, 5, 5, 777, 2, 0, 0.0,
      MEASURED_CHECKPOINT,
      { 10023132, 29001304, 33532780, 24380308 } },
    { "deep", 2, 256, 128, 16, 2, 512, 4, 0, 0.0,
      MEASURED_FLASH,
      { 17336844, 98028552, 124014996, 44371868 } },
    { "deep", 2, 256, 128, 16, 2, 512, 4, 0, 0.0,
      MEASURED_SCORES,
      { 22120972, 119983240, 145969684, 49155996 } },
    { "deep", 2, 256, 128, 16, 2, 512, 4, 0, 0.0,
      MEASURED_CHECKPOINT,
      { 17336844, 53781784, 63090068, 44371868 } },
};
/* clang-format on */

#endif
