/* cmd_inspect.c: what a file or a folder holds. inspect_data.c has tokens,
 * tokenizers and text; here are checkpoints, folders and the choice. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/inspect.h"
#include "cli/term.h"
#include "format/safetensors.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 44 }; /* of a tensor */

static int ends_in(const char *path, const char *end)
{
    size_t bytes = strlen(path), tail = strlen(end);
    return bytes >= tail && strcmp(path + bytes - tail, end) == 0;
}

/* ---- weights ---- */

static pl_status show_tensors(const char *path, pl_heap *heap, pl_error *err)
{
    pl_safetensors st;
    uint64_t elements = 0, bytes = 0;
    pl_status status = pl_safetensors_open(&st, path, heap, err);
    if (status)
        return status;
    for (size_t i = 0; i < st.count; i++) {
        const pl_tensor_info *info = &st.tensors[i];
        elements += info->bytes / pl_tensor_dtype_bytes(info->dtype);
        bytes += info->bytes;
    }
    pl_term_print("%s: safetensors, %zu tensors, %s numbers, %s\n", path,
                  st.count, pl_term_count(elements).text,
                  pl_term_bytes(bytes).text);
    for (size_t i = 0; i < st.count; i++) {
        const pl_tensor_info *info = &st.tensors[i];
        printf("  ");
        size_t width = pl_term_put(info->name, strlen(info->name));
        printf("%*s %-4s", width < NAME_WIDTH ? (int)(NAME_WIDTH - width) : 0,
               "", pl_tensor_dtype_name(info->dtype));
        for (size_t d = 0; d < info->rank; d++)
            printf("%s%zu", d ? " x " : " ", info->dims[d]);
        printf("\n");
    }
    pl_safetensors_close(&st);
    return PL_OK;
}

static pl_status show_checkpoint(const char *folder, const pl_config *given,
                                 pl_heap *heap, pl_error *err)
{
    static const char *const files[] = { "model.safetensors",
                                         "optimizer.safetensors" };
    static pl_config config;
    pl_checkpoint_state state;
    char path[PL_PATH_BYTES];
    config = pl_config_make_default();
    pl_status status = pl_checkpoint_read_state(&state, folder, heap, err);
    if (!status)
        status = pl_checkpoint_read_config(&config, folder, heap, err);
    if (status)
        return status;
    pl_term_print(
        "%s: checkpoint at iteration %llu, best val loss %.4f\n"
        "  n_layer %zu, n_head %zu, n_embd %zu, head_dim %zu, block_size "
        "%zu, vocab_size %zu, bias %s, %.2fM parameters\n",
        folder, (unsigned long long)state.step, state.best_val_loss,
        state.shape.L, state.shape.H, state.shape.C, state.shape.D,
        state.shape.T, state.shape.V,
        state.shape.bias == PL_BIAS_ALL ? "True" : "False",
        (double)pl_param_count_nanogpt(&state.shape) / 1e6);
    printf("  config:");
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[PL_CHECKPOINT_VALUE_BYTES], plain[PL_CHECKPOINT_VALUE_BYTES];
        pl_config standard = pl_config_make_default();
        if (pl_key_row((pl_key)key)->type == PL_TYPE_IGNORED)
            continue;
        pl_config_value_text(&config, (pl_key)key, value, sizeof value);
        pl_config_value_text(&standard, (pl_key)key, plain, sizeof plain);
        if (strcmp(value, plain) != 0)
            pl_term_print(" %s=%s", pl_key_row((pl_key)key)->name, value);
    }
    printf("\n");
    for (int i = 0; i < 2 && !status; i++) {
        status = pl_path_join(path, folder, files[i], err);
        if (!status)
            status = show_tensors(path, heap, err);
    }
    return status ? status : pl_inspect_tokenizer_of(folder, given, heap, err);
}

/* ---- folders ---- */

static pl_status has_file(const char *folder, const char *name, int *has,
                          pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    *has = kind == PL_FILE_PLAIN || kind == PL_FILE_FOLDER;
    return status;
}

static pl_status show_folder(const char *folder, const pl_config *config,
                             pl_heap *heap, pl_error *err)
{
    static const char *const signs[] = { PL_MANIFEST_NAME, PL_OUTDIR_LATEST,
                                         PL_OUTDIR_BEST };
    char path[PL_PATH_BYTES];
    const char *const *names;
    size_t count, shown = 0;
    int has = 0;
    pl_status status = PL_OK;
    for (int i = 0; i < 3 && !status && !has; i++)
        status = has_file(folder, signs[i], &has, err);
    if (!status && has) {
        status = pl_checkpoint_find(path, folder, PL_WANT_NEWEST,
                                    PL_SCOPE_SETTINGS, &pl_term_log, heap, err);
        return status ? status : show_checkpoint(path, config, heap, err);
    }
    if (!status)
        status = pl_folder_list(folder, heap, &names, &count, err);
    for (size_t i = 0; !status && i < count; i++) {
        if (!ends_in(names[i], ".bin") && !ends_in(names[i], ".safetensors") &&
            !ends_in(names[i], ".tiktoken"))
            continue;
        status = pl_path_join(path, folder, names[i], err);
        if (!status)
            status = pl_inspect_file(path, config, heap, err);
        shown++;
    }
    if (!status && shown == 0)
        pl_term_print("%s: a folder of %zu files\n", folder, count);
    return status ? status : pl_inspect_tokenizer_of(folder, config, heap, err);
}

/* ---- what it is ---- */

pl_status pl_inspect_file(const char *path, const pl_config *config,
                          pl_heap *heap, pl_error *err)
{
    if (ends_in(path, ".bin"))
        return pl_inspect_shard(path, config, heap, err);
    if (ends_in(path, ".safetensors"))
        return show_tensors(path, heap, err);
    if (ends_in(path, ".json") || ends_in(path, ".tiktoken") ||
        ends_in(path, ".pkl"))
        return pl_inspect_tokenizer(path, heap, err);
    return pl_inspect_source(path, config, heap, err);
}

static pl_status run_inspect(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_status status = PL_OK;
    if (args->path_count == 0)
        return pl_fail(err, PL_E_USAGE,
                       "inspect what? A file of tokens, a checkpoint, a "
                       "tokenizer, a text, or a folder of them");
    for (size_t i = 0; i < args->path_count && !status; i++) {
        pl_file_kind kind;
        const char *path = args->paths[i];
        status = pl_file_look(path, &kind, err);
        if (!status)
            status = kind == PL_FILE_FOLDER
                         ? show_folder(path, &args->config, heap, err)
                         : pl_inspect_file(path, &args->config, heap, err);
    }
    return status;
}

const pl_command pl_command_inspect = {
    .name = "inspect",
    .arguments = "PATH...",
    .summary = "what a file of tokens, a checkpoint or a tokenizer holds",
    .text =
        "Tokens (.bin): their format, number, largest id, and the first of "
        "them as text if\na tokenizer lies beside them or --tokenizer names "
        "one. Checkpoints and\n.safetensors: step, settings, tensors. "
        "Tokenizers: kind, size, special and longest\ntokens. Text, JSON "
        "lines and parquet: documents and bytes; string columns.\n\n"
        "  plimsoll inspect data/mine out/latest\n"
        "  plimsoll inspect fineweb/000_00000.parquet --field=url\n",
    .keys = PL_FOR_INSPECT,
    .run = run_inspect,
};
