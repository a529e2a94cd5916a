/* cmd_train.c: training and evaluation as people see them. nanoGPT's `step`
 * and `iter` lines are printed as it prints them, more stands behind. */
#include "cli/command.h"
#include "cli/dial.h"
#include "cli/eval_tasks.h"
#include "cli/live_process.h"
#include "cli/ranks.h"
#include "cli/term.h"
#include "cli/train_view.h"
#include "config/special.h"
#include "store/checkpoint.h"
#include "store/pretrained.h"
#include "train/calibrate.h"
#include "train/plan_file.h"
#include "train/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_start(const pl_session *session)
{
    const pl_config *config = session->run.config;
    const pl_gpt *gpt = &session->run.gpt;
    uint64_t tokens = (uint64_t)pl_config_update_tokens(config);

    printf("tokens per iteration will be: %s\n", pl_units_count(tokens).text);
    if (session->run.tokenizer.kind != PL_TOKENIZER_NONE)
        pl_term_print("found vocab_size = %d (inside %s)\n",
                      session->run.tokenizer.vocab_size,
                      session->run.dataset.folder);
    printf("number of parameters: %.2fM\n",
           (double)pl_param_count_nanogpt(&session->run.shape) / 1e6);
    printf("memory: arena %s", pl_units_bytes(gpt->placement.arena_bytes).text);
    if (gpt->placement.host_bytes) /* the device's memory isn't the host's */
        printf(", on the host %s",
               pl_units_bytes(gpt->placement.host_bytes).text);
    printf(" + reserve %s, all of it taken; %s\n",
           pl_units_bytes(session->reserve_bytes).text,
           gpt->layout.device.text);
    if (session->files_bytes)
        printf("and up to %s for files, since out_dir is in memory (tmpfs)\n",
               pl_units_bytes(session->files_bytes).text);
    pl_eval_tasks_say(&session->quiz.requests);
    fflush(stdout);
}

static void say_comparable(const pl_session *session)
{
    const pl_config *config = session->run.config;
    if (config->eval_block_size != PL_NONE &&
        config->eval_block_size < config->block_size)
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "evaluation sees %lld tokens of context instead of %lld: "
                   "its loss is another, higher number, not to be compared "
                   "with one at block_size",
                   (long long)config->eval_block_size,
                   (long long)config->block_size);
}

static void say_how_to_go_on(const pl_session *session)
{
    const char *out_dir = session->run.outdir.path;
    char name[PL_OUTDIR_NAME_BYTES];
    if (session->run.purpose != PL_RUN_TRAINS) {
        printf("stopped: the evaluation is not complete\n");
        return;
    }
    if (session->run.outdir.newest == PL_OUTDIR_NO_STEP) {
        printf("stopped before the first update was done: there is nothing to "
               "save\n");
        return;
    }
    printf("stopped at iteration %llu of %lld",
           (unsigned long long)session->run.step,
           (long long)session->run.config->max_iters);
    pl_outdir_name(name, session->run.outdir.newest);
    pl_term_print(", saved in %s/%s\nto go on: plimsoll train --resume %s\n",
                  out_dir, name, pl_path_quoted(out_dir).text);
}

/* The first training on a machine measures it; a later one does so again where
 * what is known came from a busy moment, or long ago. PLIMSOLL_CALIBRATE=0 in
 * the environment forbids it, where the time of the first run is short. */
static pl_status calibrate(pl_machine *machine, pl_run_purpose purpose,
                           const pl_config *config, pl_heap *heap,
                           pl_error *err)
{
    const char *from, *wish = getenv("PLIMSOLL_CALIBRATE");
    size_t vocab_size;
    if (!pl_machine_wants_rates(machine) || purpose != PL_RUN_TRAINS ||
        (wish && strcmp(wish, "0") == 0))
        return PL_OK;
    pl_status status = pl_cli_vocabulary(config, heap, &vocab_size, NULL, &from,
                                         err);
    if (status)
        return status;
    pl_term_progress("measuring this machine");
    pl_calibrate(machine, config, vocab_size);
    pl_term_clear();
    return PL_OK;
}

/* What the run tells those who look at its folder. */
static pl_notes notes = PL_NOTES_CLOSED;

static void keep_warning(void *context, pl_log_level level, const char *text)
{
    pl_notes_warn(context, level, text);
}

/* The page beside the run, if one was asked for. */
static pl_live_process live = PL_LIVE_NO_PROCESS;

static void open_notes(const pl_session *session)
{
    const pl_plan_more more = { .update_flops = pl_train_view_flops(session),
                                .live_bytes = pl_live_process_bytes(&live) };
    pl_error trouble;
    if (session->run.purpose != PL_RUN_TRAINS)
        return;
    if (pl_plan_file_write(session, &more, &trouble) != PL_OK)
        pl_log_say(&pl_term_log, PL_LOG_WARN, "%s", trouble.text);
    pl_notes_open(&notes, session->run.outdir.path);
    pl_notes_measure(&notes, session->run.device, &session->run.gpt.graph);
}

