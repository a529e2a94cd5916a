/* arith.c: Python's arithmetic on the values of value.h. */
#include "base/units.h"
#include "config/value.h"

#include "base/exact.h"

#include <math.h>
#include <string.h>

static const char *const signs[] = {
    [PL_PY_ADD] = "+",           [PL_PY_SUBTRACT] = "-",
    [PL_PY_MULTIPLY] = "*",      [PL_PY_DIVIDE] = "/",
    [PL_PY_FLOOR_DIVIDE] = "//", [PL_PY_MODULO] = "%",
    [PL_PY_POWER] = "**",        [PL_PY_SHIFT_LEFT] = "<<",
    [PL_PY_SHIFT_RIGHT] = ">>",  [PL_PY_BIT_AND] = "&",
    [PL_PY_BIT_XOR] = "^",       [PL_PY_BIT_OR] = "|",
    [PL_PY_LESS] = "<",          [PL_PY_LESS_EQUAL] = "<=",
    [PL_PY_GREATER] = ">",       [PL_PY_GREATER_EQUAL] = ">=",
    [PL_PY_EQUAL] = "==",        [PL_PY_NOT_EQUAL] = "!=",
    [PL_PY_IN] = "in",           [PL_PY_NOT_IN] = "not in",
    [PL_PY_IS] = "is",           [PL_PY_IS_NOT] = "is not",
};

const char *pl_operator_sign(pl_operator op)
{
    return signs[op];
}

static pl_status too_large(pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG,
                   "the result does not fit a whole number of 64 bits");
}

static pl_status by_zero(pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG, "division by zero");
}

/* A bool counts as 0 or 1, as in Python. */
static bool is_whole(const pl_value *value)
{
    return value->kind == PL_VALUE_INT || value->kind == PL_VALUE_FLAG;
}

static bool is_number(const pl_value *value)
{
    return is_whole(value) || value->kind == PL_VALUE_FLOAT;
}

static int64_t whole_of(const pl_value *value)
{
    return value->kind == PL_VALUE_FLAG ? value->flag : value->whole;
}

static double real_of(const pl_value *value)
{
    return value->kind == PL_VALUE_FLOAT ? value->real
                                         : (double)whole_of(value);
}

/* ---- floats ---- */

/* Quotient and remainder with the remainder's sign that of b, as CPython's
 * float_divmod computes them. */
static void floor_divide(double a, double b, double *quotient,
                         double *remainder)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0.0) {
        if ((b < 0.0) != (mod < 0.0)) {
            mod += b;
            div -= 1.0;
        }
    } else {
        mod = copysign(0.0, b);
    }
    double floored = copysign(0.0, a / b);
    if (div != 0.0) {
        floored = floor(div);
        if (div - floored > 0.5)
            floored += 1.0;
    }
    *quotient = floored;
    *remainder = mod;
}

static pl_status combine_power(pl_value *out, double a, double b, pl_error *err)
{
    if (a == 0.0 && b < 0.0)
        return by_zero(err);
    if (a < 0.0 && floor(b) != b && isfinite(a))
        return pl_fail(err, PL_E_CONFIG,
                       "a negative number to a broken power is not a real "
                       "number");
    double power = pl_exact_pow(a, b);
    if (isinf(power) && isfinite(a) && isfinite(b))
        return pl_fail(err, PL_E_CONFIG, "the power is too large");
    *out = pl_value_float(power);
    return PL_OK;
}

static pl_status combine_reals(pl_value *out, pl_operator op, double a,
                               double b, pl_error *err)
{
    double quotient = 0.0, remainder = 0.0;
    switch (op) {
    case PL_PY_ADD:
        *out = pl_value_float(a + b);
        return PL_OK;
    case PL_PY_SUBTRACT:
        *out = pl_value_float(a - b);
        return PL_OK;
    case PL_PY_MULTIPLY:
        *out = pl_value_float(a * b);
        return PL_OK;
    case PL_PY_POWER:
        return combine_power(out, a, b, err);
    default:
        break;
    }
    if (b == 0.0)
        return by_zero(err);
    floor_divide(a, b, &quotient, &remainder);
    *out = pl_value_float(op == PL_PY_DIVIDE         ? a / b
                          : op == PL_PY_FLOOR_DIVIDE ? quotient
                                                     : remainder);
    return PL_OK;
}

