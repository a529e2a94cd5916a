/* source_list.h: from what a user names to a list of files.
 *
 * A name is a file, a folder, a pattern (* ? [a-z], ** for folders of any
 * depth), a pipe or "-", standard input. A folder is walked to any depth, names
 * in the order of their bytes; links to folders in it aren't followed, hidden
 * names passed over. Where the format isn't given, it takes from a folder what
 * the first bytes say can be read (data/kind.h), each also packed: .jsonl and
 * .ndjson are JSON lines, .parquet and .pq parquet, every other text is text,
 * source code too; a lone .json there is mostly something about the data. What
 * is named itself, or by a pattern, is taken or refused: .json too is then JSON
 * lines. What was passed over is counted by its kind. */
#ifndef PL_DATA_SOURCE_LIST_H
#define PL_DATA_SOURCE_LIST_H

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_source_format {
    PL_SOURCE_AUTO, /* by the name of each file */
    PL_SOURCE_TEXT,
    PL_SOURCE_JSONL,
    PL_SOURCE_PARQUET,
} pl_source_format;

typedef enum pl_source_reading {
    PL_SOURCE_AGAIN,
    PL_SOURCE_ONCE, /* standard input, a pipe, a device */
} pl_source_reading;

typedef struct pl_source_file {
    const char *path;
    uint64_t bytes;          /* on the disk; 0 where it is read once */
    pl_source_format format; /* never AUTO */
    pl_source_reading reading;
    pl_file_stamp stamp; /* zeros where it is read once */
} pl_source_file;

enum { PL_SOURCE_SKIPS = 32, PL_SOURCE_SKIP_NAMES = 3 };

/* What folders had and wasn't taken, of one kind. */
typedef struct pl_source_skip {
    const char *kind; /* "hidden", "excluded", "a PDF", ... */
    size_t count;
    const char *names[PL_SOURCE_SKIP_NAMES]; /* the first ones' */
} pl_source_skip;

typedef struct pl_source_list {
    pl_source_file *files;
    size_t count, capacity;
    uint64_t total_bytes;
    pl_source_skip skips[PL_SOURCE_SKIPS];
    size_t skip_count;
    int has_folder; /* one was named */
} pl_source_list;

typedef struct pl_source_names {
    const char *const *paths;
    size_t path_count;
    pl_source_format format;
    /* Patterns for what is in folders (pl_glob_any_matches), with commas;
     * NULL or "": all, and none. A folder that is excluded isn't entered. */
    const char *include, *exclude;
} pl_source_names;

/* ONCE if any of its files is. */
pl_source_reading pl_source_list_reading(const pl_source_list *list);

/* Every file is opened, so that what can't be read is found before the work;
 * but not what is read once. The list and the names come from `heap`. */
PL_MUST_CHECK pl_status pl_source_list_make(pl_source_list *list,
                                            const pl_source_names *names,
                                            pl_heap *heap, pl_error *err);

/* Says what was taken from folders, and what not. */
void pl_source_list_say(const pl_source_list *list, const pl_log *log);

#endif
