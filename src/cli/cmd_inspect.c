/* cmd_inspect.c: what a file or a folder holds. inspect_data.c shows tokens,
 * tokenizers and text, inspect_model.c models; here are folders and the
 * choice. */
#include "base/file.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/inspect.h"
#include "cli/term.h"
#include "store/checkpoint.h"

#include <stdio.h>
#include <string.h>

enum { FLAG_JSON = 1, JSON_BYTES = 32 * 1024 * 1024 };

static int ends_in(const char *path, const char *end)
{
    size_t bytes = strlen(path), tail = strlen(end);
    return bytes >= tail && strcmp(path + bytes - tail, end) == 0;
}

/* ---- what the parts share ---- */

void pl_inspect_escape(char *out, size_t size, const char *text, size_t bytes)
{
    size_t used = 0, at = 0;
    while (at < bytes && used + PL_UTF8_SHOWN_BYTES < size) {
        at += pl_utf8_show(text + at, bytes - at, PL_UTF8_SHOW_BREAKS,
                           out + used);
        used += strlen(out + used);
    }
    out[used] = '\0';
}

void pl_inspect_begin(const pl_inspect *in, const char *path, const char *kind)
{
    char shown[PL_PATH_BYTES];
    if (!in->json)
        return;
    pl_inspect_escape(shown, sizeof shown, path, strlen(path));
    pl_json_text_open(in->json, NULL, '{');
    pl_json_text_string(in->json, "path",
                        pl_utf8_is_valid(path, strlen(path)) ? path : shown);
    pl_json_text_string(in->json, "kind", kind);
}

/* ---- files ---- */

static pl_status show_file(const pl_inspect *in, const char *path,
                           pl_error *err)
{
    pl_inspect_model model = PL_INSPECT_OTHER;
    pl_file_kind kind;
    pl_status status = pl_file_look(path, &kind, err);
    if (!status && kind == PL_FILE_PLAIN)
        status = pl_inspect_which(path, &model, err);
    if (status)
        return status;
    if (model == PL_INSPECT_GGUF || ends_in(path, ".gguf"))
        return pl_inspect_gguf(in, path, err);
    if (model == PL_INSPECT_LLMC)
        return pl_inspect_llmc(in, path, err);
    if (model == PL_INSPECT_PICKLE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: an archive as PyTorch pickles it, which this "
                       "program never opens. tools/nanogpt_to_folder.py turns "
                       "nanoGPT's ckpt.pt into a folder; transformers saves "
                       "with safe_serialization=True",
                       pl_path_shown(path));
    if (ends_in(path, ".bin"))
        return pl_inspect_shard(in, path, err);
    if (ends_in(path, ".safetensors"))
        return pl_inspect_safetensors(in, path, err);
    if (ends_in(path, ".json") || ends_in(path, ".tiktoken") ||
        ends_in(path, ".pkl"))
        return pl_inspect_tokenizer(in, path, err);
    return pl_inspect_source(in, path, err);
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

static pl_status is_run(const char *folder, int *yes, pl_error *err)
{
    static const char *const signs[] = { PL_MANIFEST_NAME, PL_OUTDIR_LATEST,
                                         PL_OUTDIR_BEST };
    pl_status status = PL_OK;
    for (int i = 0; i < 3 && !status && !*yes; i++)
        status = has_file(folder, signs[i], yes, err);
    return status;
}

static pl_status show_files(const pl_inspect *in, const char *folder,
                            pl_error *err)
{
    static const char *const ends[] = { ".bin", ".safetensors", ".gguf",
                                        ".tiktoken" };
    char path[PL_PATH_BYTES];
    const char *const *names;
    size_t count, shown = 0;
    pl_status status = pl_folder_list(folder, in->heap, &names, &count, err);
    for (size_t i = 0; !status && i < count; i++) {
        int known = 0;
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++)
            known = known || ends_in(names[i], ends[k]);
        if (!known)
            continue;
        status = pl_path_join(path, folder, names[i], err);
        if (!status)
            status = show_file(in, path, err);
        shown++;
    }
    if (status || shown > 0)
        return status;
    pl_inspect_begin(in, folder, "folder");
    if (!in->json) {
        pl_term_print("%s: a folder of %zu files, none of tokens or weights\n",
                      folder, count);
        return PL_OK;
    }
    pl_json_text_whole(in->json, "files", count);
    pl_json_text_close(in->json, '}');
    return PL_OK;
}

static pl_status show_folder(const pl_inspect *in, const char *folder,
                             pl_error *err)
{
    int run = 0, model = 0;
    pl_status status = is_run(folder, &run, err);
    if (!status && run)
        return pl_inspect_checkpoint(in, folder, err);
    if (!status)
        status = has_file(folder, "config.json", &model, err);
    if (!status && model)
        status = pl_inspect_config(in, folder, err);
    if (!status)
        status = show_files(in, folder, err);
    return status ? status : pl_inspect_tokenizer_of(in, folder, err);
}

/* ---- the command ---- */

static pl_status show_all(const pl_inspect *in, const pl_cli_args *args,
                          pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < args->path_count && !status; i++) {
        pl_file_kind kind;
        status = pl_file_look(args->paths[i], &kind, err);
        if (!status)
            status = kind == PL_FILE_FOLDER
                         ? show_folder(in, args->paths[i], err)
                         : show_file(in, args->paths[i], err);
    }
    return status;
}

static pl_status run_inspect(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_inspect in = { .config = &args->config, .heap = heap };
    char *memory;
    if (args->path_count == 0)
        return pl_fail(err, PL_E_USAGE,
                       "inspect what? A file of tokens, a checkpoint, a model, "
                       "a tokenizer, a text, or a folder of them: plimsoll "
                       "inspect PATH");
    if (!(args->flags & FLAG_JSON))
        return show_all(&in, args, err);
    pl_status status = pl_heap_take(heap, &memory, JSON_BYTES, 1, err);
    if (status)
        return status;
    pl_json_text json = pl_json_text_begin(memory, JSON_BYTES);
    in.json = &json;
    pl_json_text_open(&json, "items", '[');
    status = show_all(&in, args, err);
    pl_json_text_close(&json, ']');
    if (!status)
        status = pl_json_text_end(&json, err);
    if (!status)
        fwrite(json.text, 1, json.used, stdout);
    return status;
}

static const char *const flags[] = { "--json", NULL };

const pl_command pl_command_inspect = {
    .name = "inspect",
    .arguments = "PATH... [--json]",
    .summary = "what tokens, a model, a tokenizer or a text holds",
    .text =
        "Tokens (.bin): their format, number, largest id, and the first of "
        "them as text,\nif a tokenizer lies beside them or --tokenizer names "
        "one. Checkpoints and other\nfolders with a model, .safetensors, GGUF, "
        "llm.c's models: settings and tensors.\nTokenizers: kind, size, "
        "special "
        "and longest tokens. Text, JSON lines and\nparquet: documents "
        "and bytes; string columns.\n\n"
        "  plimsoll inspect data/mine out/latest model.gguf\n"
        "  plimsoll inspect fineweb/000_00000.parquet --field=url\n\n"
        "  --json    the same, for scripts\n",
    .keys = PL_FOR_INSPECT,
    .flags = flags,
    .run = run_inspect,
};
