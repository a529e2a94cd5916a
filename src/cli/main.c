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
           "--help` explains a command and\nits keys.\n\n"
           "From a text to a model that writes:\n"
           "  plimsoll prepare --out=data/mine mine.txt\n"
           "  plimsoll plan  config/demo.py --dataset=mine\n"
           "  plimsoll train config/demo.py --dataset=mine --out_dir=out\n"
           "  plimsoll sample --out_dir=out --start=\"Once \"\n");
}

static void print_key(pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    pl_config standard = pl_config_make_default();
    char value[256];
    pl_config_value_text(&standard, key, value, sizeof value);
    printf("  --%s=%s\n      %s\n", row->name, value, row->help);
}

static void print_command_help(const pl_command *command)
{
    printf("usage: plimsoll %s %s\n\n%s\n", command->name, command->arguments,
           command->text);
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

static int wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
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

int main(int argc, char **argv)
{
    pl_error err = { 0 };
    pl_status status = PL_OK;

    mallopt(M_ARENA_MAX, 1); /* what libraries allocate stays in one place */
    /* Fixed, what is as large goes back to the system when it is freed: else
     * the library raises it, and keeps holes. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error */
    if (argc < 2 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
    } else if (strcmp(argv[1], "--version") == 0) {
        printf("plimsoll %s\n", PL_VERSION);
    } else {
        const pl_command *command = find_command(argv[1]);
        if (!command)
            status = pl_fail(&err, PL_E_USAGE,
                             "there is no command '%s'. `plimsoll --help` "
                             "lists them",
                             argv[1]);
        else if (wants_help(argc - 2, argv + 2))
            print_command_help(command);
        else
            status = run(command, argc - 2, argv + 2, &err);
    }
    pl_error last = { 0 };
    pl_status finished = pl_term_finish(&last);
    if (status && !(status == PL_E_STOPPED && pl_cli_signal()))
        pl_term_error(&err);
    else if (finished)
        pl_term_error(&last);
    return exit_code(status ? status : finished);
}
