/* trust.h: which cards may compute a run: those whose bits are the processor's.
 *
 * A card is tested before its first run (device/selftest.h), and what came out
 * is remembered in a small JSON file of the caller's folder (the user's cache)
 * for this card, this driver and this program: another of any is tested anew.
 * A missing or strange file is no error. */
#ifndef PL_ADVISE_TRUST_H
#define PL_ADVISE_TRUST_H

#include "base/log.h"
#include "config/config.h"
#include "device/selftest.h"

typedef struct pl_trust_wish {
    const char *folder; /* where results are remembered; NULL: nowhere */
    const pl_log *log;
    void (*progress)(const char *text); /* NULL: at the end; or NULL */
    int no_cards; /* none is here: 'auto' opens no driver to look for one */
} pl_trust_wish;

/* Makes sure that the device that the config asks for may be used: a card that
 * fails the self-test is refused with what failed. 'auto' becomes the first
 * card that isn't a processor and passes, or the processor, for the rest of
 * this process (pl_device_choose_auto), and the log says what it took. 'cuda'
 * that nobody typed is a CUDA card that passes; else the log says why not, and
 * it is what 'auto' is. */
PL_MUST_CHECK pl_status pl_trust_device(const pl_config *config,
                                        const pl_trust_wish *wish,
                                        pl_heap *heap, pl_error *err);

/* What is remembered of a card; 0: nothing. */
int pl_trust_recall(pl_selftest_result *result, const pl_gpu_card *card,
                    const char *folder, pl_heap *heap);

/* Remembers a result; that a folder can't be written is no failure of the test,
 * and said in the log. */
void pl_trust_remember(const pl_selftest_result *result,
                       const pl_gpu_card *card, const pl_trust_wish *wish);

#endif
