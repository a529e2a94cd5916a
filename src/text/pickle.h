/* pickle.h: reads nanoGPT's meta.pkl without unpickling anything.
 *
 * The file is a Python pickle of
 *   {'vocab_size': int, 'itos': {int: str, ...}, 'stoi': {str: int, ...}}
 * A pickle is a program for a stack machine; this one knows only the
 * instructions that such a dict needs (protocols 0 to 5), and these can make
 * nothing but numbers, strings and dicts. Every other one (GLOBAL, REDUCE, ...)
 * is refused with its name and offset, so nothing is ever executed. */
#ifndef PL_TEXT_PICKLE_H
#define PL_TEXT_PICKLE_H

#include "text/tokenizer.h"

enum {
    PL_PICKLE_MAX_BYTES = 8 * 1024 * 1024,
    /* What parsing may take beside the tokenizer, given back afterwards. */
    PL_PICKLE_SCRATCH_BYTES = 64 * 1024 * 1024,
};

/* The char tokenizer in `bytes` bytes of pickle. `name` (a path) begins every
 * message. PL_E_FORMAT for whatever isn't exactly that: itos must have the ids
 * 0 to vocab_size - 1, each a string of one character, and stoi must be its
 * inverse. Other keys of the outer dict are ignored, as nanoGPT does. */
PL_MUST_CHECK pl_status pl_pickle_read_meta(pl_tokenizer *tokenizer,
                                            const void *data, size_t bytes,
                                            const char *name, pl_heap *heap,
                                            pl_error *err);

#endif
