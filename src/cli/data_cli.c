/* data_cli.c: see data_cli.h. */
#include "cli/data_cli.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/term.h"
#include "config/special.h"
#include "text/tokfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Code, libraries and stacks: outside of what is planned. */
enum { RESERVE_BYTES = 5 * 1024 * 1024, THREAD_BYTES = 64 * 1024 };

/* ---- tokenizers ---- */

/* Where script/vocab may have put GPT-2's: beside the output, above it, in
 * data/, here. */
static pl_status find_gpt2(char path[PL_PATH_BYTES], const char *out,
                           int *found, pl_error *err)
{
    static const char name[] = "gpt2.tiktoken";
    char above[PL_PATH_BYTES];
    pl_status status = pl_path_add(above, out, "", err);
    if (status)
        return status;
    if (above[0])
        pl_path_cut_to_parent(above);
    const char *const folders[] = { out, above, "data", "" };
    *found = 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !*found; i++) {
        pl_file_kind kind;
        status = pl_path_join(path, folders[i], name, err);
        if (!status)
            status = pl_file_look(path, &kind, err);
        if (status)
            return status;
        *found = kind == PL_FILE_PLAIN;
    }
    return PL_OK;
}

/* What fetches it: plimsoll-vocab beside an installed program, script/vocab in
 * the sources. */
