/* shape.c: reads the tables of shape.h. */
#include "model/shape.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

static const pl_shape_info rows[PL_SHAPE_FIELDS] = {
#define SHAPE_ROW(field, id, kind, words, absent, in_gpt2, in_llama, in_qwen3, \
                  gpt2, nanogpt)                                               \
    [PL_SHAPE_##field] = { PL_KEY_##id,                                        \
                           PL_SHAPE_##kind,                                    \
                           words,                                              \
                           { [PL_IN_STATE] = { #id, words, absent },           \
                             [PL_IN_GPT2] = in_gpt2,                           \
                             [PL_IN_LLAMA] = in_llama,                         \
                             [PL_IN_QWEN3] = in_qwen3 },                       \
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

/* Whether GPT-2's files can say the field's value; heads come last. */
static int is_gpt2(const pl_shape *shape, pl_shape_field field)
{
    const double only = rows[field].gpt2;
    return only == PL_SHAPE_ANY ||
           (only == PL_SHAPE_DERIVED ? pl_shape_is_derived(shape, field)
                                     : pl_shape_number(shape, field) == only);
}

pl_shape_field pl_shape_not_gpt2(const pl_shape *shape)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++)
        if (!is_gpt2(shape, (pl_shape_field)i))
            return (pl_shape_field)i;
    return shape->A == shape->C ? PL_SHAPE_FIELDS : PL_SHAPE_D;
}

/* Whether the field's value can be said in a file of another program. */
static int is_said(const pl_shape *shape, pl_shape_field field,
                   pl_shape_file file)
{
    const pl_shape_entry *entry = &rows[field].in[file];
    if (!entry->name)
        return pl_shape_number(shape, field) == entry->absent;
    if (!entry->words[0] || entry->name[0] == '\0')
        return 1;
    const char *word = entry->words[pl_shape_get(shape, field)];
    return word && word[0] != '\0';
}

size_t pl_shape_strangers(const pl_shape *shape,
                          pl_shape_field fields[PL_SHAPE_FIELDS])
{
    const pl_shape_file file = pl_shape_file_of(shape->family);
    const int gpt2 = shape->family == PL_FAMILY_GPT2;
    size_t count = 0;
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        const pl_shape_field field = (pl_shape_field)i;
        if (!(gpt2 ? is_gpt2(shape, field) : is_said(shape, field, file)))
            fields[count++] = field;
    }
    /* their Llama may have heads of any width, but not any number of them */
    if (gpt2 ? shape->A != shape->C
             : shape->family == PL_FAMILY_LLAMA && shape->C % shape->H != 0)
        fields[count++] = PL_SHAPE_D;
    return count;
}

pl_shape_field pl_shape_stranger(const pl_shape *shape)
{
    pl_shape_field fields[PL_SHAPE_FIELDS];
    return pl_shape_strangers(shape, fields) ? fields[0] : PL_SHAPE_FIELDS;
}

void pl_shape_strangers_text(const pl_shape *shape,
                             char text[PL_SHAPE_STRANGERS_BYTES])
{
    pl_shape_field fields[PL_SHAPE_FIELDS];
    const size_t count = pl_shape_strangers(shape, fields);
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char has[PL_VALUE_BRIEF_BYTES], heads[80] = "";
        const pl_value value = pl_shape_value(shape, fields[i]);
        pl_value_brief(&value, has);
        if (fields[i] == PL_SHAPE_D) /* it's a matter of all three */
            snprintf(heads, sizeof heads, " (n_embd %zu, n_head %zu)", shape->C,
                     shape->H);
        used += (size_t)snprintf(
            text + used, PL_SHAPE_STRANGERS_BYTES - used, "%s%s = %s%s",
            i == 0           ? ""
            : i + 1 == count ? " or "
                             : ", ",
            pl_key_row(rows[fields[i]].key)->name, has, heads);
        PL_CHECK(used < PL_SHAPE_STRANGERS_BYTES);
    }
}

const char *pl_shape_title(const pl_shape *shape)
{
    static const char *const titles[] = { [PL_FAMILY_GPT2] = "GPT-2",
                                          [PL_FAMILY_LLAMA] = "Llama",
                                          [PL_FAMILY_QWEN3] = "Qwen3" };
    return titles[shape->family];
}

pl_shape_file pl_shape_file_of(pl_family family)
{
    switch (family) {
    case PL_FAMILY_LLAMA:
        return PL_IN_LLAMA;
    case PL_FAMILY_QWEN3:
        return PL_IN_QWEN3;
    case PL_FAMILY_GPT2:
        break;
    }
    return PL_IN_GPT2;
}

void pl_shape_set_absent(pl_shape *shape, pl_shape_file file)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        const double absent = rows[i].in[file].absent;
        if (absent != PL_SHAPE_NEEDED && absent != PL_SHAPE_DERIVED)
            pl_shape_set(shape, (pl_shape_field)i, absent);
    }
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
