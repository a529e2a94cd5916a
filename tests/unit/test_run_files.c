/* Tests of run_files: what a folder says, in bounded memory, whoever wrote it;
 * and of the report that is made of it. */
#include "web/report.h"
#include "web/run_files.h"

#include "support/asserts.h"
#include "support/scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "page_fixture.h"

enum { HEAP_BYTES = 64 * 1024 * 1024 };

static page p;
static pl_run_files run;

static void put(const scratch *s, const char *name, const char *text)
{
    scratch_write(scratch_path(s, name), text, strlen(text));
}

static pl_status read_run(const scratch *s, pl_heap *heap, pl_error *err)
{
    *heap = pl_heap_make(HEAP_BYTES);
    return pl_run_files_read(&run, s->folder, heap, err);
}

static void must_read(const scratch *s, pl_heap *heap)
{
    pl_error err = { 0 };
    if (read_run(s, heap, &err))
        fail_msg("%s", err.text);
}

static const char metrics[] =
    "{\"step\": 0, \"train_loss\": 4.5, \"val_loss\": 4.25, \"train_error\": "
    "0.5, \"val_error\": null}\n"
    "{\"step\": 0, \"loss\": 4, \"lr\": 0.1, \"grad_norm\": 2, \"loss_scale\": "
    "1, \"skipped\": 0, \"arithmetic\": 4, \"step_ms\": 10}\n"
    "{\"step\": 1, \"loss\": null, \"lr\": 0.2, \"grad_norm\": null, "
    "\"loss_scale\": 1, \"skipped\": 1, \"arithmetic\": 4, \"step_ms\": 30}\n"
    "{\"step\": 2, \"train_loss\": 3.5, \"val_loss\": 3.25, \"train_error\": "
    "0.25, \"val_error\": 0.125}\n";

static void the_numbers_are_those_of_the_file(void **state)
{
    scratch s;
    pl_heap heap;
    (void)state;
    scratch_open(&s);
    put(&s, "metrics.jsonl", metrics);
    must_read(&s, &heap);
    assert_int_equal(run.updates, 2);
    assert_int_equal(run.next_step, 2);
    assert_int_equal(run.n_evals, 2);
    assert_true(run.best.val == 3.25 && run.best.val_error == 0.125);
    assert_true(isnan(run.evals[0].val_error));
    assert_int_equal(run.n_buckets, 2);
    assert_true(run.buckets[0].loss.sum == 4.0);
    assert_int_equal(run.buckets[1].loss.count, 0);
    assert_true(pl_run_mean(&run.step_ms) == 20.0);
    assert_int_equal(run.all_skipped, 1);
    assert_true(run.skipped[0] == 1.0);
    assert_int_equal(run.lines_lost, 0);
    pl_heap_close(&heap);
    scratch_close(&s);
}

static void what_can_not_be_read_is_counted_and_passed_over(void **state)
{
    static char text[8192];
    scratch s;
    pl_heap heap;
    (void)state;
    scratch_open(&s);
    memset(text, 'x', 5000);
    snprintf(text + 5000, sizeof text - 5000,
             "\n%s%s\n{\"step\": 99999999999999999999, \"loss\": 1}\n"
             "{\"step\": -1, \"loss\": 1}\n{\"step\": 5, \"other\": 1}\n\n"
             "{\"step\": 3, \"loss\": 0x10, \"lr\": inf}\n"
             "{\"step\": 4, \"loss\": 1",
             metrics, hostile);
    put(&s, "metrics.jsonl", text);
    must_read(&s, &heap);
    /* the long one, two of the hostile text, three of steps, an empty one */
    assert_int_equal(run.lines_lost, 7);
    assert_int_equal(run.updates, 3); /* 0x10 is 0: not ours, and harmless */
    assert_int_equal(run.next_step, 4);
    pl_heap_close(&heap);
    scratch_close(&s);
}

