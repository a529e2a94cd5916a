/* bpe_steps.c: see bpe_steps.h. */
#include "text/bpe_steps.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

/* Other ways to write GPT-2's, as a "Split". */
static const char *const gpt2_regexes[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
    "|\\s+(?!\\S)|\\s+",
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
    "|\\s+(?!\\S)|\\s+",
};

#define BYTE_LEVEL(regex)                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"                      \
    "\"trim_offsets\":true,\"use_regex\":" regex "}"

static const char *text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int is_on(json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static int is_of(json_t *step, const char *type)
{
    return strcmp(text_of(step, "type"), type) == 0;
}

static int is_nothing(json_t *value)
{
    return !value || json_is_null(value);
}

/* ---- normalizer ---- */

static pl_status read_normalizer(json_t *step, const char *name,
                                 pl_normal *normal, pl_error *err)
{
    json_t *list = json_object_get(step, "normalizers");
    if (is_of(step, "Sequence") && json_array_size(list) <= 1)
        step = json_array_get(list, 0);
    *normal = PL_NORMAL_NONE;
    if (is_nothing(step))
        return PL_OK;
    *normal = PL_NORMAL_NFC;
    if (is_of(step, "NFC"))
        return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"normalizer\" changes the text by \"%.40s\": none and "
                   "\"NFC\" are supported",
                   name, text_of(step, "type"));
}

/* ---- pre_tokenizer ---- */

static pl_status refuse(const char *name, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"pre_tokenizer\" %.60s: byte-level BPE with the "
                   "pattern of GPT-2, Llama 3, Qwen2 or SmolLM2 is supported",
                   name, what);
}

typedef enum cut { CUTS, CUTS_NOT } cut;

static pl_status check_byte_level(json_t *step, cut wanted, const char *name,
                                  pl_error *err)
{
    json_t *regex = json_object_get(step, "use_regex");
    int cuts = !regex || json_is_true(regex);
    if (!is_of(step, "ByteLevel"))
        return refuse(name, "is not of type ByteLevel", err);
    if (is_on(step, "add_prefix_space"))
        return refuse(name, "puts a blank before every text (add_prefix_space)",
                      err);
    if (cuts != (wanted == CUTS))
        return refuse(
            name, cuts ? "cuts the text twice" : "does not cut the text", err);
    return PL_OK;
}

/* The pattern of a "Split"; PL_PATTERN_COUNT: another. */
static pl_pattern pattern_of(json_t *step)
{
    const char *regex = text_of(json_object_get(step, "pattern"), "Regex");
    int inverted = is_on(step, "invert");
    /* Each pattern matches all of a text, so that keeping the matches alone is
     * the same. */
    if (strcmp(text_of(step, "behavior"), inverted ? "Removed" : "Isolated") !=
        0)
        return PL_PATTERN_COUNT;
    for (size_t i = 0; i < sizeof gpt2_regexes / sizeof *gpt2_regexes; i++)
        if (strcmp(regex, gpt2_regexes[i]) == 0)
            return PL_PATTERN_GPT2;
    for (int i = 0; i < PL_PATTERN_COUNT; i++) {
        const char *ours = pl_pattern_regex((pl_pattern)i);
        if (ours[0] && strcmp(regex, ours) == 0)
            return (pl_pattern)i;
    }
    return PL_PATTERN_COUNT;
}

static pl_status read_two(json_t *first, json_t *second, const char *name,
                          pl_pattern *pattern, pl_error *err)
{
    if (is_of(first, "Digits")) {
        *pattern = PL_PATTERN_SMOLLM2;
        if (!is_on(first, "individual_digits"))
            return refuse(name, "leaves digits together (individual_digits)",
                          err);
        return check_byte_level(second, CUTS, name, err);
    }
    *pattern = is_of(first, "Split") ? pattern_of(first) : PL_PATTERN_COUNT;
    if (*pattern == PL_PATTERN_COUNT)
        return refuse(name, "cuts by another pattern", err);
    return check_byte_level(second, CUTS_NOT, name, err);
}

