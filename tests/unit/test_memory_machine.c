/* The offer of the machine that runs the tests: under rlimits, and inside a
 * cage (support/memory_cage.sh), in which this program runs itself. */
#include "base/arena.h"
#include "base/memory.h"
#include "support/asserts.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MB         ((size_t)1000 * 1000)
#define FILE_BYTES ((size_t)64 << 20)

static pl_error err;

/* ---- what the program does in a cage ---- */

static int say_offer(pl_memory_offer *offer)
{
    char text[4096];
    if (pl_memory_offer_make(offer, "", &err)) {
        printf("%s\n", err.text);
        return 3;
    }
    const pl_memory_source *s = &offer->sources[offer->binding];
    pl_memory_offer_text(offer, text, sizeof text);
    printf("kind %d limit %zu used %zu bytes %zu held %zu\n%s", (int)s->kind,
           s->limit_bytes, s->used_bytes, offer->bytes, offer->own_bytes, text);
    return 0;
}

/* Writes a file whose pages then lie in the cage's page cache. */
static int write_file(const char *path, size_t bytes, int synced)
{
    static char block[1 << 20];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    memset(block, 7, sizeof block);
    for (size_t at = 0; fd >= 0 && at < bytes; at += sizeof block)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            return 4;
    if (fd < 0 || (synced && fsync(fd)) || close(fd))
        return 4;
    return 0;
}

/* Takes all that is offered, but for what a process needs beside an arena. */
static int fill(const pl_memory_offer *offer)
{
    pl_arena arena;
    size_t beside = offer->own_bytes + 8 * MB + offer->bytes / 256;
    if (offer->bytes < beside)
        return 5;
    if (pl_arena_open(&arena, offer->bytes - beside, &err)) {
        printf("%s\n", err.text);
        return 6;
    }
    memset(arena.base, 1, arena.size_bytes);
    printf("filled %zu\n", arena.size_bytes);
    pl_arena_close(&arena);
    return 0;
}

/* what: offer | cached FILE | dirty FILE | fill FILE | burst */
static int act(int argc, char **argv)
{
    pl_memory_offer offer;
    const char *what = argv[1];
    int code = 0;
    if (argc > 2)
        code = write_file(argv[2], FILE_BYTES, strcmp(what, "dirty") != 0);
    if (!code)
        code = say_offer(&offer);
    if (!code && strcmp(what, "fill") == 0)
        code = fill(&offer);
    if (!code && strcmp(what, "burst") == 0) {
        offer.bytes = 2 * offer.bytes; /* more than there is */
        code = fill(&offer);
    }
    return code;
}

/* ---- in a cage ---- */

typedef struct outcome {
    int code; /* -signal if one ended it */
    char kind[16], said[8192];
    unsigned long source, limit, used, bytes, held, filled;
} outcome;

static outcome run_caged(size_t bytes, const char *what, const char *file)
{
    outcome out = { 0 };
    char command[2048], self[512];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    snprintf(command, sizeof command,
             "bash tests/support/memory_cage.sh %zu '%s' %s %s 2>&1", bytes,
             self, what, file);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t got = fread(out.said, 1, sizeof out.said - 1, pipe);
    out.said[got] = '\0';
    int how = pclose(pipe);
    out.code = WIFEXITED(how) ? WEXITSTATUS(how) : -WTERMSIG(how);
    const char *kind = strstr(out.said, "memory cage: ");
    if (!kind)
        fail_msg("no cage: %s", out.said);
    snprintf(out.kind, sizeof out.kind, "%s",
             strncmp(kind + 13, "rlimit", 6) == 0 ? "rlimit" : "cgroup");
    const char *at = strstr(out.said, "kind ");
    if (at)
        sscanf(at, "kind %lu limit %lu used %lu bytes %lu held %lu",
               &out.source, &out.limit, &out.used, &out.bytes, &out.held);
    at = strstr(out.said, "filled ");
    if (at)
        sscanf(at, "filled %lu", &out.filled);
    print_message("%s", out.said);
    return out;
}

/* Sanitizers map terabytes: there is no limiting their address space. */
static int can_cage(void)
{
    FILE *pipe = popen("bash tests/support/memory_cage.sh --kind", "r");
    char kind[16] = "";
    assert_non_null(pipe);
    assert_non_null(fgets(kind, sizeof kind, pipe));
    pclose(pipe);
    if ((SANITIZED_ADDRESS || SANITIZED_THREAD) && kind[0] == 'r') {
        print_message("not checked: no memory cgroup can be made here, and a "
                      "sanitizer's address space cannot be limited\n");
        return 0;
    }
    return 1;
}