static void close_notes(pl_status status)
{
    pl_term_hand_on(NULL, NULL);
    pl_notes_close(&notes, status == PL_OK          ? PL_PHASE_DONE
                           : status == PL_E_STOPPED ? PL_PHASE_STOPPED
                                                    : PL_PHASE_FAILED);
}

/* The processes that share the run, if a launcher has started several. */
static pl_comm *comm;
static pl_cli_ranks_end end;

/* One of the processes that rank 0 speaks for. */
static pl_status run_silently(pl_session *session, pl_error *err)
{
    const pl_listener listener = { .stop = pl_train_view_stop,
                                   .patience_seconds = 2.0 };
    pl_cli_catch_signals_silently();
    pl_status status = pl_train(session, &listener, err);
    pl_session_close(session);
    return status == PL_E_STOPPED ? PL_OK : status; /* rank 0 says so */
}

/* Trains or only evaluates, and closes. */
static pl_status run_session(pl_session *session, pl_error *err)
{
    pl_train_view view;
    if (session->run.rank)
        return run_silently(session, err);
    print_start(session);
    if (comm)
        pl_cli_ranks_say_plans(session);
    say_comparable(session);
    open_notes(session);
    pl_listener listener = pl_train_view_begin(&view, session, &notes);
    pl_cli_catch_signals();
    pl_cli_catch_gentle_signal();
    pl_status status = pl_train(session, &listener, err);
    if (status != PL_OK && status != PL_E_STOPPED)
        pl_notes_warn(&notes, PL_LOG_WARN, err->text);
    pl_term_clear();
    pl_train_view_peak(session);
    if (comm && (!status || status == PL_E_STOPPED))
        pl_cli_ranks_say_work(session);
    if (status == PL_E_STOPPED)
        say_how_to_go_on(session);
    if (status == PL_E_STOPPED)
        pl_cli_signal_elsewhere();
    close_notes(status);
    pl_session_close(session);
    return status;
}

static int is_first(void)
{
    return !comm || pl_comm_rank(comm) == 0;
}

/* What this machine has for the run. */
static pl_status look_at_machine(pl_machine *machine, pl_run_purpose purpose,
                                 const pl_config *config, pl_heap *heap,
                                 pl_error *err)
{
    pl_status status = pl_cli_machine(machine, PL_MACHINE_RUN, config, heap,
                                      err);
    if (!status && comm)
        status = pl_cli_ranks_machine(machine, comm, err);
    if (!status && live.pid)
        status = pl_machine_take_off(machine, pl_live_process_bytes(&live),
                                     "the live page", err);
    return status ? status : calibrate(machine, purpose, config, heap, err);
}

/* nanoGPT's eval_only makes another command of this one: here it becomes the
 * purpose of the session, and is not asked for again. */
static pl_status train_alone(const pl_cli_args *args, pl_config *config,
                             pl_heap *heap, pl_error *err)
{
    pl_session session;
    pl_machine machine;
    pl_status status = PL_OK;
    if (comm)
        status = pl_cli_ranks_share(comm, config, heap, err);
    const pl_run_purpose purpose = config->eval_only ? PL_RUN_EVALUATES
                                                     : PL_RUN_TRAINS;
    pl_term_hand_on(keep_warning, &notes);
    if (!status && is_first())
        pl_cli_say_ignored(config);
    if (!status)
        status = look_at_machine(&machine, purpose, config, heap, err);
    if (!status && purpose == PL_RUN_TRAINS && is_first())
        status = pl_cli_minutes(config, &machine, args, heap, err);
    if (!status && comm) /* what the minutes were made of */
        status = pl_cli_ranks_share(comm, config, heap, err);
    if (!status)
        status = pl_session_open_train(&session, purpose, config, &machine,
                                       &pl_term_log, heap, err);
    if (!status && comm)
        pl_comm_set_timeout(comm, config->comm_timeout);
    if (status)
        return status;
    status = run_session(&session, err);
    end = pl_cli_ranks_end_of(&session);
    return status;
}

enum { FLAG_RESUME = 1, FLAG_LIVE = 2, LIVE_AT = 1 };

/* With the page beside it, if one was asked for. It is begun first, as long as
 * this process is small; whatever becomes of it, the run goes on. */
static pl_status train(const pl_cli_args *args, pl_config *config,
                       pl_heap *heap, pl_error *err)
{
    pl_status status = PL_OK;
    if ((args->flags & FLAG_LIVE) && !config->eval_only && is_first())
        status = pl_live_process_start(&live, config->out_dir,
                                       args->flag_values[LIVE_AT], err);
    if (!status)
        status = train_alone(args, config, heap, err);
    if (live.pid && !status)
        pl_term_print("the page ends with the run; to see it again: plimsoll "
                      "live %s\n",
                      pl_path_quoted(config->out_dir).text);
    pl_live_process_end(&live);
    return status;
}

