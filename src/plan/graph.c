/* graph.c: building the step list and deriving lifetimes from it. */
#include "plan/graph.h"
#include "base/check.h"

#include <stdio.h>

static const struct {
    const char *name;
    int lives;
} classes[] = {
#define PL_CLASS_ROW(id, text, lives_throughout)                               \
    [id] = { text, lives_throughout },
    PL_CLASS_TABLE(PL_CLASS_ROW)
#undef PL_CLASS_ROW
};

static const char *const program_names[] = {
#define PL_PROGRAM_ROW(id, text) [id] = text,
    PL_PROGRAM_TABLE(PL_PROGRAM_ROW)
#undef PL_PROGRAM_ROW
};

const char *pl_class_name(pl_class class)
{
    return classes[class].name;
}

int pl_class_lives_throughout(pl_class class)
{
    return classes[class].lives;
}

const char *pl_program_name(pl_program_id program)
{
    return program_names[program];
}

void pl_graph_begin(pl_graph *graph, pl_heap *heap)
{
    *graph = (pl_graph){ .heap = heap,
                         .controls = PL_NO_BUFFER,
                         .packing = PL_NO_BUFFER };
}

pl_buffer_id pl_graph_buffer(pl_graph *graph, const char *name, pl_class class,
                             pl_dtype dtype, size_t rows, size_t cols)
{
    pl_buffer buffer = { .name = name,
                         .dtype = dtype,
                         .shape = { rows, cols },
                         .class = class,
                         .program = -1 };

    if (!graph->status)
        graph->status = pl_tensor_bytes(name, dtype, buffer.shape,
                                        &buffer.bytes, &graph->error);
    if (!graph->status)
        graph->status = pl_heap_grow(graph->heap, &graph->buffers,
                                     &graph->capacity, graph->n_buffers + 1,
                                     sizeof buffer, &graph->error);
    if (graph->status)
        return 0;
    graph->buffers[graph->n_buffers] = buffer;
    return (pl_buffer_id)graph->n_buffers++;
}

void pl_graph_host(pl_graph *graph, pl_buffer_id buffer, pl_host_use use)
{
    if (!graph->status)
        graph->buffers[buffer].host = use;
}

void pl_graph_in_host(pl_graph *graph, pl_buffer_id buffer)
{
    if (!graph->status)
        graph->buffers[buffer].space = PL_SPACE_HOST;
}

pl_step *pl_graph_step(pl_graph *graph, pl_program_id program, pl_op op)
{
    pl_program *p = &graph->programs[program];

    if (!graph->status)
        graph->status = pl_heap_grow(graph->heap, &p->steps, &p->capacity,
                                     p->n_steps + 1, sizeof *p->steps,
                                     &graph->error);
    pl_step *step = graph->status ? &graph->nowhere : &p->steps[p->n_steps++];
    *step = pl_step_make(op);
    return step;
}

void pl_graph_end_loop(pl_graph *graph, pl_program_id program)
{
    graph->programs[program].loop_steps = graph->programs[program].n_steps;
}

/* ---- lifetimes ---- */

/* One use of a buffer by step `at`. The first use inside a program must write,
 * unless the host has written, or the loop hands it on from round to round. */
static void note_use(pl_buffer *buffer, const pl_program *program, int id,
                     size_t at, pl_access access)
{
    if (pl_class_lives_throughout(buffer->class))
        return;
    if (buffer->program < 0) {
        int handed_on = access == PL_UPDATE && at < program->loop_steps;
        int written = access == PL_WRITE || access == PL_SCRATCH;
        PL_CHECK(written || handed_on || buffer->host == PL_HOST_WRITES);
        buffer->program = id;
        buffer->first = written ? at : 0;
        buffer->last = handed_on ? program->loop_steps - 1 : at;
    }
    PL_CHECK(buffer->program == id);
    if (at > buffer->last)
        buffer->last = at;
}

static void close_lifetime(pl_buffer *buffer, const pl_program *program)
{
    size_t loop = program->loop_steps;
    if (buffer->host == PL_HOST_WRITES)
        buffer->first = 0; /* even if a step then writes some rows of it */
    if (buffer->host == PL_HOST_READS)
        buffer->last = program->n_steps - 1;
    if (buffer->first < loop && buffer->last >= loop)
        buffer->first = 0; /* collected by the loop, used after it */
}

/* Checks a step against the signature of its op; a failure names the step and
 * the argument. */
static void check_step(const pl_graph *graph, const pl_step *step)
{
    const pl_op_info *info = pl_op_of(step->op);
    const char *wrong = pl_step_wrong(step);
    for (int i = 0; i < info->n_args && !wrong; i++) {
        const pl_arg *arg = &step->args[i];
        if (arg->buffer == PL_NO_BUFFER)
            continue;
        PL_CHECK((size_t)arg->buffer < graph->n_buffers);
        const pl_buffer *buffer = &graph->buffers[arg->buffer];
        PL_CHECK(arg->row < buffer->shape.rows);
        size_t left = (buffer->shape.rows - arg->row) * buffer->shape.cols;
        const int fetched = step->op == PL_OP_FETCH && i == PL_ARG_FETCH_TO;
        if (!(info->args[i].dtypes >> buffer->dtype & 1) ||
            pl_step_elements(step, i) > left ||
            fetched != (buffer->space == PL_SPACE_HOST))
            wrong = info->args[i].name;
    }
    if (wrong) {
        char text[128];
        snprintf(text, sizeof text, "the signature of %s (layer %d), its %s,",
                 info->name, step->layer, wrong);
        pl_check_failed(__FILE__, __LINE__, text);
    }
}

/* Notes the uses of one program, in the order of its steps. */
static void note_program(pl_graph *graph, int id)
{
    const pl_program *program = &graph->programs[id];
    PL_CHECK(program->loop_steps <= program->n_steps);
    for (size_t at = 0; at < program->n_steps; at++) {
        const pl_step *step = &program->steps[at];
        check_step(graph, step);
        for (int i = 0; i < pl_op_of(step->op)->n_args; i++) {
            const pl_arg *arg = &step->args[i];
            if (arg->buffer == PL_NO_BUFFER)
                continue;
            note_use(&graph->buffers[arg->buffer], program, id, at,
                     arg->access);
        }
    }
}

/* Scratch belongs to one step: no other step may use it. */
static void check_scratch(const pl_graph *graph, const pl_program *program)
{
    for (size_t at = 0; at < program->n_steps; at++) {
        const pl_step *step = &program->steps[at];
        for (int i = 0; i < pl_op_of(step->op)->n_args; i++) {
            const pl_arg *arg = &step->args[i];
            PL_CHECK(arg->access != PL_SCRATCH || arg->buffer == PL_NO_BUFFER ||
                     (graph->buffers[arg->buffer].first == at &&
                      graph->buffers[arg->buffer].last == at));
        }
    }
}

pl_status pl_graph_finish(pl_graph *graph, pl_error *err)
{
    if (graph->status)
        return pl_fail(err, graph->status, "%s", graph->error.text);
    for (int id = 0; id < PL_PROGRAM_COUNT; id++) {
        note_program(graph, id);
        check_scratch(graph, &graph->programs[id]);
    }
    for (size_t i = 0; i < graph->n_buffers; i++) {
        pl_buffer *buffer = &graph->buffers[i];
        if (pl_class_lives_throughout(buffer->class))
            continue;
        PL_CHECK(buffer->program >= 0); /* a buffer that nobody uses */
        close_lifetime(buffer, &graph->programs[buffer->program]);
    }
    return PL_OK;
}
