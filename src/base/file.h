/* file.h: the only open, read, write, rename, stat, mkdir, unlink.
 *
 * Owns file descriptors and the wording of what the system refused: every
 * message names the path, the attempt, the system's reason and, where there is
 * one, what to do. Knows no format. Allocates only where a pl_heap is given
 * (directories are read with getdents64, since opendir allocates), so all else
 * may be called after sealing. Interrupted calls are resumed.
 *
 * Only plain files are opened for reading by name, but by pl_file_open_once: a
 * folder, pipe or device is an error. No other open waits for a pipe's other
 * end. Calls on different pl_files may run on different threads.
 *
 * Nothing is written through a symbolic link: to create, to write on in or to
 * lock one is an error, to replace or rename over one puts the file in its
 * place. Folders on the way may be links. */
#ifndef PL_BASE_FILE_H
#define PL_BASE_FILE_H

#include "base/arena.h"
#include "base/path.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pl_file {
    int fd;              /* -1: not open */
    uint64_t size_bytes; /* when opened; kept up to date by our writes */
    char path[PL_PATH_BYTES];
} pl_file;

/* A pl_file that is not open: closing or abandoning it does nothing. */
#define PL_FILE_CLOSED                                                         \
    {                                                                          \
        .fd = -1                                                               \
    }

/* ---- opening and closing ---- */

/* On failure `file` is left not open. */
PL_MUST_CHECK pl_status pl_file_open_read(pl_file *file, const char *path,
                                          pl_error *err);
/* Standard input, whatever it is: a pipe, a terminal, a file. For
 * pl_file_read_some only; its size is 0. Closing it leaves the process's own
 * descriptor open. */
PL_MUST_CHECK pl_status pl_file_open_input(pl_file *file, pl_error *err);
/* Anything that is read from its beginning to its end, once: a pipe, a device.
 * Where a pipe has no writer yet, pl_file_wait waits for one; nothing may be
 * read before that. Its size is 0. */
PL_MUST_CHECK pl_status pl_file_open_once(pl_file *file, const char *path,
                                          pl_error *err);
/* Made with mode 0644, emptied if it exists. */
PL_MUST_CHECK pl_status pl_file_create(pl_file *file, const char *path,
                                       pl_error *err);
/* One that is there, cut to its first `size_bytes` bytes, to be appended to.
 * PL_E_IO if it has less. */
PL_MUST_CHECK pl_status pl_file_open_again(pl_file *file, const char *path,
                                           uint64_t size_bytes, pl_error *err);

/* One that is there, for pl_file_write_at and pl_file_sync alone: what is
 * written to other places of it meanwhile, by other processes, stays. */
PL_MUST_CHECK pl_status pl_file_open_shared(pl_file *file, const char *path,
                                            pl_error *err);

/* Made if absent, and locked for this process alone until it is closed, or the
 * process ends however it ends. PL_E_IO at once if another one holds it. May
 * be removed while it is held. */
PL_MUST_CHECK pl_status pl_file_lock(pl_file *file, const char *path,
                                     pl_error *err);

/* Reports what the system says only now about earlier writes. The descriptor
 * is given back in any case. */
PL_MUST_CHECK pl_status pl_file_close(pl_file *file, pl_error *err);
/* For undoing and for files only read: closes, ignores errors. */
void pl_file_abandon(pl_file *file);
/* For undoing: closes and removes what was being written, ignores errors. */
void pl_file_discard(pl_file *file);

/* ---- reading ---- */

uint64_t pl_file_size(const pl_file *file);

/* Exactly `bytes` bytes from `offset`. PL_E_FORMAT where the file ends before,
 * with what was wanted and found. Doesn't move the streaming position. */
PL_MUST_CHECK pl_status pl_file_pread_exact(const pl_file *file, void *out,
                                            size_t bytes, uint64_t offset,
                                            pl_error *err);

/* Streaming: up to `capacity` bytes from where the last one ended. *bytes is
 * less than capacity at the end of the file only, 0 when nothing is left. */
PL_MUST_CHECK pl_status pl_file_read_some(pl_file *file, void *out,
                                          size_t capacity, size_t *bytes,
                                          pl_error *err);

/* One part of that: what is there now, at least a byte unless it is the end;
 * waits where there is nothing. */
PL_MUST_CHECK pl_status pl_file_read_part(const pl_file *file, void *out,
                                          size_t capacity, size_t *bytes,
                                          pl_error *err);
/* Waits at most so long (-1: for ever) until there is something to read, or the
 * end. */
PL_MUST_CHECK pl_status pl_file_wait(const pl_file *file, int milliseconds,
                                     int *ready, pl_error *err);

