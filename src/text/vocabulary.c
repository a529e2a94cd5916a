/* vocabulary.c: see vocabulary.h. */
#include "text/vocabulary.h"

#include <stdio.h>
#include <string.h>

enum { SCRATCH_BYTES = 1 << 30 }; /* the largest vocabulary there is, written */

pl_vocabulary pl_vocabulary_of_text(const pl_tokenizer *tokenizer,
                                    const pl_tokenizer_text *file)
{
    pl_vocabulary v = { .kind = tokenizer->kind,
                        .size = tokenizer->vocab_size };
    if (file->name)
        v.sum = pl_hash_of(file->text, file->bytes);
    return v;
}

pl_status pl_vocabulary_of(pl_vocabulary *vocabulary,
                           const pl_tokenizer *tokenizer, pl_error *err)
{
    pl_tokenizer_text file;
    pl_heap scratch = pl_heap_make(SCRATCH_BYTES);
    pl_status status = pl_tokenizer_write(tokenizer, &scratch, &file, err);
    if (!status)
        *vocabulary = pl_vocabulary_of_text(tokenizer, &file);
    pl_heap_close(&scratch);
    return status;
}

int pl_vocabulary_same(const pl_vocabulary *a, const pl_vocabulary *b)
{
    return a->kind == b->kind && a->size == b->size &&
           strcmp(a->sum.text, b->sum.text) == 0;
}

const char *pl_vocabulary_text(const pl_vocabulary *vocabulary,
                               char out[PL_VOCABULARY_TEXT_BYTES])
{
    snprintf(out, PL_VOCABULARY_TEXT_BYTES, "%s, %d tokens, %.8s",
             pl_tokenizer_kind_name(vocabulary->kind), (int)vocabulary->size,
             vocabulary->sum.text);
    return out;
}
