/* Tests of html: whatever goes in, what comes out is well-formed, and text is
 * text. */
#include "web/html.h"
#include "web/shell.h"

#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "page_fixture.h"

static page p;

static void text_and_attributes_are_escaped(void **state)
{
    (void)state;
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_html_open(&h, PL_TAG_p);
    pl_html_attr(&h, PL_ATTR_class, "a\"b<c>&\n");
    pl_html_text(&h, "1 < 2 & \"3\" > 2");
    pl_html_close(&h);
    pl_html_end(&h);
    assert_string_equal(p.text, "<p class=\"a&quot;b&lt;c&gt;&amp;&#10;\">1 "
                                "&lt; 2 &amp; &quot;3&quot; &gt; 2</p>\n");
    ASSERT_WELLFORMED(&p);
}

static void hostile_text_is_shown_and_harmless(void **state)
{
    (void)state;
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_html_open(&h, PL_TAG_div);
    pl_html_attr(&h, PL_ATTR_aria_label, hostile);
    pl_html_open(&h, PL_TAG_a);
    pl_html_link(&h, hostile);
    pl_html_textf(&h, "%s", hostile);
    pl_html_close(&h);
    pl_html_bytes(&h, hostile, sizeof hostile); /* with its zero */
    pl_html_close(&h);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    assert_null(strstr(p.text, "<script"));
    assert_non_null(strstr(p.text, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_non_null(strstr(p.text, "\\x1b[31m\\u009b\\xff\\xfe\\u202e"));
    assert_non_null(strstr(p.text, "href=\"#&lt;script"));
}

static void every_byte_may_come(void **state)
{
    char bytes[2 * 256];
    (void)state;
    for (int first = 0; first < 256; first++) {
        for (int i = 0; i < 256; i++) {
            bytes[2 * i] = (char)first;
            bytes[2 * i + 1] = (char)i;
        }
        p.used = 0;
        pl_html h = pl_html_begin(page_take, &p);
        pl_html_open(&h, PL_TAG_pre);
        pl_html_bytes(&h, bytes, sizeof bytes);
        pl_html_close(&h);
        pl_html_end(&h);
        ASSERT_WELLFORMED(&p);
    }
}

static void empty_elements_have_an_end(void **state)
{
    (void)state;
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_html_open(&h, PL_TAG_div);
    pl_html_put(&h, PL_TAG_span, NULL, NULL);
    pl_html_open(&h, PL_TAG_meta);
    pl_html_attr(&h, PL_ATTR_charset, "utf-8");
    pl_html_close(&h);
    pl_html_close(&h);
    pl_html_end(&h);
    assert_string_equal(p.text, "<div><span></span><meta charset=\"utf-8\"/>\n"
                                "</div>\n");
}

static void a_long_page_passes_whole(void **state)
{
    (void)state;
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_html_open(&h, PL_TAG_div);
    for (int i = 0; i < 5000; i++)
        pl_html_put(&h, PL_TAG_p, NULL, "0123456789");
    pl_html_close(&h);
    pl_html_end(&h);
    assert_int_equal(p.used, strlen("<div>\n</div>\n") +
                                 5000 * strlen("<p>0123456789</p>\n"));
    ASSERT_WELLFORMED(&p);
}

static void a_page_asks_for_nothing_and_runs_nothing(void **state)
{
    static const char *const never[] = { "<script", "src=",        "<link",
                                         "<img",    "<iframe",     "@import",
                                         "url(",    "javascript:", " on" };
    const pl_config config = pl_config_make_default();
    (void)state;
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_shell_begin(&h, hostile, hostile);
    pl_shell_section(&h, "config", "Config");
    pl_shell_config(&h, &config, PL_FOR_ALL);
    pl_html_close(&h);
    pl_shell_end(&h);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    const char *body = strstr(p.text, "<body>");
    for (size_t i = 0; i + 1 < sizeof never / sizeof *never; i++)
        assert_null(strstr(p.text, never[i]));
    assert_null(strstr(body, " onload="));
    assert_non_null(strstr(p.text, "content=\"" PL_SHELL_GENERATOR " "));
    assert_non_null(strstr(p.text, "<th scope=\"row\">n_layer</th>"));
}

static void the_checker_sees_what_is_wrong(void **state)
{
    static const char *const wrong[] = {
        "<a>",
        "<a></b>",
        "<a><b></a></b>",
        "<a>&nbsp;</a>",
        "<a>\x1b</a>",
        "<a b=c></a>",
        "<a b=\"<\"></a>",
        "<a>\xff</a>",
        "<a/><b/>",
        "text",
        "<a b=\"1\" b=\"2\"/>",
        "<a><</a>",
        "<a>\xe2\x80\xae</a>",
    };
    size_t at;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(wellformed_trouble(wrong[i], strlen(wrong[i]), &at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_attributes_are_escaped),
        cmocka_unit_test(hostile_text_is_shown_and_harmless),
        cmocka_unit_test(every_byte_may_come),
        cmocka_unit_test(empty_elements_have_an_end),
        cmocka_unit_test(a_long_page_passes_whole),
        cmocka_unit_test(a_page_asks_for_nothing_and_runs_nothing),
        cmocka_unit_test(the_checker_sees_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
