/* threads.h: a fixed pool that runs one function on every thread.
 *
 * Owns the threads and their stacks, whose size is fixed and known
 * (PL_THREAD_STACK_BYTES: kernels may keep up to half of it in locals).
 * Never decides a result: the function gets (ith, nth) and splits outputs. */
#ifndef PL_BASE_THREADS_H
#define PL_BASE_THREADS_H

#include "base/arena.h"
#include "base/status.h"

enum { PL_MAX_THREADS = 256, PL_THREAD_STACK_BYTES = 512 * 1024 };

typedef struct pl_threads pl_threads;
typedef void pl_thread_fn(void *context, int ith, int nth);

/* How many threads a wish means: its own number, or (0) one for each processor
 * that this process may use; PL_MAX_THREADS at most. */
size_t pl_threads_for(size_t wish);

/* `count` threads, the caller being number 0. The pool's own few bytes come
 * from `heap`. */
PL_MUST_CHECK pl_status pl_threads_open(pl_threads **out, int count,
                                        pl_heap *heap, pl_error *err);

/* Runs fn(context, i, count) on all of them; returns when all are done. */
void pl_threads_run(pl_threads *threads, pl_thread_fn *fn, void *context);

/* Inside such a function: waits until every thread is here. */
void pl_threads_barrier(pl_threads *threads);

int pl_threads_count(const pl_threads *threads);
void pl_threads_close(pl_threads *threads);

/* One thread beside all others, which works when it is told to. */
typedef struct pl_aside pl_aside;
typedef void pl_aside_fn(void *context);

PL_MUST_CHECK pl_status pl_aside_open(pl_aside **out, pl_aside_fn *fn,
                                      void *context, pl_heap *heap,
                                      pl_error *err);
/* It calls fn(context) once, from now on; and waits until it has. */
void pl_aside_begin(pl_aside *aside);
void pl_aside_wait(pl_aside *aside);
void pl_aside_close(pl_aside *aside); /* NULL is fine */

/* One thread that calls a function every so many seconds, whatever the others
 * do, and never while one of them holds its lock. For NULL there is no such
 * thread, and nothing to lock. */
typedef struct pl_pulse pl_pulse;

PL_MUST_CHECK pl_status pl_pulse_open(pl_pulse **out, pl_aside_fn *fn,
                                      void *context, double seconds,
                                      pl_heap *heap, pl_error *err);
void pl_pulse_set_seconds(pl_pulse *pulse, double seconds); /* from now on */
void pl_pulse_lock(pl_pulse *pulse);
void pl_pulse_unlock(pl_pulse *pulse);
void pl_pulse_close(pl_pulse *pulse);

/* Sets this thread's floating-point mode: round to nearest, denormals kept.
 * Every pool thread has it; the results depend on it. */
void pl_threads_set_float_mode(void);

/* [*begin, *end) of `count` units for thread ith of nth: contiguous, in
 * order, sizes differing by one at most. */
void pl_threads_slice(size_t count, int ith, int nth, size_t *begin,
                      size_t *end);

#endif
