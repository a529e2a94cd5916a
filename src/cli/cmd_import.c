/* cmd_import.c: another program's model as a folder that `train` begins
 * from. */
#include "base/file.h"
#include "cli/data_cli.h"
#include "cli/term.h"
#include "text/tokfile.h"

#include <stdio.h>

static void print_result(const pl_weights *w, const pl_config *config)
{
    const pl_shape *s = &w->shape;
    pl_term_clear();
    pl_term_print(
        "read %s: %s parameters; n_layer %zu, n_head %zu, n_embd %zu, "
        "block_size %zu, vocab_size %zu\n",
        w->path, pl_units_count(pl_param_count(s)).text, s->L, s->H, s->C, s->T,
        s->V);
    const char *tokenizer = w->tokenizer.kind == PL_TOKENIZER_BPE
                                ? ", " PL_TOKENIZER_JSON
                                : ", " PL_TOKENIZER_META;
    pl_term_print("written to %s: model.safetensors, config.json%s\n",
                  config->out,
                  w->tokenizer.kind == PL_TOKENIZER_NONE ? "" : tokenizer);
}

static pl_status run_import(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    pl_file_kind kind;
    pl_weights weights;
    pl_convert c;
    pl_cli_pace pace;
    if (args->path_count != 1 || config->out[0] == '\0')
        return pl_fail(err, PL_E_USAGE,
                       "import needs a file and a folder to write to: "
                       "plimsoll import model.gguf --out=models/mine");
    pl_status status = pl_file_look(args->paths[0], &kind, err);
    if (!status && kind == PL_FILE_FOLDER)
        status = pl_fail(err, PL_E_IO,
                         "%s is a folder: import reads a GGUF file or a .bin "
                         "of llm.c. A Hugging Face folder needs no import: "
                         "train begins from it with --init_from=%s",
                         args->paths[0], pl_path_quoted(args->paths[0]).text);
    if (!status)
        status = pl_weights_open_file(&weights, args->paths[0], &pl_term_log,
                                      heap, err);
    if (status)
        return status;
    const pl_convert_watch watch = pl_cli_convert_watch(&pace);
    status = pl_convert_open(&c, &weights, &watch, &pl_term_log, heap, err);
    if (!status) {
        pl_cli_catch_signals();
        status = pl_convert_to_folder(&c, config->out, PL_GGML_F32, heap, err);
    }
    if (!status)
        print_result(&weights, config);
    pl_weights_close(&weights);
    if (status == PL_E_STOPPED)
        pl_term_stopped(err);
    return status;
}

const pl_command pl_command_import = {
    .name = "import",
    .arguments = "FILE --out=FOLDER",
    .summary = "turns a GGUF or a model of llm.c into a folder to train from",
    .text = "Reads the GGUF of a GPT-2, Llama or Qwen3 (f32, f16, bf16, q8_0) "
            "or llm.c's\n.bin (float32, bfloat16) and writes a Hugging Face "
            "folder: model.safetensors as\nfloat32, config.json, and the "
            "tokenizer that a GGUF has.\n\n"
            "  plimsoll import gpt2.gguf --out=models/gpt2\n"
            "  plimsoll import gpt2_124M.bin --out=models/gpt2\n"
            "  plimsoll train --init_from=models/gpt2 --dataset=mine\n\n"
            "nanoGPT's ckpt.pt is a pickle, which this program never opens:\n"
            "tools/nanogpt_to_folder.py turns it into such a folder.\n",
    .keys = PL_FOR_IMPORT,
    .run = run_import,
};
