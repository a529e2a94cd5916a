/* lanes.h: LANES(j) of the canonical order. A group has 16 rows of 16 items;
 * item i of a row is lane i. Rows are read in fours, 256 bytes of a row at a
 * time, and handed over to their lanes through local memory:
 *
 *     read        | 0 1 2 3 | 4 5 6 7 | ...     item i has elements 4i .. 4i + 3
 *     lanes_turn  | 0 16 32 48 | 1 17 33 49 |   item i has i, i + 16, i + 32, ..
 *
 * Every item of a group calls all of these, as often as any other. */
#ifndef PL_KERNELS_GPU_LANES_H
#define PL_KERNELS_GPU_LANES_H

#include "kernels/gpu/memory.h"

enum {
    LANES = 16,
    LANE_ROWS = 16,
    LANE_COLUMNS = 64, /* of a row that are handed over together */
    LANE_PITCH = 80,   /* two rows of a warp meet in no bank */
    LANE_ROOM = LANE_ROWS * LANE_PITCH
};

PL_INLINE uint32_t lane_of(void)
{
    return ITEM % LANES;
}

PL_INLINE uint32_t lane_row(void)
{
    return ITEM / LANES;
}

/* Fours to lanes; see above. */
PL_INLINE void lanes_turn(LOCAL_PTR float *room, float v[4])
{
    LOCAL_PTR float *row = room + lane_row() * LANE_PITCH;
    BARRIER();
    put4(row + 4 * lane_of(), v[0], v[1], v[2], v[3]);
    BARRIER();
    for (int q = 0; q < 4; q++)
        v[q] = TAKE(row + lane_of() + 16 * q);
}

/* The sum of a row's lanes: i and i + 8, i + 4, i + 2, i + 1. */
PL_INLINE float lanes_total(LOCAL_PTR float *room, float x)
{
    LOCAL_PTR float *row = room + lane_row() * LANE_PITCH;
    const uint32_t lane = lane_of();
    BARRIER();
    PUT(row + lane, x);
    BARRIER();
    for (uint32_t w = LANES / 2; w; w /= 2) {
        if (lane < w)
            PUT(row + lane, TAKE(row + lane) + TAKE(row + lane + w));
        BARRIER();
    }
    return TAKE(row);
}

PL_INLINE float larger(float a, float b)
{
    return a > b ? a : b;
}

/* The largest of a row's lanes. */
PL_INLINE float lanes_most(LOCAL_PTR float *room, float x)
{
    LOCAL_PTR float *row = room + lane_row() * LANE_PITCH;
    const uint32_t lane = lane_of();
    BARRIER();
    PUT(row + lane, x);
    BARRIER();
    for (uint32_t w = LANES / 2; w; w /= 2) {
        if (lane < w)
            PUT(row + lane, larger(TAKE(row + lane), TAKE(row + lane + w)));
        BARRIER();
    }
    return TAKE(row);
}

#endif
