/* cmd_config.c: the final values of a config, and where each came from. */
#include "cli/command.h"
#include "cli/term.h"

#include <stdio.h>

enum { FLAG_MARKDOWN = 1 };

static void print_piece(void *context, const char *text, size_t bytes)
{
    (void)context;
    fwrite(text, 1, bytes, stdout);
}

static pl_status run_config(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    (void)heap;
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (status)
        return status;
    if (args->flags & FLAG_MARKDOWN) {
        pl_config_markdown(print_piece, NULL);
        return PL_OK;
    }
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[4096], origin[4096];
        int is_default = args->config.origin[key].source == PL_FROM_DEFAULT;
        pl_config_value_text(&args->config, (pl_key)key, value, sizeof value);
        pl_config_origin_text(&args->config, (pl_key)key, origin,
                              sizeof origin);
        printf("%s", is_default ? pl_term_out(PL_TERM_DIM) : "");
        pl_term_print("%-27s = %-24s # %s%s", pl_key_row((pl_key)key)->name,
                      value, origin,
                      pl_key_row((pl_key)key)->type == PL_TYPE_IGNORED
                          ? "; without effect"
                          : "");
        printf("%s\n", is_default ? pl_term_out_end() : "");
    }
    return PL_OK;
}

static const char *const flags[] = { "--markdown", NULL };

const pl_command pl_command_config = {
    .name = "config",
    .arguments = "[CONFIG.py ...] [--key=value ...]",
    .summary = "the final value of every key, and where it came from",
    .text = "Prints a config file that gives exactly these settings; the "
            "comment behind each\nsays whether it is the default, a line of a "
            "file or the command line.\n--markdown prints the page of all "
            "keys, docs/config.md.\n",
    .keys = PL_FOR_ALL,
    .reads_configs = 1,
    .flags = flags,
    .run = run_config,
};
