/* file_list.c: what lies in a folder (file.h). Owns the order of names. */
#include "base/file.h"

#include "base/file_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct list {
    const char **names;
    size_t count, capacity;
    pl_heap *heap;
} list;

/* Makes names[at..count) a heap again, whose largest name stands first. */
static void sift(const char **names, size_t at, size_t count)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count)
            return;
        if (child + 1 < count && strcmp(names[child], names[child + 1]) < 0)
            child++;
        if (strcmp(names[at], names[child]) >= 0)
            return;
        const char *swap = names[at];
        names[at] = names[child];
        names[child] = swap;
        at = child;
    }
}

/* Heapsort: libc's sort may allocate. */
static void sort(const char **names, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(names, i, count);
    for (size_t i = count; i-- > 1;) {
        const char *swap = names[0];
        names[0] = names[i];
        names[i] = swap;
        sift(names, 0, i);
    }
}

static pl_status add(list *l, const char *name, pl_error *err)
{
    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return PL_OK;
    pl_status status = pl_heap_grow(l->heap, &l->names, &l->capacity,
                                    l->count + 1, sizeof *l->names, err);
    if (!status)
        status = pl_heap_text(l->heap, &l->names[l->count], name, strlen(name),
                              err);
    l->count += !status;
    return status;
}

static pl_status read_names(int fd, const char *path, list *l, pl_error *err)
{
    _Alignas(struct dirent64) char entries[4096];
    for (;;) {
        ssize_t bytes;
        PL_FILE_CALL(bytes, getdents64(fd, entries, sizeof entries));
        if (bytes <= 0)
            return bytes < 0 ? pl_file_refused(err, "list", path, errno)
                             : PL_OK;
        for (ssize_t at = 0; at < bytes;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            at += entry->d_reclen;
            pl_status status = add(l, entry->d_name, err);
            if (status)
                return pl_fail_in(err, status, "%s has too many files: ",
                                  pl_path_shown(path));
        }
    }
}

pl_status pl_folder_list(const char *path, pl_heap *heap,
                         const char *const **names, size_t *count,
                         pl_error *err)
{
    list l = { .heap = heap };
    int fd;
    PL_FILE_CALL(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return pl_file_refused(err, "list", path, errno);
    pl_status status = read_names(fd, path, &l, err);
    close(fd);
    if (status)
        return status;
    if (l.count > 0)
        sort(l.names, l.count);
    *names = l.names;
    *count = l.count;
    return PL_OK;
}
