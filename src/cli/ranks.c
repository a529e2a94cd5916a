/* ranks.c: see ranks.h. */
#include "cli/ranks.h"
#include "base/file.h"
#include "base/hash.h"
#include "cli/term.h"
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_TIMEOUT = 300, HOST_BYTES = 64 };

/* ---- the engine ---- */

static const char *variable(const char *name)
{
    return getenv(name);
}

/* Beside the program in a build, or in lib/plimsoll beside its bin. */
static pl_status find_library(char path[PL_PATH_BYTES], pl_error *err)
{
    static const char *const places[] = { "plimsoll-mpi.so",
                                          "../lib/plimsoll/plimsoll-mpi.so" };
    const char *named = getenv("PLIMSOLL_COMM");
    char folder[PL_PATH_BYTES];
    if (named && named[0]) {
        snprintf(path, PL_PATH_BYTES, "%s", named);
        return PL_OK;
    }
    pl_status status = pl_link_read("/proc/self/exe", folder, err);
    if (status)
        return status;
    pl_path_cut_to_parent(folder);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        pl_file_kind kind;
        status = pl_path_join(path, folder, places[i], err);
        if (!status)
            status = pl_file_look(path, &kind, err);
        if (status || kind == PL_FILE_PLAIN)
            return status;
    }
    return pl_fail(err, PL_E_RANKS,
                   "a launcher has started several processes, and this program "
                   "was built without MPI: install it (Debian's "
                   "libopenmpi-dev), and build again");
}

pl_status pl_cli_ranks_open(pl_comm **comm, pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    *comm = NULL;
    if (pl_comm_started(variable) < 2)
        return PL_OK;
    pl_status status = find_library(path, err);
    if (!status)
        status = pl_comm_open(comm, path, DEFAULT_TIMEOUT, heap, err);
    return status;
}

/* ---- one run ---- */

/* What has to be the same everywhere, and who says it. */
typedef struct card {
    char host[HOST_BYTES];
    uint64_t config; /* a hash of what decides about numbers */
} card;

static uint64_t hash_of(const pl_config *config)
{
    uint64_t sum = 1469598103934665603u; /* FNV-1a, as published */
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char text[512];
        if (pl_key_row((pl_key)key)->effect < PL_EFFECT_EVALUATION)
            continue;
        pl_config_value_text(config, (pl_key)key, text, sizeof text);
        for (const char *c = text; *c; c++)
            sum = (sum ^ (unsigned char)*c) * 1099511628211u;
    }
    return sum;
}

pl_status pl_cli_ranks_agree(pl_comm *comm, const pl_config *config,
                             pl_heap *heap, pl_error *err)
{
    const int rank = pl_comm_rank(comm), ranks = pl_comm_ranks(comm);
    card *cards;
    pl_status status = pl_heap_take(heap, &cards, (size_t)ranks, sizeof *cards,
                                    err);
    if (status)
        return status;
    snprintf(cards[rank].host, HOST_BYTES, "process %d", rank);
    cards[rank].config = hash_of(config);
    status = pl_comm_gather_all(comm, cards, sizeof *cards, PL_COMM_MUST_GO_ON,
                                err);
    for (int i = 0; i < ranks && !status; i++)
        if (cards[i].config != cards[0].config)
            status = pl_fail(err, PL_E_RANKS,
                             "rank %d has other settings than rank 0: start "
                             "all of them with the same config and arguments",
                             i);
    return status;
}

void pl_cli_ranks_close(pl_comm *comm, pl_status status, const pl_error *err)
{
    if (!comm)
        return;
    if (status && status != PL_E_STOPPED) {
        pl_log_say(&pl_term_log, PL_LOG_WARN, "rank %d: %s", pl_comm_rank(comm),
                   err->text);
        pl_comm_give_up(comm, err);
    }
    pl_comm_close(comm);
}
