/* prepare.h: text of any size to a data folder: tokens and their tokenizer.
 *
 * Sources (data/source.h) are read once (char: twice, first to find its
 * characters), encoded by several threads and written in order, so that
 * neither their number nor the memory shows in the result.
 *
 * bpe: the end-of-text token stands behind every document. Whole documents
 * validate: one goes there when that brings the share of bytes nearer to
 * val_fraction. char and byte have no such token: all is one text, byte for
 * byte, in which a document of JSON lines or parquet ends with a line end.
 * Where no document validates (char, byte, one document, few), the end of the
 * tokens does, as nanoGPT has it: the first int(n * (1 - val_fraction)) train.
 *
 * Everything is written to "prepare.part" in the folder and put in place at
 * the end (data/publish.h): until then what was there before stays, whole.
 * After a stop the folder prepare.part has what is done and where to go on
 * (data/prepare_state.h); the next preparation of the same inputs with the
 * same options does so, any other removes it. */
#ifndef PL_DATA_PREPARE_H
#define PL_DATA_PREPARE_H

#include "base/log.h"
#include "data/shard.h"
#include "data/source.h"
#include "text/tokenizer.h"

#include <stddef.h>
#include <stdint.h>

#define PL_PREPARE_PART "prepare.part"

typedef enum pl_prepare_wish {
    PL_PREPARE_GO_ON,
    PL_PREPARE_STOP
} pl_prepare_wish;

typedef struct pl_prepare_progress {
    uint64_t done_bytes, total_bytes; /* on the disk, of all passes; total 0:
                                       * nobody knows */
    uint64_t text_bytes, documents, tokens; /* so far */
    uint64_t new_bytes;                     /* of text, in this run */
} pl_prepare_progress;

enum { PL_PREPARE_NO_TOKEN = -1 };

typedef struct pl_prepare_options {
    pl_source_options source;      /* but for its memory, which is set here */
    const char *folder;            /* made if it isn't there */
    const pl_tokenizer *tokenizer; /* NULL: char, of what the text has */
    int32_t end_token;             /* bpe: behind documents, or NO_TOKEN */
    double val_fraction;           /* between 0 and 1, nanoGPT: 0.1 */
    pl_shard_kind kind;            /* wide for a vocabulary above 65536 */
    uint64_t shard_tokens;         /* 0: train.bin and val.bin */
    int threads;
    size_t memory_bytes; /* all that is taken, but for the tokenizer's file */
    size_t budget_bytes; /* the key `memory`, of which that is a part: for
                          * messages; 0: nobody knows */
    const pl_log *log;   /* NULL: silence */
    /* Both may be NULL; called often. */
    void (*progress)(void *context, const pl_prepare_progress *progress);
    pl_prepare_wish (*wish)(void *context);
    void *context;
} pl_prepare_options;

typedef struct pl_prepare_result {
    uint64_t text_bytes, documents, train_tokens, val_tokens;
    uint64_t resumed_bytes; /* of text, done by an earlier run */
    uint64_t files;         /* of tokens */
    const char *tokenizer_file;
    pl_tokenizer tokenizer; /* its lists live in the heap */
} pl_prepare_result;

/* The least memory for this many threads. */
size_t pl_prepare_min_bytes(int threads, const pl_tokenizer *tokenizer);

/* PL_E_IO and PL_E_FORMAT for what is wrong with the files, PL_E_USAGE and
 * PL_E_CONFIG for the options, PL_E_MEMORY for a document or a budget,
 * PL_E_STOPPED after PL_PREPARE_STOP. */
PL_MUST_CHECK pl_status pl_prepare(const pl_prepare_options *options,
                                   pl_heap *heap, pl_prepare_result *result,
                                   pl_error *err);

#endif
