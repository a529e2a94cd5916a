/* Tests of svg: ticks that people would choose, and pictures that are well
 * formed whatever the numbers are. */
#include "web/plan_picture.h"
#include "web/svg.h"

#include "support/asserts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "page_fixture.h"

static page p;

static void ticks_are_round_and_within(void **state)
{
    static const double ranges[][2] = { { 0, 1 },       { 0, 7 },
                                        { 2.31, 4.7 },  { -3, 12 },
                                        { 1e-9, 3e-9 }, { 0, 600000 },
                                        { 1e9, 1.5e9 }, { 5, 5.001 } };
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const double low = ranges[i][0], high = ranges[i][1];
        const pl_svg_ticks t = pl_svg_ticks_make(low, high, 6);
        const double slack = 1e-6 * t.step;
        assert_true(t.count >= 2 && t.count <= 14);
        assert_true(t.first >= low - slack);
        assert_true(t.first + (t.count - 1) * t.step <= high + slack);
        double digit = t.step;
        while (digit < 0.99)
            digit *= 10;
        while (digit > 9.99)
            digit /= 10;
        assert_true(fabs(digit - 1) < 1e-9 || fabs(digit - 2) < 1e-9 ||
                    fabs(digit - 5) < 1e-9);
    }
    assert_int_equal(pl_svg_ticks_make(3, 3, 6).count, 1);
    assert_int_equal(pl_svg_ticks_make((double)NAN, 1, 6).count, 1);
}

static void labels_are_short(void **state)
{
    char text[PL_SVG_LABEL_BYTES];
    (void)state;
    pl_svg_label(1500, 500, PL_SVG_COUNT, text);
    assert_string_equal(text, "1.5k");
    pl_svg_label(20e6, 5e6, PL_SVG_COUNT, text);
    assert_string_equal(text, "20M");
    pl_svg_label(1.5e9, 1e8, PL_SVG_BYTES, text);
    assert_string_equal(text, "1.50 GB");
    pl_svg_label(2.25, 0.25, PL_SVG_NUMBER, text);
    assert_string_equal(text, "2.2");
    pl_svg_label(0.0003, 0.0001, PL_SVG_NUMBER, text);
    assert_string_equal(text, "3.0e-04");
    pl_svg_label(1e-17, 1, PL_SVG_NUMBER, text);
    assert_string_equal(text, "0");
}

/* A chart of these numbers. */
static void draw(const pl_svg_point *points, size_t count, pl_svg_scale scale,
                 pl_svg_use use)
{
    static const double marks[] = { 1.0, 3.0 };
    const pl_svg_series series[] = {
        { hostile, points, count, 0, PL_SVG_LINE | PL_SVG_BAND },
        { "dots", points, count, 1, PL_SVG_DOTS | PL_SVG_WHISKERS },
    };
    const pl_svg_chart chart = {
        .id = "c1",
        .title = hostile,
        .text = hostile,
        .x_name = "step",
        .y_name = hostile,
        .y_scale = scale,
        .series = series,
        .n_series = 2,
        .marks = marks,
        .n_marks = 2,
        .mark_name = hostile,
    };
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_svg_draw(&h, &chart, use);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    assert_null(strstr(p.text, "<script"));
    assert_null(strstr(p.text, "nan"));
    assert_null(strstr(p.text, "inf"));
}

static void charts_are_well_formed_whatever_the_numbers_are(void **state)
{
    static const pl_svg_point cases[][4] = {
        { { 0, 1, 0.9, 1.1 }, { 1, 2, 1.9, 2.1 }, { 2, 1.5, 1, 2 } },
        { { 0, NAN, NAN, NAN }, { 1, 2, NAN, NAN }, { 2, INFINITY, 0, 1 } },
        { { 5, 0, 0, 0 }, { 5, 0, 0, 0 }, { 5, 0, 0, 0 } },
        { { 0, -1, -2, 0 }, { 1, 0, 0, 0 }, { 2, 1e300, 1, 1e305 } },
        { { 0, 1e-300, 0, 1 }, { 1, 1e300, 1, 2 }, { 2, -5, -6, -4 } },
        { { NAN, 1, 1, 1 }, { INFINITY, 2, 2, 2 }, { -INFINITY, 1, 1, 1 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t count = 0; count <= 3; count++) {
            draw(cases[i], count, PL_SVG_LINEAR, PL_SVG_IN_PAGE);
            draw(cases[i], count, PL_SVG_LOGARITHMIC, PL_SVG_FILE);
        }
}

static void a_line_is_where_its_numbers_are(void **state)
{
    static const pl_svg_point points[] = { { 0, 0, NAN, NAN },
                                           { 50, NAN, NAN, NAN },
                                           { 100, 10, NAN, NAN } };
    const pl_svg_series series = { "a", points, 3, 2, PL_SVG_LINE };
    const pl_svg_chart chart = { .id = "c",
                                 .title = "t",
                                 .text = "d",
                                 .x_name = "x",
                                 .y_name = "y",
                                 .from_zero = 1,
                                 .series = &series,
                                 .n_series = 1 };
    (void)state;
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_svg_draw(&h, &chart, PL_SVG_IN_PAGE);
    pl_html_end(&h);
    /* the axes' corner, then a gap, then nearly the other corner */
    assert_non_null(strstr(p.text, "d=\"M64.0 254.0M740.0 65.5\""));
    assert_non_null(strstr(p.text, "<title id=\"c-title\">t</title>"));
    assert_non_null(strstr(p.text, "<desc id=\"c-text\">d</desc>"));
}

static void bars_stand_against_the_line(void **state)
{
    pl_plan_picture b = { .line_bytes = 1000 };
    (void)state;
    pl_plan_picture_row(&b, "train");
    pl_plan_picture_row(&b, hostile);
    pl_plan_picture_part(&b, "weights");
    pl_plan_picture_part(&b, hostile);
    pl_plan_picture_part(&b, "tiny");
    pl_plan_picture_part(&b, "none");
    b.bytes[0][0] = 600;
    b.bytes[0][1] = 300;
    b.bytes[0][2] = 1;
    b.bytes[1][0] = 1200;
    snprintf(b.title, sizeof b.title, "%s", hostile);
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_plan_picture_draw(&h, &b, "plan", PL_SVG_FILE);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    assert_non_null(strstr(p.text, ">901 B</text>"));
    assert_non_null(strstr(p.text, ">other</text>"));
    assert_null(strstr(p.text, ">none</text>"));
    const char *over = strstr(p.text, "class=\"over\"");
    assert_non_null(over);
    assert_null(strstr(over + 1, "class=\"over\"")); /* one bar is over */
    p.used = 0;
    h = pl_html_begin(page_take, &p);
    pl_plan_picture_table(&h, &b, hostile);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    assert_non_null(strstr(p.text, "<th scope=\"row\">tiny</th>"));
}

static void more_than_there_is_room_for_is_cut(void **state)
{
    static pl_plan_picture b;
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_true(pl_plan_picture_row(&b, hostile) < PL_PICTURE_ROWS);
        const size_t part = pl_plan_picture_part(&b, hostile);
        assert_true(part < PL_PICTURE_PARTS);
        b.bytes[0][part] = UINT64_MAX / 64;
    }
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_plan_picture_draw(&h, &b, "plan", PL_SVG_FILE);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round_and_within),
        cmocka_unit_test(labels_are_short),
        cmocka_unit_test(charts_are_well_formed_whatever_the_numbers_are),
        cmocka_unit_test(a_line_is_where_its_numbers_are),
        cmocka_unit_test(bars_stand_against_the_line),
        cmocka_unit_test(more_than_there_is_room_for_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
