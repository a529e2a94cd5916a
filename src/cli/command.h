/* command.h: what the commands share: their table, options, signals. */
#ifndef PL_CLI_COMMAND_H
#define PL_CLI_COMMAND_H

#include "advise/machine.h"
#include "base/arena.h"
#include "base/path.h"
#include "config/config.h"

#include <stddef.h>

/* Set-up memory of a command: tables for a model of thousands of layers fit. */
enum { PL_CLI_HEAP_BYTES = 1024 * 1024 * 1024 };

enum { PL_CLI_MAX_PATHS = 65536 };

/* A command's arguments after reading them: the config with every file and
 * then every --key=value applied, flags of its own, and what is left. */
typedef struct pl_cli_args {
    pl_config config;
    const char **paths; /* arguments that are neither */
    size_t path_count;
    unsigned flags;             /* bit i: flag i of the command was given */
    const char *flag_values[8]; /* behind flag i's "=", if it names a value */
    const char **listed; /* all values of the flag that can stand repeatedly */
    size_t listed_count;
    char **words; /* all of them, as they were typed */
    size_t word_count;
} pl_cli_args;

/* What a command does with the model that init_from names. */
typedef enum pl_model_use {
    PL_MODEL_RUN,     /* its weights */
    PL_MODEL_PLANNED, /* its shape, which is known of OpenAI's without them */
    PL_MODEL_SHOWN,   /* likewise, if it is there at all */
    PL_MODEL_JUDGED,  /* its weights; which checkpoint is its own business */
} pl_model_use;

typedef struct pl_command {
    const char *name;
    const char *arguments;    /* for the usage line; one that begins with
                               * small letters begins with that very word */
    const char *summary;      /* one line */
    const char *text;         /* what --help teaches, before the keys */
    unsigned keys;            /* which config keys it takes: PL_FOR_... */
    pl_model_use model;       /* of commands that take train's keys */
    int reads_configs;        /* arguments ending in .py are config files */
    const char *const *flags; /* its own flags, NULL-terminated, or NULL; "="
                               * at the end: a name may stand behind it;
                               * "=VALUE": a value, for flag_values;
                               * "=VALUE...": also repeatedly, for listed */
    pl_status (*run)(pl_cli_args *args, pl_heap *heap, pl_error *err);
} pl_command;

extern const pl_command pl_command_plan, pl_command_train, pl_command_eval,
    pl_command_sample, pl_command_prepare, pl_command_config,
    pl_command_explain, pl_command_bench, pl_command_tokenizer,
    pl_command_tokenize, pl_command_inspect, pl_command_export,
    pl_command_import, pl_command_report, pl_command_devices, pl_command_live,
    pl_command_serve;

/* All of them, in the order of the help; NULL is the end. */
extern const pl_command *const pl_commands[];

/* Reads argv[0 .. argc) of `command`. */
PL_MUST_CHECK pl_status pl_cli_read(pl_cli_args *args,
                                    const pl_command *command, int argc,
                                    char **argv, pl_heap *heap, pl_error *err);

/* Says once which keys were set that have no effect here. */
void pl_cli_say_ignored(const pl_config *config);

/* The vocabulary of a config without opening its tokens: vocab_size, else the
 * dataset's tokenizer if its folder is there, else GPT-2's. PL_E_IO where the
 * dataset's name was misspelled on the command line. *from says which, for
 * people. Unless `room` is NULL the tokenizer is looked at in any case, as a
 * run does: what it takes, and that vocab_size is enough for it. */
typedef struct pl_cli_tokenizer_room {
    size_t memory_bytes;
    uint64_t file_bytes; /* in a checkpoint */
} pl_cli_tokenizer_room;
PL_MUST_CHECK pl_status pl_cli_vocabulary(const pl_config *config,
                                          pl_heap *heap, size_t *vocab_size,
                                          pl_cli_tokenizer_room *room,
                                          const char **from, pl_error *err);

/* ---- models in folders ---- */

/* A name of Hugging Face's hub ('gpt2', 'owner/model') becomes the folder where
 * its libraries keep that model on this disk; any other name stays. */
PL_MUST_CHECK pl_status pl_cli_model_name(const char **name, pl_heap *heap,
                                          pl_error *err);
/* Where init_from names a model, the config's becomes that one; where it is
 * 'resume', that of the newest checkpoint in out_dir. */
PL_MUST_CHECK pl_status pl_cli_init_from(pl_config *config, pl_model_use use,
                                         pl_heap *heap, pl_error *err);
/* PL_E_CONFIG where a key was set that makes another model than the one in the
 * checkpoint `folder`. */
PL_MUST_CHECK pl_status pl_cli_same_model(const pl_config *config,
                                          const char *folder, pl_heap *heap,
                                          pl_error *err);
/* The same for the newest checkpoint in out_dir, whose model the config then
 * has. */
PL_MUST_CHECK pl_status pl_cli_resume_model(pl_config *config, pl_model_use use,
                                            pl_heap *heap, pl_error *err);
/* The folder with the weights to use: `name` itself, if it is a model, else the
 * best checkpoint in it. */
PL_MUST_CHECK pl_status pl_cli_model_folder(char folder[PL_PATH_BYTES],
                                            const char *name,
                                            int *is_checkpoint, pl_heap *heap,
                                            pl_error *err);

/* What the arguments of `command` name as the model: one folder, else
 * init_from's model, else out_dir. */
PL_MUST_CHECK pl_status pl_cli_model_wanted(const char **name,
                                            const pl_cli_args *args,
                                            const char *command, pl_error *err);

/* The model that a command writes text with, and the machine that does it. */
typedef struct pl_cli_model {
    const char *name; /* as it was asked for */
    char folder[PL_PATH_BYTES];
    pl_machine machine;
} pl_cli_model;

/* The config then has the arithmetic of the checkpoint, if it is one. */
PL_MUST_CHECK pl_status pl_cli_model_find(pl_cli_model *model,
                                          pl_cli_args *args,
                                          const char *command, pl_heap *heap,
                                          pl_error *err);

/* $XDG_CACHE_HOME/plimsoll, else ~/.cache/plimsoll, else nowhere: NULL. */
PL_MUST_CHECK pl_status pl_cli_cache_folder(const char **out, pl_heap *heap,
                                            pl_error *err);

/* Whether Linux knows a graphics card: a device file, or a controller on the
 * bus. Where there is none, 'auto' opens no driver: the libraries behind
 * OpenCL's may take more memory than a small run, and no plan knows of it.
 * PLIMSOLL_LOOK_FOR_CARDS in the environment says that there may be one. */
int pl_cli_may_have_card(void);

/* What the config's keys and this machine allow, where its device may be used.
 */
PL_MUST_CHECK pl_status pl_cli_machine(pl_machine *machine, pl_machine_use use,
                                       const pl_config *config, pl_heap *heap,
                                       pl_error *err);

/* Ctrl-C, SIGTERM and SIGHUP: the first is remembered, a second one of
 * the same kind kills. */
void pl_cli_catch_signals(void);
/* SIGUSR1 too: remembered as long as none of the others came. */
void pl_cli_catch_gentle_signal(void);
/* All of them, of a process for which another one speaks. */
void pl_cli_catch_signals_silently(void);
/* Another process of the run had one: as if it had come here. */
int pl_cli_signal_elsewhere(void);
int pl_cli_signal(void); /* the one that came, or 0 */

/* Fails if anything was left over that the command can't use. */
PL_MUST_CHECK pl_status pl_cli_no_paths(const pl_cli_args *args,
                                        const char *wanted, pl_error *err);

#endif
