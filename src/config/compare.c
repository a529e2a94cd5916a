/* compare.c: Python's comparisons and its idea of truth. */
#include "config/value.h"

#include <string.h>

bool pl_value_truth(const pl_value *value)
{
    switch (value->kind) {
    case PL_VALUE_FLAG:
        return value->flag;
    case PL_VALUE_INT:
        return value->whole != 0;
    case PL_VALUE_FLOAT:
        return value->real != 0.0; /* NaN is true */
    case PL_VALUE_TEXT:
        return value->text[0] != '\0';
    case PL_VALUE_LIST:
        return value->count > 0;
    case PL_VALUE_NONE:
    case PL_VALUE_UNKNOWN:
        break;
    }
    return false;
}

static bool is_number(const pl_value *value)
{
    return value->kind == PL_VALUE_INT || value->kind == PL_VALUE_FLAG ||
           value->kind == PL_VALUE_FLOAT;
}

/* How two numbers stand: -1, 0, 1, or 2 where one is no number at all. */
static int order_numbers(const pl_value *a, const pl_value *b)
{
    if (a->kind != PL_VALUE_FLOAT && b->kind != PL_VALUE_FLOAT) {
        int64_t x = a->kind == PL_VALUE_FLAG ? a->flag : a->whole;
        int64_t y = b->kind == PL_VALUE_FLAG ? b->flag : b->whole;
        return x < y ? -1 : x > y;
    }
    double x = a->kind == PL_VALUE_FLOAT  ? a->real
               : a->kind == PL_VALUE_FLAG ? (double)a->flag
                                          : (double)a->whole;
    double y = b->kind == PL_VALUE_FLOAT  ? b->real
               : b->kind == PL_VALUE_FLAG ? (double)b->flag
                                          : (double)b->whole;
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static bool equal(const pl_value *a, const pl_value *b)
{
    if (is_number(a) && is_number(b))
        return order_numbers(a, b) == 0;
    if (a->kind != b->kind)
        return false;
    if (a->kind == PL_VALUE_TEXT)
        return strcmp(a->text, b->text) == 0;
    if (a->kind != PL_VALUE_LIST)
        return true; /* None */
    if (a->count != b->count || a->tuple != b->tuple)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (!equal(&a->items[i], &b->items[i]))
            return false;
    return true;
}

static pl_status undefined(pl_operator op, const pl_value *a, const pl_value *b,
                           pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG, "%s %s %s is not defined here",
                   pl_value_kind_name(a->kind), pl_operator_sign(op),
                   pl_value_kind_name(b->kind));
}

static pl_status contains(bool *yes, pl_operator op, const pl_value *a,
                          const pl_value *b, pl_error *err)
{
    *yes = false;
    if (b->kind == PL_VALUE_TEXT && a->kind == PL_VALUE_TEXT) {
        *yes = strstr(b->text, a->text) != NULL;
        return PL_OK;
    }
    if (b->kind != PL_VALUE_LIST)
        return undefined(op, a, b, err);
    for (size_t i = 0; i < b->count; i++)
        *yes |= equal(a, &b->items[i]);
    return PL_OK;
}

/* Of None, True and False there is one each; of others it depends. */
static pl_status same(bool *yes, pl_operator op, const pl_value *a,
                      const pl_value *b, pl_error *err)
{
    const bool one = a->kind == PL_VALUE_NONE || b->kind == PL_VALUE_NONE ||
                     a->kind == PL_VALUE_FLAG || b->kind == PL_VALUE_FLAG;
    *yes = a->kind == b->kind && equal(a, b);
    return one || a->kind != b->kind ? PL_OK : undefined(op, a, b, err);
}

static pl_status order(int *out, pl_operator op, const pl_value *a,
                       const pl_value *b, pl_error *err)
{
    if (is_number(a) && is_number(b)) {
        *out = order_numbers(a, b);
        return PL_OK;
    }
    if (a->kind != PL_VALUE_TEXT || b->kind != PL_VALUE_TEXT)
        return undefined(op, a, b, err);
    int sign = strcmp(a->text, b->text); /* UTF-8 keeps the order of points */
    *out = sign < 0 ? -1 : sign > 0;
    return PL_OK;
}

pl_status pl_value_compare(pl_value *out, pl_operator op, const pl_value *a,
                           const pl_value *b, pl_error *err)
{
    bool yes = false;
    int sign = 0;
    pl_status status = PL_OK;
    switch (op) {
    case PL_PY_EQUAL:
    case PL_PY_NOT_EQUAL:
        yes = equal(a, b) == (op == PL_PY_EQUAL);
        break;
    case PL_PY_IN:
    case PL_PY_NOT_IN:
        status = contains(&yes, op, a, b, err);
        yes ^= op == PL_PY_NOT_IN;
        break;
    case PL_PY_IS:
    case PL_PY_IS_NOT:
        status = same(&yes, op, a, b, err);
        yes ^= op == PL_PY_IS_NOT;
        break;
    case PL_PY_LESS:
        status = order(&sign, op, a, b, err);
        yes = sign == -1;
        break;
    case PL_PY_LESS_EQUAL:
        status = order(&sign, op, a, b, err);
        yes = sign == -1 || sign == 0;
        break;
    case PL_PY_GREATER:
        status = order(&sign, op, a, b, err);
        yes = sign == 1;
        break;
    default:
        status = order(&sign, op, a, b, err);
        yes = sign == 1 || sign == 0;
        break;
    }
    if (status == PL_OK)
        *out = pl_value_flag(yes);
    return status;
}
