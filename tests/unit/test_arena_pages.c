/* An arena's pages: where they lie, how many there are, whether they are
 * locked, and kernels that don't play along (made of this one with a filter on
 * its system calls). */
#include "base/arena.h"
#include "support/asserts.h"
#include "support/sanitized.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { POPULATE_WRITE = 23, HUGE = 2 << 20 };

/* A line of the process's own memory map: what lies at `address`. */
typedef struct mapped {
    unsigned long start, end, resident_kib, locked_kib;
} mapped;

static mapped look_at(const void *address)
{
    mapped m = { 0 }, found = { 0 };
    char line[1024];
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        unsigned long value, start, end;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            m = (mapped){ .start = start, .end = end };
        else if (sscanf(line, "Rss: %lu kB", &value) == 1)
            m.resident_kib = value;
        else if (sscanf(line, "Locked: %lu kB", &value) == 1)
            m.locked_kib = value;
        if (m.start <= (uintptr_t)address && (uintptr_t)address < m.end)
            found = m;
    }
    fclose(file);
    return found;
}

/* Address space that the process has. */
static size_t all_mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Runs a check in a process of its own; its exit code says how it went. */
static void check_apart(int (*check)(void))
{
    int how;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(check());
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how) || WEXITSTATUS(how))
        fail_msg("it ended with wait status %#x", (unsigned)how);
}

/* From now on a system call whose argument has this value fails with `error`
 * in this process. */
static int refuse(long call, int argument, unsigned value, int error)
{
    /* The argument's lower half: little endian, as everywhere we run. */
    unsigned at = (unsigned)offsetof(struct seccomp_data, args) +
                  8 * (unsigned)argument;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof filter[0], filter };
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void a_large_arena_is_aligned_and_no_page_too_long(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t sizes[] = { 64,          HUGE - page,     HUGE,
                             HUGE + 64,   3 * HUGE + page, 5 * HUGE - page,
                             9 * HUGE / 2 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pl_arena arena;
        pl_error err;
        size_t before = all_mapped_bytes();
        if (pl_arena_open(&arena, sizes[i], &err))
            fail_msg("%s", err.text);
        if (!SANITIZED_ADDRESS && !SANITIZED_THREAD)
            assert_int_equal(all_mapped_bytes(), before + arena.mapped_bytes);
        mapped m = look_at(arena.base);
        if (sizes[i] >= HUGE)
            assert_int_equal((uintptr_t)arena.base % HUGE, 0);
        /* All of it is there and nothing else is: huge pages stay inside. */
        assert_int_equal(m.start, (uintptr_t)arena.base);
        assert_int_equal(m.end - m.start, arena.mapped_bytes);
        assert_int_equal(m.resident_kib * 1024, arena.mapped_bytes);
        assert_true(arena.mapped_bytes < sizes[i] + page);
        pl_arena_close(&arena);
    }
}

static void an_arena_is_locked_where_that_is_permitted(void **state)
{
    (void)state;
    pl_arena arena;
    pl_error err;
    assert_int_equal(pl_arena_open(&arena, 64 * 1024, &err), PL_OK);
    mapped m = look_at(arena.base);
    if (SANITIZED_ADDRESS || SANITIZED_THREAD)
        print_message("not checked: sanitizers leave mlock out\n");
    else if (arena.locked)
        assert_int_equal(m.locked_kib, m.resident_kib);
    else
        assert_true(arena.lock_error != 0 && m.locked_kib == 0);
    print_message("locked: %d, error %d\n", arena.locked, arena.lock_error);
    pl_arena_close(&arena);
    assert_int_equal(arena.locked, 0);
}

static int open_where_locking_is_refused(void)
{
    pl_arena arena;
    struct rlimit none = { 0, 0 };
    if (setrlimit(RLIMIT_MEMLOCK, &none))
        return 1;
    /* Root may lock more than its limit: mlock's length is what is refused. */
    if (geteuid() == 0 && refuse(SYS_mlock, 1, 3 * HUGE, ENOMEM))
        return 1;
    if (pl_arena_open(&arena, 3 * HUGE, NULL))
        return 2;
    if (arena.locked ||
        (arena.lock_error != EPERM && arena.lock_error != ENOMEM))
        return 3;
    if (look_at(arena.base).resident_kib != 3 * HUGE / 1024)
        return 4;
    pl_arena_close(&arena);
    return 0;
}

static int open_on_an_old_kernel(void)
{
    pl_arena arena;
    size_t bytes = 3 * HUGE + (size_t)sysconf(_SC_PAGESIZE);
    /* Locking gives pages too: it isn't to help here. */
    if (refuse(SYS_madvise, 2, POPULATE_WRITE, EINVAL) ||
        refuse(SYS_mlock, 1, (unsigned)bytes, EPERM))
        return 1;
    /* The filter does what it should. */
    if (madvise(NULL, 4096, POPULATE_WRITE) == 0 || errno != EINVAL)
        return 2;
    if (pl_arena_open(&arena, bytes - 100, NULL))
        return 3;
    if (look_at(arena.base).resident_kib != bytes / 1024)
        return 4;
    pl_arena_close(&arena);
    return 0;
}

