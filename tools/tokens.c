/* tokens.c: the tokenizers' library by hand, for bench/peers_tokenizer.py and
 * for trying things out:
 *
 *   tokens encode VOCAB TEXT [IDS]    ids as 32-bit numbers; prints MB/s
 *   tokens train SIZE THREADS MEMORY_MB TEXT FOLDER
 *                                     writes FOLDER/tokenizer.json; GPT-2's way
 *
 * Whole files in memory: this measures the library, it isn't for use. */
#include "base/clock.h"
#include "base/file.h"
#include "base/threads.h"
#include "text/bpe_read.h"
#include "text/bpe_train.h"
#include "text/pretok.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pl_heap heap;
static pl_error err;

static int fail(void)
{
    fprintf(stderr, "tokens: %s\n", err.text);
    return 1;
}

static int encode(const char *vocab, const char *path, const char *out)
{
    pl_bpe *bpe;
    pl_bpe_encoder encoder;
    pl_file file;
    char *text;
    int32_t *ids;
    size_t bytes;
    if (pl_bpe_load(&bpe, vocab, &heap, &err) ||
        pl_bpe_encoder_open(&encoder, bpe, PL_BPE_CACHE_BYTES, &heap, &err) ||
        pl_file_read_all(path, (size_t)1 << 33, &heap, &text, &bytes, &err) ||
        pl_heap_take(&heap, &ids, pl_bpe_most_ids(bpe, bytes) + 1, sizeof *ids,
                     &err))
        return fail();
    double began = pl_clock_seconds();
    size_t count = pl_bpe_encode(&encoder, text, bytes, PL_BPE_SPECIALS_AS_TEXT,
                                 ids);
    double seconds = pl_clock_seconds() - began;
    printf("{\"bytes\": %zu, \"tokens\": %zu, \"seconds\": %.6f, "
           "\"mb_per_s\": %.1f}\n",
           bytes, count, seconds, (double)bytes / seconds / 1e6);
    if (!out)
        return 0;
    if (pl_file_create(&file, out, &err) ||
        pl_file_append(&file, ids, count * sizeof *ids, &err) ||
        pl_file_close(&file, &err))
        return fail();
    return 0;
}

typedef struct feed {
    pl_bpe_counter *counter;
    const char *text;
    size_t bytes;
    pl_status status[PL_MAX_THREADS];
    pl_error errors[PL_MAX_THREADS];
} feed;

/* Where the share of the i-th thread begins. */
static size_t share(const feed *f, int i, int nth)
{
    size_t end = f->bytes / (size_t)nth * (size_t)i;
    return i == nth ? f->bytes : pl_pretok_cut(PL_PATTERN_GPT2, f->text, end);
}

static void count(void *context, int ith, int nth)
{
    feed *f = context;
    size_t begin = share(f, ith, nth), end = share(f, ith + 1, nth);
    f->status[ith] = pl_bpe_counter_add(f->counter, ith, f->text + begin,
                                        end - begin, &f->errors[ith]);
}

static int train(char **arguments)
{
    static feed f;
    pl_bpe_train_options options = { .min_count = 1 };
    pl_bpe_train_result result;
    pl_threads *threads;
    pl_file file;
    char *text, path[PL_PATH_BYTES];
    const char *json;
    size_t json_bytes;
    options.vocab_size = (int32_t)strtol(arguments[0], NULL, 10);
    options.threads = (int)strtol(arguments[1], NULL, 10);
    options.memory_bytes = strtoull(arguments[2], NULL, 10) << 20;
    options.folder = arguments[4];
    if (pl_file_read_all(arguments[3], (size_t)1 << 33, &heap, &text, &f.bytes,
                         &err) ||
        pl_threads_open(&threads, options.threads, &heap, &err))
        return fail();
    f.text = text;
    double began = pl_clock_seconds();
    if (pl_bpe_counter_open(&f.counter, &options, &heap, &err))
        return fail();
    pl_threads_run(threads, count, &f);
    for (int i = 0; i < options.threads; i++)
        if (f.status[i]) {
            err = f.errors[i];
            return fail();
        }
    double counted = pl_clock_seconds();
    pl_status status = pl_bpe_train(f.counter, &result, &heap, &err);
    double trained = pl_clock_seconds();
    pl_bpe_counter_close(f.counter);
    pl_threads_close(threads);
    if (status ||
        pl_bpe_write_json(result.bpe, &heap, &json, &json_bytes, &err) ||
        pl_path_join(path, arguments[4], "tokenizer.json", &err) ||
        pl_file_create(&file, path, &err) ||
        pl_file_append(&file, json, json_bytes, &err) ||
        pl_file_close(&file, &err))
        return fail();
    printf("{\"bytes\": %zu, \"count_s\": %.3f, \"train_s\": %.3f, "
           "\"pieces\": %llu, \"unique\": %llu, \"vocab\": %d, "
           "\"spilled_runs\": %zu, \"peak_bytes\": %zu}\n",
           f.bytes, counted - began, trained - counted,
           (unsigned long long)result.piece_count,
           (unsigned long long)result.unique_count,
           (int)pl_bpe_vocab_size(result.bpe), result.spilled_runs,
           result.peak_bytes);
    return 0;
}

int main(int argc, char **argv)
{
    heap = pl_heap_make((size_t)1 << 36);
    if (argc >= 4 && argc <= 5 && strcmp(argv[1], "encode") == 0)
        return encode(argv[2], argv[3], argv[4]);
    if (argc == 7 && strcmp(argv[1], "train") == 0)
        return train(argv + 2);
    fprintf(stderr, "usage: tokens encode VOCAB TEXT [IDS]\n"
                    "       tokens train SIZE THREADS MEMORY_MB TEXT FOLDER\n");
    return 2;
}