enum { CAGE_BYTES = 256 << 20 };

static void a_cage_is_what_its_process_is_offered(void **state)
{
    (void)state;
    if (!can_cage())
        return;
    outcome out = run_caged(CAGE_BYTES, "offer", "");
    assert_int_equal(out.code, 0);
    assert_true(out.held > 0 && out.held < 100 * MB);
    if (strcmp(out.kind, "rlimit") == 0) {
        print_message("checked with RLIMIT_AS: no memory cgroup here\n");
        assert_int_equal(out.source, PL_MEMORY_ADDRESS_SPACE);
        assert_int_equal(out.limit, CAGE_BYTES + (64 << 20));
    } else {
        assert_int_equal(out.source, PL_MEMORY_CGROUP);
        assert_int_equal(out.limit, CAGE_BYTES);
        assert_contains(out.said, "by cgroup /");
        assert_contains(out.said, "plimsoll-cage.");
        /* Nothing but the process is in there, and it counts itself out; what
         * is left is the kernel's own: stacks, tables, files' names. */
        assert_true(out.bytes <= CAGE_BYTES);
        assert_true(out.bytes >= CAGE_BYTES - 8 * MB);
    }
}

static const char *const media[] = { [PL_DISK_STORAGE] = "disk",
                                     [PL_DISK_MEMORY] = "file system in "
                                                        "memory" };

/* Whether the machine has such a place for files; says so if it hasn't. */
static int open_on(scratch *s, pl_disk_medium medium)
{
    int found = scratch_open_on(s, medium);
    if (!found)
        print_message("not checked: no %s here\n", media[medium]);
    return found;
}

/* What of a file that was written in the cage can't be had back: all of it, if
 * it lies in memory. An address space has no files in it. */
static size_t stays(const outcome *out, pl_disk_medium medium)
{
    int counts = medium == PL_DISK_MEMORY && strcmp(out->kind, "cgroup") == 0;
    return counts ? FILE_BYTES : 0;
}

static void all_that_a_cage_offers_can_be_had(void **state)
{
    (void)state;
    scratch s;
    int checked = 0;
    if (SANITIZED_ADDRESS || SANITIZED_THREAD) {
        print_message("not checked: a sanitizer takes memory beside ours\n");
        return;
    }
    for (int medium = PL_DISK_STORAGE; medium <= PL_DISK_MEMORY; medium++) {
        if (!open_on(&s, (pl_disk_medium)medium))
            continue;
        outcome out = run_caged(CAGE_BYTES, "fill", scratch_path(&s, "file"));
        scratch_close(&s);
        assert_int_equal(out.code, 0);
        assert_true(out.filled + stays(&out, (pl_disk_medium)medium) >=
                    CAGE_BYTES - 40 * MB);
        checked++;
    }
    assert_true(checked > 0);
}

static void more_than_a_cage_offers_cannot_be_had(void **state)
{
    (void)state;
    if (!can_cage())
        return;
    outcome out = run_caged(CAGE_BYTES, "burst", "");
    assert_int_equal(out.filled, 0);
    if (strcmp(out.kind, "rlimit") == 0) {
        assert_int_equal(out.code, 6);
        assert_contains(out.said, "cannot map the arena");
    } else { /* a cgroup knows no other answer: hence the offer */
        assert_int_equal(out.code, 128 + SIGKILL);
        assert_contains(out.said, "the kernel killed it");
    }
}

static void only_clean_pages_of_files_can_be_had_back(void **state)
{
    (void)state;
    scratch s;
    if (!can_cage() || !open_on(&s, PL_DISK_STORAGE))
        return;
    outcome none = run_caged(CAGE_BYTES, "offer", "");
    outcome clean = run_caged(CAGE_BYTES, "cached", scratch_path(&s, "a"));
    outcome dirty = run_caged(CAGE_BYTES, "dirty", scratch_path(&s, "b"));
    scratch_close(&s);
    assert_int_equal(none.code, 0);
    assert_int_equal(clean.code, 0);
    assert_int_equal(dirty.code, 0);
    assert_true(clean.bytes + 8 * MB >= none.bytes);
    /* The kernel may write dirty pages at any time: they count at most. */
    assert_true(dirty.bytes <= clean.bytes + 8 * MB);
    assert_true(dirty.bytes + 80 * MB >= clean.bytes);
}

