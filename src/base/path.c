/* path.c: see path.h. */
#include "base/path.h"

#include <stdio.h>
#include <string.h>

const char *pl_path_shown(const char *path)
{
    enum { SHOWN_BYTES = 500 };
    size_t bytes = strlen(path);
    if (bytes <= SHOWN_BYTES)
        return path;
    const char *tail = path + bytes - SHOWN_BYTES;
    const char *slash = strchr(tail, '/');
    return slash ? slash + 1 : tail;
}

static pl_status join(char out[PL_PATH_BYTES], const char *first,
                      const char *between, const char *last, pl_error *err)
{
    int bytes = snprintf(out, PL_PATH_BYTES, "%s%s%s", first, between, last);
    if (bytes < 0 || bytes >= PL_PATH_BYTES)
        return pl_fail(err, PL_E_USAGE,
                       "the path %s%s%s is longer than %d bytes",
                       pl_path_shown(first), between, pl_path_shown(last),
                       PL_PATH_BYTES - 1);
    return PL_OK;
}

pl_status pl_path_join(char out[PL_PATH_BYTES], const char *folder,
                       const char *name, pl_error *err)
{
    size_t bytes = strlen(folder);
    if (name[0] == '/')
        return join(out, "", "", name, err);
    int closed = bytes == 0 || folder[bytes - 1] == '/';
    return join(out, folder, closed ? "" : "/", name, err);
}

pl_status pl_path_add(char out[PL_PATH_BYTES], const char *path,
                      const char *suffix, pl_error *err)
{
    return join(out, path, "", suffix, err);
}

void pl_path_cut_to_parent(char *path)
{
    size_t bytes = strlen(path);
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    while (bytes > 0 && path[bytes - 1] != '/')
        bytes--;
    while (bytes > 1 && path[bytes - 1] == '/')
        bytes--;
    if (bytes == 0)
        path[bytes++] = '.';
    path[bytes] = '\0';
}
