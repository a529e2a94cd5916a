/* threads.c: the pool. Threads sleep on a condition variable between runs. At
 * a barrier inside one they spin shortly, since steps are microseconds apart,
 * and then sleep too: whoever they wait for may need their processor. */
#include "base/threads.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/cpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* Some 50 us: longer than an ordinary step's imbalance, shorter than a time
 * slice. */
enum { SPINS = 4000 };

/* The thread sanitizer keeps its own state on every stack. */
#if defined(__SANITIZE_THREAD__)
#define PL_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PL_TSAN 1
#endif
#endif
#ifdef PL_TSAN
enum { SANITIZER_STACK_BYTES = 4 * 1024 * 1024 };
#else
enum { SANITIZER_STACK_BYTES = 0 };
#endif

typedef struct worker {
    struct pl_threads *pool;
    pthread_t thread;
    int ith;
} worker;

struct pl_threads {
    int count;
    pthread_mutex_t mutex;
    pthread_cond_t wake, passed; /* a new run; a barrier */
    int spins;
    unsigned run; /* number of the run; a change wakes the workers */
    int quit;
    pl_thread_fn *fn;
    void *context;
    atomic_int arrived;     /* at the current barrier */
    atomic_uint generation; /* of barriers */
    atomic_int sleepers;    /* at the current barrier */
    worker workers[];
};

void pl_threads_set_float_mode(void)
{
#if defined(__x86_64__)
    _mm_setcsr(0x1f80); /* all exceptions masked, nearest, no FTZ, no DAZ */
#endif
}

/* Either the sleeper sees the new generation, or whoever made it sees the
 * sleeper: both orders are sequentially consistent. */
static void sleep_until_passed(pl_threads *threads, unsigned generation)
{
    pthread_mutex_lock(&threads->mutex);
    atomic_fetch_add(&threads->sleepers, 1);
    while (atomic_load(&threads->generation) == generation)
        pthread_cond_wait(&threads->passed, &threads->mutex);
    atomic_fetch_sub(&threads->sleepers, 1);
    pthread_mutex_unlock(&threads->mutex);
}

void pl_threads_barrier(pl_threads *threads)
{
    unsigned generation = atomic_load(&threads->generation);
    if (atomic_fetch_add(&threads->arrived, 1) + 1 == threads->count) {
        atomic_store(&threads->arrived, 0);
        atomic_fetch_add(&threads->generation, 1);
        if (atomic_load(&threads->sleepers) > 0) {
            pthread_mutex_lock(&threads->mutex);
            pthread_cond_broadcast(&threads->passed);
            pthread_mutex_unlock(&threads->mutex);
        }
        return;
    }
    for (int i = 0; i < threads->spins; i++) {
        if (atomic_load(&threads->generation) != generation)
            return;
#if defined(__x86_64__)
        _mm_pause();
#endif
    }
    sleep_until_passed(threads, generation);
}

static void *work(void *argument)
{
    worker *self = argument;
    pl_threads *pool = self->pool;
    unsigned seen = 0;

    pl_threads_set_float_mode();
    for (;;) {
        pthread_mutex_lock(&pool->mutex);
        while (pool->run == seen && !pool->quit)
            pthread_cond_wait(&pool->wake, &pool->mutex);
        seen = pool->run;
        int quit = pool->quit;
        pthread_mutex_unlock(&pool->mutex);
        if (quit)
            return NULL;
        pool->fn(pool->context, self->ith, pool->count);
        pl_threads_barrier(pool);
    }
}

void pl_threads_run(pl_threads *threads, pl_thread_fn *fn, void *context)
{
    if (threads->count > 1) {
        pthread_mutex_lock(&threads->mutex);
        threads->fn = fn;
        threads->context = context;
        threads->run++;
        pthread_cond_broadcast(&threads->wake);
        pthread_mutex_unlock(&threads->mutex);
    }
    fn(context, 0, threads->count);
    if (threads->count > 1)
        pl_threads_barrier(threads);
}

