#include "golden/rig.h"
#include "base/cpu.h"
#include "device/cpu.h"
#include "model/rotary.h"
#include "support/on_device.h"
#include "support/silly_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

/* A number that only the fixtures of other families than GPT-2 have. */
static double optional(fixture *f, const char *key, double unsaid)
{
    char name[64];
    snprintf(name, sizeof name, "config.%s", key);
    return pl_safetensors_find(&f->file, name) ? fixture_number(f, name)
                                               : unsaid;
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
    s.norm = pl_safetensors_find(&f->file, "config.rmsnorm") ? PL_NORM_RMS
                                                             : PL_NORM_LAYER;
    s.norm_eps = optional(f, "norm_eps", 1e-5);
    s.rope_theta = optional(f, "rope_theta", 10000.0);
    s.logit_softcap = optional(f, "logit_softcap", 0.0);
    s.family = (unsigned)optional(f, "family", PL_FAMILY_GPT2);
    s.position = (unsigned)optional(f, "rope", PL_POSITION_TABLE);
    s.mlp = (unsigned)optional(f, "mlp", PL_MLP_GELU);
    s.qk_norm = (unsigned)optional(f, "qk_norm", PL_QK_NORM_NONE);
    s.KV = (size_t)optional(f, "n_kv_head", 0);
    s.F = (size_t)optional(f, "mlp_hidden", 0);
    pl_shape_complete(&s);
    s.head = pl_safetensors_find(&f->file, "lm_head.weight") ? PL_HEAD_OWN
                                                             : PL_HEAD_TIED;
    return s;
}

void rig_tensor(fixture *f, const pl_shape *shape, size_t slot,
                const char *prefix, float *values)
{
    const pl_param param = pl_param_at(shape, slot);
    for (size_t k = 0; k < pl_param_pieces(shape, &param); k++) {
        const pl_param_piece piece = pl_param_piece_at(shape, &param, k);
        const size_t count = piece.rows * piece.cols;
        char name[128];
        snprintf(name, sizeof name, "%s%s", prefix, piece.name.text);
        memcpy(values + piece.first, fixture_floats(f, name, count),
               count * sizeof *values);
    }
}

static void load_weights(rig *r, fixture *f)
{
    for (size_t i = 0; i < pl_param_slots(&r->gpt.shape); i++) {
        pl_param param = pl_param_at(&r->gpt.shape, i);
        size_t count = param.rows * param.cols;
        if (!pl_param_present(&r->gpt.shape, &param))
            continue;
        float *values = malloc(count * sizeof *values);
        assert_non_null(values);
        rig_tensor(f, &r->gpt.shape, i, "", values);
        on_device_write(r->device, r->gpt.weights[i], 0, values,
                        count * sizeof *values);
        free(values);
    }
    if (r->gpt.rotary == PL_NO_BUFFER)
        return;
    const size_t count = r->gpt.shape.T * r->gpt.shape.D;
    float *table = malloc(count * sizeof *table);
    assert_non_null(table);
    pl_rotary_fill(&r->gpt.shape, 0, count, table);
    on_device_write(r->device, r->gpt.rotary, 0, table, count * sizeof *table);
    free(table);
}

