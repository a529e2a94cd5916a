/* text_look.c: see text_look.h. */
#include "cli/text_look.h"
#include "data/dataset.h"
#include "train/token_bytes.h"

enum { TOKENS = 65536 };

/* Bytes per token of the beginning; 0: unknown. */
static double look(const pl_dataset *dataset, pl_heap *heap)
{
    const pl_shard_set *train = &dataset->shards[PL_SPLIT_TRAIN];
    const size_t count = train->n_tokens < TOKENS ? (size_t)train->n_tokens
                                                  : TOKENS;
    pl_token_bytes bytes;
    int32_t *tokens;
    double sum = 0.0;
    if (pl_token_bytes_make(&bytes, &dataset->tokenizer, heap, NULL) ||
        !bytes.of || count == 0 ||
        pl_heap_take(heap, &tokens, count, sizeof *tokens, NULL) ||
        pl_shard_set_read(train, 0, count, tokens,
                          dataset->tokenizer.vocab_size, NULL))
        return 0.0;
    for (size_t i = 0; i < count; i++)
        sum += bytes.of[tokens[i]];
    return sum / (double)count;
}

pl_expect_text pl_cli_look_at_text(const pl_config *config, size_t vocab_size)
{
    pl_expect_text text = {
        .bytes_per_token = pl_expect_bytes_per_token(vocab_size),
    };
    pl_dataset dataset;
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    if (!pl_dataset_open(&dataset, "data", config->dataset, &heap, NULL)) {
        const double found = look(&dataset, &heap);
        if (found > 0.0)
            text.bytes_per_token = found;
        text.unique_bytes = (double)dataset.shards[PL_SPLIT_TRAIN].n_tokens *
                            text.bytes_per_token;
        pl_dataset_close(&dataset);
    }
    pl_heap_close(&heap);
    return text;
}
