/* checkpoint.c: writing. What is kept is tensors.h's list, bytes come from the
 * device. */
#include "train/checkpoint.h"
#include "base/file.h"
#include "format/jsontext.h"
#include "format/safetensors.h"
#include "train/tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tensors ---- */

typedef struct kept {
    pl_session *session;
    pl_tensors_file file;
} kept;

static void describe(void *context, size_t i, pl_tensor_info *info)
{
    const kept *k = context;
    *info = pl_tensors_at(&k->session->gpt, k->file, i).info;
}

static void read_tensor(void *context, size_t i, size_t at, void *out,
                        size_t bytes)
{
    const kept *k = context;
    pl_tensors_row row = pl_tensors_at(&k->session->gpt, k->file, i);
    if (row.buffer == PL_NO_BUFFER)
        memset(out, 0, bytes);
    else
        pl_device_read(k->session->device, row.buffer, at, out, bytes);
}

static pl_tensor_source source_of(kept *k)
{
    return (pl_tensor_source){
        .context = k,
        .count = pl_tensors_rows(&k->session->gpt, k->file),
        .describe = describe,
        .read = read_tensor,
    };
}

uint64_t pl_checkpoint_bytes(pl_session *session)
{
    uint64_t bytes = 0;
    for (int file = PL_TENSORS_MODEL; file <= PL_TENSORS_OPTIMIZER; file++) {
        kept k = { session, (pl_tensors_file)file };
        pl_tensor_source source = source_of(&k);
        bytes += pl_safetensors_size(&source);
    }
    return bytes;
}

static pl_status write_tensors(pl_session *session, const char *folder,
                               const char *name, pl_tensors_file file,
                               pl_error *err)
{
    kept k = { session, file };
    pl_tensor_source source = source_of(&k);
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, folder, name, err);
    if (status)
        return status;
    return pl_safetensors_write(
        path, &source, pl_device_host(session->device, session->gpt.slice),
        session->gpt.layout.slice_bytes, err);
}

/* ---- text ---- */

static pl_status write_text(const char *folder, const char *file,
                            const char *text, size_t bytes, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, folder, file, err);
    if (status)
        return status;
    return pl_file_replace(path, text, bytes, err);
}

/* The token that stands between documents: the tokenizer's, GPT-2's where
 * there is none but the ids look like it. */
static void put_end_token(const pl_session *session, pl_json_text *j,
                          const char *key)
{
    const pl_tokenizer *tokenizer = &session->tokenizer;
    int32_t id = -1;
    if (tokenizer->kind == PL_TOKENIZER_BPE)
        id = pl_bpe_special(tokenizer->bpe, "<|endoftext|>");
    else if (tokenizer->kind == PL_TOKENIZER_NONE && session->shape.V >= 50257)
        id = 50256;
    if (id >= 0)
        pl_json_text_whole(j, key, (uint64_t)id);
    else
        pl_json_text_raw(j, key, "null");
}

/* Hugging Face's GPT-2. A head_dim of its own can't be said there. */
static pl_status write_hf_config(pl_session *session, const char *folder,
                                 pl_error *err)
{
    const pl_shape *s = &session->shape;
    pl_json_text j = pl_json_text_begin(session->text, PL_SESSION_TEXT_BYTES);
    pl_json_text_string(&j, "model_type", "gpt2");
    pl_json_text_raw(&j, "architectures", "[\"GPT2LMHeadModel\"]");
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
    put_end_token(session, &j, "bos_token_id");
    put_end_token(session, &j, "eos_token_id");
    if (s->A != s->C)
        pl_json_text_whole(&j, "plimsoll_head_dim", s->D);
    pl_status status = pl_json_text_end(&j, err);
    if (status)
        return status;
    return write_text(folder, "config.json", j.text, j.used, err);
}

