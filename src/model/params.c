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
    const char *name, *llama, *gguf;
    int llmc;
} kinds[PL_PARAM_KINDS] = {
#define PL_PARAM_ROW(id, place, rows, cols, init, role, group, bias, present,  \
                     hf, llama, gguf, llmc)                                    \
    [id] = { PLACE_##place,                                                    \
             PL_DIM_##rows,                                                    \
             PL_DIM_##cols,                                                    \
             PL_INIT_##init,                                                   \
             PL_ROLE_##role,                                                   \
             PL_PARAM_##group,                                                 \
             bias,                                                             \
             hf,                                                               \
             llama,                                                            \
             gguf,                                                             \
             llmc },
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
    const int kind = s.first + (int)(at % count),
              product = kinds[kind].role == PL_ROLE_PRODUCT,
              turned = product && shape->family != PL_FAMILY_GPT2;
    const size_t rows = pl_dim_size(shape, kinds[kind].rows),
                 cols = pl_dim_size(shape, kinds[kind].cols);
    return (pl_param){
        .kind = (pl_param_kind)kind,
        .layer = kinds[kind].place == PLACE_LAYER ? (int)(at / count) : -1,
        .family = shape->family,
        .rows = turned ? cols : rows,
        .cols = turned ? rows : cols,
        .in = product ? rows : 0,
        .out = product ? cols : 0,
        .layout = turned ? PL_LAYOUT_OUT_IN : PL_LAYOUT_IN_OUT,
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

/* A name in Hugging Face's files, `own` below what it is a part of. */
static pl_param_name hf_name(const pl_param *param, const char *own)
{
    const int llama = param->family != PL_FAMILY_GPT2;
    pl_param_name name;
    if (param->layer >= 0)
        snprintf(name.text, sizeof name.text, "%s.%d.%s",
                 llama ? "model.layers" : "transformer.h", param->layer, own);
    else
        snprintf(name.text, sizeof name.text, "%s%s",
                 kinds[param->kind].place == PLACE_HEAD ? ""
                 : llama                                ? "model."
                                                        : "transformer.",
                 own);
    return name;
}

static pl_param_name gguf_name(const pl_param *param, const char *own)
{
    pl_param_name name;
    if (param->layer >= 0)
        snprintf(name.text, sizeof name.text, "blk.%d.%s", param->layer, own);
    else
        snprintf(name.text, sizeof name.text, "%s", own);
    return name;
}

pl_param_name pl_param_name_of(const pl_param *param)
{
    return hf_name(param, param->family == PL_FAMILY_GPT2
                              ? kinds[param->kind].name
                              : kinds[param->kind].llama);
}

pl_param_name pl_param_gguf_name(const pl_param *param)
{
    return gguf_name(param, kinds[param->kind].gguf);
}

/* ---- parts ---- */

static const struct {
    pl_param_kind kind;
    pl_dim size;
    int rotated;
    const char *llama, *gguf;
} parts[] = {
#define PART_ROW(kind, size, rotated, llama, gguf)                             \
    { kind, PL_DIM_##size, rotated, llama, gguf },
    PL_PART_TABLE(PART_ROW)
#undef PART_ROW
};

enum { PARTS = sizeof parts / sizeof parts[0] };

/* The parts up to number `want`, of which the last is *last; how many there
 * are. */
static size_t count_parts(const pl_shape *shape, const pl_param *param,
                          size_t want, pl_param_part *last)
{
    size_t count = 0, first = 0;
    for (int row = 0; row < PARTS && count <= want; row++) {
        const size_t size = pl_dim_size(shape, parts[row].size);
        if (parts[row].kind != param->kind || size == 0)
            continue;
        *last = (pl_param_part){ .first = first, .count = size, .row = row };
        first += size;
        count++;
    }
    return count;
}

size_t pl_param_parts(const pl_shape *shape, const pl_param *param)
{
    pl_param_part last;
    const size_t count = count_parts(shape, param, PL_PARAM_MAX_PARTS, &last);
    return count ? count : 1;
}

pl_param_part pl_param_part_at(const pl_shape *shape, const pl_param *param,
                               size_t part)
{
    pl_param_part last = { .count = param->out ? param->out : param->rows,
                           .row = -1 };
    const size_t count = count_parts(shape, param, part, &last);
    PL_CHECK(part < (count ? count : 1));
    return last;
}

size_t pl_param_pieces(const pl_shape *shape, const pl_param *param)
{
    return param->family == PL_FAMILY_GPT2 ? 1 : pl_param_parts(shape, param);
}

pl_param_piece pl_param_piece_at(const pl_shape *shape, const pl_param *param,
                                 size_t piece)
{
    pl_param_piece out = { .name = pl_param_name_of(param),
                           .gguf = pl_param_gguf_name(param),
                           .rows = param->rows,
                           .cols = param->cols };
    PL_CHECK(piece < pl_param_pieces(shape, param));
    if (param->family == PL_FAMILY_GPT2)
        return out;
    const pl_param_part part = pl_param_part_at(shape, param, piece);
    if (part.row < 0)
        return out;
    out.name = hf_name(param, parts[part.row].llama);
    out.gguf = gguf_name(param, parts[part.row].gguf);
    out.first = part.first * param->cols;
    out.rows = part.count;
    out.rotated = parts[part.row].rotated &&
                  shape->position == PL_POSITION_ROTARY;
    return out;
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
    return pl_param_present(shape, param) ||
           (param->is_bias &&
            (other == PL_SHAPE_FIELDS || other == PL_SHAPE_D));
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
    return pl_param_count(shape) -
           (PL_HAS_PLACES(shape) ? shape->T * shape->C : 0);
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