static void stop_workers(pl_threads *threads, int started)
{
    pthread_mutex_lock(&threads->mutex);
    threads->quit = 1;
    pthread_cond_broadcast(&threads->wake);
    pthread_mutex_unlock(&threads->mutex);
    for (int i = 1; i < started; i++)
        pthread_join(threads->workers[i].thread, NULL);
    pthread_cond_destroy(&threads->passed);
    pthread_cond_destroy(&threads->wake);
    pthread_mutex_destroy(&threads->mutex);
}

size_t pl_threads_for(size_t wish)
{
    const size_t count = wish ? wish : (size_t)pl_cpu_count();
    return count < PL_MAX_THREADS ? count : PL_MAX_THREADS;
}

pl_status pl_threads_open(pl_threads **out, int count, pl_heap *heap,
                          pl_error *err)
{
    pl_threads *pool;
    pthread_attr_t attr;
    int error = 0, started = 1;

    PL_CHECK(count >= 1 && count <= PL_MAX_THREADS);
    pl_status status = pl_heap_take(
        heap, &pool, 1, sizeof *pool + (size_t)count * sizeof(worker), err);
    if (status)
        return status;
    pool->count = count;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->passed, NULL);
    pool->spins = count <= pl_cpu_count() ? SPINS : 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr,
                              PL_THREAD_STACK_BYTES + SANITIZER_STACK_BYTES);
    for (; started < count && !error; started += !error) {
        worker *each = &pool->workers[started];
        *each = (worker){ .pool = pool, .ith = started };
        error = pthread_create(&each->thread, &attr, work, each);
    }
    pthread_attr_destroy(&attr);
    if (error) {
        stop_workers(pool, started);
        return pl_fail(err, PL_E_MEMORY,
                       "cannot start thread %d of %d: %s. Ask for fewer with "
                       "--threads=N",
                       started + 1, count, strerror(error));
    }
    pl_threads_set_float_mode();
    *out = pool;
    return PL_OK;
}

int pl_threads_count(const pl_threads *threads)
{
    return threads->count;
}

void pl_threads_close(pl_threads *threads)
{
    if (threads)
        stop_workers(threads, threads->count);
}

void pl_threads_slice(size_t count, int ith, int nth, size_t *begin,
                      size_t *end)
{
    size_t each = count / (size_t)nth, extra = count % (size_t)nth;
    size_t i = (size_t)ith;
    *begin = i * each + (i < extra ? i : extra);
    *end = *begin + each + (i < extra);
}

/* ---- one aside ---- */

struct pl_aside {
    pl_aside_fn *fn;
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int is_wanted, quit;
};

static void *work_aside(void *argument)
{
    pl_aside *aside = argument;
    pl_threads_set_float_mode();
    pthread_mutex_lock(&aside->mutex);
    for (;;) {
        while (!aside->is_wanted && !aside->quit)
            pthread_cond_wait(&aside->changed, &aside->mutex);
        if (aside->quit)
            break;
        pthread_mutex_unlock(&aside->mutex);
        aside->fn(aside->context);
        pthread_mutex_lock(&aside->mutex);
        aside->is_wanted = 0;
        pthread_cond_broadcast(&aside->changed);
    }
    pthread_mutex_unlock(&aside->mutex);
    return NULL;
}

static pl_status start(pthread_t *thread, void *(*fn)(void *), void *context,
                       pl_error *err)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes,
                              PL_THREAD_STACK_BYTES + SANITIZER_STACK_BYTES);
    const int failed = pthread_create(thread, &attributes, fn, context);
    pthread_attr_destroy(&attributes);
    return failed ? pl_fail(err, PL_E_MEMORY, "cannot start another thread: %s",
                            strerror(failed))
                  : PL_OK;
}

