#include "golden/rig.h"
#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEAP_BYTES = 64 * 1024 * 1024, SLICE_BYTES = 4096 };

static pl_error err;

static void require(pl_status status)
{
    if (status)
        fail_msg("%s", err.text);
}

static pl_shape shape_of(fixture *f)
{
    pl_shape s = {
        .L = fixture_config(f, "n_layer"),
        .H = fixture_config(f, "n_head"),
        .D = fixture_config(f, "head_dim"),
        .C = fixture_config(f, "n_embd"),
        .V = fixture_config(f, "vocab_size"),
        .T = fixture_config(f, "block_size"),
        .bias = fixture_config(f, "bias") ? PL_BIAS_ALL : PL_BIAS_NONE,
        .activation = fixture_config(f, "gelu_tanh") ? PL_ACT_GELU_TANH
                                                     : PL_ACT_GELU,
    };
    s.A = s.H * s.D;
    s.norm = pl_safetensors_find(&f->file, "config.rmsnorm") ? PL_NORM_RMS
                                                             : PL_NORM_LAYER;
    s.head = pl_safetensors_find(&f->file, "lm_head.weight") ? PL_HEAD_OWN
                                                             : PL_HEAD_TIED;
    return s;
}

static void load_weights(rig *r, fixture *f)
{
    for (size_t i = 0; i < pl_param_slots(&r->gpt.shape); i++) {
        pl_param param = pl_param_at(&r->gpt.shape, i);
        size_t count = param.rows * param.cols;
        if (pl_param_present(&r->gpt.shape, &param))
            pl_device_write(
                r->device, r->gpt.weights[i], 0,
                fixture_floats(f, pl_param_name_of(&param).text, count),
                count * sizeof(float));
    }
}

void rig_open(rig *r, fixture *f, const pl_kernels *kernels, const rig_way *way)
{
    pl_shape shape = shape_of(f);
    *r = (rig){ .from = f,
                .set = kernels->name,
                .T = fixture_config(f, "T"),
                .batch = fixture_config(f, "batch"),
                .heap = pl_heap_make(HEAP_BYTES) };
    assert_true(shape.L <= sizeof r->levels);
    for (size_t l = 0; l < shape.L; l++)
        r->levels[l] = way->levels[l % 2];
    int threads = way->threads ? way->threads : 1;
    pl_gpt_layout layout = {
        .purpose = PL_PURPOSE_TRAINING,
        .batch = r->batch,
        .micro = way->micro ? way->micro : r->batch,
        .train_T = r->T,
        .eval_T = way->eval_T ? way->eval_T : r->T,
        .eval_micro = r->batch,
        .chunk_rows = way->chunk_rows ? way->chunk_rows : r->batch * r->T,
        .mlp_rows = way->mlp_rows,
        .prefill = shape.T,
        .slice_bytes = SLICE_BYTES,
        .threads = (size_t)threads,
        .dropout = fixture_number(f, "dropout"),
        .dtype = PL_F32,
        .levels = r->levels,
    };
    require(pl_gpt_make(&r->gpt, &shape, &layout, &r->heap, &err));
    require(pl_device_open_cpu(&r->device, &r->gpt.graph, &r->gpt.placement,
                               kernels, threads, &r->heap, &err));
    assert_int_equal(pl_device_used_bytes(r->device),
                     r->gpt.placement.arena_bytes);
    load_weights(r, f);
    r->scalars = (pl_scalars){
        .loss_scale = 1.0,
        .dlogit_scale = (float)(1.0 / (double)(r->batch * r->T)),
        .seed = (uint32_t)fixture_config(f, "seed"),
        .step = (uint32_t)fixture_config(f, "step"),
        .batch_first = (uint32_t)fixture_config(f, "first_sequence"),
    };
}

void rig_close(rig *r)
{
    pl_device_close(r->device);
    pl_heap_close(&r->heap);
}

static void run(rig *r, pl_program_id program, pl_part part)
{
    pl_device_write(r->device, r->gpt.scalars, 0, &r->scalars,
                    sizeof r->scalars);
    pl_device_run(r->device, program, part);
}

void rig_train(rig *r, const int32_t *tokens, double *sums)
{
    const pl_gpt *gpt = &r->gpt;
    memcpy(pl_device_host(r->device, gpt->train_tokens), tokens,
           r->batch * (r->T + 1) * sizeof *tokens);
    for (size_t s = 0; s < r->batch; s += gpt->layout.micro) {
        r->scalars.micro_first = (uint32_t)s;
        run(r, PL_TRAIN, PL_PART_LOOP);
    }
    r->scalars.micro_first = 0;
    run(r, PL_TRAIN, PL_PART_REST);
    pl_device_read(r->device, gpt->train_sums, 0, sums,
                   r->batch * sizeof *sums);
}

void rig_evaluate(rig *r, const int32_t *tokens, double *sums)
{
    const pl_gpt *gpt = &r->gpt;
    size_t micro = gpt->layout.eval_micro, T = gpt->layout.eval_T;
    for (size_t first = 0; first < r->batch; first += micro) {
        size_t count = r->batch - first < micro ? r->batch - first : micro;
        int32_t *rows = pl_device_host(r->device, gpt->eval_tokens);
        memset(rows, 0, micro * (T + 1) * sizeof *rows);
        for (size_t s = 0; s < count; s++)
            memcpy(rows + s * (T + 1), tokens + (first + s) * (r->T + 1),
                   (T + 1) * sizeof *rows);
        run(r, PL_EVAL, PL_PART_LOOP);
        pl_device_read(r->device, gpt->eval_sums, 0, sums + first,
                       count * sizeof *sums);
    }
}

void rig_decode(rig *r, const int32_t *tokens, size_t position, size_t rows,
                float *logits)
{
    const pl_gpt *gpt = &r->gpt;
    size_t end = position + rows, prefill = gpt->layout.prefill;
    while (position < end) {
        size_t count = end - position < prefill ? end - position : prefill;
        memcpy(pl_device_host(r->device, gpt->sample_tokens), tokens + position,
               count * sizeof *tokens);
        r->scalars.position = (uint32_t)position;
        r->scalars.rows = (uint32_t)count;
        run(r, PL_SAMPLE, PL_PART_LOOP);
        position += count;
    }
    pl_device_read(r->device, gpt->sample_logits, 0, logits,
                   gpt->shape.V * sizeof *logits);
}

void rig_update(rig *r)
{
    run(r, PL_UPDATE_WEIGHTS, PL_PART_LOOP);
    pl_device_run(r->device, PL_UPDATE_WEIGHTS, PL_PART_REST);
    pl_device_read(r->device, r->gpt.scalars, 0, &r->scalars,
                   sizeof r->scalars);
}

float *rig_floats(rig *r, pl_buffer_id buffer)
{
    size_t bytes = r->gpt.graph.buffers[buffer].bytes;
    float *copy = malloc(bytes);
    assert_non_null(copy);
    pl_device_read(r->device, buffer, 0, copy, bytes);
    return copy;
}

size_t rig_sets(pl_kernels sets[RIG_SETS])
{
    size_t count = 0;
    sets[count++] = pl_kernels_ref();
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        sets[count++] = pl_kernels_for((pl_isa)isa);
    return count;
}
