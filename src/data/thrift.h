/* thrift.h: Thrift's compact protocol, read from a part of a file.
 *
 * Through a window of fixed size, so that metadata of any length takes no
 * memory. A failure is sticky: after it nothing more is read, every call
 * answers 0, and `status` says what it was; so a parser asks once, at its end.
 * No element of a list or map takes less than a byte, so a count that is
 * larger than the bytes left is refused, and work is bounded by the file. */
#ifndef PL_DATA_THRIFT_H
#define PL_DATA_THRIFT_H

#include "base/file.h"

enum {
    PL_THRIFT_TRUE = 1,
    PL_THRIFT_FALSE = 2,
    PL_THRIFT_BYTE = 3,
    PL_THRIFT_I16 = 4,
    PL_THRIFT_I32 = 5,
    PL_THRIFT_I64 = 6,
    PL_THRIFT_DOUBLE = 7,
    PL_THRIFT_BINARY = 8,
    PL_THRIFT_LIST = 9,
    PL_THRIFT_SET = 10,
    PL_THRIFT_MAP = 11,
    PL_THRIFT_STRUCT = 12,
    PL_THRIFT_UUID = 13,
};

enum { PL_THRIFT_WINDOW_BYTES = 8192, PL_THRIFT_MAX_DEPTH = 32 };

typedef struct pl_thrift {
    const pl_file *file;
    uint64_t at, end; /* offsets in the file: the next byte, the end */
    uint64_t window_at;
    size_t window_have;
    pl_status status;
    pl_error *err;
    unsigned char window[PL_THRIFT_WINDOW_BYTES];
} pl_thrift;

/* A field of a struct. Zeroed before the struct's first one. */
typedef struct pl_thrift_field {
    int id, type;
} pl_thrift_field;

/* Reads [at, end) of the file. What was in the window stays of use. */
void pl_thrift_begin(pl_thrift *thrift, const pl_file *file, uint64_t at,
                     uint64_t end, pl_error *err);

/* Fails with what is expected, at this place. */
PL_PRINTF(2, 3)
void pl_thrift_fail(pl_thrift *thrift, const char *fmt, ...);

/* Whether there is one more field. */
int pl_thrift_next(pl_thrift *thrift, pl_thrift_field *field);

/* The values of a field; another type than asked for is a failure. */
int64_t pl_thrift_int(pl_thrift *thrift, const pl_thrift_field *field);
int pl_thrift_bool(pl_thrift *thrift, const pl_thrift_field *field);
/* The list's length; its elements, all of `type`, follow. */
uint64_t pl_thrift_list(pl_thrift *thrift, const pl_thrift_field *field,
                        int type);
/* Whether the field is a struct, whose fields follow. */
int pl_thrift_struct(pl_thrift *thrift, const pl_thrift_field *field);
/* Up to capacity - 1 bytes, with a zero; answers how many there are. */
uint64_t pl_thrift_text(pl_thrift *thrift, const pl_thrift_field *field,
                        char *out, size_t capacity);
/* The same where it is an element of a list. */
uint64_t pl_thrift_text_element(pl_thrift *thrift, char *out, size_t capacity);

/* Passes over the field's value. */
void pl_thrift_skip(pl_thrift *thrift, const pl_thrift_field *field);

#endif
