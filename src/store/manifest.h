/* manifest.h: manifest.json, which makes a folder a checkpoint: every file of
 * it with its size and checksum, and a checksum of itself. A folder without
 * one, or whose files aren't what it says, was torn or damaged.
 *
 *   {
 *     "plimsoll": "0.1.0",
 *     "format": 1,
 *     "step": 20,
 *     "files": {
 *       "model.safetensors": {
 *         "bytes": 78912,
 *         "xxh128": "06b05ab6733a618578af5f94892f3950"
 *       },
 *       ...
 *     },
 *     "xxh128": "..."
 *   }
 *
 * The last number is that of the bytes before its line. */
#ifndef PL_STORE_MANIFEST_H
#define PL_STORE_MANIFEST_H

#include "base/file.h"
#include "base/hash.h"

#define PL_MANIFEST_NAME "manifest.json"

enum {
    PL_MANIFEST_FORMAT = 1,
    PL_MANIFEST_MAX_FILES = 16 + 256, /* 256: of workers (DiLoCo) */
    PL_MANIFEST_NAME_BYTES = 64,
    PL_MANIFEST_MAX_BYTES = 64 * 1024,
};

typedef struct pl_manifest_file {
    char name[PL_MANIFEST_NAME_BYTES];
    uint64_t bytes;
    pl_hash_text sum;
} pl_manifest_file;

typedef struct pl_manifest {
    uint64_t step;
    size_t count;
    pl_manifest_file files[PL_MANIFEST_MAX_FILES];
} pl_manifest;

/* Notes a file that was written. */
void pl_manifest_add(pl_manifest *manifest, const char *name, uint64_t bytes,
                     const pl_hash *hash);

/* The text, into the caller's memory, with a zero behind it. Allocates
 * nothing. */
PL_MUST_CHECK pl_status pl_manifest_text(const pl_manifest *manifest,
                                         char *memory, size_t capacity,
                                         size_t *bytes, pl_error *err);

/* Reads and checks the text itself, and touches no file. `name` (a path) begins
 * every message. */
PL_MUST_CHECK pl_status pl_manifest_read(pl_manifest *manifest,
                                         const char *text, size_t bytes,
                                         const char *name, pl_error *err);

/* How much of a checkpoint somebody needs. */
typedef enum pl_manifest_scope {
    PL_SCOPE_SETTINGS, /* all but tensors and metrics */
    PL_SCOPE_MODEL,    /* all but metrics, and tensors of the optimizer and of
                        * other workers */
    PL_SCOPE_ALL,
} pl_manifest_scope;

/* Reads the folder's manifest and every byte of the files in `scope`. An error
 * says which file isn't what was written. */
PL_MUST_CHECK pl_status pl_manifest_check(pl_manifest *manifest,
                                          const char *folder,
                                          pl_manifest_scope scope,
                                          pl_error *err);

#endif
