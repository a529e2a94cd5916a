/* glob.c: see glob.h. */
#include "data/glob.h"

#include "base/utf8.h"

#include <string.h>

int pl_glob_is_pattern(const char *pattern)
{
    return strpbrk(pattern, "*?[") != NULL;
}

/* [...] at the beginning of the pattern: its length, 0 if it isn't closed (and
 * so stands for itself). */
static size_t match_set(const char *pattern, size_t bytes, char byte, int *is)
{
    size_t at = 1;
    int negated = at < bytes && (pattern[at] == '!' || pattern[at] == '^');
    int inside = 0;
    at += (size_t)negated;
    for (size_t first = at; at < bytes; at++) {
        if (pattern[at] == ']' && at > first) {
            *is = inside != negated;
            return at + 1;
        }
        unsigned char low = (unsigned char)pattern[at], high = low;
        if (at + 2 < bytes && pattern[at + 1] == '-' &&
            pattern[at + 2] != ']') {
            high = (unsigned char)pattern[at + 2];
            at += 2;
        }
        inside |= (unsigned char)byte >= low && (unsigned char)byte <= high;
    }
    return 0;
}

/* One character of the name: how much of it and of the pattern, 0 if they
 * differ. */
static size_t match_one(const char *pattern, size_t bytes, const char *name,
                        size_t *name_bytes)
{
    int is = 0;
    *name_bytes = 1;
    if (bytes == 0 || !*name)
        return 0;
    if (*pattern == '?') {
        while (name[*name_bytes] && !pl_utf8_starts(name[*name_bytes]))
            ++*name_bytes;
        return 1;
    }
    size_t set = *pattern == '[' ? match_set(pattern, bytes, *name, &is) : 0;
    if (set)
        return is ? set : 0;
    return *pattern == *name;
}

int pl_glob_matches(const char *pattern, size_t bytes, const char *name)
{
    size_t at = 0, star = bytes, step;
    const char *retry = NULL;
    if (*name == '.' && (bytes == 0 || *pattern != '.'))
        return 0;
    /* Only the last star needs to be tried again: what the ones before it
     * took is as good as any other choice. */
    for (;;) {
        if (at < bytes && pattern[at] == '*') {
            star = ++at;
            retry = name;
            continue;
        }
        size_t used = match_one(pattern + at, bytes - at, name, &step);
        if (used) {
            at += used;
            name += step;
        } else if (at == bytes && !*name) {
            return 1;
        } else if (retry && *retry) {
            name = ++retry;
            at = star;
        } else {
            return 0;
        }
    }
}

/* Component by component. */
static int path_matches(const char *pattern, size_t bytes, const char *path)
{
    char name[256];
    const char *slash = memchr(pattern, '/', bytes);
    size_t first = slash ? (size_t)(slash - pattern) : bytes;
    size_t length = strcspn(path, "/");
    const char *rest = path + length + (path[length] == '/');
    size_t used = slash ? first + 1 : first;
    if (first == 2 && !memcmp(pattern, "**", 2))
        return (slash && path_matches(pattern + used, bytes - used, path)) ||
               (*path && (!slash || path_matches(pattern, bytes, rest)));
    if (length == 0 || length >= sizeof name)
        return bytes == 0 && length == 0;
    memcpy(name, path, length);
    name[length] = '\0';
    if (!pl_glob_matches(pattern, first, name))
        return 0;
    return slash ? path_matches(pattern + used, bytes - used, rest) : !*rest;
}

int pl_glob_any_matches(const char *patterns, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    while (*patterns) {
        size_t bytes = strcspn(patterns, ",");
        int whole = memchr(patterns, '/', bytes) != NULL;
        if (bytes && (whole ? path_matches(patterns, bytes, path)
                            : pl_glob_matches(patterns, bytes, name)))
            return 1;
        patterns += bytes + (patterns[bytes] == ',');
    }
    return 0;
}
