/* dial.c: see dial.h. */
#include "cli/dial.h"
#include "advise/horizon.h"
#include "cli/term.h"
#include "config/special.h"
#include "model/dial.h"
#include "store/checkpoint.h"

#include <stdio.h>
#include <string.h>

static int is_asked_for(const pl_config *config)
{
    return config->depth != PL_NONE || config->max_minutes > 0.0;
}

pl_status pl_cli_dial_keep(pl_config *config, const char *folder, pl_heap *heap,
                           pl_error *err)
{
    pl_config *kept;
    if (!is_asked_for(config))
        return PL_OK;
    pl_status status = pl_heap_take(heap, &kept, 1, sizeof *kept, err);
    if (!status)
        status = pl_checkpoint_read_config(kept, folder, heap, err);
    return status ? status : pl_dial_keep(config, kept, folder, err);
}

/* A checkpoint that can't be found or read is refused by those who need it. */
static pl_status keep_newest(pl_config *config, pl_heap *heap, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    if (pl_checkpoint_find(folder, config->out_dir, PL_WANT_NEWEST,
                           PL_SCOPE_SETTINGS, NULL, heap, NULL))
        return PL_OK;
    return pl_cli_dial_keep(config, folder, heap, err);
}

static pl_status turn(pl_config *config, pl_heap *heap, pl_error *err)
{
    size_t vocab_size;
    const char *from;
    pl_status status = pl_dial_set_model(config, err);
    if (!status)
        status = pl_cli_vocabulary(config, heap, &vocab_size, NULL, &from, err);
    if (!status)
        status = pl_dial_set_run(config, vocab_size, 0.0, PL_FROM_DEPTH, err);
    return status;
}

pl_status pl_cli_dial(pl_config *config, pl_heap *heap, pl_error *err)
{
    const pl_beginning beginning = pl_config_beginning(config);
    pl_status status = PL_OK;
    if (!is_asked_for(config))
        return PL_OK;
    if (beginning == PL_BEGIN_MODEL && config->depth != PL_NONE)
        return pl_fail(err, PL_E_CONFIG,
                       "depth = %lld describes a new model, and init_from = "
                       "'%s' has one already: leave one of them out. "
                       "max_minutes works with both",
                       (long long)config->depth, config->init_from);
    if (beginning == PL_BEGIN_RESUME)
        status = keep_newest(config, heap, err);
    else if (config->depth != PL_NONE)
        status = turn(config, heap, err);
    return status ? status : pl_config_check(config, err);
}

/* ---- minutes ---- */

/* Whether argument `at` is a setting of max_minutes; *words is how many it
 * takes. */
static int is_minutes(const pl_cli_args *args, size_t at, size_t *words)
{
    static const char name[] = "--max_minutes";
    const char *word = args->words[at];
    *words = 1;
    if (strncmp(word, name, sizeof name - 1) != 0)
        return 0;
    if (word[sizeof name - 1] == '\0' && at + 1 < args->word_count)
        *words = 2;
    return word[sizeof name - 1] == '\0' || word[sizeof name - 1] == '=';
}

/* An argument as a shell takes it: of a setting its value may want quotes. */
static void print_word(const char *word)
{
    const size_t name = strncmp(word, "--", 2) == 0 ? strcspn(word, "=") + 1
                                                    : 0;
    if (name > strlen(word) || (name && word[name] == '-'))
        pl_term_print(" %s", word);
    else
        pl_term_print(" %.*s%s", (int)name, word,
                      pl_path_quoted(word + name).text);
}

/* Whether the machine decides in which arithmetic 16 bits are multiplied. */
static int leaves_products(const pl_config *config)
{
    return config->dtype != PL_DTYPE_FLOAT32 &&
           (config->products == PL_PRODUCTS_WISH_AUTO ||
            config->products == PL_PRODUCTS_WISH_TENSOR);
}

/* The line that makes the same run whatever the rate and the machine: the
 * arguments, and what these have decided. */
static void print_line(const pl_config *config, pl_products products,
                       const pl_cli_args *args)
{
    size_t words;
    printf("the same run anywhere: plimsoll train");
    for (size_t i = 0; i < args->word_count; i += words)
        if (!is_minutes(args, i, &words))
            print_word(args->words[i]);
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[64];
        if (config->origin[key].source != PL_FROM_MINUTES)
            continue;
        pl_config_value_text(config, (pl_key)key, value, sizeof value);
        printf(" --%s=%s", pl_key_row((pl_key)key)->name, value);
    }
    if (leaves_products(config))
        printf(" --products=%s", pl_products_name(products));
    printf("\n");
}

pl_status pl_cli_minutes(pl_config *config, const pl_machine *machine,
                         const pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    pl_horizon found;
    size_t vocab_size;
    const char *from;
    if (!(config->max_minutes > 0.0) ||
        pl_config_beginning(config) == PL_BEGIN_RESUME)
        return PL_OK;
    if (pl_config_was_set(config, PL_KEY_max_iters)) {
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "max_minutes has no effect: max_iters is set, and wins");
        return PL_OK;
    }
    pl_status status = pl_cli_vocabulary(config, heap, &vocab_size, NULL, &from,
                                         err);
    if (!status)
        status = pl_horizon_set(&found, config, machine, vocab_size, err);
    if (!status)
        status = pl_config_check(config, err);
    if (status)
        return status;
    if (found.source == PL_RATES_BUILT_IN)
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "max_minutes counts with the rates of another machine: this "
                   "one has not been measured");
    if (!args)
        return PL_OK;
    printf("max_minutes = %g: %lld updates of %s, evaluations of %s\n",
           config->max_minutes, (long long)found.updates,
           pl_units_duration(found.update_seconds).text,
           pl_units_duration(found.evaluation_seconds).text);
    print_line(config, machine->device.products, args);
    return PL_OK;
}
