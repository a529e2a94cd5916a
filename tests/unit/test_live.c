#include "base/json.h"
#include "support/asserts.h"
#include "support/scratch.h"
#include "unit/http_rig.h"
#include "web/live.h"
#include "web/page.h"

#include <sys/stat.h>

static scratch dir;
static pl_live *live;

static int open_dir(void **state)
{
    set_up(state);
    scratch_open(&dir);
    live = NULL;
    return 0;
}

static int close_dir(void **state)
{
    pl_live_close(live);
    http = NULL; /* it was the page's */
    tear_down(state);
    scratch_close(&dir);
    return 0;
}

static pl_status try_live(const char *folder, pl_live_folders are)
{
    const pl_live_wish asked_for_it = {
        .folders = &folder, .count = 1, .are = are, .log = &hearing
    };
    pl_status status = pl_live_open(&live, &asked_for_it, &heap, &err);
    if (status != PL_OK)
        live = NULL;
    else
        http = pl_live_http(live);
    return status;
}

static void put(const char *name, const char *text)
{
    scratch_write(scratch_path(&dir, name), text, strlen(text));
}

static void show(void)
{
    if (try_live(dir.folder, PL_LIVE_AWAITED) != PL_OK)
        fail_msg("%s", err.text);
}

/* The body of the answer to a GET. */
static const char *body_of(const char *path)
{
    get(path, HOST);
    const char *body = strstr(answer, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

/* ---- lines ---- */

static const char lines[] =
    "{\"step\": 0, \"train_loss\": 3, \"val_loss\": 3}\n"
    "{\"step\": 0, \"loss\": 2.5, \"skipped\": 0, \"step_ms\": 1}\n"
    "{\"step\": 1, \"loss\": 2.4, \"skipped\": 1, \"step_ms\": 1}\n"
    "{\"step\": 2, \"loss\": 2.3, \"skipped\": 0, \"step_ms\": 1}\n"
    "{\"step\": 3, \"loss\": 2.2, \"skipped\": 0, \"step_ms\": 1}\n"
    "{\"step\": 4, \"loss\": 2.1, \"skipped\": 0, \"step_ms\": 1}\n"
    "{\"step\": 5, \"train_loss\": 2, \"val_loss\": 2}\n";

static void lines_come_as_they_are_from_where_one_was(void **state)
{
    char path[64];
    (void)state;
    put("metrics.jsonl", lines);
    show();
    const char *body = body_of("/api/metrics?run=0");
    status_is(200);
    assert_contains(answer, "Content-Type: application/x-ndjson");
    assert_string_equal(strchr(body, '\n') + 1, lines);
    snprintf(path, sizeof path, "\"from\": 0, \"next\": %zu, \"bytes\": %zu",
             strlen(lines), strlen(lines));
    assert_contains(body, path);
    /* nothing new */
    snprintf(path, sizeof path, "/api/metrics?run=0&from=%zu", strlen(lines));
    body = body_of(path);
    assert_string_equal(strchr(body, '\n'), "\n");
    /* a line that is only half there comes later */
    char more[1024];
    snprintf(more, sizeof more, "%s{\"step\": 6, \"loss\"", lines);
    put("metrics.jsonl", more);
    body = body_of(path);
    assert_string_equal(strchr(body, '\n'), "\n");
    snprintf(more, sizeof more, "%s{\"step\": 6, \"loss\": 1}\n", lines);
    put("metrics.jsonl", more);
    body = body_of(path);
    assert_string_equal(strchr(body, '\n'), "\n{\"step\": 6, \"loss\": 1}\n");
}

static void a_file_that_was_cut_is_read_from_its_beginning(void **state)
{
    (void)state;
    put("metrics.jsonl", lines);
    show();
    const char *body = body_of("/api/metrics?run=0&from=100000");
    assert_contains(body, "\"from\": 0,");
    assert_string_equal(strchr(body, '\n') + 1, lines);
    body = body_of("/api/metrics?run=0&from=7"); /* not where a line begins */
    assert_contains(body, "\"from\": 0,");
    body = body_of("/api/metrics?run=0&from=-1");
    assert_contains(body, "\"from\": 0,");
    body = body_of("/api/metrics?run=0&from=99999999999999999999999999999");
    assert_contains(body, "\"from\": 0,");
}

static void updates_are_thinned_out_and_nothing_else(void **state)
{
    (void)state;
    put("metrics.jsonl", lines);
    show();
    const char *body = body_of("/api/metrics?run=0&every=4");
    assert_contains(body, "{\"step\": 0, \"train_loss\": 3");
    assert_contains(body, "{\"step\": 0, \"loss\": 2.5");
    assert_contains(body, "{\"step\": 1, \"loss\": 2.4"); /* skipped */
    assert_contains(body, "{\"step\": 4, \"loss\": 2.1");
    assert_contains(body, "{\"step\": 5, \"train_loss\": 2");
    assert_null(strstr(body, "{\"step\": 2,"));
    assert_null(strstr(body, "{\"step\": 3,"));
}

static void the_end_of_a_file_is_enough(void **state)
{
    (void)state;
    put("samples.jsonl", "{\"step\": 1, \"text\": \"one\"}\n"
                         "{\"step\": 2, \"text\": \"two\"}\n"
                         "{\"step\": 3, \"text\": \"three\"}\n");
    show();
    const char *body = body_of("/api/samples?run=0&tail=40");
    assert_null(strstr(body, "two"));
    assert_contains(body, "three");
    body = body_of("/api/samples?run=0&tail=100000");
    assert_contains(body, "one");
}

/* More than an answer holds comes in several. */
static void a_long_file_comes_in_parts(void **state)
{
    enum { LINES = 10000, LINE = 64 };
    static char text[LINES * LINE + 1];
    size_t used = 0, seen = 0;
    unsigned long long next = 0;
    (void)state;
    for (int i = 0; i < LINES; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "{\"step\": %d, \"loss\": 1.5}\n", i);
    put("metrics.jsonl", text);
    show();
    for (int part = 0; next < used; part++) {
        char path[64];
        assert_true(part < 10);
        snprintf(path, sizeof path, "/api/metrics?from=%llu", next);
        const char *body = body_of(path);
        const char *rest = strchr(body, '\n') + 1;
        assert_memory_equal(rest, text + seen, strlen(rest));
        seen += strlen(rest);
        assert_int_equal(sscanf(strstr(body, "\"next\": ") + 8, "%llu", &next),
                         1);
        assert_int_equal(next, seen);
    }
    assert_int_equal(seen, used);
}

static void a_line_without_end_is_passed_over(void **state)
{
    static char text[600 * 1024];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    memcpy(text + sizeof text - 40, "\n{\"step\": 1, \"loss\": 1}\n", 24);
    text[sizeof text - 16] = '\0';
    put("metrics.jsonl", text);
    show();
    unsigned long long next = 0;
    for (int part = 0; part < 5; part++) {
        char path[64];
        snprintf(path, sizeof path, "/api/metrics?from=%llu", next);
        const char *body = body_of(path);
        if (strstr(body, "{\"step\": 1, \"loss\": 1}\n"))
            return;
        assert_int_equal(sscanf(strstr(body, "\"next\": ") + 8, "%llu", &next),
                         1);
    }
    fail_msg("the line behind it never came");
}

/* A client that asks for what is next gets ahead, or is told that there is
 * nothing: it is never sent back to the beginning. */
static void garbage_without_end_is_no_circle(void **state)
{
    static char text[300 * 1024];
    unsigned long long next = 0;
    (void)state;
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "{\"step\": 1, \"loss\": 1}\n", 23);
    put("metrics.jsonl", text);
    show();
    for (int time = 0; time < 3; time++) {
        char path[64];
        snprintf(path, sizeof path, "/api/metrics?from=%llu", next);
        const char *body = body_of(path);
        assert_int_equal(sscanf(strstr(body, "\"next\": ") + 8, "%llu", &next),
                         1);
        assert_int_equal(next, 23);
        snprintf(path, sizeof path, "\"from\": %d,", time == 0 ? 0 : 23);
        assert_contains(body, path);
    }
}

/* ---- only these folders ---- */

static void no_link_leads_out_of_the_folder(void **state)
{
    char secret[SCRATCH_PATH_BYTES], outside[SCRATCH_PATH_BYTES];
    (void)state;
    snprintf(outside, sizeof outside, "%s", scratch_path(&dir, "outside"));
    snprintf(secret, sizeof secret, "%s", scratch_path(&dir, "secret"));
    scratch_write(secret, "SECRET\n", 7);
    assert_int_equal(mkdir(outside, 0700), 0);
    scratch_write(scratch_path(&dir, "outside/state.json"), "SECRET\n", 7);
    assert_int_equal(mkdir(scratch_path(&dir, "run"), 0700), 0);
    static const char *const names[] = { "run/metrics.jsonl",
                                         "run/samples.jsonl",
                                         "run/warnings.jsonl", "run/plan.json",
                                         "run/progress.json" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(symlink(secret, scratch_path(&dir, names[i])), 0);
    assert_int_equal(symlink("../outside", scratch_path(&dir, "run/latest")),
                     0);
    if (try_live(scratch_path(&dir, "run"), PL_LIVE_AWAITED))
        fail_msg("%s", err.text);
    static const char *const paths[] = { "/api/metrics",  "/api/samples",
                                         "/api/warnings", "/api/plan",
                                         "/api/saved",    "/api/state" };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_null(strstr(body_of(paths[i]), "SECRET"));
    /* a link to a checkpoint that is itself a link */
    assert_int_equal(unlink(scratch_path(&dir, "run/latest")), 0);
    assert_int_equal(symlink("step-00000001", scratch_path(&dir, "run/latest")),
                     0);
    assert_int_equal(
        symlink("../outside", scratch_path(&dir, "run/step-00000001")), 0);
    assert_null(strstr(body_of("/api/saved"), "SECRET"));
}

static void no_path_of_a_client_is_a_file(void **state)
{
    static const char *const paths[] = {
        "/metrics.jsonl",
        "/../metrics.jsonl",
        "/%2e%2e/metrics.jsonl",
        "/api/../metrics.jsonl",
        "/api/metrics/../../x",
        "/api/plan?run=0/../..",
        "/etc/passwd",
        "//etc/passwd",
        "/live.html/../live.c",
        "/serve.html",
        "/api/metrics?run=1",
        "/api/metrics?run=18446744073709551616",
        "/api/metrics%00.html",
        "/api/",
        "/live.html%00.js?run=..",
    };
    (void)state;
    put("metrics.jsonl", lines);
    show();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const char *body = body_of(paths[i]);
        if (strncmp(answer, "HTTP/1.1 404 ", 13) != 0 &&
            strstr(paths[i], "run=1844") == NULL &&
            strstr(paths[i], "%00") == NULL &&
            strstr(paths[i], "/api/plan") == NULL)
            fail_msg("%s: %.200s", paths[i], answer);
        assert_null(strstr(body, "root:"));
    }
    talk("POST /api/state HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    status_is(405);
    talk("POST /api/state HTTP/1.1\r\n" HOST
         "Connection: close\r\nContent-Length: 5\r\n\r\nhello");
    status_is(413);
}

static void the_state_is_json_whatever_lies_there(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "{\"phase\": \"train\"}garbage",
        "[1, 2]",
        "{\"phase\": {\"pid\": -1}, \"pid\": 1e300, \"pid_began\": \"x\"}",
        "{\"phase\": \"<script>alert(1)</script>\"}   \n",
    };
    (void)state;
    put("metrics.jsonl", lines);
    assert_int_equal(mkdir(scratch_path(&dir, "step-00000010"), 0700), 0);
    assert_int_equal(symlink("step-00000010", scratch_path(&dir, "latest")), 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *value;
        put("progress.json", texts[i]);
        show();
        const char *body = body_of("/api/state");
        if (pl_json_parse(body, strlen(body), "state", &value, &err))
            fail_msg("%s: %s", texts[i], err.text);
        json_decref(value);
        assert_contains(body, "\"latest\": 10");
        assert_contains(body, "\"best\": null");
        assert_contains(body, "\"running\": false");
        pl_live_close(live);
        live = NULL;
    }
}

static void names_of_folders_are_shown_harmlessly(void **state)
{
    json_t *value;
    (void)state;
    const char *folder = scratch_path(&dir, "<script>\x1b[31m\xff\"&\n");
    assert_int_equal(mkdir(folder, 0700), 0);
    if (try_live(folder, PL_LIVE_AWAITED))
        fail_msg("%s", err.text);
    const char *body = body_of("/api/state");
    if (pl_json_parse(body, strlen(body), "state", &value, &err))
        fail_msg("%s", err.text);
    const char *name = json_string_value(json_object_get(
        json_array_get(json_object_get(value, "runs"), 0), "name"));
    assert_non_null(name);
    assert_null(strchr(name, '\x1b'));
    assert_contains(name, "<script>");
    json_decref(value);
}

/* ---- the page ---- */

static void every_part_of_the_page_is_there(void **state)
{
    (void)state;
    show();
    const char *body = body_of("/");
    status_is(200);
    assert_contains(answer, "Content-Type: text/html; charset=utf-8");
    assert_contains(body, "/live.js");
    assert_contains(body, "/live.css");
    size_t count = 0;
    for (size_t i = 0; i < pl_page_file_count; i++) {
        char path[128];
        if (strncmp(pl_page_files[i].name, "live", 4) != 0)
            continue;
        snprintf(path, sizeof path, "/%s", pl_page_files[i].name);
        body = body_of(path);
        status_is(200);
        assert_int_equal(strlen(body), pl_page_files[i].n);
        /* nothing from elsewhere, nothing within the text */
        assert_null(strstr(body, "innerHTML"));
        assert_null(strstr(body, "eval("));
        assert_null(strstr(body, "style=\""));
        assert_null(strstr(body, "src=\"http"));
        assert_null(strstr(body, "href=\"http"));
        count++;
    }
    assert_in_range(count, 3, 30);
}

static void folders_are_checked(void **state)
{
    (void)state;
    assert_int_equal(try_live(scratch_path(&dir, "none"), PL_LIVE_THERE),
                     PL_E_IO);
    assert_contains(err.text, "there is no such folder");
    put("file", "x");
    assert_int_equal(try_live(scratch_path(&dir, "file"), PL_LIVE_THERE),
                     PL_E_IO);
    assert_contains(err.text, "is no folder");
    assert_int_equal(try_live(dir.folder, PL_LIVE_THERE), PL_E_FORMAT);
    assert_contains(err.text, "no run is in there");
    put("metrics.jsonl", "");
    assert_int_equal(try_live(dir.folder, PL_LIVE_THERE), PL_OK);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_dir, close_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lines_come_as_they_are_from_where_one_was),
        TEST(a_file_that_was_cut_is_read_from_its_beginning),
        TEST(updates_are_thinned_out_and_nothing_else),
        TEST(the_end_of_a_file_is_enough),
        TEST(a_long_file_comes_in_parts),
        TEST(a_line_without_end_is_passed_over),
        TEST(garbage_without_end_is_no_circle),
        TEST(no_link_leads_out_of_the_folder),
        TEST(no_path_of_a_client_is_a_file),
        TEST(the_state_is_json_whatever_lies_there),
        TEST(names_of_folders_are_shown_harmlessly),
        TEST(every_part_of_the_page_is_there),
        TEST(folders_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
