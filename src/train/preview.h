/* preview.h: the texts that a training writes on its way, with the weights it
 * has and the sample program of its own plan. Nothing of the run is touched: no
 * tensor that lives throughout, no random number, no control that an update
 * doesn't set itself. A text is the one that `plimsoll sample` writes first
 * from a checkpoint of that step, with the same settings. */
#ifndef PL_TRAIN_PREVIEW_H
#define PL_TRAIN_PREVIEW_H

#include "train/session.h"

/* Whoever waits: `stop` is asked between any two steps of a program. */
typedef struct pl_preview_watch {
    void *context;
    void (*progress)(void *context, const pl_progress *progress);
    void (*sampled)(void *context, const pl_sample_event *event);
    int (*stop)(void *context);
} pl_preview_watch;

/* Where this step is one to write at (sample_interval) and has no texts yet: a
 * text for each prompt, into samples.jsonl and to the watch. PL_E_STOPPED if
 * it stopped: the text that was under way is dropped, and all of this step's
 * are written again by the run that goes on. */
PL_MUST_CHECK pl_status pl_preview_write(pl_session *session,
                                         const pl_preview_watch *watch,
                                         pl_error *err);

#endif
