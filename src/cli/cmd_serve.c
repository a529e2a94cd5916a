/* cmd_serve.c: a checkpoint behind OpenAI's /v1/completions, and a page to try
 * it. */
#include "base/memory.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/own_names.h"
#include "cli/term.h"
#include "config/special.h"
#include "store/checkpoint.h"
#include "web/serve.h"

#include <stdio.h>
#include <string.h>

enum { PORT = 8080 };

static size_t class_bytes(const pl_gpt *gpt, pl_class class)
{
    return gpt->placement.class_bytes[PL_SERVE][class];
}

/* What takes what: all of it is taken before the first request. */
static void print_plan(const pl_session *session, const char *folder)
{
    const pl_gpt *gpt = &session->run.gpt;
    const pl_gpt_layout *layout = &gpt->layout;
    pl_term_print("model: %s, %.2fM parameters, %zu tokens of context\n",
                  folder,
                  (double)pl_param_count_nanogpt(&session->run.shape) / 1e6,
                  session->run.shape.T);
    printf("plan: %zu text%s at once, prompts in parts of %zu tokens, logits "
           "of %zu of them\n",
           layout->slots, layout->slots == 1 ? "" : "s", layout->prefill,
           layout->logit_rows);
    printf("memory: weights %s, kv cache %s, transient %s: arena %s",
           pl_units_bytes(class_bytes(gpt, PL_CLASS_WEIGHT) +
                          class_bytes(gpt, PL_CLASS_COPY))
               .text,
           pl_units_bytes(class_bytes(gpt, PL_CLASS_CACHE)).text,
           pl_units_bytes(class_bytes(gpt, PL_CLASS_TRANSIENT)).text,
           pl_units_bytes(gpt->placement.arena_bytes).text);
    if (gpt->placement.host_bytes) /* the device's memory isn't the host's */
        printf(", on the host %s",
               pl_units_bytes(gpt->placement.host_bytes).text);
    printf(" + reserve %s + requests up to %s; %s\n",
           pl_units_bytes(session->reserve_bytes).text,
           pl_units_bytes(session->files_bytes).text, layout->device.text);
}

static void print_peak(const pl_session *session)
{
    const size_t planned = pl_session_host_bytes(session) +
                           session->files_bytes;
    size_t peak;
    if (pl_memory_peak_bytes(&peak, NULL))
        return; /* no /proc: nothing to compare */
    printf("peak memory: %s of the %s that were planned (%s)\n",
           pl_units_bytes(peak).text, pl_units_bytes(planned).text,
           pl_units_exact(peak).text);
}

static int stopped(void *context)
{
    (void)context;
    return pl_cli_signal();
}

static pl_status serve(pl_session *session, const char *model, pl_heap *heap,
                       pl_error *err)
{
    const pl_config *config = session->run.config;
    pl_slots slots = pl_slots_make(session);
    pl_serve *server = NULL;
    pl_own_names names;
    const pl_serve_wish wish = {
        .slots = &slots,
        .tokenizer = &session->run.tokenizer,
        .model = model,
        .seed = (uint32_t)config->seed,
        .queue = (size_t)config->serve_queue,
        .host = config->host,
        .port = config->port == PL_NONE ? PORT : (int)config->port,
        .token = *config->token ? config->token : NULL,
        .hosts = pl_own_names_find(&names),
        .stopped = stopped,
        .log = &pl_term_log,
    };
    pl_status status = pl_serve_open(&server, &wish, heap, err);
    if (!status) {
        pl_heap_seal(heap);
        pl_cli_catch_signals();
        pl_term_print("serve: %s%s%s (Ctrl-C ends it)\n",
                      pl_serve_address(server), *config->token ? "?token=" : "",
                      config->token);
        fflush(stdout);
        status = pl_serve_run(server, err);
        print_peak(session);
        if (!status)
            status = pl_fail(err, PL_E_STOPPED, "stopped");
    }
    pl_serve_close(server);
    return status;
}

static pl_status run_serve(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    pl_cli_model model;
    pl_session session;

    pl_status status = pl_cli_model_find(&model, args, "serve", heap, err);
    if (status)
        return status;
    pl_term_progress("loading %s", model.folder);
    status = pl_session_open_serve(&session, config, &model.machine,
                                   model.folder, PL_SERVE_BYTES, &pl_term_log,
                                   heap, err);
    pl_term_clear();
    if (status)
        return status;
    print_plan(&session, model.folder);
    status = serve(&session, model.name, heap, err);
    pl_session_close(&session);
    return status;
}

const pl_command pl_command_serve = {
    .name = "serve",
    .arguments = "[OUT_DIR] [--port=8080] [--key=value ...]",
    .summary = "serves a trained model to OpenAI's clients and your browser",
    .text =
        "Answers OpenAI's /v1/completions (streams, stops, echo, logprobs), "
        "/v1/models\nand /health, and has a page to try prompts. Takes the "
        "best checkpoint in out_dir\nif one is kept, else the newest; or "
        "any GPT-2, Llama or Qwen3 as Hugging Face\nkeeps it in a folder. "
        "Several texts are written at once, each with the bits it\nhas "
        "alone.\n\n"
        "  plimsoll serve out\n"
        "  plimsoll serve out --port=0 --serve_slots=4 --memory=2GB\n"
        "  plimsoll serve out --host=0.0.0.0 --token=mySecretToken\n",
    .keys = PL_FOR_SERVE,
    .reads_configs = 1,
    .run = run_serve,
};
