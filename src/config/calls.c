/* calls.c: the functions, methods and constants whose value is known without
 * running anything, in one table. */
#include "config/parse.h"

#include "base/exact.h"
#include "base/units.h"
#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const pl_call *call;
    pl_scope *scope;
    pl_heap *heap;
} arguments;

typedef pl_status function(const arguments *a, pl_value *out, pl_error *err);

/* No message: the caller says that it isn't evaluated. */
static pl_status decline(pl_error *err)
{
    pl_fail(err, PL_E_CONFIG, "%s", "");
    return PL_E_CONFIG;
}

static bool is_whole(const pl_value *value)
{
    return value->kind == PL_VALUE_INT || value->kind == PL_VALUE_FLAG;
}

static bool as_real(const pl_value *value, double *out)
{
    *out = value->kind == PL_VALUE_FLOAT  ? value->real
           : value->kind == PL_VALUE_FLAG ? (double)value->flag
           : value->kind == PL_VALUE_INT  ? (double)value->whole
                                          : 0.0;
    return is_whole(value) || value->kind == PL_VALUE_FLOAT;
}

static pl_status no_number(const arguments *a, const char *text, pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG, "%s('%.60s'): this is not a number",
                   a->call->what, text);
}

/* ---- conversions ---- */

/* A number as text: blanks around it, a sign, a literal of Python's. */
static pl_status read_number(const arguments *a, const char *text,
                             bool *negative, pl_value *out, pl_error *err)
{
    pl_lexer lexer;
    pl_error trouble;
    static const char blanks[] = " \t\n\r\f\v";
    size_t bytes;
    text += strspn(text, blanks);
    *negative = *text == '-';
    text += *text == '-' || *text == '+';
    bytes = strlen(text);
    while (bytes > 0 && strchr(blanks, text[bytes - 1]))
        bytes--;
    if (bytes == 0 || !((*text >= '0' && *text <= '9') || *text == '.') ||
        memchr(text, 'x', bytes) || memchr(text, 'X', bytes) ||
        memchr(text, 'o', bytes) || memchr(text, 'b', bytes) ||
        pl_lexer_open(&lexer, "", text, bytes, &trouble) != PL_OK)
        return no_number(a, text, err);
    /* 007 is a number to int(), not to the language */
    while (bytes > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9')
        text++, bytes--;
    lexer.text = text;
    lexer.bytes = bytes;
    pl_token token = { PL_TOKEN_NUMBER, 0, bytes };
    return pl_lexer_number(&lexer, token, out, &trouble) == PL_OK
               ? PL_OK
               : no_number(a, text, err);
}

static pl_status to_int(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_value *value = a->call->args;
    bool negative = false;
    if (value->kind == PL_VALUE_TEXT) {
        pl_status status = read_number(a, value->text, &negative, out, err);
        if (status != PL_OK)
            return status;
        if (out->kind != PL_VALUE_INT)
            return no_number(a, value->text, err);
        out->whole = negative ? -out->whole : out->whole;
        return PL_OK;
    }
    if (is_whole(value)) {
        *out = pl_value_int(value->kind == PL_VALUE_FLAG ? value->flag
                                                         : value->whole);
        return PL_OK;
    }
    if (value->kind != PL_VALUE_FLOAT)
        return pl_fail(err, PL_E_CONFIG, "int() of %s",
                       pl_value_kind_name(value->kind));
    if (!(fabs(value->real) < 9223372036854775808.0))
        return pl_fail(err, PL_E_CONFIG,
                       "the result does not fit a whole number of 64 bits");
    *out = pl_value_int((int64_t)value->real);
    return PL_OK;
}

static pl_status to_float(const arguments *a, pl_value *out, pl_error *err)
{
    static const char *const words[] = { "inf", "infinity", "nan" };
    const pl_value *value = a->call->args;
    bool negative = false;
    double real;
    if (value->kind == PL_VALUE_TEXT) {
        const char *text = value->text;
        for (int i = 0; i < 3; i++)
            if (strcasecmp(text + (*text == '-' || *text == '+'), words[i]) ==
                0) {
                real = i < 2 ? HUGE_VAL : NAN;
                *out = pl_value_float(*text == '-' ? -real : real);
                return PL_OK;
            }
        pl_status status = read_number(a, text, &negative, out, err);
        if (status == PL_OK && as_real(out, &real))
            *out = pl_value_float(negative ? -real : real);
        return status;
    }
    if (!as_real(value, &real))
        return pl_fail(err, PL_E_CONFIG, "float() of %s",
                       pl_value_kind_name(value->kind));
    *out = pl_value_float(real);
    return PL_OK;
}

static pl_status to_text(const arguments *a, pl_value *out, pl_error *err)
{
    pl_text text = { .heap = a->heap };
    const bool quoted = strcmp(a->call->what, "repr") == 0;
    pl_status status = pl_text_add_value(&text, a->call->args, quoted, err);
    return status == PL_OK ? pl_text_end(&text, out, err) : status;
}

static pl_status to_flag(const arguments *a, pl_value *out, pl_error *err)
{
    (void)err;
    *out = pl_value_flag(pl_value_truth(a->call->args));
    return PL_OK;
}

/* ---- numbers ---- */

static pl_status absolute(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_value *value = a->call->args, zero = pl_value_int(0);
    pl_value negative;
    if (value->kind == PL_VALUE_FLOAT) {
        *out = pl_value_float(fabs(value->real));
        return PL_OK;
    }
    pl_status status = pl_value_compare(&negative, PL_PY_LESS, value, &zero,
                                        err);
    if (status != PL_OK)
        return status;
    return pl_value_combine(out, negative.flag ? PL_PY_SUBTRACT : PL_PY_ADD,
                            &zero, value, a->heap, err);
}

/* round(x): to the nearest int, halves to the even one; round(x, n): to n
 * places, as the digits that are printed. */
static pl_status rounded(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_value *value = a->call->args;
    if (is_whole(value) && a->call->count == 1)
        return to_int(a, out, err);
    if (value->kind != PL_VALUE_FLOAT)
        return decline(err);
    if (a->call->count == 1) {
        const pl_value whole = pl_value_float(rint(value->real));
        const pl_call call = { "int", NULL, &whole, NULL, 1 };
        const arguments inner = { &call, a->scope, a->heap };
        return to_int(&inner, out, err);
    }
    const pl_value *places = &a->call->args[1];
    char spec[16] = ".", digits[8];
    if (places->kind != PL_VALUE_INT || places->whole < 0 || places->whole > 99)
        return decline(err);
    const pl_value count = pl_value_int(places->whole);
    pl_value_write(&count, digits, sizeof digits);
    memcpy(spec + 1, digits, strlen(digits));
    memcpy(spec + 1 + strlen(digits), "f", 2);
    pl_text text = { .heap = a->heap };
    pl_value written;
    pl_status status = pl_text_add_format(&text, value, spec, strlen(spec),
                                          err);
    if (status == PL_OK)
        status = pl_text_end(&text, &written, err);
    if (status != PL_OK || isnan(value->real) || isinf(value->real)) {
        *out = *value;
        return status;
    }
    const pl_call call = { "float", NULL, &written, NULL, 1 };
    const arguments inner = { &call, a->scope, a->heap };
    return to_float(&inner, out, err);
}

/* min and max of the arguments, or of the items of the only one. */
static pl_status extreme(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_operator op = strcmp(a->call->what, "min") == 0 ? PL_PY_LESS
                                                             : PL_PY_GREATER;
    const pl_value *items = a->call->args;
    size_t count = a->call->count;
    if (count == 1 && items[0].kind != PL_VALUE_LIST)
        return pl_fail(err, PL_E_CONFIG, "%s() of one value that is no list",
                       a->call->what);
    if (count == 1) {
        count = items[0].count;
        items = items[0].items;
    }
    if (count == 0)
        return pl_fail(err, PL_E_CONFIG, "%s() of nothing", a->call->what);
    *out = items[0];
    for (size_t i = 1; i < count; i++) {
        pl_value better;
        pl_status status = pl_value_compare(&better, op, &items[i], out, err);
        if (status != PL_OK)
            return status;
        if (better.flag)
            *out = items[i];
    }
    return PL_OK;
}

static pl_status sum(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_value *list = a->call->args;
    if (list->kind != PL_VALUE_LIST)
        return pl_fail(err, PL_E_CONFIG, "sum() of %s",
                       pl_value_kind_name(list->kind));
    *out = pl_value_int(0);
    for (size_t i = 0; i < list->count; i++) {
        pl_value before = *out;
        if (list->items[i].kind == PL_VALUE_FLOAT)
            return decline(err); /* newer Pythons compensate */
        pl_status status = pl_value_combine(out, PL_PY_ADD, &before,
                                            &list->items[i], a->heap, err);
        if (status != PL_OK)
            return status;
    }
    return PL_OK;
}

static pl_status length(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_value *value = a->call->args;
    int64_t count = 0;
    if (value->kind == PL_VALUE_TEXT)
        for (const char *c = value->text; *c; c++)
            count += pl_utf8_starts(*c);
    else if (value->kind == PL_VALUE_LIST)
        count = (int64_t)value->count;
    else
        return pl_fail(err, PL_E_CONFIG, "len() of %s",
                       pl_value_kind_name(value->kind));
    *out = pl_value_int(count);
    return PL_OK;
}

static pl_status mathematics(const arguments *a, pl_value *out, pl_error *err)
{
    static const struct {
        const char *name;
        double (*compute)(double);
    } known[] = {
        { "math.sqrt", sqrt },
        { "math.exp", pl_exact_exp },
        { "math.log", pl_exact_log },
        { "math.log2", pl_exact_log2 },
        { "math.log10", pl_exact_log10 },
        { "math.cos", pl_exact_cos },
        { "math.sin", pl_exact_sin },
        { "math.floor", floor },
        { "math.ceil", ceil },
    };
    double real;
    size_t i = 0;
    while (i < 8 && strcmp(known[i].name, a->call->what) != 0)
        i++;
    if (!as_real(a->call->args, &real))
        return pl_fail(err, PL_E_CONFIG, "%s() of %s", a->call->what,
                       pl_value_kind_name(a->call->args->kind));
    if (isfinite(real) && fabs(real) >= PL_EXACT_MOST_ANGLE &&
        (known[i].compute == pl_exact_cos || known[i].compute == pl_exact_sin))
        return pl_fail(err, PL_E_CONFIG,
                       "%s(%g): angles are understood up to %g", a->call->what,
                       real, PL_EXACT_MOST_ANGLE);
    const pl_value result = pl_value_float(known[i].compute(real));
    if (!isfinite(result.real))
        return pl_fail(err, PL_E_CONFIG, "%s(%g) is not a number",
                       a->call->what, real);
    *out = result;
    const pl_call call = { "int", NULL, &result, NULL, 1 };
    const arguments inner = { &call, a->scope, a->heap };
    return i >= 7 ? to_int(&inner, out, err) : PL_OK;
}

/* ---- the environment ---- */

static pl_status environment(const arguments *a, pl_value *out, pl_error *err)
{
    const pl_call *call = a->call;
    const pl_config_host *host = a->scope ? a->scope->host : NULL;
    if (!host || !host->variable)
        return decline(err);
    if (call->args[0].kind != PL_VALUE_TEXT)
        return pl_fail(err, PL_E_CONFIG, "%s needs a name", call->what);
    const char *text = host->variable(host->context, call->args[0].text);
    if (!text && strcmp(call->what, "os.environ[]") == 0)
        return pl_fail(err, PL_E_CONFIG,
                       "the variable %.60s is not set in the environment",
                       call->args[0].text);
    if (!text) {
        *out = call->count > 1 ? call->args[1] : pl_value_none();
        return PL_OK;
    }
    if (strlen(text) > PL_VALUE_MAX_BYTES ||
        pl_utf8_text_bytes(text, strlen(text)) < strlen(text))
        return pl_fail(err, PL_E_CONFIG,
                       "the variable %.60s of the environment is not UTF-8, or "
                       "longer than %s",
                       call->args[0].text,
                       pl_units_exact(PL_VALUE_MAX_BYTES).text);
    const char *copy = NULL;
    pl_status status = pl_heap_text(a->heap, &copy, text, strlen(text), err);
    *out = pl_value_text(copy);
    return status;
}

/* ---- methods of strings ---- */

/* One {field} of a format string, without its braces. */
static pl_status add_field(const arguments *a, const char *field, size_t bytes,
                           size_t *next, pl_text *text, pl_error *err)
{
    const pl_call *call = a->call;
    size_t name = 0, at = 0, index = 0;
    while (name < bytes && field[name] != ':' && field[name] != '!')
        name++;
    at = name;
    char conversion = at + 1 < bytes && field[at] == '!' ? field[at + 1] : 's';
    if (at < bytes && field[at] == '!')
        at += 2;
    if ((at < bytes && field[at] != ':') || at > bytes ||
        (conversion != 's' && conversion != 'r') || memchr(field, '{', bytes) ||
        memchr(field, '.', name) || memchr(field, '[', name))
        return decline(err);
    if (name == 0)
        index = (*next)++;
    else if (field[0] >= '0' && field[0] <= '9' && name < 4)
        index = (size_t)strtol(field, NULL, 10);
    else
        while (index < call->count &&
               (!call->names[index] || strlen(call->names[index]) != name ||
                memcmp(call->names[index], field, name) != 0))
            index++;
    if (index >= call->count)
        return pl_fail(err, PL_E_CONFIG,
                       "'%.40s'.format() has no argument for {%.*s}",
                       call->self->text, name < 40 ? (int)name : 40, field);
    if (conversion == 'r' && at == bytes)
        return pl_text_add_value(text, &call->args[index], true, err);
    if (conversion == 'r')
        return decline(err);
    return pl_text_add_format(text, &call->args[index],
                              at < bytes ? field + at + 1 : "",
                              at < bytes ? bytes - at - 1 : 0, err);
}

static pl_status format(const arguments *a, pl_value *out, pl_error *err)
{
    const char *at = a->call->self->text;
    size_t next = 0;
    pl_text text = { .heap = a->heap };
    pl_status status = PL_OK;
    while (status == PL_OK && *at) {
        size_t plain = strcspn(at, "{}");
        status = pl_text_add(&text, at, plain, err);
        at += plain;
        if (status != PL_OK || !*at)
            break;
        if (at[1] == at[0]) {
            status = pl_text_add(&text, at, 1, err);
            at += 2;
            continue;
        }
        size_t bytes = strcspn(at, "}");
        if (*at == '}' || !at[bytes])
            return pl_fail(err, PL_E_CONFIG,
                           "'%.40s': a brace that stands alone",
                           a->call->self->text);
        status = add_field(a, at + 1, bytes - 1, &next, &text, err);
        at += bytes + 1;
    }
    return status == PL_OK ? pl_text_end(&text, out, err) : status;
}

static pl_status change_case(const arguments *a, pl_value *out, pl_error *err)
{
    const char *from = a->call->self->text;
    const bool up = strcmp(a->call->what, "upper") == 0;
    char *text = NULL;
    size_t bytes = strlen(from);
    pl_status status = pl_heap_take(a->heap, &text, bytes + 1, 1, err);
    for (size_t i = 0; i < bytes && status == PL_OK; i++) {
        if ((unsigned char)from[i] >= 0x80)
            return decline(err); /* other alphabets have other rules */
        text[i] = up && from[i] >= 'a' && from[i] <= 'z' ? (char)(from[i] - 32)
                  : !up && from[i] >= 'A' && from[i] <= 'Z'
                      ? (char)(from[i] + 32)
                      : from[i];
    }
    *out = pl_value_text(text);
    return status;
}

static pl_status has_end(const arguments *a, pl_value *out, pl_error *err)
{
    const char *text = a->call->self->text;
    if (a->call->args[0].kind != PL_VALUE_TEXT)
        return decline(err);
    const char *part = a->call->args[0].text;
    size_t all = strlen(text), bytes = strlen(part);
    size_t at = strcmp(a->call->what, "endswith") == 0 ? all - bytes : 0;
    *out = pl_value_flag(bytes <= all && memcmp(text + at, part, bytes) == 0);
    return PL_OK;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    function *compute;
    size_t least, most; /* arguments */
    bool method, named; /* of a string; takes names */
} functions[] = {
    { "int", to_int, 1, 1, false, false },
    { "float", to_float, 1, 1, false, false },
    { "str", to_text, 1, 1, false, false },
    { "repr", to_text, 1, 1, false, false },
    { "bool", to_flag, 1, 1, false, false },
    { "abs", absolute, 1, 1, false, false },
    { "round", rounded, 1, 2, false, false },
    { "min", extreme, 1, 10000, false, false },
    { "max", extreme, 1, 10000, false, false },
    { "sum", sum, 1, 1, false, false },
    { "len", length, 1, 1, false, false },
    { "math.sqrt", mathematics, 1, 1, false, false },
    { "math.exp", mathematics, 1, 1, false, false },
    { "math.log", mathematics, 1, 1, false, false },
    { "math.log2", mathematics, 1, 1, false, false },
    { "math.log10", mathematics, 1, 1, false, false },
    { "math.cos", mathematics, 1, 1, false, false },
    { "math.sin", mathematics, 1, 1, false, false },
    { "math.floor", mathematics, 1, 1, false, false },
    { "math.ceil", mathematics, 1, 1, false, false },
    { "os.getenv", environment, 1, 2, false, false },
    { "os.environ.get", environment, 1, 2, false, false },
    { "os.environ[]", environment, 1, 1, false, false },
    { "format", format, 0, 10000, true, true },
    { "upper", change_case, 0, 0, true, false },
    { "lower", change_case, 0, 0, true, false },
    { "startswith", has_end, 1, 1, true, false },
    { "endswith", has_end, 1, 1, true, false },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

bool pl_call_knows(const char *name, size_t bytes)
{
    /* the modules that nanoGPT's train.py has imported */
    static const char *const modules[] = { "os",     "time", "math",
                                           "pickle", "np",   "torch" };
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strlen(modules[i]) == bytes && memcmp(name, modules[i], bytes) == 0)
            return true;
    for (size_t i = 0; i < FUNCTIONS; i++)
        if (!functions[i].method && strlen(functions[i].name) == bytes &&
            memcmp(name, functions[i].name, bytes) == 0)
            return true;
    return false;
}

bool pl_call_constant(const char *name, pl_value *out)
{
    static const struct {
        const char *name;
        double real;
    } known[] = { { "math.pi", 3.141592653589793 },
                  { "math.e", 2.718281828459045 },
                  { "math.inf", HUGE_VAL } };
    for (size_t i = 0; i < 3; i++)
        if (strcmp(known[i].name, name) == 0) {
            *out = pl_value_float(known[i].real);
            return true;
        }
    return false;
}

pl_status pl_call_evaluate(const pl_call *call, pl_scope *scope, pl_value *out,
                           pl_heap *heap, pl_error *err)
{
    const arguments a = { call, scope, heap };
    bool named = false;
    for (size_t i = 0; i < call->count && call->names; i++)
        named |= call->names[i] != NULL;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        if (strcmp(functions[i].name, call->what) != 0 ||
            functions[i].method != (call->self != NULL))
            continue;
        if (call->count < functions[i].least ||
            call->count > functions[i].most || (named && !functions[i].named) ||
            (call->self && call->self->kind != PL_VALUE_TEXT))
            return decline(err);
        return functions[i].compute(&a, out, err);
    }
    return decline(err);
}