static void a_long_run_takes_no_more_memory(void **state)
{
    enum { UPDATES = 1000000 };
    pl_run_bucket *buckets = calloc(PL_RUN_BUCKETS, sizeof *buckets);
    pl_run_eval *evals = calloc(PL_RUN_EVALS, sizeof *evals);
    uint64_t count = 0;
    double sum = 0.0;
    (void)state;
    run = (pl_run_files){ .buckets = buckets,
                          .evals = evals,
                          .bucket_updates = 1,
                          .evals_every = 1 };
    for (uint64_t i = 0; i < UPDATES; i++) {
        char line[128];
        int bytes = snprintf(line, sizeof line,
                             "{\"step\": %llu, \"loss\": %llu, \"skipped\": 1}",
                             (unsigned long long)i,
                             (unsigned long long)(i % 7));
        assert_true(pl_run_files_line(&run, line, (size_t)bytes));
        if (i % 100 == 0) {
            bytes = snprintf(line, sizeof line,
                             "{\"step\": %llu, \"train_loss\": 1, "
                             "\"val_loss\": 2}",
                             (unsigned long long)i);
            assert_true(pl_run_files_line(&run, line, (size_t)bytes));
        }
    }
    for (size_t i = 0; i < run.n_buckets; i++) {
        assert_true(i == 0 ||
                    run.buckets[i].first == run.buckets[i - 1].last + 1);
        count += run.buckets[i].updates;
        sum += run.buckets[i].loss.sum;
        assert_true(run.buckets[i].loss.low == 0.0);
        assert_true(run.buckets[i].loss.high == 6.0 || i + 1 == run.n_buckets);
    }
    assert_int_equal(count, UPDATES);
    assert_true(sum == run.loss.sum);
    assert_true(run.n_buckets > PL_RUN_BUCKETS / 2);
    assert_int_equal(run.evaluated, UPDATES / 100);
    for (size_t i = 0; i < run.n_evals; i++)
        assert_int_equal(run.evals[i].step, i * 100 * run.evals_every);
    assert_int_equal(run.n_skipped, PL_RUN_SKIPPED);
    assert_int_equal(run.all_skipped, UPDATES);
    free(buckets);
    free(evals);
}

static void no_link_leads_out_of_the_folder(void **state)
{
    scratch s;
    pl_heap heap;
    pl_error err = { 0 };
    (void)state;
    scratch_open(&s);
    put(&s, "secret", metrics);
    assert_int_equal(
        symlink(scratch_path(&s, "secret"), scratch_path(&s, "metrics.jsonl")),
        0);
    assert_int_equal(read_run(&s, &heap, &err), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "no run is in it"));
    pl_heap_close(&heap);
    scratch_close(&s);
}

static void a_folder_that_is_none_is_said(void **state)
{
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_error err = { 0 };
    (void)state;
    assert_int_equal(pl_run_files_read(&run, "/absent/run", &heap, &err),
                     PL_E_IO);
    assert_non_null(strstr(err.text, "/absent/run is not there"));
    assert_int_equal(pl_run_files_read(&run, "/dev/null", &heap, &err),
                     PL_E_IO);
    pl_heap_close(&heap);
}

/* JSON's way to write the hostile text. */
#define EVIL                                                                   \
    "<script>alert(1)</script>\\\"'&amp;]]>\\u001b[31m\\u009b\\u202e../../etc" \
    "\\n\\t\\r\\u0001\\uffff|`*_"