static pl_status find_vocab_script(char path[PL_PATH_BYTES], pl_error *err)
{
    char folder[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = pl_link_read("/proc/self/exe", folder, err);
    if (!status && folder[0]) {
        pl_path_cut_to_parent(folder);
        status = pl_path_join(path, folder, "plimsoll-vocab", err);
        if (!status)
            status = pl_file_look(path, &kind, err);
    }
    if (!status && kind != PL_FILE_PLAIN)
        status = pl_path_add(path, "script/vocab", "", err);
    return status;
}

/* Fails with what to do. */
static pl_status miss_gpt2(pl_error *err)
{
    char script[PL_PATH_BYTES];
    pl_status status = find_vocab_script(script, err);
    if (status)
        return status;
    return pl_fail(err, PL_E_IO,
                   "GPT-2's vocabulary isn't here: there is no gpt2.tiktoken "
                   "in the output's folder, in data/ or in this one. Fetch it "
                   "with\n"
                   "  %s data/gpt2.tiktoken\n"
                   "or name a copy: --tokenizer=PATH",
                   pl_path_shown(script));
}

pl_status pl_cli_tokenizer(pl_tokenizer *tokenizer, const pl_config *config,
                           pl_heap *heap, pl_error *err)
{
    const char *name = config->tokenizer;
    char path[PL_PATH_BYTES];
    int found = 0;
    pl_file_kind kind;
    const pl_tokenizer_wish wish = pl_config_tokenizer(config);
    if (wish == PL_TOKENIZER_WISH_BYTE) {
        *tokenizer = pl_tokenizer_make_byte();
        return PL_OK;
    }
    if (wish == PL_TOKENIZER_WISH_CHAR || wish == PL_TOKENIZER_WISH_NONE)
        return pl_fail(err, PL_E_USAGE,
                       "which tokenizer? --tokenizer=PATH takes a "
                       "tokenizer.json, a .tiktoken file, a folder of prepared "
                       "data or of a checkpoint; or 'byte', or 'gpt2'");
    pl_status status = pl_file_look(name, &kind, err);
    if (!status && wish == PL_TOKENIZER_WISH_GPT2 && kind == PL_FILE_ABSENT) {
        status = find_gpt2(path, config->out, &found, err);
        if (!status && !found)
            status = miss_gpt2(err);
        name = path;
    }
    return status ? status : pl_tokenizer_load(tokenizer, name, heap, err);
}

/* ---- sources ---- */

pl_source_options pl_cli_source(const pl_cli_args *args)
{
    static const pl_source_format formats[] = {
        [PL_INPUT_AUTO] = PL_SOURCE_AUTO,
        [PL_INPUT_TEXT] = PL_SOURCE_TEXT,
        [PL_INPUT_JSONL] = PL_SOURCE_JSONL,
        [PL_INPUT_PARQUET] = PL_SOURCE_PARQUET,
    };
    return (pl_source_options){
        .paths = args->paths,
        .path_count = args->path_count,
        .field = args->config.field,
        .include = args->config.include,
        .exclude = args->config.exclude,
        .format = formats[args->config.input],
    };
}

/* ---- memory ---- */

pl_status pl_cli_data_budget(pl_cli_budget *budget, const pl_config *config,
                             pl_heap *heap, pl_error *err)
{
    pl_machine machine;
    pl_memory_offer offer = { 0 };
    pl_status status = pl_cli_machine(&machine, PL_MACHINE_HOST, config, heap,
                                      err);
    if (status)
        return status;
    budget->threads = (int)pl_threads_for(
        config->threads == PL_NONE ? 0 : (size_t)config->threads);
    budget->budget_bytes = machine.budget_bytes;
    size_t held = 0;
    if (!pl_memory_offer_make(&offer, "", NULL))
        held = offer.own_bytes;
    held += RESERVE_BYTES + (size_t)budget->threads * THREAD_BYTES;
    if (machine.budget_bytes <= held)
        return pl_fail(err, PL_E_MEMORY,
                       "the program and the tokenizer take %s, the budget is "
                       "%s (%s). Raise memory",
                       pl_units_bytes(held).text,
                       pl_units_bytes(machine.budget_bytes).text,
                       machine.budget_from);
    budget->left_bytes = machine.budget_bytes - held;
    return PL_OK;
}

void pl_cli_print_peak(const pl_cli_budget *budget)
{
    size_t peak;
    if (pl_memory_peak_bytes(&peak, NULL))
        return;
    printf("peak memory: %s of %s (%s)\n", pl_units_bytes(peak).text,
           pl_units_bytes(budget->budget_bytes).text,
           pl_units_exact(peak).text);
    if (peak > budget->budget_bytes)
        pl_log_say(&pl_term_log, PL_LOG_WARN,
                   "the process held more than the budget: please report "
                   "this, with the command");
}

/* ---- progress ---- */

pl_cli_pace pl_cli_pace_begin(void)
{
    return (pl_cli_pace){ .began = pl_clock_seconds() };
}

int pl_cli_pace_is_due(pl_cli_pace *pace)
{
    double now = pl_clock_seconds();
    if (now - pace->shown < 0.1 || now - pace->began < 0.5)
        return 0;
    pace->shown = now;
    return 1;
}

void pl_cli_pace_show(pl_cli_pace *pace, const pl_cli_way *way)
{
    double now = pl_clock_seconds(), gone = now - pace->began;
    char share[32] = "", rest[64] = "", tokens[64] = "";
    if (!pl_cli_pace_is_due(pace))
        return;
    if (way->total_bytes) {
        double part = (double)way->done_bytes / (double)way->total_bytes;
        snprintf(share, sizeof share, " %3.0f %%", 100.0 * part);
        if (part > 0.0)
            snprintf(rest, sizeof rest, ", %s left",
                     pl_units_duration(gone * (1.0 - part) / part).text);
    }
    if (way->tokens)
        snprintf(tokens, sizeof tokens, ", %s tokens",
                 pl_units_count(way->tokens).text);
    pl_term_progress("%s%s  %.0f MB/s, %s documents%s%s", way->doing, share,
                     (double)way->text_bytes / gone / 1e6,
                     pl_units_count(way->documents).text, tokens, rest);
}

static int show_conversion(void *context, uint64_t done_bytes,
                           uint64_t total_bytes)
{
    pl_cli_pace *pace = context;
    if (pl_cli_signal())
        return 1;
    if (!pl_cli_pace_is_due(pace))
        return 0;
    const double gone = pl_clock_seconds() - pace->began;
    const double part = (double)done_bytes / (double)total_bytes;
    pl_term_progress("writing %3.0f %%  %.0f MB/s, %s left", 100.0 * part,
                     (double)done_bytes / gone / 1e6,
                     pl_units_duration(gone * (1.0 - part) / part).text);
    return 0;
}

pl_convert_watch pl_cli_convert_watch(pl_cli_pace *pace)
{
    *pace = pl_cli_pace_begin();
    return (pl_convert_watch){ .context = pace, .progress = show_conversion };
}
