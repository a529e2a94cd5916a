/* plan_expected.c: see plan_expected.h. */
#include "cli/plan_expected.h"
#include "cli/term.h"
#include "config/special.h"
#include "data/dataset.h"
#include "model/dial.h"
#include "train/token_bytes.h"

#include <stdio.h>

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

static pl_expect_text look_at_text(const pl_config *config, size_t vocab_size)
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

pl_status pl_plan_expected_make(pl_plan_expected *expected,
                                const pl_config *config, size_t vocab_size,
                                pl_error *err)
{
    double parameters;
    *expected = (pl_plan_expected){ .bits = { 0.0, 0.0 } };
    if (pl_config_beginning(config) != PL_BEGIN_SCRATCH ||
        config->max_iters == 0)
        return PL_OK;
    pl_status status = pl_dial_parameters(&parameters, config, vocab_size, err);
    if (status)
        return status;
    expected->text = look_at_text(config, vocab_size);
    expected->bits = pl_expect_bits(parameters,
                                    (double)config->max_iters *
                                        (double)pl_config_update_tokens(config),
                                    config->optimizer, &expected->text);
    return PL_OK;
}

void pl_plan_expected_print(const pl_plan_expected *expected)
{
    const pl_expectation *bits = &expected->bits;
    const double per_token = 0.69314718 * expected->text.bytes_per_token;
    if (!(bits->high > 0.0))
        return;
    printf("%sexpect%s      %.2f to %.2f bits per byte at the end (val_bpb)",
           pl_term_out(PL_TERM_BOLD), pl_term_out_end(), bits->low, bits->high);
    if (expected->text.unique_bytes > 0.0)
        printf(", a loss of %.2f to %.2f", per_token * bits->low,
               per_token * bits->high);
    printf(": what prose takes a model of this size and length "
           "(docs/recipe.md)\n");
}
