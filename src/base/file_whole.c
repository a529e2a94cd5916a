/* file_whole.c: what file.h does with a whole file at once, made of its other
 * functions: no system call here. */
#include "base/check.h"
#include "base/file.h"
#include "base/units.h"

static pl_status too_large(pl_error *err, const char *path, size_t max_bytes)
{
    return pl_fail(err, PL_E_FORMAT,
                   "%s is too large: at most %s are read from a file of this "
                   "kind. Is it the right file?",
                   pl_path_shown(path), pl_units_exact(max_bytes).text);
}

pl_status pl_file_read_all(const char *path, size_t max_bytes, pl_heap *heap,
                           char **data, size_t *bytes, pl_error *err)
{
    pl_file file;
    char *text = NULL;
    size_t used = 0, want, got;
    pl_status status = pl_file_open_read(&file, path, err);
    if (status)
        return status;
    if (file.size_bytes > max_bytes) {
        status = too_large(err, path, max_bytes);
        goto close_file;
    }
    /* One byte for the zero and one so that the end is seen without growing;
     * /proc says 0 and has more. */
    size_t capacity = (file.size_bytes ? (size_t)file.size_bytes : 4094) + 2;
    status = pl_heap_take(heap, &text, capacity, 1, err);
    if (status)
        goto close_file;
    for (;;) {
        want = capacity - 1 - used;
        status = pl_file_read_some(&file, text + used, want, &got, err);
        if (status)
            goto close_file;
        used += got;
        if (used > max_bytes) {
            status = too_large(err, path, max_bytes);
            goto close_file;
        }
        if (got < want)
            break;
        status = pl_heap_grow(heap, &text, &capacity, capacity + 1, 1, err);
        if (status)
            goto close_file;
    }
    text[used] = '\0';
    *data = text;
    *bytes = used;

close_file:
    pl_file_abandon(&file);
    return status;
}

pl_status pl_file_read_into(const char *path, char *out, size_t capacity,
                            size_t *bytes, pl_error *err)
{
    pl_file file;
    char more;
    size_t used = 0, extra = 0;
    PL_CHECK(capacity > 0);
    pl_status status = pl_file_open_read(&file, path, err);
    if (status)
        return status;
    status = pl_file_read_some(&file, out, capacity - 1, &used, err);
    if (!status)
        status = pl_file_read_some(&file, &more, 1, &extra, err);
    if (!status && extra)
        status = too_large(err, path, capacity - 1);
    if (!status) {
        out[used] = '\0';
        *bytes = used;
    }
    pl_file_abandon(&file);
    return status;
}

pl_status pl_file_replace(const char *path, const void *data, size_t bytes,
                          pl_error *err)
{
    pl_file file;
    char temporary[PL_PATH_BYTES];
    pl_status status = pl_path_add(temporary, path, ".tmp", err);
    if (status)
        return status;
    status = pl_file_create(&file, temporary, err);
    if (status)
        return status;
    status = pl_file_append(&file, data, bytes, err);
    if (!status)
        status = pl_file_sync(&file, err);
    if (status) {
        pl_file_discard(&file);
        return status;
    }
    status = pl_file_close(&file, err);
    if (!status)
        status = pl_file_rename(temporary, path, err);
    if (status)
        goto remove_temporary;
    return pl_folder_sync_of(path, err);

remove_temporary:
    pl_file_remove_quietly(temporary);
    return status;
}
