/* Tests of data/task: items from files and folders, in every form. */
#include "base/file.h"
#include "base/path.h"
#include "data/task.h"
#include "data/task_text.h"

#include "support/scratch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    scratch folder;
    pl_heap heap;
    pl_task_manner manner;
    pl_tasks tasks;
    pl_error err;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    scratch_open(&f->folder);
    f->heap = pl_heap_make(64 << 20);
    f->manner.between = (pl_task_text){ " ", 1 };
    f->manner.behind = (pl_task_text){ "\n\n", 2 };
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    pl_heap_close(&f->heap);
    scratch_close(&f->folder);
    free(f);
    return 0;
}

static void write_file(fixture *f, const char *name, const char *text)
{
    scratch_write(scratch_path(&f->folder, name), text, strlen(text));
}

static pl_status read_named(fixture *f, const char *name)
{
    char path[PL_PATH_BYTES];
    snprintf(path, sizeof path, "%s", scratch_path(&f->folder, name));
    const char *paths[1];
    if (pl_heap_text(&f->heap, &paths[0], path, strlen(path), &f->err))
        fail_msg("%s", f->err.text);
    return pl_tasks_read(&f->tasks, paths, 1, &f->manner, &f->heap, &f->err);
}

static const pl_task *read_text(fixture *f, const char *text)
{
    write_file(f, "one.jsonl", text);
    if (read_named(f, "one.jsonl"))
        fail_msg("%s", f->err.text);
    assert_int_equal(f->tasks.count, 1);
    return &f->tasks.tasks[0];
}

static void assert_text(pl_task_text text, const char *want)
{
    assert_string_equal(text.text, want);
    assert_int_equal(text.bytes, strlen(want));
}

/* What an item's candidate is made of. */
static void assert_parts(const pl_task *task, size_t item, size_t at,
                         const char *context, const char *continuation)
{
    const pl_task_item *i = &task->items[item];
    assert_text(pl_task_context(task->kind, i, at), context);
    assert_text(pl_task_continuation(task->kind, i, at), continuation);
}

/* ---- forms ---- */

static void a_query_has_choices(void **state)
{
    const pl_task *task = read_text(
        *state, "\xef\xbb\xbf{\"query\": \"a\", \"choices\": [\"b\", \"c\", "
                "\"d\"], \"gold\": 2}\r\n \n"
                "{\"label\": \"1\", \"query\": \"\\u00e9\", \"choices\": "
                "[\"b\", \"c\"]}");
    assert_int_equal(task->form, PL_TASK_FORM_QUERY);
    assert_int_equal(task->kind, PL_TASK_CHOICE);
    assert_string_equal(task->label, "one");
    assert_int_equal(task->count, 2);
    assert_int_equal(task->items[0].gold, 2);
    assert_int_equal(task->items[1].gold, 1);
    assert_int_equal(task->items[1].line, 3);
    assert_parts(task, 0, 2, "a", "d");
    assert_parts(task, 1, 0, "\u00e9", "b");
    assert_true(fabs(task->chance - (1.0 / 3 + 0.5) / 2) < 1e-15);
}

static void a_schema_has_contexts(void **state)
{
    const pl_task *task = read_text(
        *state, "{\"context_options\": [\"he\", \"she\"], \"continuation\": "
                "\"went\", \"gold\": 1}\n");
    assert_int_equal(task->kind, PL_TASK_SCHEMA);
    assert_parts(task, 0, 0, "he", "went");
    assert_parts(task, 0, 1, "she", "went");
    assert_int_equal(task->items[0].gold, 1);
}

static void a_language_task_has_one_candidate(void **state)
{
    const pl_task *task = read_text(
        *state, "{\"context\": \"to be or\", \"continuation\": \"not\"}\n");
    assert_int_equal(task->kind, PL_TASK_LANGUAGE);
    assert_int_equal(task->items[0].count, 1);
    assert_parts(task, 0, 0, "to be or", "not");
    assert_true(task->chance == 0.0);
}

