#include "base/threads.h"
#include "support/asserts.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cmocka.h>

static const int counts[] = { 1, 2, 3, 8 };
enum { COUNTS = 4, MOST = 8 };

static pl_heap heap;
static pl_error err;
static pl_threads *pool;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(1 << 20);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static void open_pool(int count)
{
    pool = NULL;
    if (pl_threads_open(&pool, count, &heap, &err))
        fail_msg("%s", err.text);
    assert_non_null(pool);
}

/* A line for each thread, so that only what is meant to be shared is. */
typedef struct lane {
    _Alignas(64) int runs;
    int ith, nth, fault;
    unsigned value;
    pthread_t self;
    size_t stack_bytes;
} lane;

static lane lanes[MOST];

/* ---- running ---- */

static void note_call(void *context, int ith, int nth)
{
    lane *own = (lane *)context + ith;
    own->runs++;
    own->ith = ith;
    own->nth = nth;
    own->self = pthread_self();
}

static void every_thread_runs_once_with_its_number(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        int n = counts[c];
        memset(lanes, 0, sizeof lanes);
        open_pool(n);
        assert_int_equal(pl_threads_count(pool), n);
        pl_threads_run(pool, note_call, lanes);
        for (int i = 0; i < MOST; i++) {
            assert_int_equal(lanes[i].runs, i < n);
            if (i >= n)
                continue;
            assert_int_equal(lanes[i].ith, i);
            assert_int_equal(lanes[i].nth, n);
            for (int j = 0; j < i; j++)
                assert_false(pthread_equal(lanes[i].self, lanes[j].self));
        }
        assert_true(pthread_equal(lanes[0].self, pthread_self()));
        pl_threads_close(pool);
    }
}

static void many_short_runs_lose_no_call(void **state)
{
    (void)state;
    enum { RUNS = 2000 };
    for (int c = 0; c < COUNTS; c++) {
        memset(lanes, 0, sizeof lanes);
        open_pool(counts[c]);
        for (int run = 1; run <= RUNS; run++) {
            pl_threads_run(pool, note_call, lanes);
            for (int i = 0; i < counts[c]; i++)
                assert_int_equal(lanes[i].runs, run);
        }
        pl_threads_close(pool);
    }
}

/* ---- barriers ---- */

enum { ROUNDS = 500 };

static void write_and_look(void *context, int ith, int nth)
{
    lane *all = context;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        all[ith].value = round * 1000 + (unsigned)ith;
        pl_threads_barrier(pool);
        for (int other = 0; other < nth; other++)
            all[ith].fault |= all[other].value !=
                              round * 1000 + (unsigned)other;
        pl_threads_barrier(pool);
    }
}

static void a_barrier_shows_what_all_wrote_before_it(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        memset(lanes, 0, sizeof lanes);
        open_pool(counts[c]);
        pl_threads_run(pool, write_and_look, lanes);
        for (int i = 0; i < counts[c]; i++) {
            assert_int_equal(lanes[i].value, ROUNDS * 1000 + i);
            assert_false(lanes[i].fault);
        }
        pl_threads_close(pool);
    }
}

static void sleep_then_write(void *context, int ith, int nth)
{
    const struct timespec while_ = { .tv_nsec = 20 * 1000 * 1000 };
    lane *all = context;
    if (ith == nth - 1)
        nanosleep(&while_, NULL);
    all[ith].value = 1;
}

static void a_run_ends_after_its_slowest_thread(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        memset(lanes, 0, sizeof lanes);
        open_pool(counts[c]);
        pl_threads_run(pool, sleep_then_write, lanes);
        for (int i = 0; i < counts[c]; i++)
            assert_int_equal(lanes[i].value, 1);
        pl_threads_close(pool);
    }
}

/* ---- slices ---- */