/* What a checkpoint was trained with, under what was asked for now. */
static pl_status merge_configs(pl_config **out, const char *folder,
                               const pl_config *asked, pl_heap *heap,
                               pl_error *err)
{
    pl_config *config;
    pl_status status = pl_heap_take(heap, &config, 1, sizeof *config, err);
    if (!status)
        status = pl_checkpoint_read_config(config, folder, heap, err);
    for (int key = 0; key < PL_KEY_COUNT && !status; key++) {
        if (!pl_config_was_set(asked, (pl_key)key))
            continue;
        pl_value value = pl_config_get(asked, (pl_key)key);
        status = pl_config_set(config, (pl_key)key, &value, asked->origin[key],
                               heap, err);
    }
    *out = config;
    return status;
}

/* --resume OUT_DIR: with the settings of the run. */
static pl_status resume(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const char *out_dir = args->path_count ? args->paths[0]
                                           : args->config.out_dir;
    char folder[PL_PATH_BYTES];
    pl_config *config;
    if (args->path_count > 1)
        return pl_fail(err, PL_E_USAGE, "--resume takes one folder, not %zu",
                       args->path_count);
    pl_status status = pl_outdir_mend_closed(out_dir, &pl_term_log, err);
    if (!status)
        status = pl_checkpoint_find(folder, out_dir, PL_WANT_NEWEST,
                                    PL_SCOPE_SETTINGS, NULL, heap, err);
    if (!status)
        status = pl_cli_dial_keep(&args->config, folder, heap, err);
    if (!status)
        status = merge_configs(&config, folder, &args->config, heap, err);
    if (status)
        return status;
    config->out_dir = out_dir;
    config->init_from = "resume";
    status = pl_config_check(config, err);
    return status ? status : train(args, config, heap, err);
}

/* init_from = 'resume' with settings from elsewhere: 'auto' still means the
 * arithmetic of the run so far. What is wrong with the checkpoint is said when
 * it is resumed. */
static void keep_arithmetic(pl_config *config, pl_heap *heap)
{
    char folder[PL_PATH_BYTES];
    if (pl_config_beginning(config) == PL_BEGIN_RESUME &&
        !pl_checkpoint_find(folder, config->out_dir, PL_WANT_NEWEST,
                            PL_SCOPE_SETTINGS, NULL, heap, NULL) &&
        pl_checkpoint_keep_arithmetic(config, folder, heap, NULL))
        config->kept_arithmetic = PL_ARITHMETIC_UNSAID;
}

/* As it was asked for; of several processes rank 0, which tells the others. */
static pl_status run_first(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    if (args->flags & FLAG_RESUME)
        return resume(args, heap, err);
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (!status)
        status = pl_cli_dial(&args->config, heap, err);
    if (status)
        return status;
    keep_arithmetic(&args->config, heap);
    return train(args, &args->config, heap, err);
}

static pl_status run_train(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_status status = pl_cli_ranks_open(&comm, &args->config, heap, err);
    if (!status && comm)
        status = pl_cli_ranks_agree(comm, &args->config, heap, err);
    if (!is_first())
        pl_term_silence();
    if (!status)
        status = is_first() ? run_first(args, heap, err)
                            : train(args, &args->config, heap, err);
    pl_cli_ranks_close(comm, &end, status, err);
    return status;
}

static const char *const train_flags[] = { "--resume=", "--live=PORT", NULL };

const pl_command pl_command_train = {
    .name = "train",
    .arguments = "[CONFIG.py ... | --resume OUT_DIR] [--live[=PORT]] "
                 "[--key=value ...]",
    .summary = "trains, evaluates and saves",
    .text = "Reads data/<dataset>/train.bin and val.bin (see `plimsoll "
            "prepare`), takes the\nplanned memory before the first step, and "
            "writes checkpoints to out_dir. Ctrl-C\nsaves and says how to go "
            "on: an update that is over within 2 s is finished\nfirst, any "
            "other is given up and made anew by the run that goes on. "
            "SIGUSR1\nlets the update finish in any case.\n\n"
            "--init_from=resume goes on from the newest checkpoint in out_dir; "
            "--resume\nOUT_DIR does so with the settings of that run.\n\n"
            "--live shows the run as a page in the browser while it goes on, "
            "on a port of\nthis machine alone, by a process of its own that "
            "the budget counts; it changes\nno bit.\n\n"
            "Started by mpirun or srun, several processes share the run, with "
            "the bits of\none; --gradient_groups has to be at least their "
            "number.\n\n"
            "  plimsoll train config/train_shakespeare_char.py "
            "--max_iters=2000\n"
            "  plimsoll train --resume out --max_iters=4000\n"
            "  plimsoll train config/demo.py --dataset=mine --live\n"
            "  mpirun -n 4 plimsoll train config/train_gpt2.py "
            "--gradient_groups=4\n",
    .keys = PL_FOR_TRAIN,
    .reads_configs = 1,
    .flags = train_flags,
    .run = run_train,
};

