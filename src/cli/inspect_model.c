/* inspect_model.c: weights, checkpoints and models of other programs; see
 * inspect.h. */
#include "base/file.h"
#include "base/utf8.h"
#include "cli/inspect.h"
#include "cli/term.h"
#include "format/gguf.h"
#include "format/llmc_model.h"
#include "format/safetensors.h"
#include "store/checkpoint.h"
#include "store/hf_config.h"
#include "store/shape_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tensors ---- */

/* What a file says of a tensor, slowest dimension first. */
typedef struct tensor {
    const char *name, *type;
    size_t rank;
    uint64_t dims[PL_TENSOR_MAX_RANK];
} tensor;

/* A name that the file chose, in its column. */
static void show_name(const char *name)
{
    enum { WIDTH = 44 };
    printf("  ");
    size_t used = pl_term_put(name, strlen(name));
    printf("%*s", used < WIDTH ? (int)(WIDTH - used) : 0, "");
}

static void show_tensor(const pl_inspect *in, const tensor *t)
{
    if (!in->json) {
        show_name(t->name);
        printf(" %-4s", t->type);
        for (size_t d = 0; d < t->rank; d++)
            printf("%s%" PRIu64, d ? " x " : " ", t->dims[d]);
        printf("\n");
        return;
    }
    pl_json_text_open(in->json, NULL, '{');
    pl_json_text_string(in->json, "name", t->name);
    pl_json_text_string(in->json, "type", t->type);
    pl_json_text_open(in->json, "shape", '[');
    for (size_t d = 0; d < t->rank; d++)
        pl_json_text_whole(in->json, NULL, t->dims[d]);
    pl_json_text_close(in->json, ']');
    pl_json_text_close(in->json, '}');
}

/* The first line of a file of tensors. */
static void show_sizes(const pl_inspect *in, const char *path,
                       const char *format, size_t count, uint64_t numbers,
                       uint64_t bytes)
{
    if (!in->json) {
        pl_term_print("%s: %s, %zu tensors, %s numbers, %s\n", path, format,
                      count, pl_units_count(numbers).text,
                      pl_units_bytes(bytes).text);
        return;
    }
    pl_json_text_string(in->json, "format", format);
    pl_json_text_whole(in->json, "numbers", numbers);
    pl_json_text_whole(in->json, "bytes", bytes);
}

static void open_list(const pl_inspect *in)
{
    if (in->json)
        pl_json_text_open(in->json, "tensors", '[');
}

static void close_list(const pl_inspect *in)
{
    if (in->json) {
        pl_json_text_close(in->json, ']');
        pl_json_text_close(in->json, '}');
    }
}

pl_status pl_inspect_safetensors(const pl_inspect *in, const char *path,
                                 pl_error *err)
{
    pl_safetensors st;
    uint64_t elements = 0, bytes = 0;
    pl_status status = pl_safetensors_open(&st, path, in->heap, err);
    if (status)
        return status;
    for (size_t i = 0; i < st.count; i++) {
        const pl_tensor_info *info = &st.tensors[i];
        elements += info->bytes / pl_tensor_dtype_bytes(info->dtype);
        bytes += info->bytes;
    }
    pl_inspect_begin(in, path, "safetensors");
    show_sizes(in, path, "safetensors", st.count, elements, bytes);
    open_list(in);
    for (size_t i = 0; i < st.count; i++) {
        const pl_tensor_info *info = &st.tensors[i];
        tensor t = {
            info->name, pl_tensor_dtype_name(info->dtype), info->rank, { 0 }
        };
        for (size_t d = 0; d < info->rank; d++)
            t.dims[d] = info->dims[d];
        show_tensor(in, &t);
    }
    close_list(in);
    pl_safetensors_close(&st);
    return PL_OK;
}

/* ---- GGUF ---- */

enum { KEY_TEXT_BYTES = 64 };

/* A key's value: numbers, and the beginning of a text; of an array how many. */
static pl_status show_key(const pl_inspect *in, const pl_gguf *gguf,
                          const pl_gguf_key *key, pl_error *err)
{
    char raw[KEY_TEXT_BYTES], text[4 * KEY_TEXT_BYTES + 1] = "";
    size_t bytes = key->count < sizeof raw ? (size_t)key->count : sizeof raw;
    int is_text = key->type == PL_GGUF_TEXT;
    if (key->type == PL_GGUF_ARRAY) {
        snprintf(text, sizeof text, "%" PRIu64 " elements", key->count);
    } else if (is_text) {
        pl_status status = pl_file_pread_exact(&gguf->file, raw, bytes, key->at,
                                               err);
        if (status)
            return status;
        bytes = pl_utf8_whole_bytes(raw, bytes);
        pl_inspect_escape(text, sizeof text, raw, bytes);
    } else if (key->type == PL_GGUF_F32 || key->type == PL_GGUF_F64) {
        snprintf(text, sizeof text, "%.7g", key->real);
    } else if (key->type == PL_GGUF_BOOL) {
        snprintf(text, sizeof text, "%s", key->whole ? "true" : "false");
    } else {
        snprintf(text, sizeof text, "%" PRId64, key->whole);
    }
    if (!in->json) {
        show_name(key->name);
        pl_term_print(" %s%s\n", text,
                      is_text && bytes < key->count ? "..." : "");
    } else if (is_text || key->type == PL_GGUF_ARRAY) {
        pl_json_text_string(in->json, key->name, text);
    } else {
        pl_json_text_raw(in->json, key->name, text);
    }
    return PL_OK;
}

