/* page_fixture.h: pages in memory, for the tests of web/html and what is drawn
 * with it. */
#ifndef PL_TESTS_UNIT_PAGE_FIXTURE_H
#define PL_TESTS_UNIT_PAGE_FIXTURE_H

#include "support/wellformed.h"
#include "web/html.h"

#include <stdio.h>
#include <string.h>

typedef struct page {
    char text[1024 * 1024];
    size_t used;
} page;

static void page_take(void *context, const char *text, size_t bytes)
{
    page *p = context;
    if (bytes < sizeof p->text - p->used) {
        memcpy(p->text + p->used, text, bytes);
        p->used += bytes;
        p->text[p->used] = '\0';
    }
}

/* Fails the test unless it is well-formed. */
#define ASSERT_WELLFORMED(p)                                                   \
    do {                                                                       \
        size_t at_;                                                            \
        const char *trouble_ = wellformed_trouble((p)->text, (p)->used, &at_); \
        if (trouble_)                                                          \
            fail_msg("%s at %zu: %.60s", trouble_, at_, (p)->text + at_);      \
    } while (0)

/* Everything that a name should not be. */
static const char hostile[] =
    "<script>alert(1)</script>\"'&amp;]]>\x1b[31m\xc2\x9b\xff\xfe"
    "\xe2\x80\xae../../etc\n\t\r\x01\xef\xbf\xbf\xed\xa0\x80";

#endif
