/* hf_text.c: see hf_text.h. */
#include "train/hf_text.h"
#include "format/jsontext.h"

#include <stdio.h>

static const char end_of_text[] = "<|endoftext|>";

/* The token that stands between documents: the tokenizer's, GPT-2's where
 * there is none but the ids look like it; -1: none. */
static int32_t end_token(const pl_session *session)
{
    const pl_tokenizer *tokenizer = &session->tokenizer;
    if (tokenizer->kind == PL_TOKENIZER_BPE)
        return pl_bpe_special(tokenizer->bpe, end_of_text);
    if (tokenizer->kind == PL_TOKENIZER_NONE && session->shape.V >= 50257)
        return 50256;
    return -1;
}

static void put_end_tokens(const pl_session *session, pl_json_text *j)
{
    static const char *const keys[] = { "bos_token_id", "eos_token_id" };
    int32_t id = end_token(session);
    for (int i = 0; i < 2; i++)
        if (id >= 0)
            pl_json_text_whole(j, keys[i], (uint64_t)id);
        else
            pl_json_text_raw(j, keys[i], "null");
}

/* Hugging Face's GPT-2 can't say a head_dim of its own. */
static void put_kind(pl_json_text *j, const pl_shape *s)
{
    char note[256];
    if (s->A == s->C) {
        pl_json_text_string(j, "model_type", "gpt2");
        pl_json_text_raw(j, "architectures", "[\"GPT2LMHeadModel\"]");
        return;
    }
    pl_json_text_string(j, "model_type", "plimsoll_gpt2");
    snprintf(note, sizeof note,
             "GPT-2's attention is n_embd wide, this model's is %zu (%zu heads "
             "of %zu): only Plimsoll loads it. An n_head that divides n_embd "
             "would load anywhere.",
             s->A, s->H, s->D);
    pl_json_text_string(j, "note", note);
    pl_json_text_whole(j, "head_dim", s->D);
}

pl_status pl_hf_config_text(pl_session *session, size_t *bytes, pl_error *err)
{
    const pl_shape *s = &session->shape;
    pl_json_text j = pl_json_text_begin(session->text, PL_SESSION_TEXT_BYTES);
    put_kind(&j, s);
    pl_json_text_string(&j, "activation_function",
                        s->activation == PL_ACT_GELU ? "gelu" : "gelu_new");
    pl_json_text_whole(&j, "vocab_size", s->V);
    pl_json_text_whole(&j, "n_positions", s->T);
    pl_json_text_whole(&j, "n_ctx", s->T);
    pl_json_text_whole(&j, "n_embd", s->C);
    pl_json_text_whole(&j, "n_layer", s->L);
    pl_json_text_whole(&j, "n_head", s->H);
    pl_json_text_whole(&j, "n_inner", 4 * s->C);
    pl_json_text_raw(&j, "layer_norm_epsilon", "1e-05");
    pl_json_text_real(&j, "embd_pdrop", session->config->dropout);
    pl_json_text_real(&j, "attn_pdrop", session->config->dropout);
    pl_json_text_real(&j, "resid_pdrop", session->config->dropout);
    pl_json_text_raw(&j, "tie_word_embeddings", "true");
    pl_json_text_string(&j, "torch_dtype",
                        session->gpt.layout.weights == PL_BF16 ? "bfloat16"
                                                               : "float32");
    put_end_tokens(session, &j);
    if (s->bias == PL_BIAS_NONE) /* its biases are zeros, and stay so here */
        pl_json_text_raw(&j, "plimsoll_bias", "false");
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}

pl_status pl_hf_generation_text(pl_session *session, size_t *bytes,
                                pl_error *err)
{
    pl_json_text j = pl_json_text_begin(session->text, PL_SESSION_TEXT_BYTES);
    pl_json_text_raw(&j, "_from_model_config", "true");
    put_end_tokens(session, &j);
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}

/* The class that takes tokenizer.json as it is; GPT-2's own would add a token
 * to one that has no end of text. */
pl_status pl_hf_tokenizer_text(pl_session *session, size_t *bytes,
                               pl_error *err)
{
    *bytes = 0;
    if (session->tokenizer.kind == PL_TOKENIZER_NONE)
        return PL_OK;
    pl_json_text j = pl_json_text_begin(session->text, PL_SESSION_TEXT_BYTES);
    pl_json_text_string(&j, "tokenizer_class", "PreTrainedTokenizerFast");
    pl_json_text_whole(&j, "model_max_length", session->shape.T);
    pl_json_text_raw(&j, "clean_up_tokenization_spaces", "false");
    if (end_token(session) >= 0) {
        pl_json_text_string(&j, "bos_token", end_of_text);
        pl_json_text_string(&j, "eos_token", end_of_text);
    }
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}
