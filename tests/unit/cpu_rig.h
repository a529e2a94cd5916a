/* cpu_rig.h: a step on buffers of its own, for the tests of device/cpu_steps.
 */
#ifndef PL_TESTS_UNIT_CPU_RIG_H
#define PL_TESTS_UNIT_CPU_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu_steps.h"
#include "device/device.h"

#include <string.h>

enum { ROWS = 6, IN = 5, OUT = 18, H = 2, D = 3, C = H * D, MOST = 1024 };

static const struct rig_kind {
    pl_dtype dtype;
    pl_storage storage;
    unsigned round;
} kinds[] = { { PL_F32, PL_STORE_F32, 0 },
              { PL_BF16, PL_STORE_BF16, PL_STEP_ROUND_BF16 },
              { PL_F16, PL_STORE_F16, PL_STEP_ROUND_F16 } };
enum { KINDS = 3, MAX_BUFFERS = 9 };

/* A graph of buffers alone, each with room for MOST floats. */
typedef struct rig {
    pl_graph graph;
    pl_buffer buffers[MAX_BUFFERS];
    void *memory[MAX_BUFFERS];
    float room[MAX_BUFFERS][MOST];
    pl_controls controls;
    cpu_context context;
    pl_step step;
    int next; /* argument */
} rig;

static inline void rig_begin(rig *r, pl_op op)
{
    memset(r, 0, sizeof *r);
    r->graph.buffers = r->buffers;
    r->graph.n_buffers = 1;
    r->graph.controls = 0;
    r->graph.packing = PL_NO_BUFFER;
    r->memory[0] = &r->controls;
    r->context = (cpu_context){ .graph = &r->graph,
                                .memory = r->memory,
                                .kernels = pl_kernels_for(pl_cpu_isa()) };
    r->step = pl_step_make(op);
}

/* The next argument; its numbers are different for every `seed`. */
static inline void *rig_arg(rig *r, pl_dtype dtype, pl_storage storage,
                            size_t cols, uint32_t seed)
{
    const int id = (int)r->graph.n_buffers++;
    float *x = r->room[id];
    assert_true(id < MAX_BUFFERS);
    r->buffers[id] = (pl_buffer){ .dtype = dtype, .shape = { 1, cols } };
    r->memory[id] = x;
    for (size_t i = 0; i < MOST; i++) {
        seed = seed * 1664525u + 1013904223u;
        pl_storage_put(x, i, (float)(seed >> 20) / 4096.0f, storage);
    }
    pl_step_arg(&r->step, r->next++, id);
    return x;
}

static inline void rig_run(rig *r)
{
    for (int ith = 0; ith < 2; ith++)
        pl_cpu_run_step(&r->context, &r->step, ith, 2);
}

/* A product, with what follows it. */
static inline pl_gemm product_of(rig *r, void *c, const void *x, const void *w,
                                 int transposed)
{
    r->step.rows = ROWS;
    r->step.cols = OUT;
    r->step.inner = IN;
    return (pl_gemm){ .M = ROWS,
                      .N = OUT,
                      .K = IN,
                      .a = x,
                      .a_row = IN,
                      .a_col = 1,
                      .b = w,
                      .b_row = transposed ? 1 : OUT,
                      .b_col = transposed ? IN : 1,
                      .c = c,
                      .c_row = OUT };
}

#endif
