/* hf_text.c: see hf_text.h. */
#include "store/hf_text.h"
#include "store/hf_config.h"

#include <string.h>

/* The token that stands between documents: the tokenizer's, GPT-2's where
 * there is none but the ids look like it; -1: none. */
static int32_t end_token(const pl_run *run)
{
    const pl_tokenizer *tokenizer = &run->tokenizer;
    if (tokenizer->kind == PL_TOKENIZER_BPE)
        return pl_bpe_end_token(tokenizer->bpe);
    if (tokenizer->kind == PL_TOKENIZER_NONE && run->shape.V >= 50257 &&
        run->shape.family == PL_FAMILY_GPT2)
        return 50256;
    return -1;
}

pl_status pl_hf_config_text(pl_run *run, size_t *bytes, pl_error *err)
{
    const pl_hf_config config = {
        .shape = run->shape,
        .dropout = run->config->dropout,
        .end_token = end_token(run),
        .dtype = run->gpt.layout.weights == PL_BF16 ? "bfloat16" : "float32",
    };
    pl_json_text j = pl_json_text_begin(run->text, PL_RUN_TEXT_BYTES);
    pl_hf_config_put(&j, &config);
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}

pl_status pl_hf_generation_text(pl_run *run, size_t *bytes, pl_error *err)
{
    pl_json_text j = pl_json_text_begin(run->text, PL_RUN_TEXT_BYTES);
    pl_json_text_raw(&j, "_from_model_config", "true");
    pl_hf_config_put_end(&j, end_token(run));
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}

/* The class that takes tokenizer.json as it is; GPT-2's own would add a token
 * to one that has no end of text. */
pl_status pl_hf_tokenizer_text(pl_run *run, size_t *bytes, pl_error *err)
{
    *bytes = 0;
    if (run->tokenizer.kind == PL_TOKENIZER_NONE)
        return PL_OK;
    pl_json_text j = pl_json_text_begin(run->text, PL_RUN_TEXT_BYTES);
    pl_json_text_string(&j, "tokenizer_class", "PreTrainedTokenizerFast");
    pl_json_text_whole(&j, "model_max_length", run->shape.T);
    pl_json_text_raw(&j, "clean_up_tokenization_spaces", "false");
    if (run->tokenizer.kind == PL_TOKENIZER_BPE && end_token(run) >= 0) {
        char text[PL_BPE_TOKEN_BYTES + 1];
        size_t length;
        const char *end = pl_bpe_token(run->tokenizer.bpe, end_token(run),
                                       &length);
        memcpy(text, end, length);
        text[length] = '\0';
        pl_json_text_string(&j, "bos_token", text);
        pl_json_text_string(&j, "eos_token", text);
    }
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}
