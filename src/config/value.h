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
    PL_VALUE_LIST,    /* and tuples */
    PL_VALUE_UNKNOWN, /* what only running the config could tell */
} pl_value_kind;

typedef struct pl_value {
    pl_value_kind kind;
    bool tuple;            /* a list that Python writes with ( ) */
    unsigned char nesting; /* lists in each other, this one too */
    size_t count;          /* of a list's items */
    size_t weight;         /* values in it, all the way down */
    union {
        bool flag;
        int64_t whole;
        double real;
        const char *text; /* UTF-8 without zero bytes, ended by one; why it is
                           * unknown, with place and line */
        const struct pl_value *items; /* none of them unknown */
    };
} pl_value;

enum {
    PL_VALUE_MAX_BYTES = 65536,
    PL_VALUE_MAX_ITEMS = 10000, /* all the way down */
    PL_VALUE_MAX_NESTING = 4,
};

pl_value pl_value_none(void);
pl_value pl_value_flag(bool flag);
pl_value pl_value_int(int64_t whole);
pl_value pl_value_float(double real);
pl_value pl_value_text(const char *text);
/* Unbounded: whoever makes one looks at its nesting and weight. */
pl_value pl_value_list(const pl_value *items, size_t count);
pl_value pl_value_tuple(const pl_value *items, size_t count);
pl_value pl_value_unknown(const char *why);

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
    PL_PY_ADD,
    PL_PY_SUBTRACT,
    PL_PY_MULTIPLY,
    PL_PY_DIVIDE,
    PL_PY_FLOOR_DIVIDE,
    PL_PY_MODULO,
    PL_PY_POWER,
    PL_PY_SHIFT_LEFT,
    PL_PY_SHIFT_RIGHT,
    PL_PY_BIT_AND,
    PL_PY_BIT_XOR,
    PL_PY_BIT_OR,
    PL_PY_LESS, /* from here on: comparisons */
    PL_PY_LESS_EQUAL,
    PL_PY_GREATER,
    PL_PY_GREATER_EQUAL,
    PL_PY_EQUAL,
    PL_PY_NOT_EQUAL,
    PL_PY_IN,
    PL_PY_NOT_IN,
    PL_PY_IS,
    PL_PY_IS_NOT,
} pl_operator;

const char *pl_operator_sign(pl_operator op);

/* a op b as Python computes it on numbers (ints of 64 bits, overflow is an
 * error, and beyond 2^53 they are rounded before they meet a float or /); +
 * also joins two strings or lists, * repeats them, % formats. What is not
 * defined is PL_E_CONFIG, with a message that names no place. Neither is
 * unknown. */
PL_MUST_CHECK pl_status pl_value_combine(pl_value *out, pl_operator op,
                                         const pl_value *a, const pl_value *b,
                                         pl_heap *heap, pl_error *err);

/* -a */
PL_MUST_CHECK pl_status pl_value_negate(pl_value *out, const pl_value *a,
                                        pl_error *err);

/* The comparisons among the operators, in compare.c. */
PL_MUST_CHECK pl_status pl_value_compare(pl_value *out, pl_operator op,
                                         const pl_value *a, const pl_value *b,
                                         pl_error *err);

/* Whether Python takes it for true. It is not unknown. */
bool pl_value_truth(const pl_value *value);

/* ---- texts; see format.c ---- */

/* A text that is being made. */
typedef struct pl_text {
    char *bytes;
    size_t used, capacity;
    pl_heap *heap;
} pl_text;

PL_MUST_CHECK pl_status pl_text_add(pl_text *text, const char *bytes,
                                    size_t count, pl_error *err);
/* str(value), or repr(value) where `quoted`. */
PL_MUST_CHECK pl_status pl_text_add_value(pl_text *text, const pl_value *value,
                                          bool quoted, pl_error *err);
/* format(value, spec): PL_E_CONFIG for what is not evaluated here. */
PL_MUST_CHECK pl_status pl_text_add_format(pl_text *text, const pl_value *value,
                                           const char *spec, size_t spec_bytes,
                                           pl_error *err);
/* The text as a value. */
PL_MUST_CHECK pl_status pl_text_end(pl_text *text, pl_value *out,
                                    pl_error *err);

/* pattern % operand */
PL_MUST_CHECK pl_status pl_value_percent(pl_value *out, const char *pattern,
                                         const pl_value *operand, pl_heap *heap,
                                         pl_error *err);

/* A float as Python's repr has it: "6e-05", "0.1", "inf". */
enum { PL_FLOAT_TEXT_BYTES = 40 };
size_t pl_float_text(double real, char text[PL_FLOAT_TEXT_BYTES]);

#endif
