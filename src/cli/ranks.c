/* ranks.c: see ranks.h. */
#include "cli/ranks.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/units.h"
#include "cli/own_names.h"
#include "cli/term.h"
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* An MPI that doesn't know this launcher says that it is alone, and all of them
 * would train the same run in the same folder. */
static pl_status check_count(const pl_comm *comm, int started, pl_error *err)
{
    const int ranks = pl_comm_ranks(comm);
    if (ranks >= started)
        return PL_OK;
    return pl_fail(err, PL_E_RANKS,
                   "the launcher has started %d processes, and %s finds %d of "
                   "them: the two don't know each other. Start with that MPI's "
                   "own mpirun, or under srun with the --mpi that it knows "
                   "(--mpi=pmix or --mpi=pmi2; srun --mpi=list says what there "
                   "is), or build again with the launcher's MPI",
                   started, pl_comm_engine_name(comm), ranks);
}

pl_status pl_cli_ranks_open(pl_comm **comm, const pl_config *config,
                            pl_heap *heap, pl_error *err)
{
    /* before the first step others check data, or a card, for minutes */
    static const double start = 5.0;
    char path[PL_PATH_BYTES];
    *comm = NULL;
    const int started = pl_comm_started(variable);
    if (started < 2)
        return PL_OK;
    pl_status status = find_library(path, err);
    if (!status)
        status = pl_comm_open(comm, path, start * config->comm_timeout, heap,
                              err);
    return status ? status : check_count(*comm, started, err);
}

/* ---- one run ---- */

/* Who somebody is: what all programs say first, of any version, in as many
 * bytes. */
typedef struct greeting {
    char host[PL_COMM_HOST_BYTES];
    uint64_t program; /* a hash of its file */
} greeting;

/* What has to be the same everywhere: a hash of each setting; 0: may be
 * anything. */
typedef struct card {
    uint64_t keys[PL_KEY_COUNT];
} card;

/* Settings that all of them share. What a machine has, and where its data is,
 * may differ. */
static int is_of_run(pl_key key)
{
    const pl_key_info *row = pl_key_row(key);
    if (key == PL_KEY_eval_only || key == PL_KEY_comm_timeout)
        return 1;
    return row->effect != PL_EFFECT_CALL && row->effect != PL_EFFECT_DATA &&
           !(row->effect == PL_EFFECT_SAME && row->group == PL_GROUP_MACHINE);
}

/* Where the data is, unless this process was told. */
static int is_default_place(const pl_config *config, pl_key key)
{
    return pl_key_row(key)->effect == PL_EFFECT_DATA &&
           !pl_config_was_set(config, key);
}

static pl_status hash_program(uint64_t *hash, pl_error *err)
{
    unsigned char bytes[16 * 1024];
    pl_file file;
    pl_status status = pl_file_open_read(&file, "/proc/self/exe", err);
    if (status)
        return status;
    const uint64_t size = pl_file_size(&file);
    *hash = 0;
    for (uint64_t at = 0; at < size && !status;) {
        const size_t count = size - at < sizeof bytes ? (size_t)(size - at)
                                                      : sizeof bytes;
        status = pl_file_pread_exact(&file, bytes, count, at, err);
        *hash = pl_hash_chain(*hash, bytes, count);
        at += count;
    }
    pl_file_abandon(&file);
    return status;
}

static pl_status greet(pl_comm *comm, greeting *all, pl_error *err)
{
    const int rank = pl_comm_rank(comm), ranks = pl_comm_ranks(comm);
    greeting *own = &all[rank];
    pl_own_names names;
    memset(own, 0, sizeof *own);
    pl_own_names_find(&names);
    snprintf(own->host, sizeof own->host, "%.*s", (int)sizeof own->host - 1,
             names.name);
    pl_status status = hash_program(&own->program, err);
    if (!status)
        status = pl_comm_gather_all(comm, all, sizeof *all, err);
    for (int i = 0; i < ranks && !status; i++)
        pl_comm_name_rank(comm, i, all[i].host);
    for (int i = 1; i < ranks && !status; i++)
        if (all[i].program != all[0].program)
            status = pl_fail(err, PL_E_RANKS,
                             "rank %d (%s) is another program than rank 0 "
                             "(%s): build or copy the same one for all of them",
                             i, all[i].host, all[0].host);
    return status;
}

static void fill_card(card *own, const pl_config *config)
{
    memset(own, 0, sizeof *own);
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char text[512];
        if (!is_of_run((pl_key)key))
            continue;
        pl_config_value_text(config, (pl_key)key, text, sizeof text);
        own->keys[key] = pl_hash_chain(1, text, strlen(text));
    }
}

