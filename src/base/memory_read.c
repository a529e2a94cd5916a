/* memory_read.c: numbers out of /proc and /sys. */
#include "base/file.h"
#include "base/memory_parts.h"

#include <ctype.h>
#include <string.h>

enum { LINE_BYTES = 8192, FILE_BYTES = 4 << 20 };

/* Hands on the whole lines in text[0 .. *used) and moves the rest to the
 * front. `skipping`: the front is the rest of a line that was too long. */
static void hand_on(char *text, size_t *used, int *skipping,
                    pl_memory_line_fn *fn, void *context)
{
    char *line = text, *end = text + *used, *newline;
    while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
        *newline = '\0';
        if (!*skipping)
            fn(context, line);
        *skipping = 0;
        line = newline + 1;
    }
    *used = (size_t)(end - line);
    memmove(text, line, *used);
}

void pl_memory_read_lines(const char *path, pl_memory_line_fn *fn,
                          void *context)
{
    pl_file file;
    char text[LINE_BYTES + 1];
    size_t used = 0, got = 1;
    int skipping = 0;
    if (pl_file_open_read(&file, path, NULL))
        return;
    for (size_t all = 0; got > 0 && all < FILE_BYTES; all += got) {
        if (pl_file_read_some(&file, text + used, LINE_BYTES - used, &got,
                              NULL))
            break;
        used += got;
        hand_on(text, &used, &skipping, fn, context);
        if (used == LINE_BYTES) {
            skipping = 1;
            used = 0;
        }
    }
    if (used > 0 && !skipping) {
        text[used] = '\0';
        fn(context, text);
    }
    pl_file_abandon(&file);
}

/* The number at the start of `text`, or what it stands for; the text behind
 * it, or NULL if there is none. */
static const char *read_value(const char *text, size_t *value)
{
    size_t bytes = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(bytes, 10, &bytes) ||
            __builtin_add_overflow(bytes, (size_t)(*at - '0'), &bytes))
            bytes = PL_MEMORY_UNLIMITED;
    if (at == text) {
        size_t length = strcspn(text, " \t\n");
        if (!(length == 3 && !memcmp(text, "max", 3)) &&
            !(length == 9 && !memcmp(text, "unlimited", 9)))
            return NULL;
        bytes = PL_MEMORY_UNLIMITED;
        at += length;
    }
    if (*at != '\0' && *at != '\n' && *at != ' ' && *at != '\t')
        return NULL;
    *value = bytes;
    return at;
}

typedef struct wanted {
    const pl_memory_key *keys;
    size_t n_keys;
} wanted;

static void look_for_keys(void *context, char *line)
{
    const wanted *w = context;
    for (size_t i = 0; i < w->n_keys; i++) {
        size_t length = strlen(w->keys[i].name), value;
        if (strncmp(line, w->keys[i].name, length) != 0)
            continue;
        const char *at = line + length;
        if (*at != ':' && *at != ' ' && *at != '\t')
            continue;
        at += *at == ':';
        const char *unit = read_value(at + strspn(at, " \t"), &value);
        if (!unit)
            continue;
        if (strncmp(unit, " kB", 3) == 0 &&
            __builtin_mul_overflow(value, 1024, &value))
            value = PL_MEMORY_UNLIMITED;
        *w->keys[i].value = value;
    }
}

void pl_memory_read_keys(const char *root, const char *path,
                         const pl_memory_key *keys, size_t n_keys)
{
    char whole[PL_PATH_BYTES];
    wanted w = { .keys = keys, .n_keys = n_keys };
    if (!pl_path_add(whole, root, path, NULL))
        pl_memory_read_lines(whole, look_for_keys, &w);
}

void pl_memory_read_number(const char *folder, const char *name, size_t *value)
{
    char path[PL_PATH_BYTES], text[64];
    size_t bytes, found;
    if (pl_path_add(path, folder, name, NULL) ||
        pl_file_read_into(path, text, sizeof text, &bytes, NULL))
        return;
    const char *rest = read_value(text, &found);
    if (rest && rest[strspn(rest, " \t\n")] == '\0')
        *value = found;
}
