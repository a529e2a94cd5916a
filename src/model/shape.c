/* shape.c: reads the tables of shape.h. */
#include "model/shape.h"
#include "base/check.h"

#include <string.h>

static const pl_shape_info rows[PL_SHAPE_FIELDS] = {
#define SHAPE_ROW(field, id, kind, words, absent, hf, hf_words, hf_absent,     \
                  gpt2, nanogpt)                                               \
    [PL_SHAPE_##field] = { PL_KEY_##id,                                        \
                           PL_SHAPE_##kind,                                    \
                           words,                                              \
                           { [PL_IN_STATE] = { #id, words, absent },           \
                             [PL_IN_HF] = { hf, hf_words, hf_absent } },       \
                           gpt2,                                               \
                           nanogpt },
    PL_SHAPE_TABLE(SHAPE_ROW)
#undef SHAPE_ROW
};

const pl_shape_info *pl_shape_row(pl_shape_field field)
{
    PL_CHECK(field < PL_SHAPE_FIELDS);
    return &rows[field];
}

pl_shape_field pl_shape_find(pl_key key)
{
    int field = 0;
    while (field < PL_SHAPE_FIELDS && rows[field].key != key)
        field++;
    return (pl_shape_field)field;
}

double pl_shape_number(const pl_shape *shape, pl_shape_field field)
{
    switch (field) {
#define GET(field, ...)                                                        \
    case PL_SHAPE_##field:                                                     \
        return (double)shape->field;
        PL_SHAPE_TABLE(GET)
#undef GET
    case PL_SHAPE_FIELDS:
        break;
    }
    PL_CHECK(0 && "no such field");
    return 0;
}

size_t pl_shape_get(const pl_shape *shape, pl_shape_field field)
{
    PL_CHECK(pl_shape_row(field)->kind != PL_SHAPE_REAL);
    return (size_t)pl_shape_number(shape, field);
}

void pl_shape_set(pl_shape *shape, pl_shape_field field, double value)
{
    /* enums take what is converted to their own type */
#define AS_SIZE   size_t
#define AS_FLAG   unsigned char
#define AS_CHOICE unsigned char
#define AS_REAL   double
    switch (field) {
#define SET(field, id, kind, ...)                                              \
    case PL_SHAPE_##field:                                                     \
        shape->field = (AS_##kind)value;                                       \
        return;
        PL_SHAPE_TABLE(SET)
#undef SET
    case PL_SHAPE_FIELDS:
        break;
    }
#undef AS_REAL
#undef AS_CHOICE
#undef AS_FLAG
#undef AS_SIZE
    PL_CHECK(0 && "no such field");
}

pl_value pl_shape_value(const pl_shape *shape, pl_shape_field field)
{
    const pl_shape_info *row = pl_shape_row(field);
    const double number = pl_shape_number(shape, field);
    const size_t value = row->kind == PL_SHAPE_REAL ? 0 : (size_t)number;
    switch (row->kind) {
    case PL_SHAPE_REAL:
        return pl_value_float(number);
    case PL_SHAPE_FLAG:
        return pl_value_flag(strcmp(row->words[value], "True") == 0);
    case PL_SHAPE_CHOICE:
        return pl_value_text(row->words[value]);
    case PL_SHAPE_SIZE:
        break;
    }
    return pl_value_int((int64_t)value);
}

void pl_shape_assign(pl_shape *shape, pl_shape_field field,
                     const pl_value *value)
{
    const pl_shape_info *row = pl_shape_row(field);
    const char *word = value->kind == PL_VALUE_TEXT   ? value->text
                       : value->kind != PL_VALUE_FLAG ? ""
                       : value->flag                  ? "True"
                                                      : "False";
    if (row->kind == PL_SHAPE_SIZE) {
        PL_CHECK(value->kind == PL_VALUE_INT && value->whole > 0);
        pl_shape_set(shape, field, (double)value->whole);
        return;
    }
    if (row->kind == PL_SHAPE_REAL) {
        PL_CHECK(value->kind == PL_VALUE_FLOAT);
        pl_shape_set(shape, field, value->real);
        return;
    }
    for (size_t i = 0; i < PL_SHAPE_MAX_WORDS && row->words[i]; i++)
        if (strcmp(row->words[i], word) == 0) {
            pl_shape_set(shape, field, (double)i);
            return;
        }
    PL_CHECK(0 && "a value that the key doesn't take");
}

pl_shape_field pl_shape_not_gpt2(const pl_shape *shape)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        if (rows[i].gpt2 == PL_SHAPE_ANY)
            continue;
        if (rows[i].gpt2 == PL_SHAPE_DERIVED
                ? !pl_shape_is_derived(shape, field)
                : pl_shape_number(shape, field) != rows[i].gpt2)
            return field;
    }
    return shape->A == shape->C ? PL_SHAPE_FIELDS : PL_SHAPE_D;
}

