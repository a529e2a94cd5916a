/* term.c: see term.h. The only user of terminals. */
#include "cli/term.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int progress_shown; /* a progress line stands on the terminal */

/* A terminal that knows escape sequences. */
static int is_able(int fd)
{
    const char *kind = getenv("TERM");
    return isatty(fd) && !(kind && strcmp(kind, "dumb") == 0);
}

static int coloured(int fd)
{
    const char *no = getenv("NO_COLOR");
    return is_able(fd) && !(no && *no);
}

static const char *style_code(int fd, pl_term_style style)
{
    static const char *const codes[] = {
        [PL_TERM_BOLD] = "\033[1m",   [PL_TERM_DIM] = "\033[2m",
        [PL_TERM_RED] = "\033[31m",   [PL_TERM_YELLOW] = "\033[33m",
        [PL_TERM_GREEN] = "\033[32m",
    };
    return coloured(fd) ? codes[style] : "";
}

const char *pl_term_out(pl_term_style style)
{
    return style_code(STDOUT_FILENO, style);
}

const char *pl_term_err(pl_term_style style)
{
    return style_code(STDERR_FILENO, style);
}

const char *pl_term_out_end(void)
{
    return coloured(STDOUT_FILENO) ? "\033[0m" : "";
}

const char *pl_term_err_end(void)
{
    return coloured(STDERR_FILENO) ? "\033[0m" : "";
}

/* ---- what may be somebody else's ---- */

static size_t put(FILE *to, const char *text, size_t bytes,
                  pl_utf8_breaks breaks)
{
    size_t written = 0;
    for (size_t at = 0; at < bytes;) {
        char shown[PL_UTF8_SHOWN_BYTES];
        at += pl_utf8_show(text + at, bytes - at, breaks, shown);
        fputs(shown, to);
        written += strlen(shown);
    }
    return written;
}

size_t pl_term_put(const char *text, size_t bytes)
{
    return put(stdout, text, bytes, PL_UTF8_SHOW_BREAKS);
}

static void put_formatted(FILE *to, const char *fmt, va_list args)
{
    char text[PL_TERM_PRINT_BYTES];
    vsnprintf(text, sizeof text, fmt, args);
    put(to, text, pl_utf8_whole_bytes(text, strlen(text)), PL_UTF8_KEEP_BREAKS);
}

static int is_silent;

void pl_term_silence(void)
{
    is_silent = 1;
}

void pl_term_speak(void)
{
    is_silent = 0;
}

void pl_term_print(const char *fmt, ...)
{
    va_list args;
    if (is_silent)
        return;
    va_start(args, fmt);
    put_formatted(stdout, fmt, args);
    va_end(args);
}

/* ---- progress and messages ---- */

void pl_term_progress(const char *fmt, ...)
{
    va_list args;
    if (is_silent || !is_able(STDERR_FILENO))
        return;
    fflush(stdout);
    fputs("\r\033[K", stderr);
    va_start(args, fmt);
    put_formatted(stderr, fmt, args);
    va_end(args);
    fflush(stderr);
    progress_shown = 1;
}

void pl_term_clear(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = 0;
}

void pl_term_wrap(const char *text, size_t column, size_t indent)
{
    enum { COLUMNS = 80 };
    size_t start = column;
    while (*text) {
        size_t bytes = strcspn(text, " ");
        if (column > start && column + 1 + bytes > COLUMNS) {
            printf("\n%*s", (int)indent, "");
            column = start = indent;
        }
        printf("%s%.*s", column > start ? " " : "", (int)bytes, text);
        column += bytes + (column > start);
        text += bytes + strspn(text + bytes, " ");
    }
    printf("\n");
}

static void (*hand_on)(void *context, pl_log_level level, const char *text);
static void *hand_on_context;

void pl_term_hand_on(void (*keep)(void *context, pl_log_level level,
                                  const char *text),
                     void *context)
{
    hand_on = keep;
    hand_on_context = context;
}

static void print_message(void *context, pl_log_level level, const char *text)
{
    (void)context;
    if (is_silent)
        return;
    pl_term_clear();
    if (hand_on)
        hand_on(hand_on_context, level, text);
    if (level == PL_LOG_INFO) {
        pl_term_print("%s\n", text);
        return;
    }
    fflush(stdout);
    fprintf(stderr, "%s%s:%s ", pl_term_err(PL_TERM_YELLOW),
            level == PL_LOG_NOTE ? "note" : "warning", pl_term_err_end());
    put(stderr, text, strlen(text), PL_UTF8_KEEP_BREAKS);
    fputc('\n', stderr);
}

const pl_log pl_term_log = { .sink = print_message };

void pl_term_error(const pl_error *err)
{
    pl_term_clear();
    fflush(stdout);
    fprintf(stderr, "%splimsoll: error:%s ", pl_term_err(PL_TERM_RED),
            pl_term_err_end());
    put(stderr, err->text, strlen(err->text), PL_UTF8_KEEP_BREAKS);
    fputc('\n', stderr);
}

void pl_term_stopped(const pl_error *err)
{
    pl_term_clear();
    pl_term_print("%s\n", err->text);
}

pl_status pl_term_finish(pl_error *err)
{
    pl_term_clear();
    if (fflush(stdout) != 0 || ferror(stdout))
        return pl_fail(err, PL_E_IO, "cannot write to standard output: %s",
                       strerror(errno));
    return PL_OK;
}
