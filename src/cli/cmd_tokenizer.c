/* cmd_tokenizer.c: trains a BPE vocabulary on the user's own text. */
#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/data_cli.h"
#include "cli/term.h"
#include "data/crew.h"
#include "text/bpe_read.h"
#include "text/bpe_train.h"
#include "text/tokfile.h"

#include <stdio.h>
#include <string.h>

enum { VOCAB_SIZE = 32768, MAX_LOAD_BYTES = 8 * 1024 * 1024 };

#define RUNS "tokenizer.part" /* counts that went to disk */

typedef struct work {
    const pl_config *config;
    pl_cli_budget budget;
    pl_cli_pace pace;
    pl_bpe_train_options options;
    pl_bpe_counter *counter;
    pl_source *source;
    pl_threads *threads;
    pl_heap scratch; /* loads, threads */
    size_t load_bytes;
    uint64_t total_bytes, text_bytes, documents;
    pl_file lock; /* of the folder */
    char runs[PL_PATH_BYTES];
    pl_status status[PL_MAX_THREADS];
    pl_error errors[PL_MAX_THREADS];
} work;

static void count(void *context, int ith, pl_crew_part *part)
{
    work *w = context;
    if (!w->status[ith])
        w->status[ith] = pl_bpe_counter_add(w->counter, ith, part->text,
                                            part->bytes, &w->errors[ith]);
}

static pl_status stopped(pl_error *err)
{
    return pl_fail(err, PL_E_STOPPED, "stopped: nothing was written");
}

static pl_stream_wish ask(void *context)
{
    (void)context;
    return pl_cli_signal() ? PL_STREAM_STOP : PL_STREAM_GO_ON;
}

static pl_status counted(void *context, const pl_crew_load *load, pl_error *err)
{
    work *w = context;
    pl_cli_way way = {
        .doing = "counting",
        .done_bytes = load->done_bytes,
        .total_bytes = w->total_bytes,
        .text_bytes = load->tally.text_bytes,
        .documents = load->tally.documents,
    };
    w->text_bytes = load->tally.text_bytes;
    w->documents = load->tally.documents;
    pl_cli_pace_show(&w->pace, &way);
    return pl_cli_signal() ? stopped(err) : PL_OK;
}

static pl_bpe_wish merged(void *context, size_t merges, size_t of)
{
    work *w = context;
    double now = pl_clock_seconds();
    if (now - w->pace.shown >= 0.1 && now - w->pace.began >= 0.5) {
        w->pace.shown = now;
        pl_term_progress("merging %3.0f %%",
                         100.0 * (double)merges / (double)(of ? of : 1));
    }
    return pl_cli_signal() ? PL_BPE_STOP : PL_BPE_GO_ON;
}

/* A part of the budget for what is read, the most for what is counted. */
static pl_status share_out(work *w, pl_source_options *source, pl_error *err)
{
    size_t all = w->budget.left_bytes;
    size_t threads = (size_t)w->budget.threads;
    size_t fixed = 1024 * 1024;
    size_t loads = pl_crew_bytes(PL_CREW_MIN_LOAD_BYTES, 0);
    size_t least = loads + fixed + PL_SOURCE_MIN_BYTES +
                   threads * PL_BPE_MIN_SHARE_BYTES;
    if (all < least)
        return pl_fail(err, PL_E_MEMORY,
                       "training a tokenizer with %zu threads needs %s of "
                       "memory, there are %s. Raise memory, or lower threads",
                       threads, pl_units_bytes(least).text,
                       pl_units_bytes(all).text);
    w->load_bytes = PL_CREW_MIN_LOAD_BYTES + (all - least) / 32;
    if (w->load_bytes > MAX_LOAD_BYTES)
        w->load_bytes = MAX_LOAD_BYTES;
    loads = pl_crew_bytes(w->load_bytes, 0);
    w->scratch = pl_heap_make(loads + fixed);
    source->memory_bytes = PL_SOURCE_MIN_BYTES + (all - least) / 8;
    w->options.memory_bytes = all - loads - fixed - source->memory_bytes;
    return PL_OK;
}

static pl_status count_all(work *w, const pl_source_options *source,
                           pl_heap *heap, pl_error *err)
{
    pl_status status = pl_source_open(&w->source, source, err);
    if (status)
        return status;
    const pl_source_list *list = pl_source_files(w->source);
    pl_source_list_say(list, &pl_term_log);
    if (pl_source_list_reading(list) == PL_SOURCE_AGAIN)
        w->total_bytes = list->total_bytes;
    status = pl_threads_open(&w->threads, w->budget.threads, &w->scratch, err);
    if (!status)
        status = pl_bpe_counter_open(&w->counter, &w->options, heap, err);
    if (status)
        return status;
    pl_crew_options crew = {
        .source = w->source,
        .splitting = w->options.splitting,
        .threads = w->threads,
        .load_bytes = w->load_bytes,
        .work = count,
        .take = counted,
        .context = w,
    };
    status = pl_crew_run(&crew, &w->scratch, err);
    if (status == PL_E_STOPPED)
        status = stopped(err);
    for (int i = 0; i < w->budget.threads && !status; i++)
        if (w->status[i]) {
            *err = w->errors[i];
            status = w->status[i];
        }
    if (!status && w->text_bytes == 0)
        status = pl_fail(err, PL_E_FORMAT,
                         "the text is empty, there is nothing to learn from");
    return status;
}

static void close_reading(work *w)
{
    if (w->threads)
        pl_threads_close(w->threads);
    pl_source_close(w->source);
    pl_heap_close(&w->scratch);
    w->threads = NULL;
    w->source = NULL;
}