static void hellaswag_is_cleaned_as_lm_eval_does_it(void **state)
{
    const pl_task *task = read_text(
        *state,
        "{\"activity_label\": \"Roof [x]\", \"ctx_a\": \"A man [title] sits. "
        "[header] b\", \"ctx_b\": \"\\u00e9tA Man\", \"endings\": [\" is  [a] "
        "up \", \"[b\\n]c\", \"d\"], \"label\": \"0\"}\n"
        "{\"ctx\": \"whole\", \"endings\": [\"a\", \"b\"], \"label\": 1}\n");
    assert_int_equal(task->form, PL_TASK_FORM_HELLASWAG);
    assert_parts(task, 0, 0, "Roof : A man. sits. b \u00c9ta man", "is  up");
    assert_text(pl_task_continuation(task->kind, &task->items[0], 1), "[b\n]c");
    assert_parts(task, 1, 1, "whole", "b");
}

static void arc_and_piqa_are_questions(void **state)
{
    const pl_task *task = read_text(
        *state, "{\"question\": \"Why?\", \"choices\": {\"text\": [\"x\", "
                "\"y\"], \"label\": [\"A\", \"B\"]}, \"answerKey\": \"B\"}\n");
    assert_int_equal(task->form, PL_TASK_FORM_ARC);
    assert_parts(task, 0, 0, "Question: Why?\nAnswer:", "x");
    assert_int_equal(task->items[0].gold, 1);
    task = read_text(*state, "{\"goal\": \"fly\", \"sol1\": \"x\", \"sol2\": "
                             "\"y\", \"label\": 0}\n");
    assert_int_equal(task->form, PL_TASK_FORM_PIQA);
    assert_parts(task, 0, 1, "Question: fly\nAnswer:", "y");
}

static void winogrande_is_a_schema(void **state)
{
    const pl_task *task = read_text(
        *state, "{\"sentence\": \"so _ is late. \", \"option1\": \"Al\", "
                "\"option2\": \"Bo\", \"answer\": \"2\"}\n");
    assert_parts(task, 0, 0, "so Al", "is late.");
    assert_parts(task, 0, 1, "so Bo", "is late.");
    assert_int_equal(task->items[0].gold, 1);
}

static void lambada_asks_for_the_last_word(void **state)
{
    const pl_task *task = read_text(*state,
                                    "{\"text\": \"a  few \\nlast words\"}\n");
    assert_parts(task, 0, 0, "a  few \nlast", "words");
    assert_text(task->manner.between, " ");
}

/* ---- what is wrong ---- */

static void what_is_unclear_is_refused_with_its_place(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "", "has no items" },
        { "[1]\n", "one.jsonl:1:1: an item of a task is an object" },
        { "{\"a\": 1}\n", "one.jsonl:1:1: the keys are those of no task" },
        { "{\"query\": \"a\", \"choices\": [\"b\", \"c\"], \"goal\": \"\", "
          "\"sol1\": \"\"}\n",
          "one.jsonl:1:39: the keys are those of a multiple choice task and of "
          "a PIQA task" },
        { "{\"query\": \"a\", \"choices\": [\"b\"], \"gold\": 0}\n",
          "one.jsonl:1:16: \"choices\" must be a list of 2 to" },
        { "{\"query\": \"a\", \"choices\": [\"b\", 1], \"gold\": 0}\n",
          "one.jsonl:1:16: item 2 of \"choices\" must be a text" },
        { "{\"query\": \"a\", \"choices\": [\"b\", \"c\"], \"gold\": 2}\n",
          "one.jsonl:1:39: \"gold\" must say which candidate is right, by a "
          "number from 0 to 1" },
        { "{\"query\": \"a\", \"choices\": [\"b\", \"c\"]}\n",
          "\"label\" must say" },
        { "{\"context\": \"a\", \"continuation\": \"b\"}\n\n{\"context\": "
          "\"a\"}\n",
          "one.jsonl:3:1: \"continuation\" is missing" },
        { "{\"context\": \"a\", \"continuation\": 7}\n",
          "one.jsonl:1:18: \"continuation\" must be a text" },
        { "{\"context\": \"a\", \"continuation\": \"b\"}\n{\"context\"\n",
          "one.jsonl:2:" },
        { "{\"text\": \"word\"}\n", "one.jsonl:1:2: \"text\" is one word" },
        { "{\"goal\": \"a\", \"sol1\": \"b\", \"sol2\": \"c\"}\n",
          "\"label\" is missing" },
        { "{\"sentence\": \"a\", \"option1\": \"b\", \"option2\": \"c\", "
          "\"answer\": \"1\"}\n",
          "has no blank" },
        { "{\"question\": \"a\", \"answerKey\": \"C\", \"choices\": {\"text\": "
          "[\"b\", \"c\"], \"label\": [\"A\", \"B\"]}}\n",
          "one.jsonl:1:19: \"answerKey\" must be one of the labels" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(f, "one.jsonl", cases[i].text);
        assert_int_equal(read_named(f, "one.jsonl"), PL_E_FORMAT);
        if (!strstr(f->err.text, cases[i].says))
            fail_msg("%zu: %s", i, f->err.text);
    }
    assert_int_equal(read_named(f, "none.jsonl"), PL_E_IO);
}

