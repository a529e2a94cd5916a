#include "data/crew.h"

#include "support/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MEMORY = PL_SOURCE_MIN_BYTES, LONG_BYTES = 3000000 };

static scratch dir;
static pl_error err;

/* What the crew's user sees. */
typedef struct seen {
    char *text; /* all parts, "|" behind documents */
    size_t bytes, loads, parts;
    int stop_at; /* a load to fail at; 0: none */
    pl_crew_tally tally;
    int between;
} seen;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

/* Every third document is marked. */
static int mark(void *context, const pl_crew_tally *tally, uint64_t size_bytes)
{
    (void)context;
    assert_true(size_bytes > 0);
    return tally->documents % 3 == 2;
}

/* A sum that tells whether each part was worked on once. */
static void work(void *context, int ith, pl_crew_part *part)
{
    (void)context;
    assert_true(ith >= 0 && ith < 4);
    part->ids[0] += 1;
    for (size_t i = 0; i < part->bytes; i++)
        part->count += (unsigned char)part->text[i];
}

static pl_status take(void *context, const pl_crew_load *load, pl_error *error)
{
    seen *s = context;
    if (s->stop_at && ++s->loads == (size_t)s->stop_at)
        return pl_fail(error, PL_E_STOPPED, "enough");
    for (size_t i = 0; i < load->count; i++) {
        const pl_crew_part *part = &load->parts[i];
        size_t sum = 0;
        memcpy(s->text + s->bytes, part->text, part->bytes);
        s->bytes += part->bytes;
        for (size_t k = 0; k < part->bytes; k++)
            sum += (unsigned char)part->text[k];
        assert_int_equal(part->count, sum);
        assert_int_equal(part->ids[0], 1);
        part->ids[0] = 0; /* the room is used again */
        ((pl_crew_part *)part)->count = 0;
        if (part->ends)
            s->text[s->bytes++] = part->mark ? '!' : '|';
        s->parts++;
    }
    s->tally = load->tally;
    s->between = load->between;
    return PL_OK;
}

static pl_status run(seen *s, const char *path, int threads, size_t load_bytes,
                     pl_crew_ends ends)
{
    const char *paths[] = { path };
    pl_source_options from = { .paths = paths,
                               .path_count = 1,
                               .memory_bytes = MEMORY };
    pl_heap heap = pl_heap_make(pl_crew_bytes(load_bytes, 1) + 65536);
    pl_crew_options options = { .load_bytes = load_bytes,
                                .id_room = 1,
                                .ends = ends,
                                .tally = s->tally,
                                .mark = mark,
                                .work = work,
                                .take = take,
                                .context = s };
    assert_int_equal(pl_source_open(&options.source, &from, &err), PL_OK);
    assert_int_equal(pl_threads_open(&options.threads, threads, &heap, &err),
                     PL_OK);
    pl_status status = pl_source_seek(options.source, s->tally.place, &err);
    if (!status)
        status = pl_crew_run(&options, &heap, &err);
    pl_threads_close(options.threads);
    pl_source_close(options.source);
    pl_heap_close(&heap);
    return status;
}

/* Words of a long text, and of documents of all lengths. */
static char *make_text(void)
{
    char *text = malloc(LONG_BYTES);
    assert_non_null(text);
    for (size_t i = 0; i < LONG_BYTES; i++)
        text[i] = i % 11 == 10 ? ' ' : (char)('a' + i * 7 % 26);
    return text;
}

static void make_documents(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 1, at = 0; at + 3000 * i < LONG_BYTES; at += 3000 * i, i++)
        fprintf(file, "{\"text\": \"%.*s\"}\n", (int)(3000 * i), text + at);
    fclose(file);
}

static void parts_come_in_order_for_any_threads_and_loads(void **state)
{
    (void)state;
    static const size_t loads[] = { PL_CREW_MIN_LOAD_BYTES, 2000000, 8000000 };
    char *text = make_text(), *first = NULL;
    const char *path = scratch_path(&dir, "d.jsonl");
    size_t first_bytes = 0, first_parts = 0;
    make_documents(path, text);
    for (int threads = 1; threads <= 4; threads++)
        for (int k = 0; k < 3; k++) {
            seen s = { .text = malloc(LONG_BYTES + 100000) };
            assert_int_equal(
                run(&s, path, threads, loads[k], PL_CREW_AS_THEY_ARE), PL_OK);
            if (!first) {
                first = s.text;
                first_bytes = s.bytes;
                first_parts = s.parts;
                continue;
            }
            assert_int_equal(s.bytes, first_bytes);
            assert_int_equal(s.parts, first_parts);
            assert_memory_equal(s.text, first, first_bytes);
            free(s.text);
        }
    assert_memory_equal(first, text, 3000);
    assert_int_equal(first[3000], '|');
    assert_memory_equal(first + 3001, text + 3000, 6000);
    assert_int_equal(first[9001], '|');
    assert_int_equal(first[9002 + 9000], '!');
    assert_true(first_parts > 44); /* long ones are cut */
    free(first);
    free(text);
}