pl_status pl_aside_open(pl_aside **out, pl_aside_fn *fn, void *context,
                        pl_heap *heap, pl_error *err)
{
    pl_aside *aside = NULL;
    *out = NULL;
    pl_status status = pl_heap_take(heap, &aside, 1, sizeof *aside, err);
    if (status)
        return status;
    *aside = (pl_aside){ .fn = fn, .context = context };
    pthread_mutex_init(&aside->mutex, NULL);
    pthread_cond_init(&aside->changed, NULL);
    status = start(&aside->thread, work_aside, aside, err);
    if (!status)
        *out = aside;
    return status;
}

void pl_aside_begin(pl_aside *aside)
{
    pthread_mutex_lock(&aside->mutex);
    aside->is_wanted = 1;
    pthread_cond_broadcast(&aside->changed);
    pthread_mutex_unlock(&aside->mutex);
}

void pl_aside_wait(pl_aside *aside)
{
    pthread_mutex_lock(&aside->mutex);
    while (aside->is_wanted)
        pthread_cond_wait(&aside->changed, &aside->mutex);
    pthread_mutex_unlock(&aside->mutex);
}

void pl_aside_close(pl_aside *aside)
{
    if (!aside)
        return;
    pthread_mutex_lock(&aside->mutex);
    aside->quit = 1;
    pthread_cond_broadcast(&aside->changed);
    pthread_mutex_unlock(&aside->mutex);
    pthread_join(aside->thread, NULL);
    pthread_cond_destroy(&aside->changed);
    pthread_mutex_destroy(&aside->mutex);
}

/* ---- one now and then ---- */

struct pl_pulse {
    pl_aside_fn *fn;
    void *context;
    double seconds;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int quit;
};

static void *work_now_and_then(void *argument)
{
    pl_pulse *pulse = argument;
    pl_threads_set_float_mode();
    pthread_mutex_lock(&pulse->mutex);
    double last = pl_clock_seconds();
    while (!pulse->quit) {
        const double next = last + pulse->seconds;
        if (pl_clock_seconds() < next) {
            const struct timespec at = {
                .tv_sec = (time_t)next,
                .tv_nsec = (long)((next - (double)(time_t)next) * 1e9)
            };
            pthread_cond_timedwait(&pulse->changed, &pulse->mutex, &at);
            continue;
        }
        last = pl_clock_seconds();
        pulse->fn(pulse->context);
    }
    pthread_mutex_unlock(&pulse->mutex);
    return NULL;
}

pl_status pl_pulse_open(pl_pulse **out, pl_aside_fn *fn, void *context,
                        double seconds, pl_heap *heap, pl_error *err)
{
    pl_pulse *pulse = NULL;
    pthread_condattr_t attributes;
    *out = NULL;
    pl_status status = pl_heap_take(heap, &pulse, 1, sizeof *pulse, err);
    if (status)
        return status;
    *pulse = (pl_pulse){ .fn = fn, .context = context, .seconds = seconds };
    pthread_mutex_init(&pulse->mutex, NULL);
    pthread_condattr_init(&attributes); /* the clock of pl_clock_seconds */
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pulse->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    status = start(&pulse->thread, work_now_and_then, pulse, err);
    if (!status)
        *out = pulse;
    return status;
}

void pl_pulse_set_seconds(pl_pulse *pulse, double seconds)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    pulse->seconds = seconds;
    pthread_cond_broadcast(&pulse->changed);
    pthread_mutex_unlock(&pulse->mutex);
}

void pl_pulse_lock(pl_pulse *pulse)
{
    if (pulse)
        pthread_mutex_lock(&pulse->mutex);
}

void pl_pulse_unlock(pl_pulse *pulse)
{
    if (pulse)
        pthread_mutex_unlock(&pulse->mutex);
}

void pl_pulse_close(pl_pulse *pulse)
{
    if (!pulse)
        return;
    pthread_mutex_lock(&pulse->mutex);
    pulse->quit = 1;
    pthread_cond_broadcast(&pulse->changed);
    pthread_mutex_unlock(&pulse->mutex);
    pthread_join(pulse->thread, NULL);
    pthread_cond_destroy(&pulse->changed);
    pthread_mutex_destroy(&pulse->mutex);
}
