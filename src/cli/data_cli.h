/* data_cli.h: what the commands about data share: which tokenizer is meant,
 * what memory there is, how far things are. */
#ifndef PL_CLI_DATA_CLI_H
#define PL_CLI_DATA_CLI_H

#include "cli/command.h"
#include "data/source.h"
#include "store/convert.h"
#include "text/tokenizer.h"

/* The tokenizer that the key `tokenizer` names: 'byte', 'gpt2', or a path.
 * 'char' is PL_E_USAGE: alone it says nothing. */
PL_MUST_CHECK pl_status pl_cli_tokenizer(pl_tokenizer *tokenizer,
                                         const pl_config *config, pl_heap *heap,
                                         pl_error *err);

/* From the keys `input` and `field`, and the paths. */
pl_source_options pl_cli_source(const pl_cli_args *args);

typedef struct pl_cli_budget {
    size_t budget_bytes; /* of the process */
    size_t left_bytes;   /* of it, for the work */
    int threads;
} pl_cli_budget;

/* What the keys `memory` and `threads` and the machine allow, less what the
 * process holds by now. */
PL_MUST_CHECK pl_status pl_cli_data_budget(pl_cli_budget *budget,
                                           const pl_config *config,
                                           pl_heap *heap, pl_error *err);

/* "peak memory: 151 MB of 200 MB (150999040 bytes)" */
void pl_cli_print_peak(const pl_cli_budget *budget);

/* A progress line. */
typedef struct pl_cli_pace {
    double began, shown;
} pl_cli_pace;

typedef struct pl_cli_way {
    const char *doing;
    uint64_t done_bytes, total_bytes; /* total 0: nobody knows */
    uint64_t text_bytes;              /* in this run */
    uint64_t documents, tokens;       /* tokens 0: not shown */
} pl_cli_way;

pl_cli_pace pl_cli_pace_begin(void);
/* Whether to show it now: after half a second, then ten times a second. */
int pl_cli_pace_is_due(pl_cli_pace *pace);
void pl_cli_pace_show(pl_cli_pace *pace, const pl_cli_way *way);

/* Shows how far a conversion is (store/convert.h); a signal ends it. `pace`
 * must last as long. */
pl_convert_watch pl_cli_convert_watch(pl_cli_pace *pace);

#endif
