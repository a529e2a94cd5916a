/* amx.h: a thread's tiles of Intel's AMX, for whoever has found that it may use
 * them (cpu_amx.h). Linux gives them to a process that asks; a thread has to
 * configure them, and should release them as soon as it can: what it holds is
 * saved whenever it is interrupted. */
#ifndef PL_BASE_AMX_H
#define PL_BASE_AMX_H

#include <stdint.h>

/* A tile has 16 rows of 16 words, each of them a float32 or two bfloat16s. */
enum { PL_AMX_SIDE = 16 };

/* All eight tiles become whole ones. */
static inline void pl_amx_begin(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } whole = { .palette = 1,
                .row_bytes = { 64, 64, 64, 64, 64, 64, 64, 64 },
                .rows = { 16, 16, 16, 16, 16, 16, 16, 16 } };
    __asm__ volatile("ldtilecfg %0" : : "m"(whole));
}

static inline void pl_amx_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}

#endif
