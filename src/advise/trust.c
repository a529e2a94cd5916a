/* trust.c: see trust.h. */
#include "advise/trust.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "device/choose.h"
#include "device/cuda_code.h"
#include "format/jsontext.h"

#include <stdio.h>

enum { MAX_BYTES = 16 * 1024 };

/* Memory of a test: its two arenas, and what opening a card takes. */
static const size_t TEST_HEAP_BYTES = (size_t)64 << 20;

/* ---- what is remembered ---- */

/* Of this program, so that a new one is tested anew; "" if it can't be read. */
static const char *program_hash(void)
{
    static pl_hash_text known;
    unsigned char some[16 * 1024];
    size_t bytes = 1;
    pl_file file;
    pl_hash hash;
    if (known.text[0] || pl_file_open_read(&file, "/proc/self/exe", NULL))
        return known.text;
    pl_hash_begin(&hash);
    pl_status status = PL_OK;
    while (!status && bytes) {
        status = pl_file_read_some(&file, some, sizeof some, &bytes, NULL);
        if (!status)
            pl_hash_add(&hash, some, bytes);
    }
    pl_file_abandon(&file);
    if (!status)
        known = pl_hash_end(&hash);
    return known.text;
}

static pl_status path_of(char path[PL_PATH_BYTES], const pl_gpu_card *card,
                         const char *folder, pl_error *err)
{
    char who[sizeof card->name + sizeof card->driver + sizeof card->code +
             PL_HASH_TEXT_BYTES + 24],
        name[PL_HASH_TEXT_BYTES + 16];
    const int used = snprintf(who, sizeof who, "%s\n%s\n%s\n%s\n%s",
                              card->api->name, card->name, card->driver,
                              card->code, program_hash());
    snprintf(name, sizeof name, "selftest-%s.json",
             pl_hash_of(who, (size_t)used).text);
    return pl_path_join(path, folder, name, err);
}

static double number_in(const json_t *root, const char *key)
{
    return json_number_value(json_object_get(root, key));
}

int pl_trust_recall(pl_selftest_result *result, const pl_gpu_card *card,
                    const char *folder, pl_heap *heap)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    json_t *root = NULL;
    *result = (pl_selftest_result){ 0 };
    if (!folder || !program_hash()[0] || path_of(path, card, folder, NULL) ||
        pl_file_read_all(path, MAX_BYTES, heap, &text, &bytes, NULL) ||
        pl_json_parse(text, bytes, path, &root, NULL))
        return 0;
    const char *first = json_string_value(json_object_get(root, "first"));
#define COUNT(name) result->name = (size_t)number_in(root, #name);
    PL_SELFTEST_COUNTS(COUNT)
#undef COUNT
#define REAL(name) result->name = number_in(root, #name);
    PL_SELFTEST_REALS(REAL)
#undef REAL
    snprintf(result->first, sizeof result->first, "%s", first ? first : "");
    json_decref(root);
    return result->cases > 0;
}

static pl_status write_result(const pl_selftest_result *r,
                              const pl_gpu_card *card, const char *folder,
                              pl_error *err)
{
    char text[2048], path[PL_PATH_BYTES];
    pl_json_text j = pl_json_text_begin(text, sizeof text);
    pl_json_text_string(&j, "card", card->name);
    pl_json_text_string(&j, "driver", card->driver);
    pl_json_text_string(&j, "first", r->first);
#define COUNT(name) pl_json_text_whole(&j, #name, r->name);
    PL_SELFTEST_COUNTS(COUNT)
#undef COUNT
#define REAL(name) pl_json_text_real(&j, #name, r->name);
    PL_SELFTEST_REALS(REAL)
#undef REAL
    pl_status status = pl_json_text_end(&j, err);
    if (!status)
        status = path_of(path, card, folder, err);
    if (!status)
        status = pl_folder_make(folder, err);
    return status ? status : pl_file_replace(path, text, j.used, err);
}

void pl_trust_remember(const pl_selftest_result *result,
                       const pl_gpu_card *card, const pl_trust_wish *wish)
{
    pl_error err = { 0 };
    if (wish->folder && program_hash()[0] &&
        write_result(result, card, wish->folder, &err))
        pl_log_say(wish->log, PL_LOG_NOTE,
                   "the self-test's result is not remembered: %s", err.text);
}

/* ---- testing ---- */

static void tell(void *context, const pl_selftest_case *it)
{
    const pl_trust_wish *wish = context;
    char text[128];
    snprintf(text, sizeof text, "testing the card, once: %s, %s", it->op,
             it->storage);
    wish->progress(text);
}

/* In memory of its own, which is given back: the run that follows has its own
 * plan. */
static pl_status test(pl_selftest_result *result, const pl_gpu_card *card,
                      const pl_trust_wish *wish, pl_error *err)
{
    pl_heap heap = pl_heap_make(TEST_HEAP_BYTES);
    pl_trust_wish copy = *wish;
    const pl_selftest_wish how = { .measures = 1,
                                   .seen = wish->progress ? tell : NULL,
                                   .context = &copy };
    if (wish->progress)
        wish->progress("opening the card; its kernels may have to be compiled, "
                       "once");
    pl_status status = pl_selftest_run(result, card, &how, &heap, err);
    if (wish->progress)
        wish->progress(NULL);
    pl_heap_close(&heap);
    if (!status)
        pl_trust_remember(result, card, wish);
    return status;
}

