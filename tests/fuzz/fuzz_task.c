/* Tasks from outside: items whose texts are whole and whose gold is one of
 * their candidates, or an error with a message; and a list of tasks that names
 * such a file. */
#include "data/task.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/fuzz_task.XXXXXX", lines[64], list[64];

static void write_file(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(data, 1, size, file) != size) ||
        fclose(file) != 0)
        abort();
}

static void remove_all(void)
{
    unlink(lines);
    unlink(list);
    rmdir(folder);
}

static void make_folder(void)
{
    if (lines[0])
        return;
    if (!mkdtemp(folder))
        abort();
    snprintf(lines, sizeof lines, "%s/x.jsonl", folder);
    snprintf(list, sizeof list, "%s/tasks.json", folder);
    atexit(remove_all);
}

static void check_task(const pl_task *task)
{
    if (task->count == 0 || task->asked == 0 || task->asked > task->count ||
        !(task->chance >= 0.0 && task->chance < 1.0))
        abort();
    for (size_t i = 0; i < task->count; i++) {
        const pl_task_item *item = &task->items[i];
        if (item->gold >= item->count || item->count > PL_TASK_MOST_CHOICES)
            abort();
        for (size_t k = 0; k < item->count; k++) {
            const pl_task_text a = pl_task_context(task->kind, item, k),
                               b = pl_task_continuation(task->kind, item, k);
            if (a.text[a.bytes] != '\0' || b.text[b.bytes] != '\0')
                abort();
        }
    }
}

static void read_path(const char *path)
{
    pl_heap heap = pl_heap_make(64 << 20);
    const pl_task_manner manner = { .between = { " ", 1 },
                                    .behind = { "\n", 1 } };
    pl_tasks tasks;
    pl_error err = { .status = PL_OK };
    pl_status status = pl_tasks_read(&tasks, &path, 1, &manner, &heap, &err);
    if (status && err.text[0] == '\0')
        abort();
    for (size_t i = 0; !status && i < tasks.count; i++)
        check_task(&tasks.tasks[i]);
    pl_heap_close(&heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char item[] =
        "{\"context\": \"a\", \"continuation\": \"b\"}\n"
        "{\"context\": \"c\", \"continuation\": \"d\"}\n";
    make_folder();
    write_file(lines, data, size);
    read_path(lines);
    write_file(lines, (const uint8_t *)item, sizeof item - 1);
    write_file(list, data, size);
    read_path(folder);
    unlink(list);
    return 0;
}
