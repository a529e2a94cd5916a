/* share.h: a thread's part of a row of elements, in whole vectors. */
#ifndef PL_KERNELS_PLAIN_SHARE_H
#define PL_KERNELS_PLAIN_SHARE_H

#include "base/threads.h"

/* 64 bytes of float: no two threads write one cache line, and no vector of
 * any set is cut. Also a multiple of a mask's 4 columns. */
enum { SHARE_UNIT = 16 };

static inline void share_elements(size_t count, int ith, int nth, size_t *begin,
                                  size_t *end)
{
    const size_t units = count / SHARE_UNIT + (count % SHARE_UNIT != 0);
    pl_threads_slice(units, ith, nth, begin, end);
    *begin *= SHARE_UNIT;
    *end *= SHARE_UNIT;
    if (*begin > count)
        *begin = count;
    if (*end > count)
        *end = count;
}

#endif