/* ---- whole numbers ---- */

static pl_status whole_power(pl_value *out, int64_t base, int64_t exponent,
                             pl_error *err)
{
    int64_t power = 1;
    while (exponent > 0) {
        if ((exponent & 1) && __builtin_mul_overflow(power, base, &power))
            return too_large(err);
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
            return too_large(err);
    }
    *out = pl_value_int(power);
    return PL_OK;
}

static pl_status shift(pl_value *out, pl_operator op, int64_t a, int64_t b,
                       pl_error *err)
{
    if (b < 0)
        return pl_fail(err, PL_E_CONFIG, "a negative shift");
    if (op == PL_PY_SHIFT_RIGHT) { /* towards minus infinity */
        *out = pl_value_int(b > 62 ? (a < 0 ? -1 : 0)
                                   : (a < 0 ? ~(~a >> b) : a >> b));
        return PL_OK;
    }
    int64_t result = 0;
    if (a != 0 &&
        (b > 62 || __builtin_mul_overflow(a, (int64_t)1 << b, &result)))
        return too_large(err);
    *out = pl_value_int(result);
    return PL_OK;
}

static pl_status combine_wholes(pl_value *out, pl_operator op, int64_t a,
                                int64_t b, pl_error *err)
{
    int64_t result = 0;
    bool fits = true;
    switch (op) {
    case PL_PY_ADD:
        fits = !__builtin_add_overflow(a, b, &result);
        break;
    case PL_PY_SUBTRACT:
        fits = !__builtin_sub_overflow(a, b, &result);
        break;
    case PL_PY_MULTIPLY:
        fits = !__builtin_mul_overflow(a, b, &result);
        break;
    case PL_PY_POWER:
        if (b < 0)
            return combine_power(out, (double)a, (double)b, err);
        return whole_power(out, a, b, err);
    case PL_PY_DIVIDE:
        return combine_reals(out, op, (double)a, (double)b, err);
    case PL_PY_FLOOR_DIVIDE:
    case PL_PY_MODULO:
        if (b == 0)
            return by_zero(err);
        if (b == -1) { /* INT64_MIN / -1 traps */
            fits = op == PL_PY_MODULO || !__builtin_sub_overflow(0, a, &result);
            break;
        }
        bool round_down = a % b != 0 && (a % b < 0) != (b < 0);
        if (op == PL_PY_MODULO)
            result = a % b + (round_down ? b : 0);
        else
            result = a / b - (round_down ? 1 : 0);
        break;
    case PL_PY_SHIFT_LEFT:
    case PL_PY_SHIFT_RIGHT:
        return shift(out, op, a, b, err);
    case PL_PY_BIT_AND:
        result = a & b;
        break;
    case PL_PY_BIT_XOR:
        result = a ^ b;
        break;
    default:
        result = a | b;
        break;
    }
    if (!fits)
        return too_large(err);
    *out = pl_value_int(result);
    return PL_OK;
}

/* ---- strings and lists ---- */

/* `times` copies of a, then b. */
static pl_status join_texts(pl_value *out, const char *a, int64_t times,
                            const char *b, pl_heap *heap, pl_error *err)
{
    size_t na = strlen(a), nb = strlen(b);
    size_t copies = times > 0 && na > 0 ? (size_t)times : 0;
    char *text = NULL;
    if (copies > PL_VALUE_MAX_BYTES || copies * na + nb > PL_VALUE_MAX_BYTES)
        return pl_fail(err, PL_E_CONFIG, "the string is longer than %s",
                       pl_units_exact(PL_VALUE_MAX_BYTES).text);
    pl_status status = pl_heap_take(heap, &text, copies * na + nb + 1, 1, err);
    if (status != PL_OK)
        return status;
    for (size_t i = 0; i < copies; i++)
        memcpy(text + i * na, a, na);
    memcpy(text + copies * na, b, nb);
    *out = pl_value_text(text);
    return PL_OK;
}