/* What Hugging Face's Llama and Qwen3 compute, and nothing else. Any number
 * will do for a field that isn't here. */
static const struct {
    pl_shape_field field;
    double llama, qwen3;
} theirs[] = {
    { PL_SHAPE_norm, PL_NORM_RMS, PL_NORM_RMS },
    { PL_SHAPE_position, PL_POSITION_ROTARY, PL_POSITION_ROTARY },
    { PL_SHAPE_mlp, PL_MLP_SWIGLU, PL_MLP_SWIGLU },
    { PL_SHAPE_qk_norm, PL_QK_NORM_NONE, PL_QK_NORM_RMS },
    { PL_SHAPE_bias, PL_SHAPE_ANY, PL_BIAS_NONE },
    { PL_SHAPE_logit_softcap, 0.0, 0.0 },
};

pl_shape_field pl_shape_stranger(const pl_shape *shape)
{
    if (shape->family == PL_FAMILY_GPT2)
        return pl_shape_not_gpt2(shape);
    for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
        const double only = shape->family == PL_FAMILY_LLAMA ? theirs[i].llama
                                                             : theirs[i].qwen3;
        if (only != PL_SHAPE_ANY &&
            pl_shape_number(shape, theirs[i].field) != only)
            return theirs[i].field;
    }
    return PL_SHAPE_FIELDS;
}

size_t pl_shape_hidden(const pl_shape *shape)
{
    const size_t units = (shape->C + 12) / 24; /* 8/3 C / 64, rounded */
    if (shape->mlp != PL_MLP_SWIGLU)
        return 4 * shape->C;
    return units ? 64 * units : 64;
}

void pl_shape_complete(pl_shape *shape)
{
    shape->A = shape->H * shape->D;
    if (shape->KV == 0)
        shape->KV = shape->H;
    if (shape->F == 0)
        shape->F = pl_shape_hidden(shape);
}

const char *pl_shape_wrong(const pl_shape *shape)
{
    if (shape->KV == 0 || shape->H % shape->KV != 0)
        return "n_kv_head doesn't divide n_head";
    if (shape->position == PL_POSITION_ROTARY && shape->D % 2 != 0)
        return "heads of an odd width can't be rotated";
    return NULL;
}

int pl_shape_is_derived(const pl_shape *shape, pl_shape_field field)
{
    return field == PL_SHAPE_D    ? shape->A == shape->C
           : field == PL_SHAPE_KV ? shape->KV == shape->H
           : field == PL_SHAPE_F  ? shape->F == pl_shape_hidden(shape)
                                  : 0;
}

size_t pl_dim_size(const pl_shape *s, pl_dim dim)
{
    switch (dim) {
#define SIZE(id, size)                                                         \
    case PL_DIM_##id:                                                          \
        return size;
        PL_DIM_TABLE(SIZE)
#undef SIZE
    }
    PL_CHECK(0 && "no such dimension");
    return 0;
}
