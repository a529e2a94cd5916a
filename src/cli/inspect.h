/* inspect.h: the parts of `inspect`, each prints one thing. */
#ifndef PL_CLI_INSPECT_H
#define PL_CLI_INSPECT_H

#include "base/arena.h"
#include "config/config.h"

/* Any file, by its name. */
PL_MUST_CHECK pl_status pl_inspect_file(const char *path,
                                        const pl_config *config, pl_heap *heap,
                                        pl_error *err);

PL_MUST_CHECK pl_status pl_inspect_shard(const char *path,
                                         const pl_config *config, pl_heap *heap,
                                         pl_error *err);

PL_MUST_CHECK pl_status pl_inspect_tokenizer(const char *path, pl_heap *heap,
                                             pl_error *err);
/* The one in a folder, if it has one. */
PL_MUST_CHECK pl_status pl_inspect_tokenizer_of(const char *folder,
                                                const pl_config *config,
                                                pl_heap *heap, pl_error *err);

PL_MUST_CHECK pl_status pl_inspect_source(const char *path,
                                          const pl_config *config,
                                          pl_heap *heap, pl_error *err);

#endif
