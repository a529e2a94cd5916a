/* source_list.h: from what a user names to a list of files.
 *
 * A name is a file, a folder, a pattern (* ? [a-z], ** for folders of any
 * depth), a pipe or "-", standard input. A folder is walked to any depth, names
 * in the order of their bytes; links to folders in it aren't followed, hidden
 * names passed over. Where the format isn't given, it takes from a folder the
 * files whose names end in .txt .text .jsonl .ndjson .parquet .pq, each also
 * with .gz or .zst behind, and .json.gz .json.zst; a lone .json there is mostly
 * something about the data. What is named itself, or by a pattern, is always
 * taken: .json too is then JSON lines, and an unknown ending is text. */
#ifndef PL_DATA_SOURCE_LIST_H
#define PL_DATA_SOURCE_LIST_H

#include "base/arena.h"
#include "base/file.h"

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

typedef struct pl_source_list {
    pl_source_file *files;
    size_t count, capacity;
    uint64_t total_bytes;
} pl_source_list;

/* ONCE if any of its files is. */
pl_source_reading pl_source_list_reading(const pl_source_list *list);

/* Every file is opened, so that what can't be read is found before the work;
 * but not what is read once. The list and the names come from `heap`. */
PL_MUST_CHECK pl_status pl_source_list_make(pl_source_list *list,
                                            const char *const *paths,
                                            size_t path_count,
                                            pl_source_format format,
                                            pl_heap *heap, pl_error *err);

#endif