/* ---- asking ---- */

#define ITEM(n) "{\"context\": \"" n "\", \"continuation\": \"x\"}\n"

static void shots_are_the_first_others(void **state)
{
    fixture *f = *state;
    f->manner.shots = 2;
    const pl_task *task = read_text(f, ITEM("0") ITEM("1") ITEM("2") ITEM("3"));
    static const size_t want[4][2] = { { 1, 2 }, { 0, 2 }, { 0, 1 }, { 0, 1 } };
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2; k++)
            assert_ptr_equal(pl_task_shot(task, i, k),
                             &task->items[want[i][k]]);
    f->manner.shots = 4;
    assert_int_equal(read_named(f, "one.jsonl"), PL_E_CONFIG);
}

static void a_limit_leaves_the_first_items(void **state)
{
    fixture *f = *state;
    f->manner.limit = 1;
    f->manner.shots = 2;
    const pl_task *task = read_text(f, ITEM("0") ITEM("1") ITEM("2") "broken");
    assert_int_equal(task->asked, 1);
    assert_int_equal(task->count, 3);
    f->manner.shots = 0;
    f->manner.limit = 9;
    assert_int_equal(read_text(f, ITEM("0") ITEM("1"))->asked, 2);
}

/* ---- folders ---- */

static void a_folder_has_its_files_in_the_order_of_their_names(void **state)
{
    fixture *f = *state;
    write_file(f, "b.jsonl", ITEM("b"));
    write_file(f, "a \"q\".jsonl", ITEM("a"));
    write_file(f, "notes.txt", "nothing");
    write_file(f, ".hidden.jsonl", "nothing");
    if (read_named(f, ""))
        fail_msg("%s", f->err.text);
    assert_int_equal(f->tasks.count, 2);
    assert_string_equal(f->tasks.tasks[0].label, "a _q_");
    assert_string_equal(f->tasks.tasks[1].label, "b");
}

static void make_folder(fixture *f, const char *name)
{
    if (pl_folder_make(scratch_path(&f->folder, name), &f->err))
        fail_msg("%s", f->err.text);
}

