/* fixture.h: what make_fixtures.py stored, and how results are compared with
 * it. Everything here fails the running test itself (cmocka). */
#ifndef PL_TESTS_GOLDEN_FIXTURE_H
#define PL_TESTS_GOLDEN_FIXTURE_H

#include "base/arena.h"
#include "format/safetensors.h"

#include <stddef.h>
#include <stdint.h>

typedef struct fixture {
    const char *name;
    pl_heap heap;
    pl_safetensors file;
} fixture;

/* tests/golden/<name>.safetensors */
void fixture_open(fixture *f, const char *name);
void fixture_close(fixture *f);

/* A tensor of exactly `count` elements; it lives as long as the fixture. */
const float *fixture_floats(fixture *f, const char *tensor, size_t count);
const double *fixture_doubles(fixture *f, const char *tensor, size_t count);
const int32_t *fixture_ints(fixture *f, const char *tensor, size_t count);

/* "config.<key>", and a tensor of one double. */
size_t fixture_config(fixture *f, const char *key);
double fixture_number(fixture *f, const char *tensor);

/* ---- comparing ---- */

/* The largest error seen, as a part of what it was compared with. */
typedef struct worst {
    double ratio;
    char where[192];
} worst;

/* Every element within `tolerance` times the largest absolute expected one;
 * NaN is never within. `fmt` says what is compared. */
PL_PRINTF(6, 7)
void assert_near(worst *seen, const float *found, const float *expected,
                 size_t count, double tolerance, const char *fmt, ...);

/* found within `tolerance` times `unit` of expected. */
PL_PRINTF(6, 7)
void assert_number_near(worst *seen, double found, double expected, double unit,
                        double tolerance, const char *fmt, ...);

/* Prints it: a test that passes says how well. */
void worst_say(const worst *seen, const char *what);

#endif
