/* fuzz_config.c: any bytes as a config file, which may include itself, and as
 * an argument. What was read must be in range, and be the same when it is
 * written and read again. */
#include "base/check.h"
#include "config/config.h"
#include "fuzz/fuzz.h"

#include <stdint.h>
#include <string.h>

enum { HEAP_BYTES = 1 << 22, TEXT_BYTES = 1 << 20 };

static void sound(const pl_config *cfg)
{
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row(key);
        pl_value value = pl_config_get(cfg, key);
        char origin[64];
        pl_config_origin_text(cfg, key, origin, sizeof origin);
        if (value.kind == PL_VALUE_INT)
            PL_CHECK((double)value.whole >= row->min &&
                     (double)value.whole <= row->max);
        if (value.kind == PL_VALUE_FLOAT)
            PL_CHECK(value.real >= row->min && value.real < row->max);
        if (row->choices)
            PL_CHECK(pl_key_choice(key, value.text, NULL) >= 0);
    }
}

/* Writes what was set and reads it again. */
static void read_again(const pl_config *cfg, pl_heap *heap)
{
    static char text[TEXT_BYTES], again[TEXT_BYTES];
    pl_config copy = pl_config_make_default();
    pl_error err;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        const char *name = pl_key_row(key)->name;
        size_t head = strlen(name) + 3;
        if (cfg->origin[key].source == PL_FROM_DEFAULT)
            continue;
        memcpy(text, name, head - 3);
        memcpy(text + head - 3, " = ", 3);
        size_t bytes = pl_config_value_text(cfg, key, text + head,
                                            sizeof text - head);
        if (head + bytes > PL_CONFIG_MAX_BYTES)
            continue;
        pl_status status = pl_config_parse(&copy, text, head + bytes, "again",
                                           heap, &err);
        if (status == PL_E_MEMORY)
            return;
        PL_CHECK(status == PL_OK);
        /* An expression of other keys may have a value now, or another. */
        if (pl_key_row(key)->type == PL_TYPE_IGNORED)
            continue;
        PL_CHECK(pl_config_value_text(&copy, key, again, sizeof again) ==
                 bytes);
        PL_CHECK(memcmp(text + head, again, bytes) == 0);
    }
}

/* ---- the world around a file ---- */

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

/* Names that begin with "s" are the input once more, others a small file. */
static pl_status read_other(void *context, const char *path, char **text,
                            size_t *bytes, pl_heap *heap, pl_error *err)
{
    static const char base[] = "depth = 3\nn_layer = depth\n";
    const input *in = context;
    const int again = path[0] == 's';
    *text = NULL;
    if (strncmp(path, "gone", 4) == 0)
        return PL_OK;
    *bytes = again ? in->size : sizeof base - 1;
    pl_status status = pl_heap_take(heap, text, *bytes + 1, 1, err);
    if (status == PL_OK)
        memcpy(*text, again ? (const char *)in->data : base, *bytes);
    return status;
}

static const char *variable(void *context, const char *name)
{
    (void)context;
    return name[0] == 'A' ? "3" : name[0] == 'B' ? "\xff" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char argument[TEXT_BYTES];
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_config cfg = pl_config_make_default();
    pl_error err = { .status = PL_OK };
    input in = { data, size };
    const pl_config_host host = { read_other, variable, &in, NULL };
    pl_status status = pl_config_read(&cfg, (const char *)data, size,
                                      "config.py", &host, &heap, &err);
    PL_CHECK(status == PL_OK || (err.status == status && err.text[0]));
    PL_CHECK(memchr(err.text, '\0', sizeof err.text) != NULL);
    sound(&cfg);
    status = pl_config_check(&cfg, &err);
    PL_CHECK(status == PL_OK || status == PL_E_CONFIG);
    read_again(&cfg, &heap);
    if (size < sizeof argument) {
        memcpy(argument, data, size);
        argument[size] = '\0';
        status = pl_config_override(&cfg, argument, PL_FOR_ALL, &heap, &err);
        PL_CHECK(status == PL_OK || err.status == status);
        sound(&cfg);
    }
    pl_heap_close(&heap);
    return 0;
}
