/* fuzz.h: libFuzzer's entry point, which has no header of its own. */
#ifndef PL_TESTS_FUZZ_H
#define PL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
