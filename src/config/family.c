/* family.c: reads the table of family.h. */
#include "config/family.h"
#include "base/check.h"

static const struct {
    pl_key key;
    pl_value llama, qwen3;
} rows[] = {
#define WORD(word)                                                             \
    {                                                                          \
        .kind = PL_VALUE_TEXT, .text = (word)                                  \
    }
#define REAL(number)                                                           \
    {                                                                          \
        .kind = PL_VALUE_FLOAT, .real = (number)                               \
    }
#define FLAG(value)                                                            \
    {                                                                          \
        .kind = PL_VALUE_FLAG, .flag = (value)                                 \
    }
#define FAMILY_ROW(id, of_llama, of_qwen3)                                     \
    { .key = PL_KEY_##id, .llama = of_llama, .qwen3 = of_qwen3 },
    PL_FAMILY_TABLE(FAMILY_ROW)
#undef FAMILY_ROW
#undef FLAG
#undef REAL
#undef WORD
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static size_t row_of(pl_key key)
{
    size_t row = 0;
    while (row < ROWS && rows[row].key != key)
        row++;
    return row;
}

bool pl_family_has(pl_key key)
{
    return row_of(key) < ROWS;
}

const pl_value *pl_family_default(pl_key key,
                                  pl_architecture_choice architecture)
{
    const size_t row = row_of(key);
    PL_CHECK(row < ROWS);
    switch (architecture) {
    case PL_ARCHITECTURE_LLAMA:
        return &rows[row].llama;
    case PL_ARCHITECTURE_QWEN3:
        return &rows[row].qwen3;
    case PL_ARCHITECTURE_GPT2:
        break;
    }
    return NULL;
}
