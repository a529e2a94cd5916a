/* prepare.h: text files to a data folder: train.bin, val.bin, meta.json.
 *
 * The files are taken as one text, in the order given, byte for byte: a byte
 * order mark and the line ends stay as they are. The split is nanoGPT's: the
 * first int(n * (1 - val_fraction)) tokens train, the rest validates. Memory
 * doesn't depend on the size of the text: char reads it twice, first to find
 * its characters.
 *
 * Everything is written under other names and put in place at the end; on
 * failure or a stop what was in the folder before is there again, whole. A
 * crash while putting in place leaves a folder without train.bin, never one
 * with files that don't belong together. */
#ifndef PL_DATA_PREPARE_H
#define PL_DATA_PREPARE_H

#include "text/tokenizer.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_prepare_wish {
    PL_PREPARE_GO_ON,
    PL_PREPARE_STOP
} pl_prepare_wish;

typedef struct pl_prepare_options {
    const char *const *paths;
    size_t path_count;
    const char *folder;          /* made if it isn't there */
    pl_tokenizer_kind tokenizer; /* char or byte */
    double val_fraction;         /* between 0 and 1, nanoGPT: 0.1 */
    /* Both may be NULL. `progress` sees the bytes read so far in all passes and
     * their total; `wish` is asked as often and may end it all. */
    void (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    pl_prepare_wish (*wish)(void *context);
    void *context;
} pl_prepare_options;

typedef struct pl_prepare_result {
    uint64_t text_bytes, train_tokens, val_tokens;
    pl_tokenizer tokenizer; /* its lists live in the heap */
} pl_prepare_result;

/* What pl_prepare takes from its heap at most. */
enum { PL_PREPARE_HEAP_BYTES = 5 * 1024 * 1024 };

/* PL_E_IO and PL_E_FORMAT for what is wrong with the files, PL_E_USAGE for the
 * options, PL_E_STOPPED after PL_PREPARE_STOP. */
PL_MUST_CHECK pl_status pl_prepare(const pl_prepare_options *options,
                                   pl_heap *heap, pl_prepare_result *result,
                                   pl_error *err);

#endif