static void documents_may_end_with_a_line_end(void **state)
{
    (void)state;
    char text[64];
    seen s = { .text = text };
    const char *path = scratch_path(&dir, "d.jsonl");
    scratch_write(
        path, "{\"text\":\"one\"}\n{\"text\":\"\"}\n{\"text\":\"two\"}", 41);
    assert_int_equal(
        run(&s, path, 2, PL_CREW_MIN_LOAD_BYTES, PL_CREW_LINE_ENDS), PL_OK);
    assert_int_equal(s.bytes, 10);
    assert_memory_equal(text, "one\n|two\n|", 10);
    assert_int_equal(s.tally.text_bytes, 6); /* as they are in the source */
    assert_int_equal(s.tally.documents, 2);
    memset(&s, 0, sizeof s);
    s.text = text;
    path = scratch_path(&dir, "t.txt"); /* a text has its own */
    scratch_write(path, "three", 5);
    assert_int_equal(
        run(&s, path, 2, PL_CREW_MIN_LOAD_BYTES, PL_CREW_LINE_ENDS), PL_OK);
    assert_memory_equal(text, "three|", 6);
}

/* Stops at each load, goes on from the tally before it. */
static void a_tally_is_a_place_to_go_on_from(void **state)
{
    (void)state;
    static const char *const names[] = { "d.jsonl", "t.txt" };
    char *text = make_text();
    make_documents(scratch_path(&dir, names[0]), text);
    scratch_write(scratch_path(&dir, names[1]), text, LONG_BYTES);
    for (int f = 0; f < 2; f++) {
        const char *path = scratch_path(&dir, names[f]);
        seen whole = { .text = malloc(LONG_BYTES + 100000) };
        seen parts = { .text = malloc(LONG_BYTES + 100000) };
        assert_int_equal(
            run(&whole, path, 2, PL_CREW_MIN_LOAD_BYTES, PL_CREW_AS_THEY_ARE),
            PL_OK);
        int stops = 0;
        for (;; stops++) {
            parts.loads = 0;
            parts.stop_at = 2;
            pl_status status = run(&parts, path, 2, PL_CREW_MIN_LOAD_BYTES,
                                   PL_CREW_AS_THEY_ARE);
            assert_true(parts.between);
            if (status == PL_OK)
                break;
            assert_int_equal(status, PL_E_STOPPED);
        }
        assert_true(stops > 1);
        assert_int_equal(parts.bytes, whole.bytes);
        assert_memory_equal(parts.text, whole.text, whole.bytes);
        assert_int_equal(parts.tally.documents, whole.tally.documents);
        assert_int_equal(parts.tally.text_bytes, whole.tally.text_bytes);
        assert_int_equal(parts.tally.marked_bytes, whole.tally.marked_bytes);
        /* Of JSON lines the 3rd, 6th, ... of 43, of 3000 bytes each more. */
        assert_int_equal(whole.tally.marked_bytes, f ? 0 : 3000 * 3 * 105);
        free(whole.text);
        free(parts.text);
    }
    free(text);
}

static void what_is_wrong_with_a_source_ends_the_crew(void **state)
{
    (void)state;
    char text[64];
    seen s = { .text = text };
    const char *path = scratch_path(&dir, "d.jsonl");
    scratch_write(path, "{\"text\":\"one\"}\n{\"text\":\n", 24);
    assert_int_equal(
        run(&s, path, 2, PL_CREW_MIN_LOAD_BYTES, PL_CREW_AS_THEY_ARE),
        PL_E_FORMAT);
    assert_non_null(strstr(err.text, "d.jsonl"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            parts_come_in_order_for_any_threads_and_loads, set_up, tear_down),
        cmocka_unit_test_setup_teardown(documents_may_end_with_a_line_end,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tally_is_a_place_to_go_on_from,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_wrong_with_a_source_ends_the_crew, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
