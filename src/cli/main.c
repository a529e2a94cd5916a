/* main.c: which command, its help, its exit code. */
#include "cli/command.h"
#include "cli/term.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void print_help(void)
{
    printf("plimsoll %s: trains GPTs up to the line, never over it\n\n"
           "usage: plimsoll COMMAND [CONFIG.py] [--key=value ...]\n\n",
           PL_VERSION);
    for (int i = 0; pl_commands[i]; i++)
        printf("  %-9s %s\n", pl_commands[i]->name, pl_commands[i]->summary);
    printf("\nA config is a file as nanoGPT reads it (key = value); settings "
           "on the command\nline come after it and win. `plimsoll COMMAND "
           "--help` or `plimsoll help\nCOMMAND` explains a command and its "
           "keys.\n\n"
           "From a text to a model that writes:\n"
           "  plimsoll prepare --out=data/mine mine.txt\n"
           "  plimsoll plan  config/demo.py --dataset=mine\n"
           "  plimsoll train config/demo.py --dataset=mine --out_dir=out\n"
           "  plimsoll sample --out_dir=out --start=\"Once \"\n\n"
           "Exit codes:\n");
    for (int status = 0; status < PL_STATUS_COUNT; status++)
        printf("  %3d  %s\n", pl_status_exit_code((pl_status)status),
               pl_status_meaning((pl_status)status));
}

static void print_key(pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    pl_config standard = pl_config_make_default();
    char value[256];
    pl_config_value_text(&standard, key, value, sizeof value);
    printf("  --%s=%s\n      ", row->name, value);
    pl_term_wrap(row->help, 6, 6);
}

static void print_command_help(const pl_command *command)
{
    size_t column = (size_t)printf("usage: plimsoll %s ", command->name);
    pl_term_wrap(command->arguments, column, column);
    printf("\n%s\n", command->text);
    for (int group = 0; group < PL_GROUP_COUNT; group++) {
        int titled = 0;
        for (int key = 0; key < PL_KEY_COUNT; key++) {
            const pl_key_info *row = pl_key_row((pl_key)key);
            if (!(row->commands & command->keys) || (int)row->group != group)
                continue;
            if (!titled)
                printf("\n%s (defaults shown)\n",
                       pl_key_group_title((pl_key_group)group));
            titled = 1;
            print_key((pl_key)key);
        }
    }
}

static const pl_command *find_command(const char *name)
{
    for (int i = 0; pl_commands[i]; i++)
        if (strcmp(pl_commands[i]->name, name) == 0)
            return pl_commands[i];
    return NULL;
}

static pl_status no_command(const char *name, pl_error *err)
{
    enum { MOST = 32 };
    const char *names[MOST];
    size_t count = 0;
    while (pl_commands[count] && count < MOST) {
        names[count] = pl_commands[count]->name;
        count++;
    }
    size_t near = pl_name_nearest(name, strlen(name), names, count);
    if (near < count)
        return pl_fail(err, PL_E_USAGE,
                       "there is no command '%s': did you mean 'plimsoll %s'? "
                       "`plimsoll --help` lists them all",
                       name, names[near]);
    return pl_fail(err, PL_E_USAGE,
                   "there is no command '%s'. `plimsoll --help` lists them",
                   name);
}

static int is_one_of(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 || strcmp(text, second) == 0;
}

static int wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (is_one_of(argv[i], "--help", "-h"))
            return 1;
    return 0;
}

static pl_status run(const pl_command *command, int argc, char **argv,
                     pl_error *err)
{
    static pl_cli_args args; /* large: every key's origin */
    pl_heap heap = pl_heap_make(PL_CLI_HEAP_BYTES);
    pl_status status = pl_cli_read(&args, command, argc, argv, &heap, err);
    if (!status)
        status = command->run(&args, &heap, err);
    pl_heap_close(&heap);
    return status;
}

/* A run that a signal ended, after saving, reports that signal, as shells
 * expect it. */
static int exit_code(pl_status status)
{
    if (status == PL_E_STOPPED && pl_cli_signal())
        return 128 + pl_cli_signal();
    return pl_status_exit_code(status);
}

/* `name` is what stands where a command does, argv what is behind it. */
static pl_status answer(const char *name, int argc, char **argv, pl_error *err)
{
    int asks = strcmp(name, "help") == 0;
    if (is_one_of(name, "--help", "-h") || (asks && argc == 0)) {
        print_help();
        return PL_OK;
    }
    if (is_one_of(name, "--version", "-V")) {
        printf("plimsoll %s\n", PL_VERSION);
        return PL_OK;
    }
    if (asks) /* help COMMAND */
        name = argv[0];
    const pl_command *command = find_command(name);
    if (!command)
        return no_command(name, err);
    if (!asks && !wants_help(argc, argv))
        return run(command, argc, argv, err);
    print_command_help(command);
    return PL_OK;
}

/* Nothing was asked for, perhaps by a script whose variable is empty. */
static pl_status ask_for_command(pl_error *err)
{
    print_help();
    return pl_fail(err, PL_E_USAGE, "which command? They are listed above");
}

int main(int argc, char **argv)
{
    pl_error err = { 0 };

    mallopt(M_ARENA_MAX, 1); /* what libraries allocate stays in one place */
    /* Fixed, what is as large goes back to the system when it is freed: else
     * the library raises it, and keeps holes. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error */
    pl_status status = argc < 2 ? ask_for_command(&err)
                                : answer(argv[1], argc - 2, argv + 2, &err);
    pl_error last = { 0 };
    pl_status finished = pl_term_finish(&last);
    if (status && !(status == PL_E_STOPPED && pl_cli_signal()))
        pl_term_error(&err);
    else if (finished)
        pl_term_error(&last);
    return exit_code(status ? status : finished);
}
