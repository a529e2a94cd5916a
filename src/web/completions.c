/* completions.c: see completions.h. One table has every key. */
#include "web/completions.h"
#include "base/json.h"
#include "base/utf8.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A request while it is read. */
typedef struct reader {
    pl_completion *out;
    const pl_completion_limits *limits;
    pl_heap *heap;
    pl_complaint *complaint;
    size_t best_of; /* 0: not given */
} reader;

int pl_complain(pl_complaint *complaint, int status, const char *param,
                const char *format, ...)
{
    va_list args;
    *complaint = (pl_complaint){ .status = status,
                                 .type = status == 429 ? "rate_limit_error"
                                         : status >= 500
                                             ? "server_error"
                                             : "invalid_request_error" };
    snprintf(complaint->param, sizeof complaint->param, "%s", param);
    va_start(args, format);
    vsnprintf(complaint->message, sizeof complaint->message, format, args);
    va_end(args);
    return 0;
}

static int no_memory(reader *r)
{
    return pl_complain(r->complaint, 503, "",
                       "No memory is left for this request.");
}

/* ---- kinds of values ---- */

static int whole(reader *r, const char *key, const json_t *value, int64_t least,
                 int64_t most, int64_t *out)
{
    if (json_is_integer(value) && json_integer_value(value) >= least &&
        json_integer_value(value) <= most) {
        *out = json_integer_value(value);
        return 1;
    }
    return pl_complain(r->complaint, 400, key,
                       "'%s' is a whole number from %lld to %lld.", key,
                       (long long)least, (long long)most);
}

static int size(reader *r, const char *key, const json_t *value, int64_t least,
                int64_t most, size_t *out)
{
    int64_t number = 0;
    if (!whole(r, key, value, least, most, &number))
        return 0;
    *out = (size_t)number;
    return 1;
}

static int real(reader *r, const char *key, const json_t *value, double most,
                double *out)
{
    const double number = json_is_number(value) ? json_number_value(value)
                                                : -1.0;
    if (number >= 0.0 && number <= most) {
        *out = number;
        return 1;
    }
    return pl_complain(r->complaint, 400, key, "'%s' is a number from 0 to %g.",
                       key, most);
}

static int flag(reader *r, const char *key, const json_t *value, int *out)
{
    if (!json_is_boolean(value))
        return pl_complain(r->complaint, 400, key, "'%s' is true or false.",
                           key);
    *out = json_is_true(value);
    return 1;
}

static int text(reader *r, const char *key, const json_t *value,
                const char **out, size_t *bytes)
{
    if (!json_is_string(value))
        return pl_complain(r->complaint, 400, key, "'%s' is a text.", key);
    *bytes = json_string_length(value);
    if (pl_heap_text(r->heap, out, json_string_value(value), *bytes, NULL))
        return no_memory(r);
    return 1;
}

/* ---- prompts ---- */

static int prompt_tokens(reader *r, const json_t *list,
                         pl_completion_prompt *out)
{
    int32_t *tokens;
    out->text = NULL;
    out->count = json_array_size(list);
    if (pl_heap_take(r->heap, &tokens, out->count, sizeof *tokens, NULL))
        return no_memory(r);
    out->tokens = tokens;
    for (size_t i = 0; i < out->count; i++) {
        const json_t *token = json_array_get(list, i);
        const json_int_t number = json_is_integer(token)
                                      ? json_integer_value(token)
                                      : -1;
        if (number < 0 || (uint64_t)number >= r->limits->vocabulary)
            return pl_complain(r->complaint, 400, "prompt",
                               "The tokens of a 'prompt' are whole numbers "
                               "from 0 to %zu.",
                               r->limits->vocabulary - 1);
        tokens[i] = (int32_t)number;
    }
    return 1;
}

static int prompt_of(reader *r, const json_t *value, pl_completion_prompt *out)
{
    *out = (pl_completion_prompt){ 0 };
    if (json_is_array(value))
        return prompt_tokens(r, value, out);
    return text(r, "prompt", value, &out->text, &out->bytes);
}

