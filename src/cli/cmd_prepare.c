/* cmd_prepare.c: text to tokens. */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/data_cli.h"
#include "cli/term.h"
#include "config/special.h"
#include "data/prepare.h"
#include "text/tokfile.h"

#include <stdio.h>

static void show(void *context, const pl_prepare_progress *progress)
{
    pl_cli_way way = {
        .doing = "preparing",
        .done_bytes = progress->done_bytes,
        .total_bytes = progress->total_bytes,
        .text_bytes = progress->new_bytes,
        .documents = progress->documents,
        .tokens = progress->tokens,
    };
    pl_cli_pace_show(context, &way);
}

static pl_prepare_wish wish(void *context)
{
    (void)context;
    return pl_cli_signal() ? PL_PREPARE_STOP : PL_PREPARE_GO_ON;
}

/* The token behind documents, if the tokenizer has such. */
static pl_status find_end(int32_t *end, const pl_tokenizer *tokenizer,
                          const pl_config *config, pl_error *err)
{
    char names[256] = "";
    size_t used = 0, bytes;
    *end = PL_PREPARE_NO_TOKEN;
    if (!tokenizer || tokenizer->kind != PL_TOKENIZER_BPE ||
        config->end_of_text[0] == '\0')
        return PL_OK;
    *end = pl_bpe_special(tokenizer->bpe, config->end_of_text);
    if (*end < 0 &&
        config->origin[PL_KEY_end_of_text].source == PL_FROM_DEFAULT)
        *end = pl_bpe_end_token(tokenizer->bpe);
    if (*end >= 0)
        return PL_OK;
    for (size_t i = 0; used + 64 < sizeof names; i++) {
        int32_t id = pl_bpe_special_at(tokenizer->bpe, i);
        const char *text = id < 0 ? NULL
                                  : pl_bpe_token(tokenizer->bpe, id, &bytes);
        if (!text)
            break;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.*s",
                                 i ? ", " : "", bytes < 40 ? (int)bytes : 40,
                                 text);
    }
    return pl_fail(err, PL_E_CONFIG,
                   "%s: the tokenizer has no special token %s to stand behind "
                   "documents. It has: %s. Choose one with --end_of_text=, or "
                   "none with --end_of_text=''",
                   config->tokenizer, config->end_of_text,
                   used ? names : "none");
}

/* `format` is export's key too. */
static pl_status check_format(const pl_config *config, pl_error *err)
{
    if (config->format == PL_FORMAT_AUTO ||
        config->format == PL_FORMAT_NANOGPT || config->format == PL_FORMAT_LLMC)
        return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "format = '%s' is for models (`plimsoll export`) or reports; "
        "tokens are written as 'nanogpt' or 'llmc'",
        pl_config_word(config, PL_KEY_format));
}

static pl_shard_kind choose_kind(const pl_config *config,
                                 const pl_tokenizer *tokenizer)
{
    int wide = tokenizer && tokenizer->vocab_size > PL_SHARD_NARROW_VOCAB;
    if (wide && config->format != PL_FORMAT_NANOGPT)
        return PL_SHARD_WIDE;
    return config->format == PL_FORMAT_LLMC ? PL_SHARD_LLMC : PL_SHARD_NANOGPT;
}

static void print_result(const pl_prepare_result *result,
                         const pl_prepare_options *options, double seconds)
{
    uint64_t new_bytes = result->text_bytes - result->resumed_bytes;
    pl_term_clear();
    printf("length of dataset: %s bytes in %s document%s\n",
           pl_units_count(result->text_bytes).text,
           pl_units_count(result->documents).text,
           result->documents == 1 ? "" : "s");
    printf("vocab size: %d (%s)\n", result->tokenizer.vocab_size,
           pl_tokenizer_kind_name(result->tokenizer.kind));
    printf("train has %s tokens\n", pl_units_count(result->train_tokens).text);
    printf("val has %s tokens\n", pl_units_count(result->val_tokens).text);
    printf("%s of text in %s, %.1f MB/s, %d thread%s\n",
           pl_units_bytes(new_bytes).text, pl_units_duration(seconds).text,
           (double)new_bytes / seconds / 1e6, options->threads,
           options->threads == 1 ? "" : "s");
    pl_term_print("written to %s: %s (%s), %s\n", options->folder,
                  result->files == 2 ? "train.bin, val.bin"
                                     : "train_*.bin, val_*.bin",
                  pl_shard_kind_name(options->kind), result->tokenizer_file);
}

static pl_status run_prepare(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    const int finds_chars = pl_config_tokenizer(config) ==
                            PL_TOKENIZER_WISH_CHAR;
    double began = pl_clock_seconds();
    pl_cli_pace pace = pl_cli_pace_begin();
    pl_cli_budget budget;
    pl_tokenizer tokenizer;
    pl_prepare_result result;
    pl_prepare_options options = {
        .source = pl_cli_source(args),
        .folder = config->out,
        .val_fraction = config->val_fraction,
        .log = &pl_term_log,
        .progress = show,
        .wish = wish,
        .context = &pace,
    };
    if (args->path_count == 0 || config->out[0] == '\0')
        return pl_fail(err, PL_E_USAGE,
                       "prepare needs text and a folder to write to: "
                       "plimsoll prepare --out=data/mine mine.txt");
    pl_status status = check_format(config, err);
    if (!status && !finds_chars) {
        status = pl_cli_tokenizer(&tokenizer, config, heap, err);
        options.tokenizer = &tokenizer;
    }
    if (!status)
        status = find_end(&options.end_token, options.tokenizer, config, err);
    if (!status)
        status = pl_cli_data_budget(&budget, config, heap, err);
    if (status)
        return status;
    options.kind = choose_kind(config, options.tokenizer);
    options.threads = budget.threads;
    options.memory_bytes = budget.left_bytes;
    options.budget_bytes = budget.budget_bytes;
    if (config->shard_tokens != PL_NONE)
        options.shard_tokens = (uint64_t)config->shard_tokens;
    pl_cli_catch_signals();
    status = pl_prepare(&options, heap, &result, err);
    if (status == PL_E_STOPPED)
        pl_term_stopped(err);
    if (status)
        return status;
    print_result(&result, &options, pl_clock_seconds() - began);
    pl_cli_print_peak(&budget);
    return PL_OK;
}

const pl_command pl_command_prepare = {
    .name = "prepare",
    .arguments = "--out=data/NAME [--tokenizer=char|byte|gpt2|PATH] FILE...",
    .summary = "text to tokens that `train` reads",
    .text = "Reads files, folders, patterns ('corpus/**/*.jsonl.zst') or '-', "
            "standard input:\ntext, source code, JSON lines, parquet; all but "
            "parquet also as .gz .zst .xz\n.lz4. Of a folder, what can be "
            "read; --include and --exclude choose. Writes\ntrain.bin, val.bin "
            "and the tokenizer to a folder, in bounded memory and with all\n"
            "threads; how many makes no difference to the result.\n\n"
            "  plimsoll prepare --out=data/austen novels/*.txt\n"
            "  plimsoll prepare --out=data/fineweb --tokenizer=gpt2 "
            "fineweb/*.parquet\n"
            "  plimsoll prepare --out=data/mine --tokenizer=data/bpe "
            "--field=body my.jsonl.gz\n\n"
            "With a BPE the end-of-text token stands behind every document, "
            "and whole\ndocuments validate. For 'char' and 'byte' all is one "
            "text, whose end validates.\nCtrl-C stops; the same command goes "
            "on where it stopped. docs/data.md has more.\n",
    .keys = PL_FOR_PREPARE,
    .run = run_prepare,
};
