/* file.c: see file.h. Owns the system calls on files and folders (those that
 * list a folder are in file_list.c, links in file_link.c). Knows no format;
 * allocates nothing itself. */
#include "base/file.h"

#include "base/check.h"
#include "base/file_call.h"
#include "base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* One call moves at most this much: Linux stops just below 2 GiB anyway. */
static const size_t call_bytes = (size_t)1 << 30;

/* ---- opening and closing ---- */

static pl_status open_with(pl_file *file, const char *path, int flags,
                           const char *attempt, pl_error *err)
{
    size_t bytes = strlen(path);
    file->fd = -1;
    file->size_bytes = 0;
    if (bytes >= sizeof file->path)
        return pl_file_refused(err, attempt, path, ENAMETOOLONG);
    memcpy(file->path, path, bytes + 1);
    flags |= O_CLOEXEC | O_NOCTTY;
    if (flags & O_CREAT)
        PL_FILE_CHANGE(file->fd, open(path, flags, 0644));
    else
        PL_FILE_CALL(file->fd, open(path, flags));
    if (file->fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW))
        return pl_file_is_link(err, attempt, path);
    if (file->fd < 0)
        return pl_file_refused(err, attempt, path, errno);
    return PL_OK;
}

/* An open of a pipe returns at once; plain files don't care. */
static pl_status open_as(pl_file *file, const char *path, int flags,
                         const char *attempt, pl_error *err)
{
    return open_with(file, path, flags | O_NONBLOCK, attempt, err);
}

/* Fills in the size; refuses what isn't a plain file. */
static pl_status ask_size(pl_file *file, const char *attempt, pl_error *err)
{
    struct stat info;
    int result;
    PL_FILE_CALL(result, fstat(file->fd, &info));
    if (result < 0) {
        pl_file_refused(err, attempt, file->path, errno);
        goto close_file;
    }
    if (!S_ISREG(info.st_mode)) {
        pl_fail(err, PL_E_IO, "cannot %s %s: it is %s, not a plain file",
                attempt, pl_path_shown(file->path),
                S_ISDIR(info.st_mode) ? "a folder" : "a pipe or a device");
        goto close_file;
    }
    file->size_bytes = (uint64_t)info.st_size;
    return PL_OK;

close_file:
    pl_file_abandon(file);
    return PL_E_IO;
}

pl_status pl_file_open_read(pl_file *file, const char *path, pl_error *err)
{
    pl_status status = open_as(file, path, O_RDONLY, "read", err);
    return status ? status : ask_size(file, "read", err);
}

pl_status pl_file_open_once(pl_file *file, const char *path, pl_error *err)
{
    pl_status status = open_as(file, path, O_RDONLY, "read", err);
    int result;
    if (status)
        return status;
    PL_FILE_CALL(result, fcntl(file->fd, F_SETFL, 0)); /* reads may wait */
    if (result == 0)
        return PL_OK;
    pl_file_refused(err, "read", path, errno);
    pl_file_abandon(file);
    return PL_E_IO;
}