static int open_on_a_kernel_without_memory(void)
{
    pl_arena arena;
    pl_error err = { 0 };
    if (refuse(SYS_madvise, 2, POPULATE_WRITE, ENOMEM))
        return 1;
    if (pl_arena_open(&arena, 3 * HUGE, &err) != PL_E_MEMORY || arena.base)
        return 2;
    if (!strstr(err.text, "cannot give the arena's 6.29 MB; after 0 B it "
                          "said: Cannot allocate memory"))
        return 3;
    return 0;
}

/* The second slice of 64 MiB is the one that fails. */
static int open_on_a_kernel_that_runs_short(void)
{
    pl_arena arena;
    pl_error err = { 0 };
    size_t more = 8192;
    if (refuse(SYS_madvise, 1, (unsigned)more, ENOMEM))
        return 1;
    if (pl_arena_open(&arena, ((size_t)64 << 20) + more, &err) != PL_E_MEMORY)
        return 2;
    return strstr(err.text, "after 67.1 MB it said") ? 0 : 3;
}

static int open_where_address_space_is_scarce(void)
{
    pl_arena arena;
    size_t now = all_mapped_bytes(), arena_bytes = 4 * HUGE;
    /* Room for the arena, not for aligning it. */
    struct rlimit limit = { now + arena_bytes + HUGE / 2,
                            now + arena_bytes + HUGE / 2 };
    if (setrlimit(RLIMIT_AS, &limit))
        return 2;
    if (pl_arena_open(&arena, arena_bytes, NULL))
        return 3;
    pl_arena_close(&arena);
    pl_error err;
    if (pl_arena_open(&arena, arena_bytes + HUGE, &err) != PL_E_MEMORY)
        return 4;
    return strstr(err.text, "ulimit -v") ? 0 : 5;
}

static void a_lock_that_is_refused_is_no_error(void **state)
{
    (void)state;
    if (SANITIZED_ADDRESS || SANITIZED_THREAD) {
        print_message("not checked: sanitizers leave mlock out\n");
        return;
    }
    check_apart(open_where_locking_is_refused);
}

static void an_old_kernel_gives_every_page_too(void **state)
{
    (void)state;
    check_apart(open_on_an_old_kernel);
}

static void a_kernel_that_runs_short_is_reported_with_numbers(void **state)
{
    (void)state;
    check_apart(open_on_a_kernel_without_memory);
    check_apart(open_on_a_kernel_that_runs_short);
}

static void alignment_is_given_up_where_address_space_is_scarce(void **state)
{
    (void)state;
    if (SANITIZED_ADDRESS || SANITIZED_THREAD) {
        print_message("not checked: sanitizers need address space\n");
        return;
    }
    check_apart(open_where_address_space_is_scarce);
}

static size_t resident_of(const pl_arena *arena, size_t at, size_t bytes)
{
    size_t resident;
    pl_error err = { 0 };
    if (pl_arena_resident(arena, at, bytes, &resident, &err))
        fail_msg("%s", err.text);
    return resident;
}

/* What the kernel took away isn't counted; more pages than are asked for at
 * once, and ends within pages. */
static void bytes_in_memory_are_counted_page_by_page(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), all = 5000 * page + 1;
    pl_arena arena;
    pl_error err = { 0 };
    (void)state;
    assert_int_equal(pl_arena_open(&arena, all, &err), PL_OK);
    assert_int_equal(resident_of(&arena, 0, all), all);
    assert_int_equal(resident_of(&arena, 10, 0), 0);
    munlock(arena.base, arena.mapped_bytes);
    assert_int_equal(madvise(arena.base + 7 * page, 2 * page, MADV_DONTNEED),
                     0);
    assert_int_equal(madvise(arena.base + 4999 * page, page, MADV_DONTNEED), 0);
    assert_int_equal(resident_of(&arena, 0, all), all - 3 * page);
    assert_int_equal(resident_of(&arena, 6 * page + 5, 3 * page), page);
    assert_int_equal(resident_of(&arena, 7 * page, 2 * page), 0);
    assert_int_equal(resident_of(&arena, 5 * page + 1, 3), 3);
    pl_arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_arena_is_aligned_and_no_page_too_long),
        cmocka_unit_test(an_arena_is_locked_where_that_is_permitted),
        cmocka_unit_test(a_lock_that_is_refused_is_no_error),
        cmocka_unit_test(an_old_kernel_gives_every_page_too),
        cmocka_unit_test(a_kernel_that_runs_short_is_reported_with_numbers),
        cmocka_unit_test(bytes_in_memory_are_counted_page_by_page),
        cmocka_unit_test(alignment_is_given_up_where_address_space_is_scarce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
