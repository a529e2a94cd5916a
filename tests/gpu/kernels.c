/* kernels.c: kernels/gpu as C, for the emulator: the text that a GPU's compiler
 * gets, behind what words.clh means here. */
#include "gpu/emulated.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-function"

#include "gpu_text.h"