/* The processor, or the tests' own device, with these kernels. */
static pl_device_info device_of(const pl_kernels *kernels, size_t threads)
{
    int variant = PL_CPU_REF;
    for (int isa = 0; isa < PL_ISA_COUNT; isa++)
        if (strcmp(kernels->name, pl_cpu_isa_name((pl_isa)isa)) == 0)
            variant = isa;
    return silly_device_if_asked() ? silly_device_info(variant, threads)
                                   : pl_cpu_info(variant, threads);
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
    const pl_device_info device = device_of(
        kernels, way->threads ? (size_t)way->threads : 1);
    pl_gpt_layout layout = {
        .purpose = PL_PURPOSE_TRAINING,
        .batch = r->batch,
        .batches = 1,
        .groups = 1,
        .micro = way->micro ? way->micro : r->batch,
        .train_T = r->T,
        .eval_T = way->eval_T ? way->eval_T : r->T,
        .eval_micro = r->batch,
        .chunk_rows = way->chunk_rows ? way->chunk_rows : r->batch * r->T,
        .mlp_rows = way->mlp_rows,
        .prefill = shape.T,
        .slice_bytes = SLICE_BYTES,
        .device = device,
        .dropout = fixture_number(f, "dropout"),
        .dtype = PL_F32,
        .levels = r->levels,
        .optimizer = pl_safetensors_find(&f->file, "config.muon")
                         ? PL_OPTIMIZER_MUON
                         : PL_OPTIMIZER_ADAMW,
        .muon_scale = way->muon_scale,
    };
    require(pl_gpt_make(&r->gpt, &shape, &layout, &r->heap, &err));
    require(pl_device_open(&r->device, &device, &r->gpt.graph,
                           &r->gpt.placement, &r->heap, &err));
    load_weights(r, f);
    r->controls = (pl_controls){
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
    require(pl_device_set(r->device, &r->controls, &err));
    require(pl_device_run(r->device, program, part, &err));
}

void rig_train(rig *r, const int32_t *tokens, double *sums)
{
    const pl_gpt *gpt = &r->gpt;
    on_device_write(r->device, gpt->train_tokens, 0, tokens,
                    r->batch * (r->T + 1) * sizeof *tokens);
    for (size_t s = 0; s < r->batch; s += gpt->layout.micro) {
        r->controls.micro_first = (uint32_t)s;
        run(r, PL_TRAIN, PL_PART_LOOP);
    }
    r->controls.micro_first = 0;
    run(r, PL_TRAIN, PL_PART_REST);
    on_device_read(r->device, gpt->train_sums, 0, sums,
                   r->batch * sizeof *sums);
}

void rig_evaluate(rig *r, const int32_t *tokens, double *sums)
{
    const pl_gpt *gpt = &r->gpt;
    size_t micro = gpt->layout.eval_micro, T = gpt->layout.eval_T;
    for (size_t first = 0; first < r->batch; first += micro) {
        size_t count = r->batch - first < micro ? r->batch - first : micro;
        const size_t row = (T + 1) * sizeof *tokens;
        require(pl_device_clear(r->device, gpt->eval_tokens, &err));
        for (size_t s = 0; s < count; s++)
            on_device_write(r->device, gpt->eval_tokens, s * row,
                            tokens + (first + s) * (r->T + 1), row);
        run(r, PL_EVAL, PL_PART_LOOP);
        on_device_read(r->device, gpt->eval_sums, 0, sums + first,
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
        on_device_write(r->device, gpt->sample_tokens, 0, tokens + position,
                        count * sizeof *tokens);
        r->controls.position = (uint32_t)position;
        r->controls.rows = (uint32_t)count;
        run(r, PL_SAMPLE, PL_PART_LOOP);
        position += count;
    }
    on_device_read(r->device, gpt->sample_logits, 0, logits,
                   gpt->shape.V * sizeof *logits);
}

void rig_update(rig *r)
{
    run(r, PL_UPDATE_WEIGHTS, PL_PART_LOOP);
    run(r, PL_UPDATE_WEIGHTS, PL_PART_REST);
    on_device_read(r->device, r->gpt.outcome, 0, &r->outcome,
                   sizeof r->outcome);
}

float *rig_floats(rig *r, pl_buffer_id buffer)
{
    return on_device_copy(r->device, &r->gpt.graph, buffer);
}

size_t rig_sets(pl_kernels sets[RIG_SETS])
{
    size_t count = 0;
    sets[count++] = pl_kernels_ref();
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        sets[count++] = pl_kernels_for((pl_isa)isa);
    return count;
}