static void folders_in_a_folder_are_looked_through(void **state)
{
    fixture *f = *state;
    make_folder(f, "b/c");
    make_folder(f, ".hidden");
    make_folder(f, "listed");
    write_file(f, "z.jsonl", ITEM("z"));
    write_file(f, "a.jsonl", ITEM("a"));
    write_file(f, "b/a.jsonl", ITEM("b"));
    write_file(f, "b/c/a.jsonl", ITEM("c"));
    write_file(f, ".hidden/a.jsonl", "nothing");
    write_file(f, "listed/a.jsonl", "nothing");
    write_file(f, "listed/it.jsonl", ITEM("d") ITEM("e"));
    write_file(f, "listed/tasks.json",
               "{\"tasks\": [{\"file\": \"it.jsonl\", \"shots\": 1}]}");
    if (pl_link_replace(scratch_path(&f->folder, "b/round"), "..", &f->err) ||
        read_named(f, ""))
        fail_msg("%s", f->err.text);
    static const char *const want[] = { "a", "b/a", "b/c/a", "it", "z" };
    assert_int_equal(f->tasks.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(f->tasks.tasks[i].label, want[i]);
    assert_int_equal(f->tasks.tasks[3].manner.shots, 1);
    make_folder(f, "1/2/3/4/5/6/7/8/9");
    assert_int_equal(read_named(f, ""), PL_E_CONFIG);
    assert_non_null(strstr(f->err.text, "too deep"));
}

static void a_list_says_which_and_how(void **state)
{
    fixture *f = *state;
    write_file(f, "b.jsonl", ITEM("b") ITEM("c"));
    write_file(f, "a.jsonl", ITEM("a"));
    write_file(f, "tasks.json",
               "{\"tasks\": [{\"file\": \"b.jsonl\", \"label\": \"second\", "
               "\"shots\": 1, \"chance\": 0.125, \"continuation_delimiter\": "
               "\"\", \"example_delimiter\": \"|\"}, {\"file\": "
               "\"a.jsonl\"}]}");
    if (read_named(f, ""))
        fail_msg("%s", f->err.text);
    assert_int_equal(f->tasks.count, 2);
    const pl_task *task = &f->tasks.tasks[0];
    assert_string_equal(task->label, "second");
    assert_int_equal(task->manner.shots, 1);
    assert_true(task->chance == 0.125);
    assert_text(task->manner.between, "");
    assert_text(task->manner.behind, "|");
    assert_text(f->tasks.tasks[1].manner.between, " ");
    assert_int_equal(f->tasks.tasks[1].manner.shots, 0);
}

static void a_list_that_is_wrong_is_refused(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "{}", "is expected" },
        { "{\"tasks\": [1]}", "a list of objects" },
        { "{\"tasks\": [{\"label\": \"x\"}]}", "has no \"file\"" },
        { "{\"tasks\": [{\"file\": \"a.jsonl\", \"shot\": 1}]}",
          "\"shot\" is no key" },
        { "{\"tasks\": [{\"file\": \"a.jsonl\", \"shots\": -1}]}",
          "\"shots\" must be" },
        { "{\"tasks\": [{\"file\": \"a.jsonl\", \"chance\": 1}]}",
          "\"chance\" must be" },
        { "{\"tasks\": [{\"file\": 3}]}", "\"file\" must be a text" },
    };
    write_file(f, "a.jsonl", ITEM("a"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(f, "tasks.json", cases[i].text);
        assert_int_equal(read_named(f, ""), PL_E_FORMAT);
        if (!strstr(f->err.text, cases[i].says))
            fail_msg("%zu: %s", i, f->err.text);
    }
    write_file(f, "tasks.json",
               "{\"tasks\": [{\"file\": \"a.jsonl\"}, "
               "{\"file\": \"a.jsonl\"}]}");
    assert_int_equal(read_named(f, ""), PL_E_CONFIG);
    assert_non_null(strstr(f->err.text, "both called 'a'"));
}

static void a_folder_without_tasks_is_refused(void **state)
{
    fixture *f = *state;
    assert_int_equal(read_named(f, ""), PL_E_IO);
}

/* ---- texts ---- */

static void white_space_is_what_python_says(void **state)
{
    (void)state;
    static const char text[] = "\u2003a\u00a0 b \u3000\x1f\t\n";
    const size_t bytes = sizeof text - 1;
    assert_int_equal(pl_task_text_head(text, bytes), 3);
    assert_int_equal(pl_task_text_tail(text, bytes), 1 + 3 + 3);
    assert_int_equal(pl_task_text_tail("  ", 2), 2);
    assert_int_equal(pl_task_text_tail("\xff ", 2), 1);
    assert_int_equal(pl_task_text_tail("a\u200b", 4), 0);
    assert_int_equal(pl_task_text_characters("\u00e9\U0001f600x\xff", 8), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_query_has_choices),
        TEST(a_schema_has_contexts),
        TEST(a_language_task_has_one_candidate),
        TEST(hellaswag_is_cleaned_as_lm_eval_does_it),
        TEST(arc_and_piqa_are_questions),
        TEST(winogrande_is_a_schema),
        TEST(lambada_asks_for_the_last_word),
        TEST(what_is_unclear_is_refused_with_its_place),
        TEST(shots_are_the_first_others),
        TEST(a_limit_leaves_the_first_items),
        TEST(a_folder_has_its_files_in_the_order_of_their_names),
        TEST(folders_in_a_folder_are_looked_through),
        TEST(a_list_says_which_and_how),
        TEST(a_list_that_is_wrong_is_refused),
        TEST(a_folder_without_tasks_is_refused),
        TEST(white_space_is_what_python_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
