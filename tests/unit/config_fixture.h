/* config_fixture.h: what the tests of the config parser share. */
#ifndef PL_TEST_CONFIG_FIXTURE_H
#define PL_TEST_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    pl_config cfg;
    pl_heap heap;
    pl_error err;
} fixture;

static inline int open_fixture(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->cfg = pl_config_make_default();
    f->heap = pl_heap_make((size_t)1 << 24);
    *state = f;
    return 0;
}

static inline int close_fixture(void **state)
{
    fixture *f = *state;
    pl_heap_close(&f->heap);
    free(f);
    return 0;
}

static inline pl_status parse(fixture *f, const char *text)
{
    return pl_config_parse(&f->cfg, text, strlen(text), "x.py", &f->heap,
                           &f->err);
}

static inline void parses(fixture *f, const char *text)
{
    f->err.text[0] = '\0';
    if (parse(f, text) != PL_OK)
        fail_msg("refused: %s\n%s", text, f->err.text);
}

/* Refused, with a message that has all of `part` in it. */
static inline void refused(fixture *f, const char *text, const char *part)
{
    if (parse(f, text) != PL_E_CONFIG)
        fail_msg("not refused: %s", text);
    assert_int_equal(f->err.status, PL_E_CONFIG);
    if (!strstr(f->err.text, part))
        fail_msg("expected '%s' in:\n%s", part, f->err.text);
}

/* Read, and refused by pl_config_check or not. */
static inline void check_refused(fixture *f, const char *text, const char *part)
{
    f->cfg = pl_config_make_default();
    parses(f, text);
    assert_int_equal(pl_config_check(&f->cfg, &f->err), PL_E_CONFIG);
    if (!strstr(f->err.text, part))
        fail_msg("expected '%s' in:\n%s", part, f->err.text);
}

static inline void check_passes(fixture *f, const char *text)
{
    f->cfg = pl_config_make_default();
    parses(f, text);
    if (pl_config_check(&f->cfg, &f->err) != PL_OK)
        fail_msg("%s: %s", text, f->err.text);
}

#define TEST(name)                                                             \
    cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

#endif