static void a_file_in_memory_cannot_be_had_back(void **state)
{
    (void)state;
    scratch s;
    if (!can_cage() || !open_on(&s, PL_DISK_MEMORY))
        return;
    outcome none = run_caged(CAGE_BYTES, "offer", "");
    outcome synced = run_caged(CAGE_BYTES, "cached", scratch_path(&s, "a"));
    scratch_close(&s);
    assert_int_equal(none.code, 0);
    assert_int_equal(synced.code, 0);
    size_t kept = stays(&synced, PL_DISK_MEMORY);
    assert_true(synced.bytes + kept <= none.bytes + 8 * MB);
    assert_true(synced.bytes + kept + 8 * MB >= none.bytes);
}

/* ---- rlimits ---- */

typedef struct limit {
    int resource;
    size_t more_bytes; /* than the process has now */
} limit;

/* The offer in a process of its own that has this limit. */
static pl_memory_offer offer_under(limit l)
{
    pl_memory_offer *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int how;
    assert_true(shared != MAP_FAILED);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned long pages = 0, data = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file ||
            fscanf(file, "%lu %*u %*u %*u %*u %lu", &pages, &data) != 2)
            _exit(1);
        fclose(file);
        size_t now = (l.resource == RLIMIT_AS ? pages : data) *
                     (size_t)sysconf(_SC_PAGESIZE);
        struct rlimit r = { now + l.more_bytes, now + l.more_bytes };
        if ((l.resource == RLIMIT_AS ? setrlimit(RLIMIT_AS, &r)
                                     : setrlimit(RLIMIT_DATA, &r)) ||
            pl_memory_offer_make(shared, "", NULL))
            _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    pl_memory_offer out = *shared;
    munmap(shared, sizeof *shared);
    return out;
}

static void an_rlimit_is_what_a_process_is_offered(void **state)
{
    (void)state;
    static const struct {
        limit limit;
        pl_memory_source_kind kind;
    } cases[] = {
        { { RLIMIT_AS, 50 << 20 }, PL_MEMORY_ADDRESS_SPACE },
        { { RLIMIT_DATA, 40 << 20 }, PL_MEMORY_DATA },
    };
    for (size_t i = 0; i < 2; i++) {
        pl_memory_offer offer = offer_under(cases[i].limit);
        size_t more = cases[i].limit.more_bytes;
        const pl_memory_source *s = &offer.sources[offer.binding];
        assert_int_equal(s->kind, cases[i].kind);
        /* statm's data has the stack in it, VmData hasn't. */
        assert_true(offer.bytes >= more);
        assert_true(offer.bytes <= more + offer.own_bytes + 16 * MB);
    }
}

static void this_machine_offers_something(void **state)
{
    (void)state;
    pl_memory_offer offer;
    char text[4096];
    if (pl_memory_offer_make(&offer, "", &err))
        fail_msg("%s", err.text);
    pl_memory_offer_text(&offer, text, sizeof text);
    print_message("%s", text);
    assert_true(offer.bytes > 64 * MB);
    assert_true(offer.own_bytes > 0);
    assert_int_equal(offer.sources[0].kind, PL_MEMORY_AVAILABLE);
}

static void a_peak_is_at_least_what_was_touched(void **state)
{
    (void)state;
    size_t before, after;
    assert_int_equal(pl_memory_peak_bytes(&before, &err), PL_OK);
    pl_arena arena;
    assert_int_equal(pl_arena_open(&arena, before + 32 * MB, &err), PL_OK);
    assert_int_equal(pl_memory_peak_bytes(&after, &err), PL_OK);
    pl_arena_close(&arena);
    assert_true(after >= before + 32 * MB);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_machine_offers_something),
        cmocka_unit_test(a_peak_is_at_least_what_was_touched),
        cmocka_unit_test(an_rlimit_is_what_a_process_is_offered),
        cmocka_unit_test(a_cage_is_what_its_process_is_offered),
        cmocka_unit_test(all_that_a_cage_offers_can_be_had),
        cmocka_unit_test(more_than_a_cage_offers_cannot_be_had),
        cmocka_unit_test(only_clean_pages_of_files_can_be_had_back),
        cmocka_unit_test(a_file_in_memory_cannot_be_had_back),
    };
    if (argc > 1)
        return act(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