static void put_hostile(const scratch *s)
{
    char text[PL_RUN_SAMPLES * 256];
    size_t used = 0;
    for (int i = 0; i < PL_RUN_SAMPLES + 9; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"step\": %d, \"prompt\": \"%s\", \"text\": "
                                 "\"%s\"}\n",
                                 i, i ? "a" : EVIL, "b");
    snprintf(text + used, sizeof text - used,
             "{\"step\": 99, \"prompt\": \"" EVIL "\", \"text\": \"" EVIL
             "\", \"cut\": true}\n[1]\nno JSON\n{\"step\": 100, \"text\"");
    put(s, "samples.jsonl", text);
    put(s, "metrics.jsonl", metrics);
    put(s, "warnings.jsonl", "{\"text\": \"" EVIL "\"}\n{\"text\": 3}\n");
    put(s, "progress.json",
        "{\"phase\": \"" EVIL "\", \"held_train_bytes\": 12345678}   ");
    put(s, "plan.json",
        "{\"max_iters\": 5, \"update_tokens\": 64, \"device\": \"" EVIL
        "\", \"layout\": \"" EVIL "\", \"budget_bytes\": 1000, "
        "\"reserve_bytes\": 100, \"programs\": [\"" EVIL "\", 7, \"eval\"], "
        "\"classes\": {\"" EVIL "\": [500, -4, \"x\"], \"weights\": 3, \"x\": "
        "[1e300, 9223372036854775807]}, \"config\": {\"" EVIL
        "\": {\"value\": \"" EVIL "\", \"from\": \"" EVIL
        "\"}, \"n_layer\": {\"value\": \"2\", \"from\": \"default\"}, "
        "\"dataset\": {\"value\": \"'cats'\", \"from\": \"command line\"}, "
        "\"start\": {\"value\": \"'it\\\\'s'\", \"from\": \"x.py:1:1\"}, "
        "\"keep\": 3}}");
}

static void hostile_files_are_shown_and_harmless(void **state)
{
    scratch s;
    pl_heap heap;
    pl_error err = { 0 };
    static pl_report report;
    (void)state;
    scratch_open(&s);
    put_hostile(&s);
    must_read(&s, &heap);
    assert_int_equal(run.n_samples, PL_RUN_SAMPLES - 2);
    assert_int_equal(run.samples[run.n_samples - 1].step, 99);
    assert_true(run.samples[run.n_samples - 1].is_cut);
    assert_int_equal(run.lines_lost, 2);
    assert_int_equal(run.plan.n_rows, 3);
    assert_int_equal(run.plan.bytes[0][0], 500);
    assert_int_equal(run.plan.line_bytes, 1000);
    assert_int_equal(run.held_bytes[0], 12345678);
    assert_int_equal(run.n_keys, 5);
    assert_int_equal(pl_report_make(&report, &run, 1, &heap, &err), PL_OK);
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_report_write(&h, &report);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    assert_null(strstr(p.text, "<script"));
    assert_non_null(strstr(p.text, "\\x1b[31m\\u009b\\u202e../../etc"));
    assert_non_null(strstr(p.text, "    --dataset=cats"));
    assert_null(strstr(p.text, "    --n_layer"));
    for (size_t i = 0; i < pl_report_pictures(&report); i++) {
        p.used = 0;
        h = pl_html_begin(page_take, &p);
        pl_report_picture(&h, &report, i);
        pl_html_end(&h);
        ASSERT_WELLFORMED(&p);
    }
    p.used = 0;
    pl_report_markdown(page_take, &p, &report, "a<b>");
    assert_non_null(strstr(p.text, "![Loss](<a_b_-loss.svg>)"));
    for (const char *at = p.text; (at = strstr(at, "<script")); at++) {
        const char *line = at; /* only as code */
        while (line > p.text && line[-1] != '\n')
            line--;
        assert_memory_equal(line, "    ", 4);
    }
    pl_heap_close(&heap);
    scratch_close(&s);
}

