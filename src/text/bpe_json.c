/* bpe_json.c: reads Hugging Face's tokenizer.json; see bpe_read.h. Owns what
 * is accepted of its model and its tokens, and what is refused. A byte-level
 * vocabulary has a token for every byte (that is checked), so that unk_token,
 * fuse_unk and byte_fallback never come into play. */
#include "text/bpe_json.h"

#include "base/json.h"
#include "text/bpe_read.h"
#include "text/bpe_steps.h"
#include "text/nfc.h"

#include <string.h>

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int is_on(json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static pl_status refuse(const char *name, const char *key, const char *what,
                        pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"%s\" %.60s, which isn't supported: byte-level BPE "
                   "knows neither marks of words nor chance",
                   name, key, what);
}

/* ---- what would change the ids ---- */

static int is_empty(json_t *value)
{
    const char *text = json_string_value(value);
    return !value || json_is_null(value) || (text && text[0] == '\0');
}

static pl_status check_model(json_t *model, const char *name, pl_error *err)
{
    json_t *dropout = json_object_get(model, "dropout");
    json_t *type = json_object_get(model, "type");
    if (type && strcmp(text_of(model, "type"), "BPE") != 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: the model is of type \"%.40s\"; only BPE is "
                       "supported",
                       name, text_of(model, "type"));
    if (dropout && !json_is_null(dropout))
        return refuse(name, "dropout", "is set", err);
    if (!is_empty(json_object_get(model, "continuing_subword_prefix")))
        return refuse(name, "continuing_subword_prefix", "is set", err);
    if (!is_empty(json_object_get(model, "end_of_word_suffix")))
        return refuse(name, "end_of_word_suffix", "is set", err);
    return PL_OK;
}

/* ---- tokens ---- */

static pl_status check_added(json_t *added, size_t place, const char *name,
                             pl_error *err)
{
    if (!json_is_integer(json_object_get(added, "id")) ||
        !json_is_string(json_object_get(added, "content")))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: entry %zu of \"added_tokens\" must have an \"id\" "
                       "and a \"content\"",
                       name, place);
    if (is_on(added, "lstrip") || is_on(added, "rstrip") ||
        is_on(added, "single_word"))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: the added token \"%.40s\" is found with lstrip, "
                       "rstrip or single_word, which isn't supported",
                       name, text_of(added, "content"));
    return PL_OK;
}

/* What the lists say together, so that room can be made: the largest id and
 * the bytes of all texts. */
typedef struct extent {
    int64_t largest;
    size_t text_bytes;
} extent;

static void extend(extent *e, json_t *id, size_t bytes)
{
    json_int_t value = json_integer_value(id);
    e->largest = value > e->largest ? value : e->largest;
    e->text_bytes += bytes;
}

static pl_status add_one(pl_bpe_draft *draft, json_t *added, pl_error *err)
{
    json_t *content = json_object_get(added, "content");
    const char *text = json_string_value(content);
    size_t bytes = json_string_length(content);
    int64_t id = json_integer_value(json_object_get(added, "id"));
    if (draft->splitting.normal == PL_NORMAL_NFC &&
        is_on(added, "normalized") && !pl_nfc_quick(text, bytes))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: the added token \"%.40s\" is normalized before it "
                       "is looked for (normalized), which isn't supported",
                       draft->name, text);
    pl_status status = pl_bpe_draft_add(
        draft, id, text, bytes,
        is_on(added, "special") ? PL_BPE_SPECIAL : PL_BPE_ADDED, err);
    if (!status && is_on(added, "normalized"))
        draft->entries[id].flags |= PL_BPE_NORMALIZED;
    return status;
}

static pl_status add_added(pl_bpe_draft *draft, json_t *list, pl_error *err)
{
    size_t i;
    json_t *each;
    json_array_foreach(list, i, each)
    {
        pl_status status = add_one(draft, each, err);
        if (status)
            return status;
    }
    return PL_OK;
}

static int is_special(const pl_bpe_draft *draft, json_t *id, const char *key)
{
    json_int_t value = json_integer_value(id);
    if (value < 0 || value >= draft->vocab_size)
        return 0;
    const pl_bpe_entry *entry = &draft->entries[value];
    return pl_bpe_is_added(entry->kind) && entry->length == strlen(key) &&
           memcmp(draft->text + entry->offset, key, entry->length) == 0;
}

