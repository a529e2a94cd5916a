#include "golden/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HEAP_BYTES = 64 * 1024 * 1024 };

static pl_error err;

void fixture_open(fixture *f, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "tests/golden/%s.safetensors", name);
    *f = (fixture){ .name = name, .heap = pl_heap_make(HEAP_BYTES) };
    if (pl_safetensors_open(&f->file, path, &f->heap, &err))
        fail_msg("%s", err.text);
}

void fixture_close(fixture *f)
{
    pl_safetensors_close(&f->file);
    pl_heap_close(&f->heap);
}

static const void *tensor_data(fixture *f, const char *tensor,
                               pl_tensor_dtype dtype, size_t bytes)
{
    const pl_tensor_info *info = pl_safetensors_find(&f->file, tensor);
    void *data = NULL;
    if (!info)
        fail_msg("%s has no %s", f->name, tensor);
    if (info->dtype != dtype || info->bytes != bytes)
        fail_msg("%s: %s has %zu bytes or a dtype that wasn't expected",
                 f->name, tensor, (size_t)info->bytes);
    if (pl_heap_take(&f->heap, &data, bytes, 1, &err) ||
        pl_safetensors_read(&f->file, info, 0, data, bytes, &err))
        fail_msg("%s", err.text);
    return data;
}

const float *fixture_floats(fixture *f, const char *tensor, size_t count)
{
    return tensor_data(f, tensor, PL_TENSOR_F32, count * sizeof(float));
}

const double *fixture_doubles(fixture *f, const char *tensor, size_t count)
{
    return tensor_data(f, tensor, PL_TENSOR_F64, count * sizeof(double));
}

const int32_t *fixture_ints(fixture *f, const char *tensor, size_t count)
{
    return tensor_data(f, tensor, PL_TENSOR_I32, count * sizeof(int32_t));
}

size_t fixture_config(fixture *f, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "config.%s", key);
    return (size_t)*fixture_ints(f, name, 1);
}

double fixture_number(fixture *f, const char *tensor)
{
    return *fixture_doubles(f, tensor, 1);
}

/* ---- comparing ---- */

static void note(worst *seen, double ratio, const char *where)
{
    if (!(ratio <= seen->ratio)) {
        seen->ratio = ratio;
        snprintf(seen->where, sizeof seen->where, "%s", where);
    }
}

void assert_near(worst *seen, const float *found, const float *expected,
                 size_t count, double tolerance, const char *fmt, ...)
{
    double largest = 0.0, error = 0.0;
    size_t at = 0;
    char where[sizeof seen->where];
    va_list args;

    va_start(args, fmt);
    vsnprintf(where, sizeof where, fmt, args);
    va_end(args);
    for (size_t i = 0; i < count; i++) {
        double off = fabs((double)found[i] - (double)expected[i]);
        largest = fmax(largest, fabs((double)expected[i]));
        if (!(off <= error)) { /* NaN stays: nothing compares with it */
            error = off;
            at = i;
        }
    }
    if (!(error <= tolerance * largest))
        fail_msg("%s: element %zu is %.9g, expected %.9g: off by %.3g of the "
                 "largest value, %.2g are allowed",
                 where, at, (double)found[at], (double)expected[at],
                 error / largest, tolerance);
    if (largest > 0.0)
        note(seen, error / largest, where);
}

void assert_number_near(worst *seen, double found, double expected, double unit,
                        double tolerance, const char *fmt, ...)
{
    double error = fabs(found - expected) / unit;
    char where[sizeof seen->where];
    va_list args;

    va_start(args, fmt);
    vsnprintf(where, sizeof where, fmt, args);
    va_end(args);
    if (!(error <= tolerance))
        fail_msg("%s: %.12g, expected %.12g: off by %.3g, %.2g are allowed",
                 where, found, expected, error, tolerance);
    note(seen, error, where);
}

void worst_say(const worst *seen, const char *what)
{
    print_message("%s: at most %.2g off (%s)\n", what, seen->ratio,
                  seen->where);
}
