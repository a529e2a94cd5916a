/* faults.c: see faults.h. */
#include "support/faults.h"
#include "base/file.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 10000 };

/* Whether the call was made: else there are fewer than `nth` of them. */
static int try_call(pl_status (*act)(void), void (*judge)(pl_status status),
                    long nth, int error, pl_error *err, const char *where)
{
    int before = scratch_open_files();
    memset(err, 0, sizeof *err);
    pl_file_fail_at(nth, error);
    pl_status status = act();
    int happened = pl_file_fault_happened();
    pl_file_fail_at(0, 0);
    assert_int_equal(scratch_open_files(), before);
    if (status != PL_OK) {
        assert_true(happened);
        assert_int_equal(err->status, status);
        assert_contains(err->text, strerror(error));
        assert_contains(err->text, where);
    }
    judge(status);
    return happened;
}

void faults_in_every_call(pl_status (*act)(void),
                          void (*judge)(pl_status status), long at_least,
                          pl_error *err, const char *where)
{
    static const int errors[] = { EIO, ENOSPC, EACCES };
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        long nth = 1;
        while (nth < MANY && try_call(act, judge, nth, errors[i], err, where))
            nth++;
        assert_in_range(nth, at_least, MANY - 1);
    }
}