/* The merges' list: "a b", or ["a", "b"]. */
static pl_status add_merges(pl_bpe_draft *draft, json_t *list, pl_error *err)
{
    size_t i;
    json_t *each;
    json_array_foreach(list, i, each)
    {
        const char *left = json_string_value(json_array_get(each, 0));
        const char *right = json_string_value(json_array_get(each, 1));
        size_t left_bytes = left ? strlen(left) : 0;
        if (json_is_string(each)) {
            left = json_string_value(each);
            right = strchr(left, ' ');
            left_bytes = right ? (size_t)(right - left) : 0;
            right = right ? right + 1 : NULL;
        } else if (json_array_size(each) != 2) {
            left = NULL;
        }
        if (!left || !right)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: merge %zu must be \"left right\" or "
                           "[\"left\", \"right\"]",
                           draft->name, i);
        pl_status status = pl_bpe_json_merge(draft, i, left, left_bytes, right,
                                             strlen(right), err);
        if (status)
            return status;
    }
    return PL_OK;
}

static pl_status add_vocab(pl_bpe_draft *draft, json_t *vocab, pl_error *err)
{
    const char *key;
    json_t *id;
    json_object_foreach(vocab, key, id)
    {
        if (is_special(draft, id, key)) {
            pl_bpe_json_merged(draft, json_integer_value(id));
            continue;
        }
        pl_status status = pl_bpe_json_token(draft, json_integer_value(id), key,
                                             PL_BPE_ORDINARY, err);
        if (status)
            return status;
    }
    return PL_OK;
}

static pl_status measure(json_t *vocab, json_t *added, const char *name,
                         extent *e, pl_error *err)
{
    size_t i;
    json_t *each;
    pl_status status = pl_bpe_json_measure(vocab, name, &e->largest,
                                           &e->text_bytes, err);
    if (status)
        return status;
    json_array_foreach(added, i, each)
    {
        status = check_added(each, i, name, err);
        if (status)
            return status;
        extend(e, json_object_get(each, "id"),
               json_string_length(json_object_get(each, "content")));
    }
    return PL_OK;
}

static pl_status read_root(pl_bpe **bpe, json_t *root, const char *name,
                           pl_heap *heap, pl_error *err)
{
    json_t *model = json_object_get(root, "model");
    json_t *vocab = json_object_get(model, "vocab");
    json_t *merges = json_object_get(model, "merges");
    json_t *added = json_object_get(root, "added_tokens");
    extent e = { .largest = -1 };
    pl_bpe_draft draft;
    if (!json_is_object(vocab) || !json_is_array(merges))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: no tokenizer.json with a BPE model: \"model\" "
                       "must have \"vocab\", an object, and \"merges\", a "
                       "list",
                       name);
    pl_splitting splitting;
    pl_status status = pl_bpe_steps_read(root, name, &splitting, err);
    if (!status)
        status = check_model(model, name, err);
    if (!status)
        status = measure(vocab, added, name, &e, err);
    if (status)
        return status;
    status = pl_bpe_draft_open(&draft, name, e.largest + 1, e.text_bytes,
                               json_array_size(merges), heap, err);
    draft.splitting = splitting;
    if (!status)
        status = add_added(&draft, added, err);
    if (!status)
        status = add_vocab(&draft, vocab, err);
    if (!status)
        status = add_merges(&draft, merges, err);
    if (!status)
        status = pl_bpe_draft_finish(&draft,
                                     is_on(model, "ignore_merges")
                                         ? PL_BPE_UNMADE_WHOLE
                                         : PL_BPE_UNMADE_DECODED,
                                     bpe, err);
    pl_bpe_draft_close(&draft);
    return status;
}

pl_status pl_bpe_read_json(pl_bpe **bpe, const char *text, size_t bytes,
                           const char *name, pl_heap *heap, pl_error *err)
{
    json_t *root;
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (status)
        return status;
    status = read_root(bpe, root, name, heap, err);
    json_decref(root);
    return status;
}
