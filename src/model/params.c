/* params.c: reads the table of params.h. */
#include "model/params.h"
#include "base/check.h"
#include "base/rng.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef enum dim { DIM_1, DIM_V, DIM_T, DIM_C, DIM_A, DIM_3A, DIM_4C } dim;
typedef enum place { PLACE_ONCE, PLACE_LAYER, PLACE_HEAD } place;

static const struct {
    const char *name;
    place place;
    dim rows, cols;
    pl_init init;
} kinds[PL_PARAM_KINDS] = {
#define PL_PARAM_ROW(id, name, layer, rows, cols, init)                        \
    [id] = { name, PLACE_##layer, DIM_##rows, DIM_##cols, PL_INIT_##init },
    PL_PARAM_TABLE(PL_PARAM_ROW)
#undef PL_PARAM_ROW
};

enum { FIRST_LAYERED = PL_LN1_W, LAYERED = PL_MLP_B - PL_LN1_W + 1 };

static size_t size_of(const pl_shape *shape, dim d)
{
    switch (d) {
    case DIM_1:
        return 1;
    case DIM_V:
        return shape->V;
    case DIM_T:
        return shape->T;
    case DIM_C:
        return shape->C;
    case DIM_A:
        return shape->A;
    case DIM_3A:
        return 3 * shape->A;
    case DIM_4C:
        return 4 * shape->C;
    }
    PL_CHECK(0 && "no such dimension");
    return 0;
}

size_t pl_param_slots(const pl_shape *shape)
{
    return PL_PARAM_KINDS - LAYERED + LAYERED * shape->L -
           (shape->head == PL_HEAD_TIED ? 1 : 0);
}

size_t pl_param_slot(const pl_shape *shape, pl_param_kind kind, int layer)
{
    size_t k = (size_t)kind;
    if (kinds[kind].place == PLACE_LAYER) {
        PL_CHECK(layer >= 0 && (size_t)layer < shape->L);
        return k + (size_t)layer * LAYERED;
    }
    PL_CHECK(kind != PL_HEAD_W || shape->head == PL_HEAD_OWN);
    return k < FIRST_LAYERED ? k : k + (shape->L - 1) * LAYERED;
}

pl_param_kind pl_param_head(const pl_shape *shape)
{
    return shape->head == PL_HEAD_OWN ? PL_HEAD_W : PL_WTE;
}

pl_param pl_param_at(const pl_shape *shape, size_t slot)
{
    size_t after = FIRST_LAYERED + LAYERED * shape->L;
    pl_param param = { .layer = -1 };

    PL_CHECK(slot < pl_param_slots(shape));
    if (slot < FIRST_LAYERED) {
        param.kind = (pl_param_kind)slot;
    } else if (slot < after) {
        param.kind = (pl_param_kind)(FIRST_LAYERED +
                                     (slot - FIRST_LAYERED) % LAYERED);
        param.layer = (int)((slot - FIRST_LAYERED) / LAYERED);
    } else {
        param.kind = (pl_param_kind)(slot - after + FIRST_LAYERED + LAYERED);
    }
    const char *name = kinds[param.kind].name;
    param.rows = size_of(shape, kinds[param.kind].rows);
    param.cols = size_of(shape, kinds[param.kind].cols);
    param.init = kinds[param.kind].init;
    param.is_bias = strcmp(name + strlen(name) - 4, "bias") == 0;
    param.is_2d = kinds[param.kind].cols != DIM_1;
    return param;
}

pl_param_name pl_param_name_of(const pl_param *param)
{
    pl_param_name name;
    if (param->layer >= 0)
        snprintf(name.text, sizeof name.text, "transformer.h.%d.%s",
                 param->layer, kinds[param->kind].name);
    else
        snprintf(name.text, sizeof name.text, "%s%s",
                 kinds[param->kind].place == PLACE_HEAD ? "" : "transformer.",
                 kinds[param->kind].name);
    return name;
}

int pl_param_present(const pl_shape *shape, const pl_param *param)
{
    return !param->is_bias || shape->bias == PL_BIAS_ALL;
}

size_t pl_param_count(const pl_shape *shape)
{
    size_t count = 0;
    for (size_t slot = 0; slot < pl_param_slots(shape); slot++) {
        pl_param param = pl_param_at(shape, slot);
        if (pl_param_present(shape, &param))
            count += param.rows * param.cols;
    }
    return count;
}

size_t pl_param_count_nanogpt(const pl_shape *shape)
{
    return pl_param_count(shape) - shape->T * shape->C;
}

void pl_param_init(const pl_shape *shape, size_t slot, unsigned seed,
                   size_t first, size_t count, float *out)
{
    pl_param param = pl_param_at(shape, slot);
    double std = 0.02;

    if (param.init == PL_INIT_RESIDUAL)
        std /= sqrt(2.0 * (double)shape->L);
    for (size_t i = first; i < first + count;) {
        double normal[4] = { 0 };
        if (param.init == PL_INIT_NORMAL || param.init == PL_INIT_RESIDUAL) {
            uint32_t words[4];
            size_t group = i / 4;
            pl_rng_words(PL_RNG_INIT, seed, (uint32_t)group, (uint32_t)slot,
                         (uint32_t)(group >> 32), 0, words);
            pl_rng_normals(words, normal);
        }
        do {
            float value = param.init == PL_INIT_ONE
                              ? 1.0f
                              : (float)(normal[i % 4] * std);
            out[i++ - first] = value;
        } while (i % 4 != 0 && i < first + count);
    }
}
