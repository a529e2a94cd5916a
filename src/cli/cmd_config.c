/* cmd_config.c: the final values of a config, and where each came from. */
#include "base/memory.h"
#include "cli/command.h"
#include "cli/dial.h"
#include "cli/term.h"
#include "config/special.h"
#include "device/cards.h"
#include "format/jsontext.h"

#include <inttypes.h>
#include <stdio.h>

enum { FLAG_MARKDOWN = 1, FLAG_JSON = 2, TEXT_BYTES = 4096 };

static void print_piece(void *context, const char *text, size_t bytes)
{
    (void)context;
    fwrite(text, 1, bytes, stdout);
}

/* Values that only the commands that use them understand. */
static pl_status check(const pl_config *config, pl_error *err)
{
    size_t bytes;
    const pl_card *card;
    pl_status status = PL_OK;
    if (pl_config_states_memory(config))
        status = pl_memory_parse(config->memory, &bytes, err);
    if (!status && config->gpu[0] != '\0')
        status = pl_card_find(config->gpu, &card, err);
    return status;
}

/* ---- for people ---- */

static void print_config(const pl_config *config)
{
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[TEXT_BYTES], origin[TEXT_BYTES];
        int is_default = config->origin[key].source == PL_FROM_DEFAULT;
        pl_config_value_text(config, (pl_key)key, value, sizeof value);
        pl_config_origin_text(config, (pl_key)key, origin, sizeof origin);
        printf("%s", is_default ? pl_term_out(PL_TERM_DIM) : "");
        pl_term_print("%-27s = %-24s # %s%s", pl_key_row((pl_key)key)->name,
                      value, origin,
                      pl_key_row((pl_key)key)->type == PL_TYPE_IGNORED
                          ? "; without effect"
                          : "");
        printf("%s\n", is_default ? pl_term_out_end() : "");
    }
}

/* ---- for scripts ---- */

static void put_whole(pl_json_text *j, const char *key, int64_t whole)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRId64, whole);
    pl_json_text_raw(j, key, digits);
}

static void put_value(pl_json_text *j, const char *key, const pl_value *value)
{
    switch (value->kind) {
    case PL_VALUE_NONE:
    case PL_VALUE_UNKNOWN: /* of a key without effect */
        pl_json_text_raw(j, key, "null");
        break;
    case PL_VALUE_FLAG:
        pl_json_text_raw(j, key, value->flag ? "true" : "false");
        break;
    case PL_VALUE_INT:
        put_whole(j, key, value->whole);
        break;
    case PL_VALUE_FLOAT:
        pl_json_text_real(j, key, value->real);
        break;
    case PL_VALUE_TEXT:
        pl_json_text_string(j, key, value->text);
        break;
    case PL_VALUE_LIST:
        pl_json_text_open(j, key, '[');
        for (size_t i = 0; i < value->count; i++)
            put_value(j, NULL, &value->items[i]);
        pl_json_text_close(j, ']');
        break;
    }
}

static pl_status print_json(const pl_config *config, pl_heap *heap,
                            pl_error *err)
{
    enum { JSON_BYTES = 16 * 1024 * 1024 };
    char *memory;
    pl_status status = pl_heap_take(heap, &memory, JSON_BYTES, 1, err);
    if (status)
        return status;
    pl_json_text j = pl_json_text_begin(memory, JSON_BYTES);
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        const pl_key_info *row = pl_key_row((pl_key)key);
        pl_value value = pl_config_get(config, (pl_key)key);
        char origin[TEXT_BYTES];
        pl_config_origin_text(config, (pl_key)key, origin, sizeof origin);
        pl_json_text_open(&j, row->name, '{');
        put_value(&j, "value", &value);
        pl_json_text_string(&j, "from", origin);
        pl_json_text_raw(&j, "has_effect",
                         row->type == PL_TYPE_IGNORED ? "false" : "true");
        pl_json_text_string(&j, "in_a_run", pl_effect_name(row->effect));
        pl_json_text_close(&j, '}');
    }
    status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}

/* What depth and max_minutes would mean for a run that begins here. */
static pl_status turn_dials(pl_config *config, pl_heap *heap, pl_error *err)
{
    pl_machine machine;
    pl_status status = pl_cli_dial(config, heap, err);
    if (status || !(config->max_minutes > 0.0))
        return status;
    status = pl_cli_machine(&machine, PL_MACHINE_PLAN, config, heap, err);
    return status ? status : pl_cli_minutes(config, &machine, NULL, heap, err);
}

static pl_status run_config(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_status status = pl_cli_no_paths(args, "A config file ends in .py", err);
    if (!status)
        status = check(&args->config, err);
    if (!status)
        status = turn_dials(&args->config, heap, err);
    if (status)
        return status;
    if (args->flags & FLAG_MARKDOWN)
        pl_config_markdown(print_piece, NULL);
    else if (args->flags & FLAG_JSON)
        status = print_json(&args->config, heap, err);
    else
        print_config(&args->config);
    return status;
}

static const char *const flags[] = { "--markdown", "--json", NULL };

const pl_command pl_command_config = {
    .name = "config",
    .arguments = "[CONFIG.py ...] [--key=value ...] [--json]",
    .summary = "the final value of every key, and where it came from",
    .text = "Prints a config file that gives exactly these settings; the "
            "comment behind each\nsays whether it is the default, a line of a "
            "file or the command line.\n\n"
            "  --json      the same for scripts: each key's value and origin\n"
            "  --markdown  the page of all keys, docs/config.md\n",
    .keys = PL_FOR_ALL,
    .model = PL_MODEL_SHOWN,
    .reads_configs = 1,
    .flags = flags,
    .run = run_config,
};
