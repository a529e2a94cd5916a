/* cmd_prepare.c: text files to tokens. */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/term.h"
#include "data/prepare.h"

#include <stdio.h>
#include <string.h>

typedef struct watch {
    double began, shown;
} watch;

static void show(void *context, uint64_t done, uint64_t total)
{
    watch *w = context;
    double now = pl_clock_seconds(), gone = now - w->began;
    if (now - w->shown < 0.1 || gone < 0.5)
        return;
    w->shown = now;
    double share = total ? (double)done / (double)total : 1.0;
    pl_term_text rest = pl_term_duration(gone * (1.0 - share) / share);
    pl_term_progress("preparing %3.0f %%  %.0f MB/s  %s left", 100.0 * share,
                     (double)done / gone / 1e6, rest.text);
}

static pl_prepare_wish wish(void *context)
{
    (void)context;
    return pl_cli_signal() ? PL_PREPARE_STOP : PL_PREPARE_GO_ON;
}

static pl_status run_prepare(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    watch w = { .began = pl_clock_seconds() };
    pl_prepare_result result;
    pl_prepare_options options = {
        .paths = args->paths,
        .path_count = args->path_count,
        .folder = config->out,
        .tokenizer = strcmp(config->tokenizer, "byte") == 0 ? PL_TOKENIZER_BYTE
                                                            : PL_TOKENIZER_CHAR,
        .val_fraction = config->val_fraction,
        .progress = show,
        .wish = wish,
        .context = &w,
    };
    if (args->path_count == 0 || config->out[0] == '\0')
        return pl_fail(err, PL_E_USAGE,
                       "prepare needs text files and a folder to write to: "
                       "plimsoll prepare --out=data/mine mine.txt");
    pl_cli_catch_signals();
    pl_status status = pl_prepare(&options, heap, &result, err);
    if (status)
        return status;
    pl_term_clear();
    printf("length of dataset: %s bytes in %zu file%s\n",
           pl_term_count(result.text_bytes).text, args->path_count,
           args->path_count == 1 ? "" : "s");
    printf("vocab size: %d (%s)\n", result.tokenizer.vocab_size,
           pl_tokenizer_kind_name(result.tokenizer.kind));
    printf("train has %s tokens\n", pl_term_count(result.train_tokens).text);
    printf("val has %s tokens\n", pl_term_count(result.val_tokens).text);
    printf("written to %s: train.bin, val.bin, meta.json\n", config->out);
    return PL_OK;
}

const pl_command pl_command_prepare = {
    .name = "prepare",
    .arguments = "--out=data/NAME [--tokenizer=char|byte] FILE...",
    .summary = "text files to tokens that `train` reads",
    .text = "Writes train.bin, val.bin (nanoGPT's format) and the vocabulary "
            "to a folder.\nThe files are taken as one text, in the order "
            "given; its end validates. Memory\ndoes not grow with the text.\n\n"
            "  plimsoll prepare --out=data/austen novels/*.txt\n",
    .keys = PL_FOR_PREPARE,
    .run = run_prepare,
};
