/* explain_view.h: how an explanation of nanoGPT's memory is printed. */
#ifndef PL_CLI_EXPLAIN_VIEW_H
#define PL_CLI_EXPLAIN_VIEW_H

#include "config/config.h"
#include "device/cards.h"
#include "explain/advice.h"
#include "explain/peers.h"
#include "web/html.h"

enum { PL_EXPLAIN_WAYS = 6 };

/* The same config, run in another way. */
typedef struct pl_explain_way {
    const char *name;
    int estimated;
    pl_nanogpt_job job;
    pl_nanogpt_result result;
} pl_explain_way;

typedef struct pl_explain {
    const pl_config *config;
    const char *vocab_from;
    size_t heads;         /* as the config asks for; the job's divide */
    const pl_card *card;  /* or NULL */
    size_t memory_bytes;  /* of the card or the machine; 0: not given */
    size_t context_bytes; /* of it, what is gone before the first tensor */
    pl_nanogpt_job job;   /* as nanoGPT would run it, in eager mode */
    pl_nanogpt_result result;
    size_t need_bytes[PL_TAPE_COUNT];       /* with the allocator's slack */
    size_t expandable_bytes[PL_TAPE_COUNT]; /* the same, expandable */
    pl_explain_way ways[PL_EXPLAIN_WAYS];
    size_t way_count;
    pl_advice_list advice;
    size_t own_bytes;     /* what Plimsoll needs for all of it, in float32 */
    size_t own_least;     /* at the least */
    double own_seconds;   /* per update, as planned for own_bytes */
    double least_seconds; /* and for own_least */
} pl_explain;

/* The three columns of every table: training (the larger of the first and a
 * later update), evaluation at step 0, and later. */
enum { PL_EXPLAIN_COLUMNS = 3 };
extern const char *const pl_explain_columns[PL_EXPLAIN_COLUMNS];
const pl_tape_peak *pl_explain_column(const pl_nanogpt_result *result,
                                      int column);
/* The column's share of bytes per phase, such as need_bytes. */
size_t pl_explain_column_bytes(const size_t bytes[PL_TAPE_COUNT], int column);

/* "in the first update" */
const char *pl_explain_phase(pl_tape_phase phase);

void pl_explain_print(const pl_explain *e);
/* The same as a page with a picture, and the picture alone. */
void pl_explain_write_page(pl_html *h, const pl_explain *e);
void pl_explain_write_picture(pl_html *h, const pl_explain *e);
PL_MUST_CHECK pl_status pl_explain_print_json(const pl_explain *e,
                                              pl_heap *heap, pl_error *err);

#endif
