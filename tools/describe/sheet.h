/* sheet.h: a file that is being written, packed or not. What can't be written
 * ends the program with a message. */
#ifndef PL_DESCRIBE_SHEET_H
#define PL_DESCRIBE_SHEET_H

#include "base/status.h"

typedef struct pl_sheet {
    void *file;
    char path[4096];
} pl_sheet;

typedef enum pl_sheet_kind {
    PL_SHEET_PLAIN,
    PL_SHEET_PACKED, /* gzip, as tight as it goes, without a time */
} pl_sheet_kind;

/* Begins FOLDER/NAME; the folders on the way are made. */
void pl_sheet_open(pl_sheet *sheet, const char *folder, const char *name,
                   pl_sheet_kind kind);
PL_PRINTF(2, 3) void pl_sheet_put(pl_sheet *sheet, const char *fmt, ...);
void pl_sheet_put_char(pl_sheet *sheet, char c);
/* Appends a whole file. */
void pl_sheet_copy(pl_sheet *sheet, const char *folder, const char *name);
void pl_sheet_close(pl_sheet *sheet);

#endif