static int read_prompt(reader *r, const char *key, const json_t *value)
{
    const json_t *first = json_array_get(value, 0);
    const int is_list = json_is_array(value),
              is_one = !is_list || json_is_integer(first);
    const size_t count = is_one ? 1 : json_array_size(value);
    if (is_list && json_array_size(value) == 0)
        return pl_complain(r->complaint, 400, key, "The 'prompt' is empty.");
    if (count > PL_COMPLETION_PROMPTS)
        return pl_complain(r->complaint, 400, key,
                           "%zu prompts are more than the %d that one request "
                           "may have.",
                           count, PL_COMPLETION_PROMPTS);
    if (pl_heap_take(r->heap, &r->out->prompts, count, sizeof *r->out->prompts,
                     NULL))
        return no_memory(r);
    r->out->prompt_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = is_one ? value : json_array_get(value, i);
        if (!is_one && json_typeof(one) != json_typeof(first))
            return pl_complain(r->complaint, 400, key,
                               "A list of prompts has texts or lists of "
                               "tokens, not both.");
        if (!prompt_of(r, one, &r->out->prompts[i]))
            return 0;
    }
    return 1;
}

/* ---- stops ---- */

static int add_stop(reader *r, const char *key, const json_t *value)
{
    pl_completion *out = r->out;
    const size_t i = out->stop_count;
    if (i == PL_COMPLETION_STOPS)
        return pl_complain(r->complaint, 400, key,
                           "'stop' has at most %d texts.", PL_COMPLETION_STOPS);
    if (!text(r, key, value, &out->stops[i], &out->stop_bytes[i]))
        return 0;
    if (out->stop_bytes[i] == 0 ||
        out->stop_bytes[i] > PL_COMPLETION_STOP_BYTES)
        return pl_complain(r->complaint, 400, key,
                           "A text of 'stop' has 1 to %d bytes.",
                           PL_COMPLETION_STOP_BYTES);
    out->stop_count++;
    return 1;
}

static int read_stop(reader *r, const char *key, const json_t *value)
{
    if (!json_is_array(value))
        return add_stop(r, key, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!add_stop(r, key, json_array_get(value, i)))
            return 0;
    return 1;
}

/* ---- the other keys ---- */

static int read_max_tokens(reader *r, const char *key, const json_t *value)
{
    return size(r, key, value, 0, INT_MAX, &r->out->max_tokens);
}

static int read_temperature(reader *r, const char *key, const json_t *value)
{
    return real(r, key, value, 2.0, &r->out->temperature);
}

/* Of a share of nothing only the likeliest token is left. */
static int read_top_p(reader *r, const char *key, const json_t *value)
{
    if (!real(r, key, value, 1.0, &r->out->top_p))
        return 0;
    if (r->out->top_p <= 0.0)
        r->out->top_k = 1;
    return 1;
}

/* -1 is what some servers call "all". */
static int read_top_k(reader *r, const char *key, const json_t *value)
{
    int64_t number = 0;
    if (!whole(r, key, value, -1, INT_MAX, &number))
        return 0;
    if (r->out->top_k != 1)
        r->out->top_k = number > 0 ? (size_t)number : 0;
    return 1;
}

static int read_seed(reader *r, const char *key, const json_t *value)
{
    r->out->has_seed = 1;
    return whole(r, key, value, INT64_MIN, INT64_MAX, &r->out->seed);
}

static int read_n(reader *r, const char *key, const json_t *value)
{
    return size(r, key, value, 1, PL_COMPLETION_N, &r->out->n);
}

static int read_best_of(reader *r, const char *key, const json_t *value)
{
    return size(r, key, value, 1, PL_COMPLETION_N, &r->best_of);
}

static int read_stream(reader *r, const char *key, const json_t *value)
{
    return flag(r, key, value, &r->out->stream);
}

static int read_stream_options(reader *r, const char *key, const json_t *value)
{
    const json_t *usage = json_object_get(value, "include_usage");
    if (!json_is_object(value))
        return pl_complain(r->complaint, 400, key, "'%s' is an object.", key);
    return !usage || json_is_null(usage) ||
           flag(r, key, usage, &r->out->include_usage);
}

static int read_echo(reader *r, const char *key, const json_t *value)
{
    return flag(r, key, value, &r->out->echo);
}

static int read_logprobs(reader *r, const char *key, const json_t *value)
{
    int64_t number = 0;
    if (!whole(r, key, value, 0, (int64_t)r->limits->most_top, &number))
        return 0;
    r->out->logprobs = (int)number;
    return 1;
}

/* What only changes who is billed, or which of several models answers: there
 * is one here. */
static int ignore(reader *r, const char *key, const json_t *value)
{
    (void)r, (void)key, (void)value;
    return 1;
}