static pl_status compare(const pl_comm *comm, const card *cards, int rank,
                         pl_error *err)
{
    for (int key = 0; key < PL_KEY_COUNT; key++)
        if (cards[rank].keys[key] != cards[0].keys[key])
            return pl_fail(err, PL_E_RANKS,
                           "%s was started with another %s than %s: give all "
                           "of them the same config and arguments",
                           pl_comm_rank_name(comm, rank).text,
                           pl_key_row((pl_key)key)->name,
                           pl_comm_rank_name(comm, 0).text);
    return PL_OK;
}

pl_status pl_cli_ranks_agree(pl_comm *comm, const pl_config *config,
                             pl_heap *heap, pl_error *err)
{
    const int rank = pl_comm_rank(comm), ranks = pl_comm_ranks(comm);
    greeting *greetings;
    card *cards = NULL;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* lines of several stay whole */
    if (ranks & (ranks - 1))
        return pl_fail(err, PL_E_CONFIG,
                       "%d processes were started: a power of two of them can "
                       "share an update, 2, 4, 8 and so on",
                       ranks);
    pl_status status = pl_heap_take(heap, &greetings, (size_t)ranks,
                                    sizeof *greetings, err);
    if (!status)
        status = pl_heap_take(heap, &cards, (size_t)ranks, sizeof *cards, err);
    if (!status)
        status = greet(comm, greetings, err);
    if (status)
        return status;
    fill_card(&cards[rank], config);
    status = pl_comm_gather_all(comm, cards, sizeof *cards, err);
    for (int i = 1; i < ranks && !status; i++)
        status = compare(comm, cards, i, err);
    return status;
}

/* ---- rank 0's settings ---- */

enum { LETTER_BYTES = 64 * 1024 };

/* As a config file has them. */
typedef struct letter {
    uint64_t arithmetic; /* of the run so far */
    size_t bytes;
    char text[LETTER_BYTES];
} letter;

static pl_status write_letter(letter *out, const pl_config *config,
                              pl_error *err)
{
    *out = (letter){ .arithmetic = config->kept_arithmetic };
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char *to = out->text + out->bytes;
        const size_t room = LETTER_BYTES - out->bytes;
        if (!is_of_run((pl_key)key) &&
            pl_key_row((pl_key)key)->effect != PL_EFFECT_DATA)
            continue;
        size_t used = (size_t)snprintf(to, room,
                                       "%s = ", pl_key_row((pl_key)key)->name);
        if (used < room)
            used += pl_config_value_text(config, (pl_key)key, to + used,
                                         room - used);
        if (used + 1 >= room)
            return pl_fail(err, PL_E_RANKS,
                           "these settings are longer than the %s that other "
                           "ranks take",
                           pl_units_bytes(LETTER_BYTES).text);
        to[used] = '\n';
        out->bytes += used + 1;
    }
    return PL_OK;
}

static pl_status read_letter(const letter *in, pl_config *config, pl_heap *heap,
                             pl_error *err)
{
    pl_config *theirs;
    pl_status status = pl_heap_take(heap, &theirs, 1, sizeof *theirs, err);
    if (status)
        return status;
    *theirs = pl_config_make_default();
    status = pl_config_parse(theirs, in->text, in->bytes, "rank 0", heap, err);
    for (int key = 0; key < PL_KEY_COUNT && !status; key++) {
        if ((!is_of_run((pl_key)key) &&
             !is_default_place(config, (pl_key)key)) ||
            pl_config_same_value(config, theirs, (pl_key)key))
            continue;
        const pl_value value = pl_config_get(theirs, (pl_key)key);
        status = pl_config_set(config, (pl_key)key, &value, theirs->origin[key],
                               heap, err);
    }
    config->kept_arithmetic = in->arithmetic;
    return status ? status : pl_config_check(config, err);
}

pl_status pl_cli_ranks_share(pl_comm *comm, pl_config *config, pl_heap *heap,
                             pl_error *err)
{
    const int is_first = pl_comm_rank(comm) == 0;
    letter *sent;
    pl_status status = pl_heap_take(heap, &sent, 1, sizeof *sent, err);
    if (!status && is_first)
        status = write_letter(sent, config, err);
    if (!status)
        status = pl_comm_broadcast(comm, sent, sizeof *sent, err);
    if (!status && !is_first)
        status = read_letter(sent, config, heap, err);
    return status;
}

pl_status pl_cli_ranks_machine(pl_machine *machine, pl_comm *comm,
                               pl_error *err)
{
    machine->comm = comm;
    machine->ranks = (size_t)pl_comm_ranks(comm);
    machine->rank = (size_t)pl_comm_rank(comm);
    return pl_machine_take_off(machine, pl_comm_memory_bytes(comm),
                               pl_comm_engine_name(comm), err);
}