static pl_status show_keys(const pl_inspect *in, const pl_gguf *gguf,
                           pl_error *err)
{
    pl_status status = PL_OK;
    if (in->json)
        pl_json_text_open(in->json, "keys", '{');
    for (size_t i = 0; i < gguf->key_count && !status; i++)
        status = show_key(in, gguf, &gguf->keys[i], err);
    if (in->json)
        pl_json_text_close(in->json, '}');
    return status;
}

pl_status pl_inspect_gguf(const pl_inspect *in, const char *path, pl_error *err)
{
    pl_gguf gguf;
    uint64_t numbers = 0, bytes = 0;
    pl_status status = pl_gguf_open(&gguf, path, in->heap, err);
    if (status)
        return status;
    for (size_t i = 0; i < gguf.tensor_count; i++) {
        const pl_gguf_tensor *t = &gguf.tensors[i];
        numbers += t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
        bytes += t->bytes;
    }
    pl_inspect_begin(in, path, "gguf");
    show_sizes(in, path, "GGUF", gguf.tensor_count, numbers, bytes);
    status = show_keys(in, &gguf, err);
    open_list(in);
    for (size_t i = 0; i < gguf.tensor_count && !status; i++) {
        const pl_gguf_tensor *have = &gguf.tensors[i];
        tensor t = {
            have->name, pl_ggml_type_name(have->type), have->rank, { 0 }
        };
        for (size_t d = 0; d < have->rank; d++)
            t.dims[d] = have->dims[have->rank - 1 - d];
        show_tensor(in, &t);
    }
    close_list(in);
    pl_gguf_close(&gguf);
    return status;
}

/* ---- llm.c ---- */

pl_status pl_inspect_llmc(const pl_inspect *in, const char *path, pl_error *err)
{
    pl_llmc llmc;
    pl_status status = pl_llmc_open(&llmc, path, err);
    if (status)
        return status;
    const pl_llmc_shape *s = &llmc.shape;
    const char *type = llmc.version == PL_LLMC_F32 ? "F32" : "BF16";
    uint64_t bytes = pl_llmc_bytes(s, llmc.version) - PL_LLMC_HEADER_BYTES;
    pl_inspect_begin(in, path, "llm.c");
    show_sizes(in, path, "a model of llm.c", PL_LLMC_TENSORS,
               bytes / (llmc.version == PL_LLMC_F32 ? 4 : 2), bytes);
    const struct {
        const char *name;
        size_t value;
    } sizes[] = {
        { "version", (size_t)llmc.version },
        { "n_layer", s->L },
        { "n_head", s->H },
        { "n_embd", s->C },
        { "block_size", s->T },
        { "vocab_size", s->V },
        { "padded_vocab_size", s->padded_V },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (in->json)
            pl_json_text_whole(in->json, sizes[i].name, sizes[i].value);
        else
            printf("%s%s %zu", i ? ", " : "  ", sizes[i].name, sizes[i].value);
    if (in->json)
        pl_json_text_raw(in->json, "bias",
                         llmc.biases == PL_LLMC_BIASES ? "true" : "false");
    else
        printf(", bias %s\n", llmc.biases == PL_LLMC_BIASES ? "True" : "False");
    open_list(in);
    for (size_t i = 0; i < PL_LLMC_TENSORS; i++) {
        pl_llmc_tensor have = pl_llmc_tensor_at(s, i);
        tensor t = {
            have.name, type, 3, { have.layers, have.rows, have.cols }
        };
        show_tensor(in, &t);
    }
    close_list(in);
    pl_llmc_close(&llmc);
    return PL_OK;
}

pl_status pl_inspect_which(const char *path, pl_inspect_model *model,
                           pl_error *err)
{
    pl_file file = PL_FILE_CLOSED;
    char begin[4] = "";
    int is_llmc = 0;
    *model = PL_INSPECT_OTHER;
    pl_status status = pl_llmc_is_one(path, &is_llmc, err);
    if (!status)
        status = pl_file_open_read(&file, path, err);
    if (!status && pl_file_size(&file) >= sizeof begin)
        status = pl_file_pread_exact(&file, begin, sizeof begin, 0, err);
    pl_file_abandon(&file);
    if (is_llmc)
        *model = PL_INSPECT_LLMC;
    else if (memcmp(begin, "GGUF", sizeof begin) == 0)
        *model = PL_INSPECT_GGUF;
    else if (memcmp(begin, "PK\3\4", sizeof begin) == 0)
        *model = PL_INSPECT_PICKLE;
    return status;
}

/* ---- checkpoints ---- */

static void show_shape(const pl_inspect *in, const pl_shape *s)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        pl_value value = pl_shape_value(s, field);
        char text[PL_VALUE_BRIEF_BYTES];
        pl_value_brief(&value, text);
        if (in->json)
            pl_shape_json_put(in->json, s, field, PL_IN_STATE);
        else
            printf("%s%s %s", i ? ", " : "  ",
                   pl_key_row(pl_shape_row(field)->key)->name, text);
    }
    if (in->json)
        pl_json_text_whole(in->json, "parameters", pl_param_count(s));
    else
        printf(", %.2fM parameters\n", (double)pl_param_count_nanogpt(s) / 1e6);
}

