/* cmd_export.c: a trained model as a file of another program's. */
#include "base/file.h"
#include "cli/data_cli.h"
#include "cli/term.h"
#include "store/checkpoint.h"

#include <stdio.h>
#include <string.h>

static int ends_in(const char *text, const char *end)
{
    size_t bytes = strlen(text), tail = strlen(end);
    return bytes >= tail && strcmp(text + bytes - tail, end) == 0;
}

static pl_status not_into(const char *folder, pl_format_choice format,
                          const char *name, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, folder, name, err);
    if (status)
        return status;
    return pl_fail(err, PL_E_IO, "%s is a folder; %s is a file: --out=%s",
                   folder, pl_key_row(PL_KEY_format)->choices[format],
                   pl_path_quoted(path).text);
}

static pl_status choose(const pl_config *config, pl_format_choice *to,
                        pl_error *err)
{
    pl_file_kind kind;
    if (config->format == PL_FORMAT_NANOGPT)
        return pl_fail(err, PL_E_CONFIG,
                       "format = 'nanogpt' is for tokens (`plimsoll prepare`); "
                       "models are exported as 'gguf', 'llmc' or 'hf'");
    if (config->format == PL_FORMAT_HTML || config->format == PL_FORMAT_MD)
        return pl_fail(err, PL_E_CONFIG,
                       "format = '%s' is for `plimsoll report`; models are "
                       "exported as 'gguf', 'llmc' or 'hf'",
                       pl_config_word(config, PL_KEY_format));
    *to = config->format != PL_FORMAT_AUTO ? config->format
          : ends_in(config->out, ".gguf")  ? PL_FORMAT_GGUF
          : ends_in(config->out, ".bin")   ? PL_FORMAT_LLMC
                                           : PL_FORMAT_HF;
    if (*to == PL_FORMAT_HF)
        return PL_OK;
    pl_status status = pl_file_look(config->out, &kind, err);
    if (!status && kind == PL_FILE_FOLDER)
        status = not_into(config->out, *to,
                          *to == PL_FORMAT_GGUF ? "model.gguf" : "model.bin",
                          err);
    return status;
}

static const pl_ggml_type types[] = {
    [PL_EXPORT_TYPE_F32] = PL_GGML_F32,
    [PL_EXPORT_TYPE_F16] = PL_GGML_F16,
    [PL_EXPORT_TYPE_BF16] = PL_GGML_BF16,
    [PL_EXPORT_TYPE_Q8_0] = PL_GGML_Q8_0,
};

/* The folder itself if it is a model's, else the best checkpoint in it. */
static pl_status find_folder(char folder[PL_PATH_BYTES], const char *named,
                             pl_heap *heap, pl_error *err)
{
    char config[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = pl_path_join(config, named, "config.json", err);
    if (!status)
        status = pl_file_look(config, &kind, err);
    if (!status && kind == PL_FILE_PLAIN)
        return pl_path_add(folder, named, "", err);
    return status ? status
                  : pl_checkpoint_find(folder, named, PL_WANT_BEST,
                                       PL_SCOPE_MODEL, &pl_term_log, heap, err);
}

static pl_status convert(pl_convert *c, const pl_config *config,
                         pl_format_choice to, pl_heap *heap, pl_error *err)
{
    pl_ggml_type type = types[config->type];
    if (to != PL_FORMAT_HF && c->weights->shape.mlp == PL_MLP_GELU &&
        c->weights->shape.activation == PL_ACT_GELU)
        pl_log_say(c->log, PL_LOG_WARN,
                   "this model was trained with GELU by erf, %s computes it by "
                   "tanh: its numbers will differ a little. activation = "
                   "'gelu_tanh' trains a model that is the same in both",
                   to == PL_FORMAT_GGUF ? "llama.cpp" : "llm.c");
    if (to == PL_FORMAT_GGUF)
        return pl_convert_to_gguf(c, config->out, type, heap, err);
    if (to == PL_FORMAT_LLMC)
        return pl_convert_to_llmc(c, config->out, type, err);
    return pl_convert_to_folder(c, config->out, type, heap, err);
}

static void print_result(const pl_convert *c, const pl_config *config,
                         const char *folder, pl_format_choice to)
{
    static const char *const names[] = { [PL_FORMAT_GGUF] = "GGUF",
                                         [PL_FORMAT_LLMC] = "llm.c",
                                         [PL_FORMAT_HF] = "Hugging Face" };
    pl_term_clear();
    pl_term_print("read %s: %s parameters\n", folder,
                  pl_units_count(pl_param_count(&c->weights->shape)).text);
    pl_term_print("written to %s: %s, %s, %s\n", config->out, names[to],
                  pl_config_word(config, PL_KEY_type),
                  pl_units_bytes(c->total_bytes).text);
    if (to == PL_FORMAT_GGUF)
        pl_term_print("run it: llama-completion -m %s -p \"Once\"\n",
                      pl_path_quoted(config->out).text);
}

static pl_status run_export(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    char folder[PL_PATH_BYTES];
    pl_weights weights;
    pl_convert c;
    pl_cli_pace pace;
    pl_format_choice to = PL_FORMAT_GGUF;
    if (args->path_count != 1 || config->out[0] == '\0')
        return pl_fail(err, PL_E_USAGE,
                       "export needs a checkpoint, or a folder that has one, "
                       "and a name to write to: "
                       "plimsoll export out --format=gguf --out=model.gguf");
    pl_status status = choose(config, &to, err);
    if (!status)
        status = find_folder(folder, args->paths[0], heap, err);
    if (!status)
        status = pl_weights_open_folder(&weights, folder, heap, err);
    if (status)
        return status;
    const pl_convert_watch watch = pl_cli_convert_watch(&pace);
    status = pl_convert_open(&c, &weights, &watch, &pl_term_log, heap, err);
    if (!status) {
        pl_cli_catch_signals();
        status = convert(&c, config, to, heap, err);
    }
    if (!status)
        print_result(&c, config, folder, to);
    pl_weights_close(&weights);
    if (status == PL_E_STOPPED)
        pl_term_stopped(err);
    return status;
}

const pl_command pl_command_export = {
    .name = "export",
    .arguments = "FOLDER --out=PATH [--format=gguf|llmc|hf] [--type=f32|f16|"
                 "bf16|q8_0]",
    .summary = "writes a model for other programs: llama.cpp, llm.c, "
               "Hugging Face",
    .text = "FOLDER is a checkpoint, an out_dir (its best checkpoint is taken, "
            "else the\nnewest), or any Hugging Face folder of a GPT-2, "
            "Llama or Qwen3.\n\n"
            "  plimsoll export out --out=model.gguf\n"
            "  plimsoll export out --out=small.gguf --type=q8_0\n"
            "  plimsoll export out/latest --out=model.bin --type=bf16\n"
            "  plimsoll export out --format=hf --out=share/my-gpt\n\n"
            "gguf has the tokenizer inside and runs in llama.cpp; q8_0 keeps "
            "matrices in a\nquarter of f32's bytes. llmc is llm.c's own "
            "format, f32 or bf16. hf is a folder\nwith model.safetensors, "
            "config.json and the tokenizer, without what training\nkeeps: "
            "from_pretrained() loads it (and the checkpoint itself). The model "
            "is\nnever held in memory. docs/formats.md has the layouts.\n",
    .keys = PL_FOR_EXPORT,
    .run = run_export,
};