static void put_model(pl_json_text *j, const pl_shape *s)
{
    pl_json_text_open(j, "model", '{');
    pl_json_text_whole(j, "n_layer", s->L);
    pl_json_text_whole(j, "n_head", s->H);
    pl_json_text_whole(j, "head_dim", s->D);
    pl_json_text_whole(j, "n_embd", s->C);
    pl_json_text_whole(j, "vocab_size", s->V);
    pl_json_text_whole(j, "block_size", s->T);
    pl_json_text_raw(j, "bias", s->bias == PL_BIAS_ALL ? "true" : "false");
    pl_json_text_string(j, "activation",
                        s->activation == PL_ACT_GELU ? "gelu" : "gelu_tanh");
    pl_json_text_close(j, '}');
}

static pl_status write_state(pl_session *session, const char *folder,
                             pl_error *err)
{
    pl_json_text j = pl_json_text_begin(session->text, PL_SESSION_TEXT_BYTES);
    pl_json_text_string(&j, "plimsoll", PL_VERSION);
    pl_json_text_whole(&j, "step", session->step);
    pl_json_text_real(&j, "best_val_loss", session->best_val_loss);
    pl_json_text_whole(&j, "skipped", session->skipped);
    if (session->scaler.active) {
        pl_json_text_real(&j, "loss_scale", session->scaler.scale);
        pl_json_text_whole(&j, "loss_scale_updates", session->scaler.good);
    }
    put_model(&j, &session->shape);
    pl_json_text_open(&j, "config", '{');
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[PL_CHECKPOINT_VALUE_BYTES];
        if (pl_key_row((pl_key)key)->type == PL_TYPE_IGNORED)
            continue;
        pl_config_value_text(session->config, (pl_key)key, value, sizeof value);
        pl_json_text_string(&j, pl_key_row((pl_key)key)->name, value);
    }
    pl_json_text_close(&j, '}');
    pl_status status = pl_json_text_end(&j, err);
    if (status)
        return status;
    return write_text(folder, "state.json", j.text, j.used, err);
}

/* ---- the folder ---- */

static pl_status write_parts(pl_session *session, const char *folder,
                             pl_error *err)
{
    pl_status status = write_tensors(session, folder, "model.safetensors",
                                     PL_TENSORS_MODEL, err);
    if (!status)
        status = write_tensors(session, folder, "optimizer.safetensors",
                               PL_TENSORS_OPTIMIZER, err);
    if (!status)
        status = write_hf_config(session, folder, err);
    if (!status && session->tokenizer_file.name)
        status = write_text(folder, session->tokenizer_file.name,
                            session->tokenizer_file.text,
                            session->tokenizer_file.bytes, err);
    if (!status)
        status = write_state(session, folder, err);
    if (!status)
        status = pl_folder_sync(folder, err);
    return status;
}

/* Swaps the finished folder into its place and removes the old one. */
static pl_status put_in_place(const char *fresh, const char *place,
                              pl_error *err)
{
    pl_file_kind kind;
    pl_status status = pl_file_look(place, &kind, err);
    if (status)
        return status;
    if (kind == PL_FILE_ABSENT)
        status = pl_file_rename(fresh, place, err);
    else
        status = pl_file_exchange(fresh, place, err);
    if (!status)
        status = pl_folder_sync_of(place, err);
    if (!status && kind != PL_FILE_ABSENT)
        status = pl_folder_remove_flat(fresh, err);
    return status;
}

pl_status pl_checkpoint_save(pl_session *session, const char *name,
                             pl_error *err)
{
    char place[PL_PATH_BYTES], fresh[PL_PATH_BYTES];
    pl_status status = pl_path_join(place, session->config->out_dir, name, err);
    if (!status)
        status = pl_path_add(fresh, place, ".new", err);
    if (!status)
        status = pl_folder_make(session->config->out_dir, err);
    if (!status)
        status = pl_folder_remove_flat(fresh, err);
    if (!status)
        status = pl_folder_make(fresh, err);
    if (!status)
        status = write_parts(session, fresh, err);
    if (!status)
        status = put_in_place(fresh, place, err);
    if (status) {
        pl_error ignored;
        pl_status undo = pl_folder_remove_flat(fresh, &ignored);
        (void)undo;
        return pl_fail_in(err, status, "cannot save %s: ", place);
    }
    return PL_OK;
}
