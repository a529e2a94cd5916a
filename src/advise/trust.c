/* trust.c: see trust.h. */
#include "advise/trust.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "device/choose.h"
#include "device/opencl.h"
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
    char who[sizeof card->name + sizeof card->driver + PL_HASH_TEXT_BYTES + 8],
        name[PL_HASH_TEXT_BYTES + 16];
    const int used = snprintf(who, sizeof who, "%s\n%s\n%s", card->name,
                              card->driver, program_hash());
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
    result->cases = (size_t)number_in(root, "cases");
    result->failed = (size_t)number_in(root, "failed");
    result->bytes = (size_t)number_in(root, "bytes");
    result->date = number_in(root, "date");
    result->product_flops = number_in(root, "product_flops");
    result->attention_flops = number_in(root, "attention_flops");
    result->peak_flops = number_in(root, "peak_flops");
    result->read_bytes = number_in(root, "read_bytes");
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
    pl_json_text_whole(&j, "cases", r->cases);
    pl_json_text_whole(&j, "failed", r->failed);
    pl_json_text_whole(&j, "bytes", r->bytes);
    pl_json_text_string(&j, "first", r->first);
    pl_json_text_real(&j, "date", r->date);
    pl_json_text_real(&j, "product_flops", r->product_flops);
    pl_json_text_real(&j, "attention_flops", r->attention_flops);
    pl_json_text_real(&j, "peak_flops", r->peak_flops);
    pl_json_text_real(&j, "read_bytes", r->read_bytes);
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
    pl_status status = pl_selftest_run(result, &pl_opencl_api, card, &how,
                                       &heap, err);
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
    if (status || !result.failed)
        return status;
    return pl_fail(err, PL_E_CONFIG,
                   "opencl:%d (%s, driver %s) doesn't compute the processor's "
                   "bits: %zu of %zu cases of the self-test differ, first %s. "
                   "`plimsoll devices --selftest` tests it again. Set device = "
                   "'cpu', or try another driver",
                   card->number, card->name, card->driver, result.failed,
                   result.cases, result.first);
}

/* Whether 'auto' takes this one. Why not is said, unless it is a processor. */
static int is_taken(const pl_gpu_card *card, const pl_trust_wish *wish,
                    pl_heap *heap)
{
    pl_error why = { 0 };
    if (card->is_processor)
        return 0;
    if (!card->lacks[0] && !trust_named(card, wish, heap, &why)) {
        pl_device_choose_auto(card->number);
        pl_log_say(wish->log, PL_LOG_NOTE,
                   "device = 'auto' is opencl:%d, %s, whose bits are the "
                   "processor's",
                   card->number, card->name);
        return 1;
    }
    if (card->lacks[0])
        snprintf(why.text, sizeof why.text, "opencl:%d (%s): %s", card->number,
                 card->name, card->lacks);
    pl_log_say(wish->log, PL_LOG_NOTE, "device = 'auto' doesn't take %s",
               why.text);
    return 0;
}

/* Cards in their order, those without memory of their own last. */
static pl_status trust_any(const pl_gpu_card *cards, size_t count,
                           const pl_trust_wish *wish, pl_heap *heap)
{
    pl_device_choose_auto(-1);
    for (int unified = 0; unified < 2; unified++)
        for (size_t i = 0; i < count; i++)
            if (cards[i].is_unified == unified &&
                is_taken(&cards[i], wish, heap))
                return PL_OK;
    return PL_OK;
}

pl_status pl_trust_device(const pl_config *config, const pl_trust_wish *wish,
                          pl_heap *heap, pl_error *err)
{
    pl_gpu_card *cards;
    pl_device_info info;
    size_t count = 0;
    const pl_device_asked asked = pl_device_asks(config);
    if (asked == PL_DEVICE_ASKS_HOST)
        return PL_OK;
    pl_status status = pl_heap_take(heap, &cards, PL_GPU_MAX_CARDS,
                                    sizeof *cards, err);
    if (!status)
        status = pl_opencl_api.list(cards, &count, err);
    if (!status && asked == PL_DEVICE_ASKS_ANY)
        return trust_any(cards, count, wish, heap);
    if (!status)
        status = pl_device_choose(&info, config, err);
    if (status)
        return status;
    return trust_named(&cards[info.variant], wish, heap, err);
}
