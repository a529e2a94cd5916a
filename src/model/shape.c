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

size_t pl_shape_get(const pl_shape *shape, pl_shape_field field)
{
    switch (field) {
#define GET(field, ...)                                                        \
    case PL_SHAPE_##field:                                                     \
        return (size_t)shape->field;
        PL_SHAPE_TABLE(GET)
#undef GET
    case PL_SHAPE_FIELDS:
        break;
    }
    PL_CHECK(0 && "no such field");
    return 0;
}

void pl_shape_set(pl_shape *shape, pl_shape_field field, size_t value)
{
    /* enums take what is converted to their own type */
#define AS_SIZE   size_t
#define AS_FLAG   unsigned char
#define AS_CHOICE unsigned char
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
#undef AS_CHOICE
#undef AS_FLAG
#undef AS_SIZE
    PL_CHECK(0 && "no such field");
}

pl_value pl_shape_value(const pl_shape *shape, pl_shape_field field)
{
    const pl_shape_info *row = pl_shape_row(field);
    const size_t value = pl_shape_get(shape, field);
    switch (row->kind) {
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
        pl_shape_set(shape, field, (size_t)value->whole);
        return;
    }
    for (size_t i = 0; i < PL_SHAPE_MAX_WORDS && row->words[i]; i++)
        if (strcmp(row->words[i], word) == 0) {
            pl_shape_set(shape, field, i);
            return;
        }
    PL_CHECK(0 && "a value that the key doesn't take");
}

pl_shape_field pl_shape_not_gpt2(const pl_shape *shape)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        if (rows[i].gpt2 != PL_SHAPE_ANY &&
            pl_shape_get(shape, field) != (size_t)rows[i].gpt2)
            return field;
    }
    return shape->A == shape->C ? PL_SHAPE_FIELDS : PL_SHAPE_D;
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
