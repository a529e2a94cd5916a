/* value.h: a Python value, as far as a config needs one: its arithmetic and
 * how it is written. Knows no keys and no files. */
#ifndef PL_CONFIG_VALUE_H
#define PL_CONFIG_VALUE_H

#include "base/arena.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum pl_value_kind {
    PL_VALUE_NONE,
    PL_VALUE_FLAG,
    PL_VALUE_INT,
    PL_VALUE_FLOAT,
    PL_VALUE_TEXT,
    PL_VALUE_LIST,
} pl_value_kind;

typedef struct pl_value {
    pl_value_kind kind;
    bool flag;
    int64_t whole;
    double real;
    const char *text;     /* UTF-8 without zero bytes, ended by one */
    const int64_t *items; /* of a list, which has ints only */
    size_t count;
} pl_value;

enum { PL_VALUE_MAX_BYTES = 65536, PL_VALUE_MAX_ITEMS = 100000 };

pl_value pl_value_none(void);
pl_value pl_value_flag(bool flag);
pl_value pl_value_int(int64_t whole);
pl_value pl_value_float(double real);
pl_value pl_value_text(const char *text);
pl_value pl_value_list(const int64_t *items, size_t count);

/* Writes the value as a Python literal that means the same value, cut to
 * `size` bytes with the zero. Returns the length that it needs, as snprintf
 * does. */
size_t pl_value_write(const pl_value *value, char *text, size_t size);

/* The same for a message: short, cut between characters. */
enum { PL_VALUE_BRIEF_BYTES = 64 };
void pl_value_brief(const pl_value *value, char text[PL_VALUE_BRIEF_BYTES]);

/* "a whole number", "a string", ... */
const char *pl_value_kind_name(pl_value_kind kind);

typedef enum pl_operator {
    PL_OP_ADD,
    PL_OP_SUBTRACT,
    PL_OP_MULTIPLY,
    PL_OP_DIVIDE,
    PL_OP_FLOOR_DIVIDE,
    PL_OP_MODULO,
    PL_OP_POWER,
} pl_operator;

/* a op b as Python computes it on numbers (ints of 64 bits, overflow is an
 * error, and beyond 2^53 they are rounded before they meet a float or /); +
 * also joins two strings or lists, * repeats a list. What is not defined is
 * PL_E_CONFIG, with a message that names no place. */
PL_MUST_CHECK pl_status pl_value_combine(pl_value *out, pl_operator op,
                                         const pl_value *a, const pl_value *b,
                                         pl_heap *heap, pl_error *err);

/* -a */
PL_MUST_CHECK pl_status pl_value_negate(pl_value *out, const pl_value *a,
                                        pl_error *err);

#endif
