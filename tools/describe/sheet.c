/* sheet.c: see sheet.h. zlib writes plain files too, so that one way serves
 * both kinds. */
#include "describe/sheet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

static void give_up(const char *what, const char *path)
{
    fprintf(stderr, "describe: could not %s %s: %s\n", what, path,
            strerror(errno));
    exit(1);
}

static void make_folders(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            give_up("make the folder", path);
        *at = '/';
    }
}

void pl_sheet_open(pl_sheet *sheet, const char *folder, const char *name,
                   pl_sheet_kind kind)
{
    int packed = kind == PL_SHEET_PACKED;
    int bytes = snprintf(sheet->path, sizeof sheet->path, "%s/%s%s", folder,
                         name, packed ? ".gz" : "");
    errno = ENAMETOOLONG;
    if (bytes < 0 || (size_t)bytes >= sizeof sheet->path)
        give_up("write below", folder);
    make_folders(sheet->path);
    sheet->file = gzopen(sheet->path, packed ? "wb9" : "wbT");
    if (!sheet->file)
        give_up("write", sheet->path);
}

void pl_sheet_put(pl_sheet *sheet, const char *fmt, ...)
{
    va_list args;
    char text[8192]; /* the help of one key, one candidate list */
    va_start(args, fmt);
    int bytes = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    errno = EMSGSIZE;
    if (bytes < 0 || (size_t)bytes >= sizeof text ||
        (bytes > 0 && gzwrite(sheet->file, text, (unsigned)bytes) != bytes))
        give_up("write", sheet->path);
}

void pl_sheet_put_char(pl_sheet *sheet, char c)
{
    if (gzputc(sheet->file, c) < 0)
        give_up("write", sheet->path);
}

void pl_sheet_copy(pl_sheet *sheet, const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        give_up("read", path);
    for (int c; (c = getc(file)) != EOF;)
        pl_sheet_put_char(sheet, (char)c);
    if (ferror(file))
        give_up("read", path);
    fclose(file);
}

void pl_sheet_close(pl_sheet *sheet)
{
    if (gzclose(sheet->file) != Z_OK)
        give_up("write", sheet->path);
    sheet->file = NULL;
}
