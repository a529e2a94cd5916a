/* cmd_sample.c: text from a checkpoint, as nanoGPT's sample.py writes it. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/term.h"
#include "config/special.h"
#include "store/checkpoint.h"
#include "train/sampler.h"

#include <stdio.h>
#include <string.h>

enum { PROMPT_MAX_BYTES = 16 * 1024 * 1024 };

typedef struct prompt {
    int32_t *tokens;
    size_t count;
} prompt;

/* "FILE:path" is read from that file, as nanoGPT does; its last newline
 * belongs to it. */
static pl_status read_prompt(prompt *out, const pl_session *session,
                             const pl_config *config, pl_heap *heap,
                             pl_error *err)
{
    const char *start = config->start, *file = pl_config_start_file(config);
    char *text = NULL;
    const char *name = file ? file : "--start";
    size_t bytes = strlen(start);
    pl_status status = PL_OK;

    if (file)
        status = pl_file_read_all(file, PROMPT_MAX_BYTES, heap, &text, &bytes,
                                  err);
    const size_t room = pl_tokenizer_most_ids(&session->run.tokenizer, bytes);
    if (!status)
        status = pl_heap_take(heap, &out->tokens, room + 1, sizeof *out->tokens,
                              err);
    if (!status)
        status = pl_tokenizer_encode(&session->run.tokenizer,
                                     text ? text : start, bytes, name,
                                     out->tokens, room, &out->count, err);
    if (status == PL_E_FORMAT &&
        session->run.config->origin[PL_KEY_start].source == PL_FROM_DEFAULT)
        return pl_fail_in(err, status,
                          "--start is a line end unless it is given, which "
                          "this model doesn't know. Give one: --start=TEXT\n");
    if (!status && out->count == 0)
        status = pl_fail(err, text ? PL_E_FORMAT : PL_E_CONFIG,
                         "%s is empty: a model goes on from at least one "
                         "token, for example --start=A",
                         name);
    return status;
}

static pl_status print_token(const pl_session *session, int32_t token,
                             pl_error *err)
{
    char bytes[PL_TOKENIZER_TOKEN_BYTES];
    size_t count;
    if (token >= session->run.tokenizer.vocab_size)
        return PL_OK; /* padding of the vocabulary: has no text */
    pl_status status = pl_tokenizer_decode(&session->run.tokenizer, token,
                                           bytes, &count, err);
    if (!status)
        fwrite(bytes, 1, count, stdout);
    return status;
}

/* The next token, or an error: a long prompt takes a while to read. */
static pl_status next_token(pl_sampler *sampler, int32_t *token, pl_error *err)
{
    pl_status status = pl_sampler_next(sampler, token, err);
    if (status || *token >= 0)
        return status;
    return pl_fail(err, PL_E_FORMAT,
                   "the model's output is not a number: its weights are broken "
                   "(NaN or infinite)");
}

static pl_status write_sample(pl_session *session, const prompt *start,
                              pl_sampler *sampler, pl_error *err)
{
    const int64_t count = session->run.config->max_new_tokens;
    int32_t token = 0;
    pl_status status = PL_OK;
    pl_term_progress("reading the prompt: %zu tokens", start->count);
    if (count > 0)
        status = next_token(sampler, &token, err);
    pl_term_clear();
    for (size_t i = 0; i < start->count && !status; i++)
        status = print_token(session, start->tokens[i], err);
    for (int64_t i = 0; i < count && !status; i++) {
        if (i > 0)
            status = next_token(sampler, &token, err);
        if (!status)
            status = print_token(session, token, err);
        if (!status && fflush(stdout) != 0)
            return PL_OK; /* the end of main says why */
        if (!status && pl_cli_signal())
            status = pl_fail(err, PL_E_STOPPED, "stopped");
    }
    printf("\n---------------\n");
    return status;
}

static pl_status write_samples(pl_session *session, const prompt *start,
                               pl_sampler *sampler, pl_error *err)
{
    pl_status status = PL_OK;
    for (int64_t k = 0;
         k < session->run.config->num_samples && !status && !ferror(stdout);
         k++) {
        pl_sampler_start(sampler, (uint32_t)k, start->tokens, start->count);
        status = write_sample(session, start, sampler, err);
    }
    return status;
}

static pl_status run_sample(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    pl_cli_model model;
    pl_session session;
    pl_sampler sampler;
    prompt start = { 0 };
    pl_sampling sampling = {
        .temperature = config->temperature,
        .top_k = config->top_k > 0 ? (size_t)config->top_k : 0,
        .seed = (uint32_t)config->seed,
    };

    pl_cli_say_ignored(config);
    pl_status status = pl_cli_model_find(&model, args, "sample", heap, err);
    if (status)
        return status;
    pl_term_progress("loading %s", model.folder);
    status = pl_session_open_sample(&session, config, &model.machine,
                                    model.folder, &pl_term_log, heap, err);
    pl_term_clear();
    if (status)
        return status;
    status = read_prompt(&start, &session, config, heap, err);
    if (!status)
        status = pl_sampler_open(&sampler, &session, &sampling,
                                 start.count + (size_t)config->max_new_tokens,
                                 err);
    if (!status) {
        pl_heap_seal(heap);
        pl_cli_catch_signals();
        status = write_samples(&session, &start, &sampler, err);
    }
    pl_session_close(&session);
    return status;
}

const pl_command pl_command_sample = {
    .name = "sample",
    .arguments = "[OUT_DIR] [--start=TEXT] [--key=value ...]",
    .summary = "writes text with a trained model",
    .text = "Takes the best checkpoint in out_dir if one is kept, else the "
            "newest; or any\nGPT-2, Llama or Qwen3 as Hugging Face keeps it "
            "in a folder. The same seed\nwrites the same text, whatever the "
            "number of threads.\n\n"
            "  plimsoll sample --out_dir=out --start=\"It is a truth\" "
            "--num_samples=3\n"
            "  plimsoll sample out/latest --start=FILE:prompt.txt\n",
    .keys = PL_FOR_SAMPLE,
    .reads_configs = 1,
    .run = run_sample,
};
