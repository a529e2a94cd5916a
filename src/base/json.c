/* json.c: see json.h. Owns the bounds; jansson owns the grammar. */
#include "base/json.h"
#include "base/units.h"

#include <stdio.h>

/* Every value but the first follows a bracket or a comma: an upper bound of
 * their number, without parsing. */
static size_t count_values(const char *bytes, size_t n)
{
    size_t values = 1;
    int in_string = 0;
    for (size_t i = 0; i < n; i++) {
        char c = bytes[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '[' || c == ','))
            values++;
    }
    return values;
}

/* `line` is that of the first byte. */
static pl_status parse(const char *bytes, size_t n, const char *name,
                       size_t line, size_t most, json_t **out, pl_error *err)
{
    json_error_t what;
    if (n > PL_JSON_MAX_BYTES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: %s of JSON are more than the %s that are accepted. "
                       "Is it the right file?",
                       name, pl_units_exact(n).text,
                       pl_units_exact(PL_JSON_MAX_BYTES).text);
    size_t values = count_values(bytes, n);
    if (values > most)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: up to %zu JSON values are more than the %zu that "
                       "are accepted. Is it the right file?",
                       name, values, most);
    *out = json_loadb(bytes, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &what);
    if (!*out && json_error_code(&what) == json_error_out_of_memory)
        return pl_fail(err, PL_E_MEMORY, "%s: no memory for its %s of JSON",
                       name, pl_units_bytes(n).text);
    if (!*out)
        return pl_fail(err, PL_E_FORMAT, "%s:%zu:%d: not valid JSON: %s", name,
                       line + (size_t)what.line - 1, what.column, what.text);
    return PL_OK;
}

pl_status pl_json_parse(const char *bytes, size_t n, const char *name,
                        json_t **out, pl_error *err)
{
    return parse(bytes, n, name, 1, PL_JSON_MAX_VALUES, out, err);
}

pl_status pl_json_parse_line(const char *bytes, size_t n, const char *name,
                             size_t line, json_t **out, pl_error *err)
{
    return parse(bytes, n, name, line, PL_JSON_MAX_VALUES, out, err);
}

pl_status pl_json_parse_few(const char *bytes, size_t n, const char *name,
                            size_t most, json_t **out, pl_error *err)
{
    return parse(bytes, n, name, 1, most, out, err);
}

void pl_json_brief(const json_t *value, char text[PL_JSON_BRIEF_BYTES])
{
    const char *word = !value                  ? "nothing"
                       : json_is_null(value)   ? "null"
                       : json_is_true(value)   ? "true"
                       : json_is_false(value)  ? "false"
                       : json_is_array(value)  ? "a list"
                       : json_is_object(value) ? "an object"
                                               : NULL;
    if (word)
        snprintf(text, PL_JSON_BRIEF_BYTES, "%s", word);
    else if (json_is_string(value))
        snprintf(text, PL_JSON_BRIEF_BYTES, "\"%.40s\"",
                 json_string_value(value));
    else
        snprintf(text, PL_JSON_BRIEF_BYTES, "%.17g", json_number_value(value));
}
