/* threads.c: the pool. Threads sleep on a condition variable between runs and
 * spin shortly at barriers inside one, since steps are microseconds apart. */
#include "base/threads.h"
#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* About 20 us: longer than an ordinary step's imbalance, shorter than a time
 * slice. Afterwards the processor is offered to whoever wants it. */
enum { SPINS = 4000 };

typedef struct worker {
    struct pl_threads *pool;
    pthread_t thread;
    int ith;
} worker;

struct pl_threads {
    int count;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    unsigned run; /* number of the run; a change wakes the workers */
    int quit;
    pl_thread_fn *fn;
    void *context;
    atomic_int arrived;     /* at the current barrier */
    atomic_uint generation; /* of barriers */
    worker workers[];
};

void pl_threads_set_float_mode(void)
{
#if defined(__x86_64__)
    _mm_setcsr(0x1f80); /* all exceptions masked, nearest, no FTZ, no DAZ */
#endif
}

void pl_threads_barrier(pl_threads *threads)
{
    unsigned generation = atomic_load(&threads->generation);
    if (atomic_fetch_add(&threads->arrived, 1) + 1 == threads->count) {
        atomic_store(&threads->arrived, 0);
        atomic_fetch_add(&threads->generation, 1);
        return;
    }
    for (int spins = 0; atomic_load(&threads->generation) == generation;) {
        if (spins < SPINS) {
            spins++;
#if defined(__x86_64__)
            _mm_pause();
#endif
        } else {
            sched_yield();
        }
    }
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
    pthread_cond_destroy(&threads->wake);
    pthread_mutex_destroy(&threads->mutex);
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
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, PL_THREAD_STACK_BYTES);
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