pl_status pl_value_index(pl_value *out, const pl_value *sequence,
                         const pl_value *index, pl_heap *heap, pl_error *err)
{
    if ((sequence->kind != PL_VALUE_LIST && sequence->kind != PL_VALUE_TEXT) ||
        index->kind != PL_VALUE_INT)
        return pl_fail(err, PL_E_CONFIG, "%s[%s] is not defined here",
                       pl_value_kind_name(sequence->kind),
                       pl_value_kind_name(index->kind));
    const char *text = sequence->kind == PL_VALUE_TEXT ? sequence->text : "";
    int64_t count = (int64_t)sequence->count, at = index->whole;
    for (const char *c = text; *c; c++)
        count += pl_utf8_starts(*c);
    at += at < 0 ? count : 0;
    if (at < 0 || at >= count)
        return pl_fail(err, PL_E_CONFIG,
                       "there is no item %lld, there are %lld",
                       (long long)index->whole, (long long)count);
    if (sequence->kind == PL_VALUE_LIST) {
        *out = sequence->items[at];
        return PL_OK;
    }
    for (; at > 0 || !pl_utf8_starts(*text); text++)
        at -= pl_utf8_starts(text[1]);
    size_t bytes = 1;
    while (text[bytes] && !pl_utf8_starts(text[bytes]))
        bytes++;
    const char *copy = NULL;
    pl_status status = pl_heap_text(heap, &copy, text, bytes, err);
    *out = pl_value_text(copy);
    return status;
}