static pl_status train(work *w, const pl_source_options *source, pl_heap *heap,
                       pl_bpe_train_result *result, pl_error *err)
{
    pl_status status = pl_folder_remove_flat(w->runs, err);
    if (!status)
        status = pl_folder_make(w->runs, err);
    if (status)
        return status;
    status = count_all(w, source, heap, err);
    close_reading(w);
    if (!status)
        status = pl_bpe_train(w->counter, result, heap, err);
    pl_bpe_counter_close(w->counter);
    pl_status removed = pl_folder_remove_flat(w->runs, NULL);
    (void)removed;
    return status;
}

static void print_result(const work *w, const pl_bpe_train_result *result,
                         double seconds)
{
    int asked = (int)w->options.vocab_size;
    int size = (int)pl_bpe_vocab_size(result->bpe);
    pl_term_clear();
    printf("%s bytes of text in %s document%s, %s pieces, %s different\n",
           pl_units_count(w->text_bytes).text,
           pl_units_count(w->documents).text, w->documents == 1 ? "" : "s",
           pl_units_count(result->piece_count).text,
           pl_units_count(result->unique_count).text);
    printf("vocab size: %d%s\n", size,
           size < asked ? ", the text has no more pairs to merge" : "");
    printf("%s, %.1f MB/s, %d thread%s%s\n", pl_units_duration(seconds).text,
           (double)w->text_bytes / seconds / 1e6, w->budget.threads,
           w->budget.threads == 1 ? "" : "s",
           result->spilled_runs ? "; counts went to the disk meanwhile" : "");
    pl_term_print("written to %s: tokenizer.json, vocab.json, merges.txt\n",
                  w->config->out);
    pl_cli_print_peak(&w->budget);
}

/* As the models have it whose pattern it is. */
static pl_splitting splitting_of(pl_pattern_choice pattern)
{
    static const pl_splitting all[] = {
        [PL_PATTERN_IS_GPT2] = { PL_PATTERN_GPT2, PL_NORMAL_NONE },
        [PL_PATTERN_IS_LLAMA3] = { PL_PATTERN_LLAMA3, PL_NORMAL_NONE },
        [PL_PATTERN_IS_QWEN2] = { PL_PATTERN_QWEN2, PL_NORMAL_NFC },
        [PL_PATTERN_IS_SMOLLM2] = { PL_PATTERN_SMOLLM2, PL_NORMAL_NONE },
    };
    return all[pattern];
}

static pl_status run_tokenizer(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    static work w; /* large: a message for each thread */
    const pl_config *config = &args->config;
    pl_bpe_train_result result;
    double began = pl_clock_seconds();
    if (args->path_count < 2 || strcmp(args->paths[0], "train") != 0 ||
        config->out[0] == '\0')
        return pl_fail(err, PL_E_USAGE,
                       "this needs text and a folder to write to: "
                       "plimsoll tokenizer train --out=data/bpe mine.txt");
    args->paths++;
    args->path_count--;
    pl_source_options source = pl_cli_source(args);
    source.ask = ask;
    source.cuts.splitting = splitting_of(config->pattern);
    w = (work){ .config = config,
                .pace = pl_cli_pace_begin(),
                .lock = PL_FILE_CLOSED };
    w.options = (pl_bpe_train_options){
        .vocab_size = VOCAB_SIZE,
        .specials = &config->end_of_text,
        .special_count = config->end_of_text[0] ? 1 : 0,
        .splitting = splitting_of(config->pattern),
        .min_count = 1,
        .folder = w.runs,
        .wish = merged,
        .context = &w,
    };
    if (config->vocab_size != PL_NONE) {
        if (config->vocab_size > PL_BPE_MAX_VOCAB)
            return pl_fail(err, PL_E_CONFIG,
                           "vocab_size is %lld, a tokenizer has at most %d",
                           (long long)config->vocab_size, PL_BPE_MAX_VOCAB);
        w.options.vocab_size = (int32_t)config->vocab_size;
    }
    pl_status status = pl_cli_data_budget(&w.budget, config, heap, err);
    w.options.threads = w.budget.threads;
    if (!status)
        status = share_out(&w, &source, err);
    if (!status)
        status = pl_path_join(w.runs, config->out, RUNS, err);
    if (status)
        return status;
    pl_cli_catch_signals();
    status = pl_folder_hold(&w.lock, config->out, err);
    if (!status)
        status = train(&w, &source, heap, &result, err);
    if (!status)
        status = pl_bpe_save(result.bpe, config->out, w.runs, heap, err);
    pl_folder_let_go(&w.lock);
    if (!status)
        print_result(&w, &result, pl_clock_seconds() - began);
    if (status == PL_E_STOPPED)
        pl_term_stopped(err);
    return status;
}

const pl_command pl_command_tokenizer = {
    .name = "tokenizer",
    .arguments = "train --out=FOLDER [--vocab_size=32768] [--pattern=gpt2] "
                 "FILE...",
    .summary = "trains a BPE tokenizer on your own text",
    .text = "Byte-level BPE in GPT-2's manner, with the merges of Hugging "
            "Face's trainer.\nReads what `prepare` reads. The result depends "
            "on the text alone, not on the\nthreads or the memory; counts that "
            "don't fit go to the disk. Writes\ntokenizer.json, vocab.json and "
            "merges.txt. --pattern=llama3, qwen2 or smollm2\ncuts text into "
            "words as these models do, and tokenizer.json says so.\n\n"
            "  plimsoll tokenizer train --vocab_size=8192 --out=data/bpe "
            "novels/*.txt\n"
            "  plimsoll prepare --tokenizer=data/bpe --out=data/novels "
            "novels/*.txt\n",
    .keys = PL_FOR_TOKENIZER,
    .run = run_tokenizer,
};
