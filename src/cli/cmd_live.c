/* cmd_live.c: runs as a page in the browser. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/own_names.h"
#include "cli/term.h"
#include "web/live.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { FLAG_UNTIL_EOF = 1, POLL_MS = 500 };

/* Where no port was asked for, another one will do. */
static pl_status open_live(pl_live **live, pl_live_wish *wish,
                           const pl_config *config, pl_heap *heap,
                           pl_error *err)
{
    int is_open = config->port == PL_NONE;
    wish->port = is_open ? PL_LIVE_PORT : (int)config->port;
    pl_status status = pl_live_open(live, wish, heap, err);
    if (status != PL_E_IO || !is_open)
        return status;
    wish->port = 0;
    pl_error another;
    if (pl_live_open(live, wish, heap, &another) != PL_OK)
        return status; /* the first reason is the better one */
    pl_log_say(&pl_term_log, PL_LOG_NOTE,
               "port %d is in use by another program: this page has port %d",
               (int)PL_LIVE_PORT, pl_http_port(pl_live_http(*live)));
    return PL_OK;
}

static void say_address(pl_live *live, const pl_config *config)
{
    const char *address = pl_http_address(pl_live_http(live));
    if (config->token[0])
        pl_term_print("live: %s?token=%s\n", address, config->token);
    else
        pl_term_print("live: %s\n", address);
    fflush(stdout);
}

/* Whether standard input has come to its end. */
static int input_ended(const pl_file *input)
{
    char ignored[64];
    size_t bytes = 1;
    int ready = 0;
    if (pl_file_wait(input, 0, &ready, NULL) != PL_OK)
        return 1;
    if (ready &&
        pl_file_read_part(input, ignored, sizeof ignored, &bytes, NULL))
        return 1;
    return bytes == 0;
}

static pl_status serve(pl_live *live, const pl_file *input, pl_error *err)
{
    pl_status status = PL_OK;
    while (!status && (!input || !input_ended(input)))
        status = pl_http_poll(pl_live_http(live), POLL_MS, err);
    return status;
}

static pl_status run_live(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    const int until_eof = (args->flags & FLAG_UNTIL_EOF) != 0;
    pl_file input = PL_FILE_CLOSED;
    pl_own_names names;
    pl_live *live = NULL;
    pl_live_wish wish = {
        .folders = args->path_count ? args->paths : &config->out_dir,
        .count = args->path_count ? args->path_count : 1,
        .are = until_eof ? PL_LIVE_AWAITED : PL_LIVE_THERE,
        .host = config->host,
        .names = pl_own_names_find(&names),
        .token = config->token[0] ? config->token : NULL,
        .log = &pl_term_log,
    };
    pl_status status = PL_OK;
    if (until_eof) {
        signal(SIGINT, SIG_IGN); /* it is meant for who holds the other end */
        status = pl_file_open_input(&input, err);
    }
    if (!status)
        status = open_live(&live, &wish, config, heap, err);
    if (status && until_eof)
        return pl_fail_in(err, status, "there is no live page: ");
    if (status)
        return status;
    say_address(live, config);
    status = serve(live, until_eof ? &input : NULL, err);
    pl_live_close(live);
    pl_file_abandon(&input);
    return status;
}

static const char *const flags[] = { "--until_eof", NULL };

const pl_command pl_command_live = {
    .name = "live",
    .arguments = "[OUT_DIR ...] [--key=value ...] [--until_eof]",
    .summary = "runs as a page in the browser, while they go on or later",
    .text = "Shows the runs in these folders (default: out), several side by "
            "side: losses,\nspeed, memory against its budget, samples, "
            "settings, warnings. It reads their\nfiles and changes nothing. "
            "The page is on a port of this machine alone, and\neverything on "
            "it comes from this program. With --host other machines reach "
            "it,\nif they know the --token. Ctrl-C ends it; with --until_eof "
            "it ends when its\nstandard input does, and the folders may come "
            "later.\n\n"
            "  plimsoll live out\n"
            "  plimsoll live out-1 out-2 --port=8000\n"
            "  ssh -L 8377:localhost:8377 there     # a run on another "
            "machine\n",
    .keys = PL_FOR_LIVE,
    .flags = flags,
    .run = run_live,
};
