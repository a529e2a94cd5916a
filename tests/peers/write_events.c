/* write_events FILE: an event file for a reader that isn't ours. Steps 0 to
 * 999; from 600 on twice, as by a run that was resumed at a checkpoint. */
#include "format/tensorboard.h"

#include <math.h>
#include <stdio.h>

static pl_status tell(pl_tensorboard *events, int64_t first, int64_t last,
                      pl_error *err)
{
    pl_status status = PL_OK;
    for (int64_t step = first; step <= last && !status; step++) {
        double now = 1.7e9 + (double)step;
        status = pl_tensorboard_scalar(events, "loss/train", step, now,
                                       expf(-0.01f * (float)step), err);
        if (!status && step % 100 == 0)
            status = pl_tensorboard_scalar(events, "loss/val", step, now,
                                           (float)step, err);
        if (!status && step % 100 == 0)
            status = pl_tensorboard_text(events, "sample/1", step, now,
                                         "\n    caf\xc3\xa9 <b>", 14, err);
    }
    return status;
}

int main(int argc, char **argv)
{
    static pl_tensorboard events;
    pl_error err = { .status = PL_OK };
    uint64_t kept = 0;
    if (argc != 2)
        return 2;
    pl_status status = pl_tensorboard_open(
        &events, argv[1], PL_TENSORBOARD_KEEP_NONE, 1.7e9, &err);
    if (!status)
        status = tell(&events, 0, 599, &err);
    if (!status)
        status = pl_tensorboard_flush(&events, &err);
    kept = events.size_bytes;
    if (!status)
        status = tell(&events, 600, 799, &err);
    if (!status)
        status = pl_tensorboard_close(&events, &err);
    if (!status)
        status = pl_tensorboard_open(&events, argv[1], kept, 1.8e9, &err);
    if (!status)
        status = tell(&events, 600, 999, &err);
    if (!status)
        status = pl_tensorboard_close(&events, &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    return status ? 1 : 0;
}
