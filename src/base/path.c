/* path.c: see path.h. */
#include "base/path.h"
#include "base/units.h"

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

/* Letters, digits and these mean themselves in every shell; bytes above ASCII
 * are parts of letters. */
static int is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || (unsigned char)c >= 0x80 ||
           (c != '\0' && strchr("_./:,@%+=-", c));
}

pl_path_word pl_path_quoted(const char *path)
{
    pl_path_word word;
    const char *whole = path;
    const char *before = path[0] == '-' ? "./" : "";
    size_t used = 0, room = sizeof word.text - 2; /* a quote and the zero */
    int plain = path[0] != '\0';
    for (const char *c = path; *c; c++)
        plain = plain && is_plain(*c);
    if (plain && strlen(path) < room - 2) {
        snprintf(word.text, sizeof word.text, "%s%s", before, path);
        return word;
    }
    used = (size_t)snprintf(word.text, sizeof word.text, "'%s", before);
    for (; *path && used + 4 <= room; path++) {
        const char one[] = { *path, '\0' };
        const char *text = *path == '\'' ? "'\\''" : one;
        memcpy(word.text + used, text, strlen(text));
        used += strlen(text);
    }
    memcpy(word.text + used, "'", 2);
    if (*path) /* no room for it */
        snprintf(word.text, sizeof word.text, "...%s", pl_path_shown(whole));
    return word;
}

static pl_status join(char out[PL_PATH_BYTES], const char *first,
                      const char *between, const char *last, pl_error *err)
{
    int bytes = snprintf(out, PL_PATH_BYTES, "%s%s%s", first, between, last);
    if (bytes < 0 || bytes >= PL_PATH_BYTES)
        return pl_fail(err, PL_E_USAGE, "%s and %s are a path of more than %s",
                       pl_path_shown(first), pl_path_shown(last),
                       pl_units_exact(PL_PATH_BYTES - 1).text);
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
