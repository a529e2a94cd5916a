/* mfu.h: nanoGPT's model flops utilisation, as a share of this machine's peak.
 *
 * The peak is measured, and what disturbs a probe can only make it small: the
 * best of several counts, and a training that does more than that shows that
 * all of them were disturbed. Pure: it is told what was measured. */
#ifndef PL_ADVISE_MFU_H
#define PL_ADVISE_MFU_H

typedef struct pl_mfu {
    double counted_flops; /* of an update, as nanoGPT counts them */
    double needed_flops;  /* that no way of computing it can do without */
    double peak_flops;    /* per second: the highest that was seen */
    double running;       /* counted flops per second, smoothed */
    int updates;
} pl_mfu;

pl_mfu pl_mfu_make(double counted_flops, double needed_flops);

/* One measurement of the peak. */
void pl_mfu_probed(pl_mfu *mfu, double flops_per_second);

/* Whether another probe would help: before the share is first shown. */
int pl_mfu_wants_probe(const pl_mfu *mfu);

/* After an update. */
void pl_mfu_updated(pl_mfu *mfu, double seconds);

/* The share, smoothed as nanoGPT does; negative: the first updates, which warm
 * up. */
double pl_mfu_share(const pl_mfu *mfu);

#endif