static void actual_bytes_stand_beside_planned_ones(void **state)
{
    scratch s;
    pl_heap heap;
    pl_error err = { 0 };
    static pl_report report;
    (void)state;
    scratch_open(&s);
    put(&s, "metrics.jsonl", metrics);
    put(&s, "plan.json",
        "{\"reserve_bytes\": 9000000, \"programs\": [\"train\", \"save\"], "
        "\"classes\": {\"weights\": [5000000, 4000000], \"tokens\": [0, 0]}}");
    put(&s, "progress.json",
        "{\"actual\": {\"train\": {\"weights\": 3000000, \"tokens\": -1, "
        "\"reserve\": 7000000, \"rest of the arena\": 2000000}, \"other\": "
        "{\"weights\": 1}, \"save\": 3}}");
    must_read(&s, &heap);
    assert_int_equal(pl_report_make(&report, &run, 1, &heap, &err), PL_OK);
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_report_write(&h, &report);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    assert_non_null(strstr(p.text, ">train, planned</th>"));
    assert_non_null(strstr(p.text, ">train, actual</th>"));
    p.used = 0;
    pl_report_markdown(page_take, &p, &report, NULL);
    assert_non_null(strstr(p.text, "| train, planned | train, actual | save, "
                                   "planned | save, actual |"));
    assert_non_null(
        strstr(p.text, "| weights | 5.00 MB | 3.00 MB | 4.00 MB | - |"));
    assert_non_null(
        strstr(p.text, "| reserve | 9.00 MB | 7.00 MB | 9.00 MB | - |"));
    assert_non_null(
        strstr(p.text, "| rest of the arena | - | 2.00 MB | - | - |"));
    assert_non_null(
        strstr(p.text, "| sum | 14.0 MB | 12.0 MB | 13.0 MB | - |"));
    assert_null(strstr(p.text, "| tokens |"));
    pl_heap_close(&heap);
    scratch_close(&s);
}

static void files_that_are_no_json_are_as_if_not_there(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "null", "{\"a\": ", "{\"plan\": {}}", "\xff\xfe"
    };
    static const char *const names[] = { "plan.json", "progress.json",
                                         "samples.jsonl", "warnings.jsonl" };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        scratch s;
        pl_heap heap;
        scratch_open(&s);
        put(&s, "metrics.jsonl", "");
        for (size_t k = 0; k < 4; k++)
            put(&s, names[k], texts[i]);
        must_read(&s, &heap);
        assert_int_equal(run.n_keys, 0);
        pl_heap_close(&heap);
        scratch_close(&s);
    }
}

static void runs_are_compared_by_the_keys_that_differ(void **state)
{
    static pl_run_files two[2];
    static pl_report report;
    static const char *const values[] = { "1", "2" };
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_error err = { 0 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        scratch s;
        char text[256];
        scratch_open(&s);
        put(&s, "metrics.jsonl", metrics);
        snprintf(text, sizeof text,
                 "{\"config\": {\"seed\": {\"value\": \"%s\", \"from\": "
                 "\"default\"}, \"n_head\": {\"value\": \"4\", \"from\": "
                 "\"default\"}}}",
                 values[i]);
        put(&s, "plan.json", text);
        assert_int_equal(pl_run_files_read(&two[i], s.folder, &heap, &err),
                         PL_OK);
        two[i].folder = i ? "runs/b/" : "a";
        scratch_close(&s);
    }
    assert_int_equal(pl_report_make(&report, two, 2, &heap, &err), PL_OK);
    assert_string_equal(report.names[0], "a");
    assert_string_equal(report.names[1], "b");
    assert_true(pl_report_differs(&report, 0));
    assert_false(pl_report_differs(&report, 1));
    p.used = 0;
    pl_html h = pl_html_begin(page_take, &p);
    pl_report_write(&h, &report);
    pl_html_end(&h);
    ASSERT_WELLFORMED(&p);
    const char *keys = strstr(p.text, "id=\"keys\"");
    const char *first = strstr(p.text, "id=\"run1\"");
    assert_non_null(keys);
    const char *seed = strstr(keys, ">seed</th>");
    const char *head = strstr(keys, ">n_head</th>");
    assert_true(seed && seed < first);
    assert_true(head > first);
    pl_heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_numbers_are_those_of_the_file),
        cmocka_unit_test(what_can_not_be_read_is_counted_and_passed_over),
        cmocka_unit_test(a_long_run_takes_no_more_memory),
        cmocka_unit_test(no_link_leads_out_of_the_folder),
        cmocka_unit_test(a_folder_that_is_none_is_said),
        cmocka_unit_test(hostile_files_are_shown_and_harmless),
        cmocka_unit_test(actual_bytes_stand_beside_planned_ones),
        cmocka_unit_test(files_that_are_no_json_are_as_if_not_there),
        cmocka_unit_test(runs_are_compared_by_the_keys_that_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
