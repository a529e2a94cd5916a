/* scratch.c: see scratch.h. */
#include "support/scratch.h"

#include <dirent.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

void scratch_open(scratch *s)
{
    const char *parent = getenv("PLIMSOLL_TMP");
    snprintf(s->folder, sizeof s->folder, "%s/plimsoll-test-XXXXXX",
             parent ? parent : "/tmp");
    assert_non_null(mkdtemp(s->folder));
    s->open_files = scratch_open_files();
}

void scratch_in_memory(void)
{
    if (access("/dev/shm", W_OK | X_OK) == 0)
        setenv("PLIMSOLL_TMP", "/dev/shm", 0);
}

int scratch_open_on(scratch *s, pl_disk_medium medium)
{
    char own[SCRATCH_PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    assert_true(length > 0);
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    const char *const parents[] = { getenv("PLIMSOLL_TMP"), "/tmp", own,
                                    "/var/tmp", "/dev/shm" };
    for (size_t i = 0; i < sizeof parents / sizeof parents[0]; i++) {
        pl_disk_medium has;
        if (!parents[i] || pl_disk_look(parents[i], &has, NULL) ||
            has != medium)
            continue;
        snprintf(s->folder, sizeof s->folder, "%.480s/plimsoll-test-XXXXXX",
                 parents[i]);
        if (mkdtemp(s->folder)) {
            s->open_files = scratch_open_files();
            return 1;
        }
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

void scratch_remove(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void scratch_close(scratch *s)
{
    scratch_remove(s->folder);
    assert_int_equal(scratch_open_files(), s->open_files);
}

const char *scratch_path(const scratch *s, const char *name)
{
    static char paths[8][2 * SCRATCH_PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", s->folder, name);
    return path;
}

void scratch_write(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

char *scratch_read(const char *path, size_t *bytes)
{
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    assert_int_equal(fstat(fileno(file), &info), 0);
    size_t size = (size_t)info.st_size;
    char *data = malloc(size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, size, file), size);
    data[size] = '\0';
    fclose(file);
    if (bytes)
        *bytes = size;
    return data;
}

int scratch_has(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

int scratch_count(const char *folder)
{
    DIR *list = opendir(folder);
    int count = -2;
    if (!list)
        return -1;
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

int scratch_open_files(void)
{
    return scratch_count("/proc/self/fd") - 1; /* less the listing's own */
}
