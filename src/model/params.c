/* params.c: reads the table of params.h. */
#include "model/params.h"
#include "base/check.h"
#include "base/rng.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

typedef enum place { PLACE_ONCE, PLACE_LAYER, PLACE_HEAD } place;

static const struct {
    place place;
    pl_dim rows, cols;
    pl_init init;
    pl_param_role role;
    pl_param_group group;
    int bias;
    const char *name, *gguf;
    int llmc;
} kinds[PL_PARAM_KINDS] = {
#define PL_PARAM_ROW(id, place, rows, cols, init, role, group, bias, present,  \
                     hf, gguf, llmc)                                           \
    [id] = { PLACE_##place,  PL_DIM_##rows,                                    \
             PL_DIM_##cols,  PL_INIT_##init,                                   \
             PL_ROLE_##role, PL_PARAM_##group,                                 \
             bias,           hf,                                               \
             gguf,           llmc },
    PL_PARAM_TABLE(PL_PARAM_ROW)
#undef PL_PARAM_ROW
};

/* Rows that stand together and have one place. */
typedef struct section {
    int first, count;
    size_t slot, times; /* its first slot; how often it comes */
} section;

/* The section that begins at row `first`, at slot `slot`. */
static section section_at(const pl_shape *shape, int first, size_t slot)
{
    section s = { .first = first, .count = 0, .slot = slot, .times = 1 };
    while (first + s.count < PL_PARAM_KINDS &&
           kinds[first + s.count].place == kinds[first].place)
        s.count++;
    if (kinds[first].place == PLACE_LAYER)
        s.times = shape->L;
    if (kinds[first].place == PLACE_HEAD && shape->head == PL_HEAD_TIED)
        s.times = 0;
    return s;
}

static size_t slot_after(const section *s)
{
    return s->slot + s->times * (size_t)s->count;
}

/* All slots, if no section has what is looked for: a kind, or a slot. */
static section find_section(const pl_shape *shape, int kind, size_t slot)
{
    section s = section_at(shape, 0, 0);
    while (s.first + s.count <= kind && slot_after(&s) <= slot &&
           s.first + s.count < PL_PARAM_KINDS)
        s = section_at(shape, s.first + s.count, slot_after(&s));
    return s;
}

size_t pl_param_slots(const pl_shape *shape)
{
    section last = find_section(shape, PL_PARAM_KINDS, SIZE_MAX);
    return slot_after(&last);
}

size_t pl_param_slot(const pl_shape *shape, pl_param_kind kind, int layer)
{
    section s = find_section(shape, (int)kind, SIZE_MAX);
    PL_CHECK(kind < PL_PARAM_KINDS && s.times > 0);
    if (kinds[kind].place != PLACE_LAYER)
        layer = 0;
    PL_CHECK(layer >= 0 && (size_t)layer < s.times);
    return s.slot + (size_t)layer * (size_t)s.count +
           (size_t)((int)kind - s.first);
}

pl_param_kind pl_param_head(const pl_shape *shape)
{
    return shape->head == PL_HEAD_OWN ? PL_HEAD_W : PL_WTE;
}

pl_param pl_param_at(const pl_shape *shape, size_t slot)
{
    PL_CHECK(slot < pl_param_slots(shape));
    const section s = find_section(shape, PL_PARAM_KINDS, slot);
    const size_t at = slot - s.slot, count = (size_t)s.count;
    const int kind = s.first + (int)(at % count);
    return (pl_param){
        .kind = (pl_param_kind)kind,
        .layer = kinds[kind].place == PLACE_LAYER ? (int)(at / count) : -1,
        .rows = pl_dim_size(shape, kinds[kind].rows),
        .cols = pl_dim_size(shape, kinds[kind].cols),
        .init = kinds[kind].init,
        .role = kinds[kind].role,
        .group = kinds[kind].group,
        .is_bias = kinds[kind].role == PL_ROLE_BIAS,
        .is_2d = kinds[kind].cols != PL_DIM_1,
    };
}

int pl_param_is_factor(const pl_shape *shape, const pl_param *param)
{
    return param->role == PL_ROLE_PRODUCT ||
           param->kind == pl_param_head(shape);
}

pl_param_kind pl_param_bias(pl_param_kind kind)
{
    return (pl_param_kind)kinds[kind].bias;
}

int pl_param_is_layered(pl_param_kind kind)
{
    return kinds[kind].place == PLACE_LAYER;
}

int pl_param_llmc(pl_param_kind kind)
{
    return kinds[kind].llmc;
}

pl_param_kind pl_param_of_llmc(int at)
{
    int kind = 0;
    while (kind < PL_PARAM_KINDS && kinds[kind].llmc != at)
        kind++;
    return (pl_param_kind)kind;
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

pl_param_name pl_param_gguf_name(const pl_param *param)
{
    pl_param_name name;
    if (param->layer >= 0)
        snprintf(name.text, sizeof name.text, "blk.%d.%s", param->layer,
                 kinds[param->kind].gguf);
    else
        snprintf(name.text, sizeof name.text, "%s", kinds[param->kind].gguf);
    return name;
}

int pl_param_present(const pl_shape *s, const pl_param *param)
{
    switch (param->kind) {
#define PRESENT(id, place, rows, cols, init, role, group, bias, present, ...)  \
    case id:                                                                   \
        return present;
        PL_PARAM_TABLE(PRESENT)
#undef PRESENT
    case PL_PARAM_KINDS:
        break;
    }
    PL_CHECK(0 && "no such kind");
    return 0;
}

int pl_param_is_written(const pl_shape *shape, const pl_param *param)
{
    const pl_shape_field other = pl_shape_not_gpt2(shape);
    return pl_param_present(shape, param) || other == PL_SHAPE_FIELDS ||
           other == PL_SHAPE_D;
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