/* `times` copies of a, then b. */
static pl_status join_lists(pl_value *out, const pl_value *a, int64_t times,
                            const pl_value *b, pl_heap *heap, pl_error *err)
{
    pl_value *items = NULL;
    size_t copies = times > 0 && a->count > 0 ? (size_t)times : 0;
    if (copies > PL_VALUE_MAX_ITEMS ||
        copies * a->count + b->count > PL_VALUE_MAX_ITEMS ||
        copies * a->weight + b->weight > PL_VALUE_MAX_ITEMS)
        return pl_fail(err, PL_E_CONFIG, "the list has more than %d items",
                       PL_VALUE_MAX_ITEMS);
    size_t count = copies * a->count + b->count;
    pl_status status = pl_heap_take(heap, &items, count, sizeof *items, err);
    if (status != PL_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        items[i] = i < copies * a->count ? a->items[i % a->count]
                                         : b->items[i - copies * a->count];
    *out = a->tuple ? pl_value_tuple(items, count)
                    : pl_value_list(items, count);
    return PL_OK;
}

/* A string or a list, so many times. */
static pl_status repeat(pl_value *out, const pl_value *a, int64_t times,
                        pl_heap *heap, pl_error *err)
{
    const pl_value empty = pl_value_list(NULL, 0);
    return a->kind == PL_VALUE_TEXT
               ? join_texts(out, a->text, times, "", heap, err)
               : join_lists(out, a, times, &empty, heap, err);
}

static bool is_sequence(const pl_value *value)
{
    return value->kind == PL_VALUE_TEXT || value->kind == PL_VALUE_LIST;
}

pl_status pl_value_combine(pl_value *out, pl_operator op, const pl_value *a,
                           const pl_value *b, pl_heap *heap, pl_error *err)
{
    if (op >= PL_PY_LESS)
        return pl_value_compare(out, op, a, b, err);
    if (is_whole(a) && is_whole(b))
        return combine_wholes(out, op, whole_of(a), whole_of(b), err);
    if (is_number(a) && is_number(b) && op <= PL_PY_POWER)
        return combine_reals(out, op, real_of(a), real_of(b), err);
    if (op == PL_PY_ADD && a->kind == PL_VALUE_TEXT && b->kind == a->kind)
        return join_texts(out, a->text, 1, b->text, heap, err);
    if (op == PL_PY_ADD && a->kind == PL_VALUE_LIST && b->kind == a->kind &&
        a->tuple == b->tuple)
        return join_lists(out, a, 1, b, heap, err);
    if (op == PL_PY_MULTIPLY && is_sequence(a) && is_whole(b))
        return repeat(out, a, whole_of(b), heap, err);
    if (op == PL_PY_MULTIPLY && is_sequence(b) && is_whole(a))
        return repeat(out, b, whole_of(a), heap, err);
    if (op == PL_PY_MODULO && a->kind == PL_VALUE_TEXT)
        return pl_value_percent(out, a->text, b, heap, err);
    return pl_fail(err, PL_E_CONFIG, "%s %s %s is not defined here",
                   pl_value_kind_name(a->kind), signs[op],
                   pl_value_kind_name(b->kind));
}

pl_status pl_value_negate(pl_value *out, const pl_value *a, pl_error *err)
{
    if (is_whole(a))
        return combine_wholes(out, PL_PY_SUBTRACT, 0, whole_of(a), err);
    if (a->kind != PL_VALUE_FLOAT)
        return pl_fail(err, PL_E_CONFIG, "a sign needs a number, found %s",
                       pl_value_kind_name(a->kind));
    *out = pl_value_float(-a->real);
    return PL_OK;
}