/* ---- what is said of it ---- */

void pl_cli_ranks_say_plans(const pl_session *session)
{
    const pl_comm *comm = session->ranks.comm;
    const size_t ranks = (size_t)pl_comm_ranks(comm);
    uint64_t all = 0;
    size_t least = 0, most = 0;
    for (size_t i = 0; i < ranks; i++) {
        const uint64_t bytes = session->needs[i].bytes;
        all += bytes;
        if (bytes < session->needs[least].bytes)
            least = i;
        if (bytes > session->needs[most].bytes)
            most = i;
    }
    pl_term_print("%zu ranks by %s: %s in all, from %s (%s) to %s (%s)\n",
                  ranks, pl_comm_engine_name(comm), pl_units_bytes(all).text,
                  pl_units_bytes(session->needs[least].bytes).text,
                  pl_comm_rank_name(comm, (int)least).text,
                  pl_units_bytes(session->needs[most].bytes).text,
                  pl_comm_rank_name(comm, (int)most).text);
    if (session->run.purpose == PL_RUN_TRAINS)
        pl_term_print("if one of them fails after the first checkpoint: "
                      "plimsoll train --resume %s, under the same launcher\n",
                      pl_path_quoted(session->run.outdir.path).text);
    fflush(stdout);
}

void pl_cli_ranks_say_work(const pl_session *session)
{
    const pl_ranks_work *work = &session->ranks.work;
    if (work->updates == 0 || work->sent == 0 || work->least == 0)
        return; /* nobody to send to */
    const double updates = (double)work->updates,
                 sent = (double)work->sent / updates,
                 least = (double)work->least;
    pl_term_print("each rank sent %.0f bytes per update, %.2f %% more than the "
                  "least possible, %.0f %% of them while it computed, and "
                  "waited %.1f %% of the time\n",
                  sent, 100.0 * (sent / least - 1.0),
                  100.0 * (double)work->early / (double)work->sent,
                  100.0 * work->waited / work->seconds);
}

/* ---- the end ---- */

pl_cli_ranks_end pl_cli_ranks_end_of(const pl_session *session)
{
    const pl_run *run = &session->run;
    pl_cli_ranks_end end = { .has_begun = 1,
                             .is_alike = session->fails_alike,
                             .purpose = run->purpose,
                             .newest = run->outdir.newest };
    snprintf(end.out_dir, sizeof end.out_dir, "%s",
             run->outdir.path ? run->outdir.path : "");
    return end;
}

static void say_how_to_go_on(const pl_cli_ranks_end *end, pl_status status)
{
    const pl_log *log = &pl_term_log;
    if (!end->has_begun)
        pl_log_say(log, PL_LOG_NOTE,
                   "the run had not begun. Once this is mended, the same "
                   "command starts it");
    else if (end->purpose != PL_RUN_TRAINS)
        pl_log_say(log, PL_LOG_NOTE,
                   "the evaluation has ended on all ranks. The same command "
                   "starts it again");
    else if (status == PL_E_CONFIG) /* it has diverged, and would again */
        pl_log_say(log, PL_LOG_NOTE, "the run has ended on all ranks");
    else if (end->newest == PL_OUTDIR_NO_STEP)
        pl_log_say(log, PL_LOG_NOTE,
                   "the run has ended on all ranks. No checkpoint had been "
                   "written yet: the same command starts it");
    else
        pl_log_say(log, PL_LOG_NOTE,
                   "the run has ended on all ranks. To go on from its newest "
                   "checkpoint: plimsoll train --resume %s, under the same "
                   "launcher",
                   pl_path_quoted(end->out_dir).text);
}

/* Who found out says it, and the first one that is left, which says how to go
 * on, too; the others would only repeat it. */
static void say_end(const pl_comm *comm, const pl_cli_ranks_end *end,
                    const pl_error *err)
{
    const time_t now = (time_t)pl_clock_date();
    const int is_first = pl_comm_is_first_left(comm);
    struct tm local;
    char date[64] = "";
    if (!is_first && (pl_comm_was_told(comm) || end->is_alike))
        return;
    if (localtime_r(&now, &local))
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &local);
    pl_term_speak();
    pl_term_clear();
    pl_log_say(&pl_term_log, PL_LOG_WARN, "%s, rank %d: %s", date,
               pl_comm_rank(comm), err->text);
    if (is_first)
        say_how_to_go_on(end, err->status);
}

void pl_cli_ranks_close(pl_comm *comm, const pl_cli_ranks_end *end,
                        pl_status status, const pl_error *err)
{
    if (!comm)
        return;
    if (status && status != PL_E_STOPPED) {
        say_end(comm, end, err);
        pl_comm_give_up(comm, err);
    }
    pl_comm_close(comm);
}