/* The whole file, with a zero behind it that *bytes doesn't count.
 * PL_E_FORMAT if it is larger than max_bytes. Works for /proc and /sys, whose
 * sizes lie. Takes size + 2 bytes from the heap, at most 4 * (size + 4096)
 * where the size lied. */
PL_MUST_CHECK pl_status pl_file_read_all(const char *path, size_t max_bytes,
                                         pl_heap *heap, char **data,
                                         size_t *bytes, pl_error *err);
/* The same into `out`, which holds `capacity` bytes including the zero. */
PL_MUST_CHECK pl_status pl_file_read_into(const char *path, char *out,
                                          size_t capacity, size_t *bytes,
                                          pl_error *err);

/* Tells the system that reads will jump about: it then reads, and caches, what
 * is asked for and nothing ahead of it. Advice: it can't fail. */
void pl_file_read_randomly(const pl_file *file);
/* Tells the system that this file's pages needn't stay cached. Advice: it
 * can't fail. Call after pl_file_sync where pages are dirty. */
void pl_file_drop_cache(const pl_file *file);

/* What tells a file, as it is now, from every other and from itself after a
 * change: the system moves `changed_ns` with every write and rename, and lets
 * nobody set it. */
typedef struct pl_file_stamp {
    uint64_t device, inode, size_bytes;
    uint64_t modified_ns, changed_ns; /* since 1970 */
} pl_file_stamp;

PL_MUST_CHECK pl_status pl_file_stamp_of(const pl_file *file,
                                         pl_file_stamp *stamp, pl_error *err);
/* Whether its last change is long enough before `date` (pl_clock_date) that
 * one after it would show: the system's clock for files has steps. */
int pl_file_stamp_settled(const pl_file_stamp *stamp, double date);

/* ---- writing ---- */

/* All of it or an error; after an error the end of the file is undefined. */
PL_MUST_CHECK pl_status pl_file_append(pl_file *file, const void *data,
                                       size_t bytes, pl_error *err);
PL_MUST_CHECK pl_status pl_file_write_at(pl_file *file, const void *data,
                                         size_t bytes, uint64_t offset,
                                         pl_error *err);
/* Tells the system to begin with writing to the disk what was written so far,
 * so that a later pl_file_sync has less to wait for. Advice: it can't fail. */
void pl_file_write_behind(const pl_file *file);
/* Cuts it to its first `size_bytes` bytes, or adds zeros that take no room yet;
 * the next append goes to its end. */
PL_MUST_CHECK pl_status pl_file_resize(pl_file *file, uint64_t size_bytes,
                                       pl_error *err);
/* Returns once the bytes are on the disk. */
PL_MUST_CHECK pl_status pl_file_sync(pl_file *file, pl_error *err);

/* Makes `path` hold exactly these bytes: written to "<path>.tmp", synced,
 * renamed over `path`, the folder synced. A reader, or we after a crash, find
 * the old content or the new, never a part. On failure the old content stands
 * and the temporary file is gone. (If only the folder's sync fails, the new
 * content is in place already but might not survive a power cut: error.) */
PL_MUST_CHECK pl_status pl_file_replace(const char *path, const void *data,
                                        size_t bytes, pl_error *err);

/* ---- names ---- */

typedef enum pl_file_kind {
    PL_FILE_ABSENT,
    PL_FILE_PLAIN,
    PL_FILE_FOLDER,
    PL_FILE_OTHER, /* pipe, device, socket */
} pl_file_kind;

/* What lies at `path` (links followed). Absent is an answer; "may not look"
 * and a disk error are failures. */
PL_MUST_CHECK pl_status pl_file_look(const char *path, pl_file_kind *kind,
                                     pl_error *err);

/* The same, but a link is itself: PL_FILE_OTHER. */
PL_MUST_CHECK pl_status pl_file_look_at(const char *path, pl_file_kind *kind,
                                        pl_error *err);

/* Replaces what is at `to`, atomically, within one file system. */
PL_MUST_CHECK pl_status pl_file_rename(const char *from, const char *to,
                                       pl_error *err);

/* Makes `path` a symbolic link to `target` (a name beside it, or a path),
 * replacing what is there unless that is a folder: a reader finds the old one
 * or the new. The folder is synced. */
PL_MUST_CHECK pl_status pl_link_replace(const char *path, const char *target,
                                        pl_error *err);
/* Where a link points; "" if there is nothing, or something that isn't one. */
PL_MUST_CHECK pl_status pl_link_read(const char *path,
                                     char target[PL_PATH_BYTES], pl_error *err);

/* PL_OK too if it was absent. */
PL_MUST_CHECK pl_status pl_file_remove(const char *path, pl_error *err);
/* For undoing, where an earlier failure is what the caller must hear. */
void pl_file_remove_quietly(const char *path);

/* ---- folders ---- */

