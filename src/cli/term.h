/* term.h: how things look: colours on a terminal only, a progress line that
 * scripts never see. */
#ifndef PL_CLI_TERM_H
#define PL_CLI_TERM_H

#include "base/log.h"
#include "base/units.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_term_style {
    PL_TERM_BOLD,
    PL_TERM_DIM,
    PL_TERM_RED,
    PL_TERM_YELLOW,
    PL_TERM_GREEN
} pl_term_style;

/* Escape sequences, or "" where standard output (error) is no terminal or
 * NO_COLOR is set. */
const char *pl_term_out(pl_term_style style);
const char *pl_term_err(pl_term_style style);
const char *pl_term_out_end(void);
const char *pl_term_err_end(void);

/* Whatever may have a name or a text of somebody else's in it is printed by
 * these, and messages by pl_term_log: control characters are escaped, so that
 * none reaches the terminal. */

/* As printf, cut at PL_TERM_PRINT_BYTES - 1; line ends and tabs stay. */
enum { PL_TERM_PRINT_BYTES = 16 * 1024 };
PL_PRINTF(1, 2) void pl_term_print(const char *fmt, ...);
/* `bytes` bytes of `text` on one line: line ends and tabs are escaped too.
 * Returns how many bytes that made. */
size_t pl_term_put(const char *text, size_t bytes);

/* One line on standard error that overwrites itself; nothing off a terminal.
 * Cleared before anything else is printed. */
PL_PRINTF(1, 2) void pl_term_progress(const char *fmt, ...);
void pl_term_clear(void);

/* Prints words in lines of at most 80 columns, and ends the last. The first
 * begins where `column` columns are printed already, the others with `indent`
 * blanks. */
void pl_term_wrap(const char *text, size_t column, size_t indent);

/* Prints the library's messages: facts to standard output, notes and warnings
 * to standard error. */
extern const pl_log pl_term_log;
/* Hands each of them on as well; NULL: no longer. */
void pl_term_hand_on(void (*keep)(void *context, pl_log_level level,
                                  const char *text),
                     void *context);

/* Nothing more is printed, until it speaks again: of several processes that
 * share a run, one does. */
void pl_term_silence(void);
void pl_term_speak(void);

/* Writes an error as the last word of a command. */
void pl_term_error(const pl_error *err);

/* What a signal left, where a command says it in PL_E_STOPPED's text. */
void pl_term_stopped(const pl_error *err);

/* Standard output has taken everything, or PL_E_IO: a full disk behind a
 * redirection must not look like success. */
PL_MUST_CHECK pl_status pl_term_finish(pl_error *err);

#endif