/* The settings that aren't the defaults. */
static void show_settings(const pl_inspect *in, const pl_config *config)
{
    if (in->json)
        pl_json_text_open(in->json, "config", '{');
    else
        printf("  config:");
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[PL_CHECKPOINT_VALUE_BYTES], plain[PL_CHECKPOINT_VALUE_BYTES];
        pl_config standard = pl_config_make_default();
        const char *name = pl_key_row((pl_key)key)->name;
        if (pl_key_row((pl_key)key)->type == PL_TYPE_IGNORED)
            continue;
        pl_config_value_text(config, (pl_key)key, value, sizeof value);
        pl_config_value_text(&standard, (pl_key)key, plain, sizeof plain);
        if (strcmp(value, plain) == 0)
            continue;
        if (in->json)
            pl_json_text_string(in->json, name, value);
        else
            pl_term_print(" %s=%s", name, value);
    }
    if (in->json)
        pl_json_text_close(in->json, '}');
    else
        printf("\n");
}

/* Behind the loss of the same evaluation. */
static void print_bits(double bpb)
{
    if (isfinite(bpb))
        printf(" (val bpb %.4f)", bpb);
}

static void show_state(const pl_inspect *in, const char *folder,
                       const pl_checkpoint_state *state,
                       const pl_config *config)
{
    pl_inspect_begin(in, folder, "checkpoint");
    if (in->json) {
        pl_json_text_whole(in->json, "step", state->step);
        pl_json_text_real(in->json, "best_val_loss", state->best_val_loss);
        pl_json_text_real(in->json, "best_val_bpb", state->best_val_bpb);
        pl_json_text_real(in->json, "val_loss", state->val_loss);
        pl_json_text_real(in->json, "val_bpb", state->val_bpb);
    } else {
        pl_term_print("%s: checkpoint at iteration %" PRIu64
                      ", best val loss %.4f",
                      folder, state->step, state->best_val_loss);
        print_bits(state->best_val_bpb);
        if (isfinite(state->val_loss)) {
            printf(", here %.4f", state->val_loss);
            print_bits(state->val_bpb);
        }
        printf("\n");
    }
    show_shape(in, &state->shape);
    show_settings(in, config);
    if (in->json)
        pl_json_text_close(in->json, '}');
}

pl_status pl_inspect_checkpoint(const pl_inspect *in, const char *out_dir,
                                pl_error *err)
{
    static const char *const files[] = { "model.safetensors",
                                         "optimizer.safetensors" };
    static pl_config config;
    pl_checkpoint_state state;
    char folder[PL_PATH_BYTES], path[PL_PATH_BYTES];
    config = pl_config_make_default();
    pl_status status = pl_checkpoint_find(folder, out_dir, PL_WANT_NEWEST,
                                          PL_SCOPE_SETTINGS, &pl_term_log,
                                          in->heap, err);
    if (!status)
        status = pl_checkpoint_read_state(&state, folder, in->heap, err);
    if (!status)
        status = pl_checkpoint_read_config(&config, folder, in->heap, err);
    if (status)
        return status;
    show_state(in, folder, &state, &config);
    for (int i = 0; i < 2 && !status; i++) {
        status = pl_path_join(path, folder, files[i], err);
        if (!status)
            status = pl_inspect_safetensors(in, path, err);
    }
    return status ? status : pl_inspect_tokenizer_of(in, folder, err);
}

/* A model that isn't read here is shown all the same, without this. */
pl_status pl_inspect_config(const pl_inspect *in, const char *folder,
                            pl_error *err)
{
    pl_hf_config config;
    pl_status status = pl_hf_config_read(&config, folder, in->heap, err);
    if (status == PL_E_UNSUPPORTED || status == PL_E_FORMAT) {
        pl_log_say(&pl_term_log, PL_LOG_NOTE, "%s", err->text);
        return PL_OK;
    }
    if (status)
        return status;
    pl_inspect_begin(in, folder, "model");
    if (!in->json)
        pl_term_print("%s: a %s as Hugging Face keeps it\n", folder,
                      pl_shape_title(&config.shape));
    show_shape(in, &config.shape);
    if (in->json)
        pl_json_text_close(in->json, '}');
    return PL_OK;
}