static pl_status read_pre_tokenizer(json_t *step, const char *name,
                                    pl_pattern *pattern, pl_error *err)
{
    json_t *list = json_object_get(step, "pretokenizers");
    *pattern = PL_PATTERN_GPT2;
    if (!is_of(step, "Sequence"))
        return check_byte_level(step, CUTS, name, err);
    if (json_array_size(list) == 1)
        return check_byte_level(json_array_get(list, 0), CUTS, name, err);
    if (json_array_size(list) != 2)
        return refuse(name, "has other steps", err);
    return read_two(json_array_get(list, 0), json_array_get(list, 1), name,
                    pattern, err);
}

/* ---- post_processor ---- */

static pl_status check_post_processor(json_t *step, const char *name,
                                      pl_error *err)
{
    if (is_nothing(step) || is_of(step, "ByteLevel") ||
        is_of(step, "TemplateProcessing"))
        return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"post_processor\" is of type \"%.40s\": ByteLevel, "
                   "TemplateProcessing and none are supported",
                   name, text_of(step, "type"));
}

static pl_status check_post_processors(json_t *step, const char *name,
                                       pl_error *err)
{
    size_t i;
    json_t *each;
    if (!is_of(step, "Sequence"))
        return check_post_processor(step, name, err);
    json_array_foreach(json_object_get(step, "processors"), i, each)
    {
        pl_status status = check_post_processor(each, name, err);
        if (status)
            return status;
    }
    return PL_OK;
}

pl_status pl_bpe_steps_read(json_t *root, const char *name,
                            pl_splitting *splitting, pl_error *err)
{
    pl_status status = read_normalizer(json_object_get(root, "normalizer"),
                                       name, &splitting->normal, err);
    if (!status)
        status = check_post_processors(json_object_get(root, "post_processor"),
                                       name, err);
    if (!status)
        status = read_pre_tokenizer(json_object_get(root, "pre_tokenizer"),
                                    name, &splitting->pattern, err);
    return status;
}

/* ---- writing ---- */

/* The text as a JSON string has it; its only special characters are
 * backslashes. */
static const char *escape(const char *text, char *out)
{
    size_t used = 0;
    for (; *text; text++) {
        if (*text == '\\')
            out[used++] = '\\';
        out[used++] = *text;
    }
    out[used] = '\0';
    return out;
}

const char *pl_bpe_steps_text(pl_splitting splitting,
                              char out[PL_BPE_STEPS_BYTES])
{
    char regex[PL_BPE_STEPS_BYTES / 4], split[PL_BPE_STEPS_BYTES / 2] = "";
    const char *bare = pl_pattern_regex(splitting.pattern);
    const char *before = split, *level = BYTE_LEVEL("true"), *after = "";
    PL_CHECK(strlen(bare) < sizeof regex / 2);
    if (bare[0]) {
        snprintf(split, sizeof split,
                 "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                 "\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":"
                 "\"Isolated\",\"invert\":false},",
                 escape(bare, regex));
        level = BYTE_LEVEL("false");
        after = "]}";
    } else if (splitting.pattern == PL_PATTERN_SMOLLM2) {
        before = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
                 "\"Digits\",\"individual_digits\":true},";
        after = "]}";
    }
    int used = snprintf(out, PL_BPE_STEPS_BYTES,
                        "\"normalizer\":%s,\n\"pre_tokenizer\":%s%s%s,\n"
                        "\"post_processor\":null,\n\"decoder\":%s,\n",
                        splitting.normal == PL_NORMAL_NFC ? "{\"type\":\"NFC\"}"
                                                          : "null",
                        before, level, after, BYTE_LEVEL("true"));
    PL_CHECK(used > 0 && used < PL_BPE_STEPS_BYTES);
    return out;
}