pl_status pl_file_open_input(pl_file *file, pl_error *err)
{
    static const char name[] = "standard input";
    file->size_bytes = 0;
    memcpy(file->path, name, sizeof name);
    PL_FILE_CALL(file->fd, fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    return file->fd < 0 ? pl_file_refused(err, "read", name, errno) : PL_OK;
}

pl_status pl_file_create(pl_file *file, const char *path, pl_error *err)
{
    return open_as(file, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW,
                   "create", err);
}

pl_status pl_file_open_again(pl_file *file, const char *path,
                             uint64_t size_bytes, pl_error *err)
{
    static const char attempt[] = "write on in";
    pl_status status = open_as(file, path, O_RDWR | O_NOFOLLOW, attempt, err);
    if (!status)
        status = ask_size(file, attempt, err);
    if (status)
        return status;
    if (file->size_bytes < size_bytes) {
        pl_fail(err, PL_E_IO, "cannot %s %s: it has %s, not %s", attempt,
                pl_path_shown(path), pl_units_exact(file->size_bytes).text,
                pl_units_exact(size_bytes).text);
        goto close_file;
    }
    if (pl_file_resize(file, size_bytes, err))
        goto close_file;
    return PL_OK;

close_file:
    pl_file_abandon(file);
    return PL_E_IO;
}

/* For writing alone: a file system that is asked for pages as well would read,
 * and write back, what others have written to the same page meanwhile. */
pl_status pl_file_open_shared(pl_file *file, const char *path, pl_error *err)
{
    static const char attempt[] = "write to";
    pl_status status = open_as(file, path, O_WRONLY | O_NOFOLLOW, attempt, err);
    return status ? status : ask_size(file, attempt, err);
}

/* Never repeated: on Linux an interrupted close has closed. */
static int close_fd(int fd)
{
    int failed = pl_file_fails_now();
    int error = errno;
    int result = close(fd);
    if (failed) {
        errno = error;
        return -1;
    }
    return result < 0 && errno != EINTR ? -1 : 0;
}

pl_status pl_file_close(pl_file *file, pl_error *err)
{
    if (file->fd < 0)
        return PL_OK;
    int result = close_fd(file->fd);
    file->fd = -1;
    return result < 0
               ? pl_file_refused(err, "finish writing", file->path, errno)
               : PL_OK;
}

void pl_file_abandon(pl_file *file)
{
    if (file->fd >= 0)
        close_fd(file->fd);
    file->fd = -1;
}

void pl_file_remove_quietly(const char *path)
{
    int ignored;
    PL_FILE_CHANGE(ignored, unlink(path));
    (void)ignored;
}

void pl_file_discard(pl_file *file)
{
    if (file->fd < 0)
        return;
    pl_file_abandon(file);
    pl_file_remove_quietly(file->path);
}

/* ---- reading ---- */

uint64_t pl_file_size(const pl_file *file)
{
    return file->size_bytes;
}

pl_status pl_file_pread_exact(const pl_file *file, void *out, size_t bytes,
                              uint64_t offset, pl_error *err)
{
    unsigned char *to = out;
    size_t done = 0;
    PL_CHECK(file->fd >= 0);
    /* An offset that the system can't even express lies behind every end. */
    int beyond = offset > (uint64_t)INT64_MAX - bytes;
    while (done < bytes && !beyond) {
        size_t want = bytes - done < call_bytes ? bytes - done : call_bytes;
        ssize_t got;
        PL_FILE_CALL(got,
                     pread(file->fd, to + done, want, (off_t)(offset + done)));
        if (got < 0)
            return pl_file_refused(err, "read", file->path, errno);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    if (done < bytes)
        return pl_fail(err, PL_E_FORMAT,
                       "%s is too short: wanted %s at offset %llu, found %s "
                       "(the file had %s when it was "
                       "opened). It may be cut off: make or copy it again",
                       pl_path_shown(file->path), pl_units_exact(bytes).text,
                       (unsigned long long)offset, pl_units_exact(done).text,
                       pl_units_exact(file->size_bytes).text);
    return PL_OK;
}

pl_status pl_file_read_some(pl_file *file, void *out, size_t capacity,
                            size_t *bytes, pl_error *err)
{
    unsigned char *to = out;
    size_t done = 0, got = 1;
    while (done < capacity && got > 0) {
        pl_status status = pl_file_read_part(file, to + done, capacity - done,
                                             &got, err);
        if (status)
            return status;
        done += got;
    }
    *bytes = done;
    return PL_OK;
}

pl_status pl_file_read_part(const pl_file *file, void *out, size_t capacity,
                            size_t *bytes, pl_error *err)
{
    const size_t want = capacity < call_bytes ? capacity : call_bytes;
    ssize_t got;
    PL_CHECK(file->fd >= 0);
    PL_FILE_CALL(got, read(file->fd, out, want));
    if (got < 0)
        return pl_file_refused(err, "read", file->path, errno);
    *bytes = (size_t)got;
    return PL_OK;
}

void pl_file_read_randomly(const pl_file *file)
{
    PL_CHECK(file->fd >= 0);
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
}

void pl_file_drop_cache(const pl_file *file)
{
    PL_CHECK(file->fd >= 0);
    (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* ---- writing ---- */

static pl_status not_written(const pl_file *file, size_t bytes, uint64_t offset,
                             int error, pl_error *err)
{
    return pl_fail(err, PL_E_IO, "cannot write %s to %s at offset %llu: %s",
                   pl_units_exact(bytes).text, pl_path_shown(file->path),
                   (unsigned long long)offset, pl_file_reason_of(error).text);
}

pl_status pl_file_append(pl_file *file, const void *data, size_t bytes,
                         pl_error *err)
{
    const unsigned char *from = data;
    PL_CHECK(file->fd >= 0);
    for (size_t done = 0; done < bytes;) {
        size_t want = bytes - done < call_bytes ? bytes - done : call_bytes;
        ssize_t put;
        PL_FILE_CHANGE(put, write(file->fd, from + done, want));
        if (put < 0)
            return not_written(file, want, file->size_bytes, errno, err);
        done += (size_t)put;
        file->size_bytes += (uint64_t)put;
    }
    return PL_OK;
}

pl_status pl_file_write_at(pl_file *file, const void *data, size_t bytes,
                           uint64_t offset, pl_error *err)
{
    const unsigned char *from = data;
    PL_CHECK(file->fd >= 0 && offset <= (uint64_t)INT64_MAX - bytes);
    for (size_t done = 0; done < bytes;) {
        size_t want = bytes - done < call_bytes ? bytes - done : call_bytes;
        ssize_t put;
        PL_FILE_CHANGE(
            put, pwrite(file->fd, from + done, want, (off_t)(offset + done)));
        if (put < 0)
            return not_written(file, want, offset + done, errno, err);
        done += (size_t)put;
        if (file->size_bytes < offset + done)
            file->size_bytes = offset + done;
    }
    return PL_OK;
}

void pl_file_write_behind(const pl_file *file)
{
    PL_CHECK(file->fd >= 0);
    (void)sync_file_range(file->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

pl_status pl_file_resize(pl_file *file, uint64_t size_bytes, pl_error *err)
{
    int result;
    PL_CHECK(file->fd >= 0 && size_bytes <= INT64_MAX);
    PL_FILE_CHANGE(result, ftruncate(file->fd, (off_t)size_bytes));
    if (result < 0 || lseek(file->fd, (off_t)size_bytes, SEEK_SET) < 0)
        return pl_file_refused(err, "resize", file->path, errno);
    file->size_bytes = size_bytes;
    return PL_OK;
}

/* Special files and some network file systems know no fsync (EINVAL): there
 * is nothing that could be done better. */
static int sync_fd(int fd)
{
    int result;
    PL_FILE_CHANGE(result, fsync(fd));
    return result < 0 && errno != EINVAL ? -1 : 0;
}

pl_status pl_file_sync(pl_file *file, pl_error *err)
{
    PL_CHECK(file->fd >= 0);
    return sync_fd(file->fd) < 0
               ? pl_file_refused(err, "write to disk", file->path, errno)
               : PL_OK;
}

/* ---- names ---- */

static pl_status look(const char *path, int flags, pl_file_kind *kind,
                      pl_error *err)
{
    struct stat info;
    int result;
    PL_FILE_CALL(result, fstatat(AT_FDCWD, path, &info, flags));
    if (result < 0 && errno != ENOENT && errno != ENOTDIR)
        return pl_file_refused(err, "look at", path, errno);
    *kind = result < 0              ? PL_FILE_ABSENT
            : S_ISREG(info.st_mode) ? PL_FILE_PLAIN
            : S_ISDIR(info.st_mode) ? PL_FILE_FOLDER
                                    : PL_FILE_OTHER;
    return PL_OK;
}

pl_status pl_file_look(const char *path, pl_file_kind *kind, pl_error *err)
{
    return look(path, 0, kind, err);
}

pl_status pl_file_look_at(const char *path, pl_file_kind *kind, pl_error *err)
{
    return look(path, AT_SYMLINK_NOFOLLOW, kind, err);
}

static int rename_quietly(const char *from, const char *to)
{
    int result;
    PL_FILE_CHANGE(result, rename(from, to));
    return result;
}

static pl_status not_renamed(pl_error *err, const char *from, const char *to,
                             int error)
{
    return pl_fail(err, PL_E_IO, "cannot rename %s to %s: %s",
                   pl_path_shown(from), pl_path_shown(to),
                   pl_file_reason_of(error).text);
}

pl_status pl_file_rename(const char *from, const char *to, pl_error *err)
{
    return rename_quietly(from, to) < 0 ? not_renamed(err, from, to, errno)
                                        : PL_OK;
}

pl_status pl_file_remove(const char *path, pl_error *err)
{
    int result;
    PL_FILE_CHANGE(result, unlink(path));
    if (result < 0 && errno != ENOENT)
        return pl_file_refused(err, "remove", path, errno);
    return PL_OK;
}

/* ---- folders ---- */

static pl_status make_one(const char *path, pl_error *err)
{
    pl_file_kind kind;
    int result;
    pl_status status = pl_file_look(path, &kind, err);
    if (status || kind == PL_FILE_FOLDER)
        return status;
    PL_FILE_CHANGE(result, mkdir(path, 0755));
    if (result == 0)
        return PL_OK;
    int error = errno;
    /* Another process may have made it in between. */
    status = error == EEXIST ? pl_file_look(path, &kind, err) : PL_OK;
    if (status || (error == EEXIST && kind == PL_FILE_FOLDER))
        return status;
    return pl_file_refused(err, "make the folder", path, error);
}

pl_status pl_folder_make(const char *path, pl_error *err)
{
    char part[PL_PATH_BYTES];
    pl_status status = pl_path_add(part, path, "", err);
    for (size_t i = 1; !status && part[0] && part[i]; i++) {
        if (part[i] != '/')
            continue;
        part[i] = '\0';
        status = make_one(part, err);
        if (status)
            pl_fail_in(err, status, "for the folder %s: ", pl_path_shown(path));
        part[i] = '/';
    }
    return status ? status : make_one(path, err);
}

static pl_status open_folder(int *fd, const char *path, const char *attempt,
                             pl_error *err)
{
    PL_FILE_CALL(*fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return *fd < 0 ? pl_file_refused(err, attempt, path, errno) : PL_OK;
}

pl_status pl_folder_sync(const char *path, pl_error *err)
{
    int fd;
    pl_status status = open_folder(&fd, path, "write to disk", err);
    if (status)
        return status;
    if (sync_fd(fd) < 0)
        status = pl_file_refused(err, "write to disk", path, errno);
    close_fd(fd);
    return status;
}

pl_status pl_folder_sync_of(const char *path, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    pl_status status = pl_path_add(folder, path, "", err);
    if (status)
        return status;
    pl_path_cut_to_parent(folder);
    return pl_folder_sync(folder, err);
}

typedef enum entry_task { REFUSE_FOLDERS, REMOVE } entry_task;

static pl_status do_entry(int fd, const char *path, const char *name,
                          entry_task task, pl_error *err)
{
    struct stat info;
    int result;
    if (task == REMOVE)
        PL_FILE_CHANGE(result, unlinkat(fd, name, 0));
    else
        PL_FILE_CALL(result, fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW));
    if (result < 0 && errno != ENOENT)
        return pl_fail(err, PL_E_IO, "cannot remove %s in %s: %s", name,
                       pl_path_shown(path), pl_file_reason_of(errno).text);
    if (result == 0 && task == REFUSE_FOLDERS && S_ISDIR(info.st_mode))
        return pl_fail(err, PL_E_IO,
                       "cannot remove %s: it holds the folder %s, which isn't "
                       "ours. Nothing was removed; look at it and remove it "
                       "yourself",
                       pl_path_shown(path), name);
    return PL_OK;
}

/* Does `task` with every entry; *entries counts them. */
static pl_status do_entries(int fd, const char *path, entry_task task,
                            size_t *entries, pl_error *err)
{
    _Alignas(struct dirent64) char list[4096];
    off_t start = lseek(fd, 0, SEEK_SET);
    PL_CHECK(start == 0);
    *entries = 0;
    for (;;) {
        ssize_t bytes;
        PL_FILE_CALL(bytes, getdents64(fd, list, sizeof list));
        if (bytes <= 0)
            return bytes < 0 ? pl_file_refused(err, "list", path, errno)
                             : PL_OK;
        for (ssize_t at = 0; at < bytes;) {
            const struct dirent64 *entry = (const void *)(list + at);
            at += entry->d_reclen;
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
                continue;
            ++*entries;
            pl_status status = do_entry(fd, path, entry->d_name, task, err);
            if (status)
                return status;
        }
    }
}

pl_status pl_folder_remove_flat(const char *path, pl_error *err)
{
    int fd, result;
    size_t entries;
    PL_FILE_CALL(fd,
                 open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (fd < 0 && errno == ENOENT)
        return PL_OK;
    if (fd < 0)
        return pl_file_refused(err, "remove the folder", path, errno);
    pl_status status = do_entries(fd, path, REFUSE_FOLDERS, &entries, err);
    /* Again until none is left, since removing while listing may skip some;
     * but not forever, should someone else be filling it. */
    for (int pass = 0; !status && entries > 0 && pass < 100; pass++)
        status = do_entries(fd, path, REMOVE, &entries, err);
    close_fd(fd);
    if (status)
        return status;
    PL_FILE_CHANGE(result, rmdir(path));
    if (result < 0 && errno != ENOENT)
        return pl_file_refused(err, "remove the folder", path, errno);
    return PL_OK;
}

/* ---- the disk ---- */

static pl_status ask_disk(const char *path, struct statfs *info, pl_error *err)
{
    char there[PL_PATH_BYTES];
    int result;
    pl_status status = pl_path_add(there, path, "", err);
    if (status)
        return status;
    for (;;) {
        PL_FILE_CALL(result, statfs(there, info));
        int absent = result < 0 && (errno == ENOENT || errno == ENOTDIR);
        if (!absent || !strcmp(there, ".") || !strcmp(there, "/"))
            break;
        pl_path_cut_to_parent(there);
    }
    return result < 0 ? pl_file_refused(err, "ask for the disk of", path, errno)
                      : PL_OK;
}

pl_status pl_disk_free_bytes(const char *path, uint64_t *bytes, pl_error *err)
{
    struct statfs info;
    pl_status status = ask_disk(path, &info, err);
    if (status)
        return status;
    uint64_t block = (uint64_t)(info.f_frsize ? info.f_frsize : info.f_bsize);
    if (__builtin_mul_overflow((uint64_t)info.f_bavail, block, bytes))
        *bytes = UINT64_MAX;
    return PL_OK;
}

pl_status pl_disk_look(const char *path, pl_disk_medium *medium, pl_error *err)
{
    struct statfs info;
    pl_status status = ask_disk(path, &info, err);
    if (status)
        return status;
    unsigned long type = (unsigned long)info.f_type & 0xffffffffUL;
    *medium = PL_DISK_STORAGE;
    if (type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC)
        *medium = PL_DISK_MEMORY;
    return PL_OK;
}