static void assert_slices(size_t count, int nth)
{
    size_t at = 0, least = SIZE_MAX, most = 0;
    for (int ith = 0; ith < nth; ith++) {
        size_t begin = SIZE_MAX, end = SIZE_MAX;
        pl_threads_slice(count, ith, nth, &begin, &end);
        assert_int_equal(begin, at);
        assert_true(end >= begin);
        least = end - begin < least ? end - begin : least;
        most = end - begin > most ? end - begin : most;
        at = end;
    }
    assert_int_equal(at, count);
    assert_true(most - least <= 1);
}

static void slices_cover_everything_once_and_evenly(void **state)
{
    (void)state;
    static const size_t large[] = { 1000, 65537, ((size_t)1 << 40) + 7,
                                    SIZE_MAX - 1, SIZE_MAX };
    for (int nth = 1; nth <= 9; nth++) {
        for (size_t count = 0; count < 70; count++)
            assert_slices(count, nth);
        for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
            assert_slices(large[i], nth);
    }
    assert_slices(255, PL_MAX_THREADS);
    assert_slices(257, PL_MAX_THREADS);
    assert_slices(SIZE_MAX, PL_MAX_THREADS);
}

/* ---- what a thread has ---- */

#if defined(__x86_64__)
static int float_mode_is_right(void)
{
    volatile float least = FLT_MIN, half = 0.5f, one = 1, small = 0x1p-25f;
    volatile float denormal = least * half, kept = denormal + denormal;
    volatile float nearest = one + small;
    return denormal != 0 && kept == FLT_MIN && nearest == 1 &&
           fegetround() == FE_TONEAREST;
}

static void check_float_mode(void *context, int ith, int nth)
{
    (void)nth;
    ((lane *)context)[ith].fault = !float_mode_is_right();
}
#endif

static void every_thread_keeps_denormals_and_rounds_to_nearest(void **state)
{
    (void)state;
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    memset(lanes, 0, sizeof lanes);
    /* flush, denormals are zero, round up: new threads inherit it */
    _mm_setcsr(0x1f80 | 0x8000 | 0x0040 | 0x4000);
    assert_false(float_mode_is_right());
    open_pool(3);
    pl_threads_run(pool, check_float_mode, lanes);
    pl_threads_close(pool);
    for (int i = 0; i < 3; i++)
        assert_false(lanes[i].fault);
    _mm_setcsr(0x1f80 | 0x8000);
    pl_threads_set_float_mode();
    assert_true(float_mode_is_right());
    _mm_setcsr(before);
#else
    skip();
#endif
}

/* ThreadSanitizer puts its own state on the stacks, and rounds them as it
 * likes. */
static void skip_where_stacks_are_not_ours(void)
{
    if (SANITIZED_THREAD)
        skip();
}

static void measure_stack(void *context, int ith, int nth)
{
    pthread_attr_t attr;
    lane *own = (lane *)context + ith;
    (void)nth;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstacksize(&attr, &own->stack_bytes);
        pthread_attr_destroy(&attr);
    }
}

static void stacks_have_the_size_that_the_plan_counts(void **state)
{
    (void)state;
    skip_where_stacks_are_not_ours();
    memset(lanes, 0, sizeof lanes);
    open_pool(3);
    pl_threads_run(pool, measure_stack, lanes);
    pl_threads_close(pool);
    for (int i = 1; i < 3; i++)
        assert_int_equal(lanes[i].stack_bytes, PL_THREAD_STACK_BYTES);
}

static void fill_half_a_stack(void *context, int ith, int nth)
{
    volatile unsigned char locals[PL_THREAD_STACK_BYTES / 2];
    (void)nth;
    for (size_t i = 0; i < sizeof locals; i++)
        locals[i] = (unsigned char)i;
    ((lane *)context)[ith].value = locals[255];
}

static void a_kernel_may_keep_half_a_stack_in_locals(void **state)
{
    (void)state;
    skip_where_stacks_are_not_ours();
    memset(lanes, 0, sizeof lanes);
    open_pool(2);
    pl_threads_run(pool, fill_half_a_stack, lanes);
    pl_threads_close(pool);
    assert_int_equal(lanes[0].value, 255);
    assert_int_equal(lanes[1].value, 255);
}