/* ---- eval ---- */

static pl_status evaluate(const pl_config *config, const char *folder,
                          pl_heap *heap, pl_error *err)
{
    pl_session session;
    pl_machine machine;
    pl_cli_say_ignored(config);
    pl_status status = pl_cli_machine(&machine, PL_MACHINE_RUN, config, heap,
                                      err);
    pl_term_progress("loading %s", folder);
    if (!status)
        status = pl_session_open_eval(&session, config, &machine, folder,
                                      &pl_term_log, heap, err);
    pl_term_clear();
    return status ? status : run_session(&session, err);
}

enum { FLAG_JSON = 2, ITEMS_AT = 2 };

/* The tasks that this call names, by --task or by the key that a training has
 * for them. */
static pl_status name_tasks(pl_eval_tasks_wish *wish, const pl_cli_args *args,
                            pl_heap *heap, pl_error *err)
{
    const pl_texts *tasks = &args->config.tasks;
    const char **paths;
    wish->paths = args->listed;
    wish->count = args->listed_count;
    if (wish->count ||
        args->config.origin[PL_KEY_tasks].source != PL_FROM_COMMAND_LINE)
        return PL_OK;
    pl_status status = pl_heap_take(heap, &paths, tasks->count, sizeof *paths,
                                    err);
    for (size_t i = 0; i < tasks->count && !status; i++)
        paths[i] = pl_texts_at(tasks, i);
    wish->paths = paths;
    wish->count = tasks->count;
    return status;
}

static pl_status judge(const pl_cli_args *args, pl_config *config,
                       const char *folder, pl_heap *heap, pl_error *err)
{
    pl_eval_tasks_wish tasks = { .json = (args->flags & FLAG_JSON) != 0,
                                 .items = args->flag_values[ITEMS_AT] };
    pl_status status = name_tasks(&tasks, args, heap, err);
    if (status)
        return status;
    if (tasks.count)
        return pl_eval_tasks(config, folder, &tasks, heap, err);
    if (tasks.json || tasks.items)
        return pl_fail(err, PL_E_USAGE,
                       "--json and --items are for tasks: name one, "
                       "--task=FILE");
    return evaluate(config, folder, heap, err);
}

/* A checkpoint knows what it was trained with; any other model says only what
 * it is. */
static pl_status run_eval(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_config *config = &args->config;
    char folder[PL_PATH_BYTES];
    const char *name;
    int is_checkpoint = 0;

    pl_status status = pl_cli_model_wanted(&name, args, "eval", err);
    if (!status)
        status = pl_cli_model_folder(folder, name, &is_checkpoint, heap, err);
    if (!status && is_checkpoint)
        status = pl_cli_same_model(config, folder, heap, err);
    if (!status && is_checkpoint)
        status = merge_configs(&config, folder, &args->config, heap, err);
    else if (!status)
        status = pl_pretrained_apply(config, folder, &pl_term_log, heap, err);
    if (status)
        return status;
    status = pl_config_check(config, err);
    if (status)
        return status;
    return judge(args, config, folder, heap, err);
}

static const char *const eval_flags[] = { "--task=FILE...", "--json",
                                          "--items=FILE", NULL };

const pl_command pl_command_eval = {
    .name = "eval",
    .arguments = "[OUT_DIR] [--task=FILE ...] [--key=value ...]",
    .summary = "the loss of a checkpoint on its data, or its answers to tasks",
    .text = "Uses the settings the model was trained with; any that isn't the "
            "model's can be\noverridden. Needs the model alone: a "
            "checkpoint's, or any GPT-2, Llama or\nQwen3 in a folder as "
            "Hugging Face keeps it.\n\n"
            "--task=FILE.jsonl, which may stand repeatedly and name folders, "
            "puts tasks to it\ninstead: multiple choice, schema and "
            "language-model tasks, with --shots=N of\nthem as examples.\n\n"
            "  --json    what is found for tasks, for scripts\n"
            "  --items   what is found for each item, to FILE, as lines of "
            "JSON\n\n"
            "  plimsoll eval out --eval_iters=500 --eval_batch_size=4\n"
            "  plimsoll eval out --task=hellaswag.jsonl --shots=5\n"
            "  plimsoll eval out --task=core --task_limit=500 --json\n",
    .keys = PL_FOR_TRAIN,
    .model = PL_MODEL_JUDGED,
    .reads_configs = 1,
    .flags = eval_flags,
    .run = run_eval,
};