/* Keys whose only value here is the one that changes nothing. */
static int must_be(reader *r, const char *key, const json_t *value,
                   double neutral)
{
    const double number = json_is_number(value)  ? json_number_value(value)
                          : json_is_true(value)  ? 1.0
                          : json_is_false(value) ? 0.0
                          : json_is_string(value)
                              ? (double)json_string_length(value)
                          : json_is_object(value)
                              ? (double)json_object_size(value)
                              : -1.0;
    if (!(number > neutral) && !(number < neutral))
        return 1;
    return pl_complain(r->complaint, 400, key,
                       "'%s' would change the result, and this server doesn't "
                       "know it. Leave it out.",
                       key);
}

static int must_be_0(reader *r, const char *key, const json_t *value)
{
    return must_be(r, key, value, 0.0);
}

static int must_be_1(reader *r, const char *key, const json_t *value)
{
    return must_be(r, key, value, 1.0);
}

static const struct {
    const char *name;
    int (*read)(reader *r, const char *key, const json_t *value);
} keys[] = {
    { "prompt", read_prompt },
    { "max_tokens", read_max_tokens },
    { "temperature", read_temperature },
    { "top_p", read_top_p },
    { "top_k", read_top_k },
    { "seed", read_seed },
    { "n", read_n },
    { "best_of", read_best_of },
    { "stop", read_stop },
    { "stream", read_stream },
    { "stream_options", read_stream_options },
    { "echo", read_echo },
    { "logprobs", read_logprobs },
    { "model", ignore },
    { "user", ignore },
    { "metadata", ignore },
    { "store", ignore },
    { "service_tier", ignore },
    { "safety_identifier", ignore },
    { "prompt_cache_key", ignore },
    { "suffix", must_be_0 },
    { "logit_bias", must_be_0 },
    { "presence_penalty", must_be_0 },
    { "frequency_penalty", must_be_0 },
    { "min_p", must_be_0 },
    { "min_tokens", must_be_0 },
    { "ignore_eos", must_be_0 },
    { "repetition_penalty", must_be_1 },
    { "typical_p", must_be_1 },
};

/* A name as a message may show it: short, and without control characters. */
static void show_name(const char *name, char out[64])
{
    size_t used = 0;
    const size_t bytes = strlen(name);
    for (size_t at = 0; at < bytes && used < 48;) {
        char shown[PL_UTF8_SHOWN_BYTES];
        at += pl_utf8_show(name + at, bytes - at, PL_UTF8_SHOW_BREAKS, shown);
        used += (size_t)snprintf(out + used, 64 - used, "%s", shown);
    }
    out[used] = '\0';
}

static int read_key(reader *r, const char *name, const json_t *value)
{
    char shown[64];
    if (json_is_null(value))
        return 1; /* as good as absent, as in OpenAI's schema */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i].name, name) == 0)
            return keys[i].read(r, name, value);
    show_name(name, shown);
    return pl_complain(r->complaint, 400, shown,
                       "Unknown key '%s': whether it would change the result "
                       "isn't known. Leave it out.",
                       shown);
}

static int read_all(reader *r, json_t *body)
{
    const char *name;
    json_t *value;
    json_object_foreach(body, name,
                        value) if (!read_key(r, name, value)) return 0;
    if (r->best_of && r->best_of != r->out->n)
        return pl_complain(r->complaint, 400, "best_of",
                           "'best_of' would change the result, and this "
                           "server doesn't know it. Leave it out.");
    if (r->out->prompts)
        return 1;
    if (pl_heap_take(r->heap, &r->out->prompts, 1, sizeof *r->out->prompts,
                     NULL))
        return no_memory(r);
    r->out->prompts[0] = (pl_completion_prompt){ .text = "" };
    return 1;
}

int pl_completion_read(pl_completion *out, const char *body, size_t bytes,
                       const pl_completion_limits *limits, pl_heap *heap,
                       pl_complaint *complaint)
{
    reader r = {
        .out = out, .limits = limits, .heap = heap, .complaint = complaint
    };
    json_t *root;
    pl_error err = { 0 };
    *out = (pl_completion){ .prompt_count = 1,
                            .max_tokens = 16,
                            .n = 1,
                            .temperature = 1.0,
                            .logprobs = -1 };
    const pl_status status = pl_json_parse_few(
        body, bytes, "body", PL_COMPLETION_VALUES, &root, &err);
    if (status)
        return pl_complain(complaint, status == PL_E_MEMORY ? 503 : 400, "",
                           "%s.", err.text);
    int done = json_is_object(root);
    if (!done)
        pl_complain(complaint, 400, "", "The body is one JSON object.");
    done = done && read_all(&r, root);
    json_decref(root);
    return done;
}