/* ---- opening and closing ---- */

static int threads_of_this_process(void)
{
    return scratch_count("/proc/self/task");
}

/* A joined thread may be listed for a moment longer. */
static int threads_are_back_to(int count)
{
    const struct timespec moment = { .tv_nsec = 1000 * 1000 };
    for (int tries = 0; tries < 2000; tries++) {
        if (threads_of_this_process() == count)
            return 1;
        nanosleep(&moment, NULL);
    }
    return 0;
}

static void closing_ends_the_threads(void **state)
{
    (void)state;
    open_pool(2); /* a sanitizer may start a thread of its own at the first */
    pl_threads_close(pool);
    int before = threads_of_this_process();
    for (int i = 0; i < 50; i++) {
        open_pool(3);
        assert_true(threads_of_this_process() >= before + 2);
        if (i % 2)
            pl_threads_run(pool, note_call, lanes);
        pl_threads_close(pool);
    }
    assert_true(threads_are_back_to(before));
    pl_threads_close(NULL);
}

static void a_pool_without_memory_is_an_error(void **state)
{
    (void)state;
    pool = NULL;
    heap = pl_heap_make(16);
    assert_int_equal(pl_threads_open(&pool, 2, &heap, &err), PL_E_MEMORY);
    assert_null(pool);
}

/* In a process of its own, whose address space ends after a few stacks: not
 * where sanitizers take address space as they like, nor where an emulator takes
 * no notice of the limit. */
#if !SANITIZED_ADDRESS && !SANITIZED_THREAD && !defined(PL_TESTS_EMULATED)
#define CAN_STARVE
static int starve(void)
{
    enum { STACKS = 3 };
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    int read = file && fscanf(file, "%lu", &pages) == 1;
    if (!read)
        return 10;
    fclose(file);
    rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) +
                   STACKS * (rlim_t)PL_THREAD_STACK_BYTES;
    const struct rlimit limit = { bytes, bytes };
    if (setrlimit(RLIMIT_AS, &limit))
        return 11;
    if (pl_threads_open(&pool, PL_MAX_THREADS, &heap, &err) != PL_E_MEMORY)
        return 12;
    if (!strstr(err.text, " of 256: ") ||
        !strstr(err.text, "Ask for fewer with --threads=N"))
        return 13;
    return threads_are_back_to(1) ? 0 : 14;
}
#endif

static void threads_that_cannot_start_are_an_error(void **state)
{
    (void)state;
#ifdef CAN_STARVE
    int how = 0;
    pl_heap_close(&heap);
    assert_int_equal(pl_heap_take(&heap, &pool, 1, 1, &err), PL_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(starve());
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
#else
    skip();
#endif
}

static void open_many(void *context)
{
    pl_status status = pl_threads_open(&pool, *(int *)context, &heap, &err);
    (void)status;
}

static void no_threads_and_too_many_are_bugs(void **state)
{
    (void)state;
    int wrong[] = { 0, -1, PL_MAX_THREADS + 1 };
    for (int i = 0; i < 3; i++)
        assert_dies(open_many, &wrong[i], "count");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* first, while there is one thread only: they fork */
        TEST(no_threads_and_too_many_are_bugs),
        TEST(threads_that_cannot_start_are_an_error),
        TEST(every_thread_runs_once_with_its_number),
        TEST(many_short_runs_lose_no_call),
        TEST(a_barrier_shows_what_all_wrote_before_it),
        TEST(a_run_ends_after_its_slowest_thread),
        TEST(slices_cover_everything_once_and_evenly),
        TEST(every_thread_keeps_denormals_and_rounds_to_nearest),
        TEST(stacks_have_the_size_that_the_plan_counts),
        TEST(a_kernel_may_keep_half_a_stack_in_locals),
        TEST(closing_ends_the_threads),
        TEST(a_pool_without_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