/* With its parents; PL_OK if it is there already. */
PL_MUST_CHECK pl_status pl_folder_make(const char *path, pl_error *err);
/* Returns once the folder's entries (renames, new files) are on the disk. */
PL_MUST_CHECK pl_status pl_folder_sync(const char *path, pl_error *err);
/* Syncs the folder in which `path` lies. */
PL_MUST_CHECK pl_status pl_folder_sync_of(const char *path, pl_error *err);
/* Removes a folder and the plain files in it. A folder inside it is an error,
 * and then nothing is removed. PL_OK if it was absent. */
PL_MUST_CHECK pl_status pl_folder_remove_flat(const char *path, pl_error *err);

/* Holds a folder open, so that it is known again by whatever name. For
 * pl_folder_where and closing only. */
PL_MUST_CHECK pl_status pl_folder_open(pl_file *folder, const char *path,
                                       pl_error *err);

typedef enum pl_folder_fate {
    PL_FOLDER_HERE,  /* at `path` */
    PL_FOLDER_MOVED, /* somebody gave it another name: `now` */
    PL_FOLDER_GONE,  /* it was removed */
    PL_FOLDER_LOST,  /* it is somewhere, but not within reach */
} pl_folder_fate;

/* What became of a folder that was opened at `path`. */
PL_MUST_CHECK pl_status pl_folder_where(const pl_file *folder, const char *path,
                                        pl_folder_fate *fate,
                                        char now[PL_PATH_BYTES], pl_error *err);

/* Whether an open file is still what `path` names. */
PL_MUST_CHECK pl_status pl_file_is_at(const pl_file *file, const char *path,
                                      int *there, pl_error *err);

/* Makes the folder and locks ".lock" in it: it is ours until the lock is closed
 * or let go, or the process ends. */
PL_MUST_CHECK pl_status pl_folder_hold(pl_file *lock, const char *folder,
                                       pl_error *err);
/* Removes the lock, and the folder if nothing else is in it. Nothing happens
 * if it isn't held. */
void pl_folder_let_go(pl_file *lock);

/* The names in a folder, "." and ".." left out, in the order of their bytes:
 * the same on every machine and file system. The list and the names come from
 * `heap`, which must last as long; on failure it has taken a part. */
PL_MUST_CHECK pl_status pl_folder_list(const char *path, pl_heap *heap,
                                       const char *const **names, size_t *count,
                                       pl_error *err);

/* Calls `visit` with every name in a folder, "." and ".." left out, in no
 * order. Allocates nothing. Nothing may be added or removed meanwhile. */
typedef void pl_folder_visit(void *context, const char *name);
PL_MUST_CHECK pl_status pl_folder_walk(const char *path, pl_folder_visit *visit,
                                       void *context, pl_error *err);

/* ---- the disk ---- */

/* Bytes that we may still write under `path`; if that doesn't exist yet, under
 * its nearest parent that does. */
PL_MUST_CHECK pl_status pl_disk_free_bytes(const char *path, uint64_t *bytes,
                                           pl_error *err);

typedef enum pl_disk_medium { PL_DISK_STORAGE, PL_DISK_MEMORY } pl_disk_medium;

/* Whether files under `path` take memory (tmpfs, ramfs): they count against
 * the budget. Looks at the nearest existing parent likewise. */
PL_MUST_CHECK pl_status pl_disk_look(const char *path, pl_disk_medium *medium,
                                     pl_error *err);

/* ---- limits of this process ---- */

/* How large a file it may write (ulimit -f); UINT64_MAX: any. A write beyond it
 * is an error where SIGXFSZ is ignored, else the end of the process. */
uint64_t pl_file_limit_bytes(void);

enum { PL_FILE_MOST_SPARE = 16 };

/* PL_E_IO unless `count` more files can be open at once (ulimit -n): tries it,
 * with copies of an open file's descriptor, which are closed again. */
PL_MUST_CHECK pl_status pl_file_spare(const pl_file *file, size_t count,
                                      pl_error *err);

/* ---- faults, for tests ---- */

/* The nth system call from now (1 = the next) that reads or changes the world
 * fails with `error` (EIO, ENOSPC, ...); 0 switches it off. A close that fails
 * still gives the descriptor back. */
void pl_file_fail_at(long nth, int error);
/* Every nth system call that changes the world fails with `error`: 1 is a disk
 * that takes nothing more. Reading goes on. 0 switches it off. */
void pl_file_fail_every(long nth, int error);
/* The nth system call that changes the world fails, and all such calls behind
 * it: the disk is then as a process left it that was killed there. 0 switches
 * it off. */
void pl_file_fail_from(long nth, int error);
/* Whether the fault that was ordered has happened. */
int pl_file_fault_happened(void);

#endif
