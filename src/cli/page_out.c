/* page_out.c: see page_out.h. */
#include "cli/page_out.h"
#include "base/arena.h"
#include "base/file.h"
#include "cli/term.h"
#include "web/shell.h"

#include <stdio.h>
#include <string.h>

/* What the files that we write begin with, within so many bytes. */
enum { LOOK_BYTES = 1024 };

static int is_ours(const char *text, size_t bytes)
{
    static const char *const signs[] = {
        "<meta name=\"generator\" content=\"" PL_SHELL_GENERATOR " ",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" ",
        PL_SHELL_MARKDOWN,
    };
    int found = 0;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        found |= memmem(text, bytes, signs[i], strlen(signs[i])) != NULL;
    return found;
}

static pl_status check_place(const char *path, pl_error *err)
{
    pl_file file = PL_FILE_CLOSED;
    pl_file_kind kind;
    char text[LOOK_BYTES];
    size_t bytes = 0;
    pl_status status = pl_file_look(path, &kind, err);
    if (status || kind == PL_FILE_ABSENT)
        return status;
    if (kind == PL_FILE_FOLDER)
        return pl_fail(err, PL_E_IO, "%s is a folder: name a file in it", path);
    if (kind == PL_FILE_PLAIN) {
        status = pl_file_open_read(&file, path, err);
        if (!status)
            status = pl_file_read_some(&file, text, sizeof text, &bytes, err);
        pl_file_abandon(&file);
        if (status || is_ours(text, bytes) || bytes == 0)
            return status;
    }
    return pl_fail(err, PL_E_IO,
                   "%s is there, and Plimsoll didn't write it: it isn't "
                   "replaced. Choose another name, or remove it",
                   path);
}

pl_status pl_page_out_open(pl_page_out *out, const char *path, pl_error *err)
{
    *out = (pl_page_out){ .path = path && strcmp(path, "-") != 0 ? path
                                                                 : NULL };
    return out->path ? check_place(out->path, err) : PL_OK;
}

void pl_page_out_take(void *context, const char *text, size_t bytes)
{
    pl_page_out *out = context;
    if (!out->path) {
        fwrite(text, 1, bytes, stdout); /* the end of main says what failed */
        return;
    }
    if (out->status)
        return;
    if (bytes > out->capacity - out->used) {
        const size_t more = 2 * out->capacity + bytes + 65536;
        out->status = pl_lump_resize(&out->text, more, &out->err);
        if (out->status)
            return;
        out->capacity = more;
    }
    memcpy(out->text + out->used, text, bytes);
    out->used += bytes;
}

pl_status pl_page_out_close(pl_page_out *out, pl_error *err)
{
    pl_status status = out->status;
    if (status)
        status = pl_fail(err, status, "%s", out->err.text);
    else if (out->path)
        status = pl_file_replace(out->path, out->text, out->used, err);
    if (!status && out->path)
        pl_term_print("written to %s: %s\n", out->path,
                      pl_units_bytes(out->used).text);
    pl_lump_free(out->text);
    return status;
}