static pl_status look_at(pl_selftest_result *result, const pl_gpu_card *card,
                         const pl_trust_wish *wish, pl_heap *heap,
                         pl_error *err)
{
    if (pl_trust_recall(result, card, wish->folder, heap))
        return PL_OK;
    return test(result, card, wish, err);
}

/* ---- what a config asks for ---- */

static pl_status trust_named(const pl_gpu_card *card, const pl_trust_wish *wish,
                             pl_heap *heap, pl_error *err)
{
    pl_selftest_result result;
    pl_status status = look_at(&result, card, wish, heap, err);
    if (!status && !result.failed && result.tensor_failed) {
        pl_gpu_leave_tensor(card);
        pl_log_say(wish->log, PL_LOG_NOTE,
                   "%s:%d (%s): its tensor cores have other bits than %s, in "
                   "%zu of %zu cases, first %s: products are exact there. "
                   "Please report it",
                   card->api->name, card->number, card->name,
                   pl_products_name(card->tensor), result.tensor_failed,
                   result.tensor_cases, result.first);
    }
    if (status || !result.failed)
        return status;
    return pl_fail(err, PL_E_CONFIG,
                   "%s:%d (%s, driver %s) doesn't compute the processor's "
                   "bits: %zu of %zu cases of the self-test differ, first %s. "
                   "`plimsoll devices --selftest` tests it again. Set device = "
                   "'cpu', or try another driver",
                   card->api->name, card->number, card->name, card->driver,
                   result.failed, result.cases, result.first);
}

/* Whether 'auto' takes this one. Why not is said, unless it is a processor. */
static int is_taken(const pl_gpu_kind *kind, const pl_gpu_card *card,
                    const pl_trust_wish *wish, pl_heap *heap)
{
    pl_error why = { 0 };
    if (card->is_processor)
        return 0;
    if (!card->lacks[0] && !trust_named(card, wish, heap, &why)) {
        pl_device_choose_auto(kind, card->number);
        pl_log_say(wish->log, PL_LOG_NOTE,
                   "device = 'auto' is %s:%d, %s, whose bits are the "
                   "processor's",
                   card->api->name, card->number, card->name);
        return 1;
    }
    if (card->lacks[0])
        snprintf(why.text, sizeof why.text, "%s:%d (%s): %s", card->api->name,
                 card->number, card->name, card->lacks);
    pl_log_say(wish->log, PL_LOG_NOTE, "device = 'auto' doesn't take %s",
               why.text);
    return 0;
}

/* All kinds' cards in their order, those without memory of their own last. */
static pl_status trust_any(const pl_trust_wish *wish, pl_heap *heap,
                           pl_error *err)
{
    pl_gpu_card *cards[PL_DEVICE_CARD_KINDS];
    size_t counts[PL_DEVICE_CARD_KINDS];
    pl_status status = PL_OK;
    pl_device_choose_auto(NULL, 0);
    if (wish->no_cards)
        return PL_OK;
    for (size_t k = 0; k < PL_DEVICE_CARD_KINDS && !status; k++) {
        status = pl_heap_take(heap, &cards[k], PL_GPU_MAX_CARDS,
                              sizeof *cards[k], err);
        if (!status)
            status = pl_device_cards[k]->api->list(cards[k], &counts[k], err);
    }
    for (int unified = 0; unified < 2 && !status; unified++)
        for (size_t k = 0; k < PL_DEVICE_CARD_KINDS; k++)
            for (size_t i = 0; i < counts[k]; i++)
                if (cards[k][i].is_unified == unified &&
                    is_taken(pl_device_cards[k], &cards[k][i], wish, heap))
                    return PL_OK;
    return status;
}

/* A card by its name, tested. */
static pl_status trust_one(pl_device_info *info, const pl_gpu_kind *kind,
                           int number, const pl_trust_wish *wish, pl_heap *heap,
                           pl_error *err)
{
    pl_gpu_card card;
    pl_status status = pl_gpu_find(info, kind, number, err);
    if (!status)
        status = kind->card_of(&card, info, err);
    return status ? status : trust_named(&card, wish, heap, err);
}

pl_status pl_trust_device(const pl_config *config, const pl_trust_wish *wish,
                          pl_heap *heap, pl_error *err)
{
    pl_device_info info;
    pl_error why = { 0 };
    int number;
    const pl_device_asked asked = pl_device_asks(config);
    const pl_gpu_kind *named = pl_device_named(&config->device, &number);
    if (asked == PL_DEVICE_ASKS_HOST)
        return PL_OK;
    pl_cuda_code_keep_in(wish->folder);
    if (asked == PL_DEVICE_ASKS_CARD)
        return trust_one(&info, named, number, wish, heap, err);
    if (!named)
        return trust_any(wish, heap, err);
    if (!trust_one(&info, named, number, wish, heap, &why)) {
        pl_device_choose_auto(named, info.variant);
        return PL_OK;
    }
    pl_log_say(wish->log, PL_LOG_NOTE, "device = '%s' in a file: %s",
               config->device.text, why.text);
    return trust_any(wish, heap, err);
}
