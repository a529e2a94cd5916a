/* test_outdir_mend.c: a checkpoint that was to be replaced by another of its
 * step, where a kill came between. */
#include "store/outdir.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { NAME_BYTES = 128 };

/* out/<prefix>step-7/a, with this text; returns its path. */
static const char *make(const scratch *s, const char *prefix, const char *text)
{
    char step[PL_OUTDIR_NAME_BYTES], name[NAME_BYTES];
    pl_outdir_name(step, 7);
    snprintf(name, sizeof name, "out/%s%s", prefix, step);
    mkdir(scratch_path(s, "out"), 0700);
    if (text) {
        assert_int_equal(mkdir(scratch_path(s, name), 0700), 0);
        snprintf(name, sizeof name, "out/%s%s/a", prefix, step);
        scratch_write(scratch_path(s, name), text, 3);
    }
    snprintf(name, sizeof name, "out/%s%s/a", prefix, step);
    return scratch_path(s, name);
}

/* What step 7 holds once the folder was mended; nothing is left aside. */
static void expect(const char *aside, const char *there, const char *wanted)
{
    const pl_log silent = { 0 };
    pl_error err = { 0 };
    scratch s;
    size_t bytes;
    scratch_open(&s);
    make(&s, PL_OUTDIR_REPLACED, aside);
    make(&s, "", there);
    assert_int_equal(
        pl_outdir_mend_closed(scratch_path(&s, "out"), &silent, &err), PL_OK);
    char *text = scratch_read(make(&s, "", NULL), &bytes);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
    assert_false(scratch_has(make(&s, PL_OUTDIR_REPLACED, NULL)));
    scratch_close(&s);
}

static void what_was_set_aside_comes_back(void **state)
{
    (void)state;
    expect("old", NULL, "old");
}

static void what_took_its_place_stays(void **state)
{
    (void)state;
    expect("old", "new", "new");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_set_aside_comes_back),
        cmocka_unit_test(what_took_its_place_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
