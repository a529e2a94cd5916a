#include "base/file.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    scratch_close(&dir);
    return 0;
}

static void assert_holds(const char *path, const char *text)
{
    size_t bytes;
    char *data = scratch_read(path, &bytes);
    assert_non_null(data);
    assert_string_equal(data, text);
    assert_int_equal(bytes, strlen(text));
    free(data);
}

static void what_was_appended_is_read_back(void **state)
{
    (void)state;
    pl_file file;
    char out[8] = "";
    const char *path = scratch_path(&dir, "a");
    assert_int_equal(pl_file_create(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_append(&file, "abc", 3, &err), PL_OK);
    assert_int_equal(pl_file_append(&file, "defgh", 5, &err), PL_OK);
    assert_int_equal(pl_file_write_at(&file, "XY", 2, 1, &err), PL_OK);
    assert_int_equal(pl_file_size(&file), 8);
    assert_int_equal(pl_file_write_at(&file, "Z", 1, 9, &err), PL_OK);
    assert_int_equal(pl_file_size(&file), 10);
    assert_int_equal(pl_file_sync(&file, &err), PL_OK);
    assert_int_equal(pl_file_close(&file, &err), PL_OK);
    assert_int_equal(pl_file_open_read(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_size(&file), 10);
    assert_int_equal(pl_file_pread_exact(&file, out, 4, 1, &err), PL_OK);
    assert_memory_equal(out, "XYde", 4);
    pl_file_drop_cache(&file);
    pl_file_abandon(&file);
    pl_file_abandon(&file); /* closed already: nothing happens */
}

static void a_lock_is_held_by_one_until_it_is_closed(void **state)
{
    (void)state;
    pl_file mine, other;
    const char *path = scratch_path(&dir, "lock");
    assert_int_equal(pl_file_lock(&mine, path, &err), PL_OK);
    assert_int_equal(pl_file_lock(&other, path, &err), PL_E_IO);
    assert_contains(err.text, "held by another process");
    pl_file_abandon(&mine);
    assert_int_equal(pl_file_lock(&other, path, &err), PL_OK);
    pl_file_abandon(&other);
}

static void a_lock_that_was_removed_is_made_again(void **state)
{
    (void)state;
    pl_file mine, other;
    char folder[SCRATCH_PATH_BYTES + 16];
    snprintf(folder, sizeof folder, "%s/held/deep", dir.folder);
    assert_int_equal(pl_folder_hold(&mine, folder, &err), PL_OK);
    assert_int_equal(pl_folder_hold(&other, folder, &err), PL_E_IO);
    assert_contains(err.text, "held/deep/.lock is held by another process");
    assert_int_equal(other.fd, -1);
    pl_folder_let_go(&other); /* isn't held: nothing happens */
    assert_int_equal(scratch_count(folder), 1);
    /* What is held is no longer what others find there. */
    assert_int_equal(unlink(mine.path), 0);
    assert_int_equal(pl_folder_hold(&other, folder, &err), PL_OK);
    pl_file_abandon(&mine);
    scratch_write(scratch_path(&dir, "held/deep/x"), "x", 1);
    pl_folder_let_go(&other);
    assert_int_equal(scratch_count(folder), 1); /* what isn't the lock stays */
    assert_int_equal(unlink(scratch_path(&dir, "held/deep/x")), 0);
    assert_int_equal(pl_folder_hold(&mine, folder, &err), PL_OK);
    pl_folder_let_go(&mine);
    assert_int_equal(scratch_count(folder), -1);
}

static void a_write_that_fails_says_which_bytes(void **state)
{
    (void)state;
    pl_file file;
    assert_int_equal(pl_file_create(&file, scratch_path(&dir, "full"), &err),
                     PL_OK);
    assert_int_equal(pl_file_append(&file, "abc", 3, &err), PL_OK);
    pl_file_fail_at(1, ENOSPC);
    assert_int_equal(pl_file_append(&file, "defg", 4, &err), PL_E_IO);
    assert_contains(err.text,
                    "/full at offset 3: No space left on device. Free");
    pl_file_fail_at(1, ENOSPC);
    assert_int_equal(pl_file_write_at(&file, "de", 2, 7, &err), PL_E_IO);
    assert_contains(err.text, "cannot write 2 bytes to ");
    pl_file_fail_at(0, 0);
    pl_file_discard(&file);
}

static void a_link_is_seen_as_itself_or_as_what_it_leads_to(void **state)
{
    (void)state;
    pl_file_kind kind;
    const char *path = scratch_path(&dir, "link");
    assert_int_equal(symlink(dir.folder, path), 0);
    assert_int_equal(pl_file_look(path, &kind, &err), PL_OK);
    assert_int_equal(kind, PL_FILE_FOLDER);
    assert_int_equal(pl_file_look_at(path, &kind, &err), PL_OK);
    assert_int_equal(kind, PL_FILE_OTHER);
    assert_int_equal(unlink(path), 0);
}

static void a_short_file_names_path_wanted_and_found(void **state)
{
    (void)state;
    pl_file file;
    char out[100];
    scratch_write(scratch_path(&dir, "short.bin"), "12345", 5);
    const char *path = scratch_path(&dir, "short.bin");
    assert_int_equal(pl_file_open_read(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_pread_exact(&file, out, 100, 2, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "short.bin");
    assert_contains(err.text, "wanted 100 bytes at offset 2");
    assert_contains(err.text, "found 3");
    assert_int_equal(pl_file_pread_exact(&file, out, 1, UINT64_MAX, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "found 0");
    assert_int_equal(pl_file_pread_exact(&file, out, 0, 5, &err), PL_OK);
    pl_file_abandon(&file);
}

static void streaming_ends_with_less_than_was_asked(void **state)
{
    (void)state;
    pl_file file;
    char out[4];
    size_t bytes;
    scratch_write(scratch_path(&dir, "s"), "abcdef", 6);
    assert_int_equal(pl_file_open_read(&file, scratch_path(&dir, "s"), &err),
                     PL_OK);
    assert_int_equal(pl_file_read_some(&file, out, 4, &bytes, &err), PL_OK);
    assert_int_equal(bytes, 4);
    assert_int_equal(pl_file_read_some(&file, out, 4, &bytes, &err), PL_OK);
    assert_int_equal(bytes, 2);
    assert_memory_equal(out, "ef", 2);
    assert_int_equal(pl_file_read_some(&file, out, 4, &bytes, &err), PL_OK);
    assert_int_equal(bytes, 0);
    pl_file_abandon(&file);
}

static void a_missing_file_gets_a_hint(void **state)
{
    (void)state;
    pl_file file;
    assert_int_equal(
        pl_file_open_read(&file, scratch_path(&dir, "nowhere.txt"), &err),
        PL_E_IO);
    assert_contains(err.text, "nowhere.txt");
    assert_contains(err.text, "No such file");
    assert_contains(err.text, "Check the name");
    assert_int_equal(file.fd, -1);
}

static void only_plain_files_are_read_and_nothing_hangs(void **state)
{
    (void)state;
    pl_file file;
    int before = scratch_open_files();
    assert_int_equal(pl_file_open_read(&file, dir.folder, &err), PL_E_IO);
    assert_contains(err.text, "a folder");
    assert_int_equal(mkfifo(scratch_path(&dir, "pipe"), 0600), 0);
    assert_int_equal(pl_file_open_read(&file, scratch_path(&dir, "pipe"), &err),
                     PL_E_IO);
    assert_contains(err.text, "a pipe or a device");
    assert_int_equal(pl_file_create(&file, scratch_path(&dir, "pipe"), &err),
                     PL_E_IO);
    assert_int_equal(scratch_open_files(), before);
}

static void a_full_disk_gets_a_hint(void **state)
{
    (void)state;
    pl_file file;
    assert_int_equal(pl_file_create(&file, "/dev/full", &err), PL_OK);
    assert_int_equal(pl_file_append(&file, "x", 1, &err), PL_E_IO);
    assert_contains(err.text, "/dev/full");
    assert_contains(err.text, "No space left");
    assert_contains(err.text, "Free some space");
    pl_file_abandon(&file);
}

static void a_whole_file_is_read_with_a_zero_behind(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(1 << 20);
    char *data;
    size_t bytes;
    const char *path = scratch_path(&dir, "all");
    scratch_write(path, "a\0b", 3);
    assert_int_equal(pl_file_read_all(path, 3, &heap, &data, &bytes, &err),
                     PL_OK);
    assert_int_equal(bytes, 3);
    assert_memory_equal(data, "a\0b", 4);
    assert_int_equal(heap.taken_bytes, 5);
    assert_int_equal(pl_file_read_all(path, 2, &heap, &data, &bytes, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "too large: at most 2 bytes");
    scratch_write(path, "", 0);
    assert_int_equal(pl_file_read_all(path, 9, &heap, &data, &bytes, &err),
                     PL_OK);
    assert_int_equal(bytes, 0);
    assert_int_equal(data[0], 0);
    pl_heap_close(&heap);
}

static void files_whose_size_lies_are_read_to_their_end(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(1 << 24);
    char *data, fixed[65536], tiny[4];
    size_t bytes, again;
    const char *path = "/proc/self/smaps"; /* says 0, has many pages */
    assert_int_equal(
        pl_file_read_all(path, 1 << 22, &heap, &data, &bytes, &err), PL_OK);
    assert_true(bytes > 4096);
    assert_non_null(strstr(data, "VmFlags"));
    assert_int_equal(pl_file_read_all(path, 5000, &heap, &data, &bytes, &err),
                     PL_E_FORMAT);
    assert_int_equal(pl_file_read_into("/proc/self/status", fixed, sizeof fixed,
                                       &again, &err),
                     PL_OK);
    assert_non_null(strstr(fixed, "VmHWM"));
    assert_int_equal(strlen(fixed), again);
    assert_int_equal(
        pl_file_read_into("/proc/self/status", tiny, sizeof tiny, &again, &err),
        PL_E_FORMAT);
    pl_heap_close(&heap);
}

static void a_heap_that_is_too_small_is_reported(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(10);
    char *data;
    size_t bytes;
    int before = scratch_open_files();
    scratch_write(scratch_path(&dir, "big"), "01234567890123456789", 20);
    assert_int_equal(pl_file_read_all(scratch_path(&dir, "big"), 100, &heap,
                                      &data, &bytes, &err),
                     PL_E_MEMORY);
    assert_int_equal(scratch_open_files(), before);
    pl_heap_close(&heap);
}

static void replacing_swaps_the_whole_content(void **state)
{
    (void)state;
    const char *path = scratch_path(&dir, "conf.json");
    assert_int_equal(pl_file_replace(path, "old one", 7, &err), PL_OK);
    assert_holds(path, "old one");
    assert_int_equal(pl_file_replace(path, "new", 3, &err), PL_OK);
    assert_holds(path, "new");
    assert_int_equal(pl_file_replace(path, NULL, 0, &err), PL_OK);
    assert_holds(path, "");
    assert_int_equal(scratch_count(dir.folder), 1);
}

static void interrupted_calls_are_resumed(void **state)
{
    (void)state;
    const char *path = scratch_path(&dir, "signal");
    for (long nth = 1; nth < 12; nth++) {
        pl_file_fail_at(nth, EINTR);
        assert_int_equal(pl_file_replace(path, "text", 4, &err),
                         nth == 4 ? PL_E_IO : PL_OK); /* 4: close, no retry */
        pl_file_fail_at(0, 0);
    }
}

static void paths_are_joined_as_python_does(void **state)
{
    (void)state;
    char out[PL_PATH_BYTES];
    static char huge[5000];
    assert_int_equal(pl_path_join(out, "data", "x", &err), PL_OK);
    assert_string_equal(out, "data/x");
    assert_int_equal(pl_path_join(out, "data/", "x", &err), PL_OK);
    assert_string_equal(out, "data/x");
    assert_int_equal(pl_path_join(out, "data", "/x/y", &err), PL_OK);
    assert_string_equal(out, "/x/y");
    assert_int_equal(pl_path_join(out, "", "x", &err), PL_OK);
    assert_string_equal(out, "x");
    assert_int_equal(pl_path_add(out, "ckpt", ".tmp", &err), PL_OK);
    assert_string_equal(out, "ckpt.tmp");
    memset(huge, 'a', sizeof huge - 1);
    assert_int_equal(pl_path_join(out, "data", huge, &err), PL_E_USAGE);
    assert_contains(err.text, "are a path of more than 4,095 bytes");
}

static void
a_path_that_is_too_long_is_an_error_that_still_says_why(void **state)
{
    (void)state;
    pl_file file;
    static char huge[6000];
    memset(huge, 'a', sizeof huge - 1);
    assert_int_equal(pl_file_open_read(&file, huge, &err), PL_E_IO);
    assert_contains(err.text, "File name too long");
    assert_int_equal(pl_folder_make(huge, &err), PL_E_USAGE);
}

static void looking_tells_the_kinds_apart(void **state)
{
    (void)state;
    pl_file_kind kind;
    scratch_write(scratch_path(&dir, "f"), "", 0);
    assert_int_equal(pl_file_look(scratch_path(&dir, "f"), &kind, &err), PL_OK);
    assert_int_equal(kind, PL_FILE_PLAIN);
    assert_int_equal(pl_file_look(scratch_path(&dir, "g"), &kind, &err), PL_OK);
    assert_int_equal(kind, PL_FILE_ABSENT);
    assert_int_equal(pl_file_look(scratch_path(&dir, "f/g"), &kind, &err),
                     PL_OK);
    assert_int_equal(kind, PL_FILE_ABSENT);
    assert_int_equal(pl_file_look(dir.folder, &kind, &err), PL_OK);
    assert_int_equal(kind, PL_FILE_FOLDER);
    assert_int_equal(pl_file_look("/dev/null", &kind, &err), PL_OK);
    assert_int_equal(kind, PL_FILE_OTHER);
    pl_file_fail_at(1, EIO);
    assert_int_equal(pl_file_look(dir.folder, &kind, &err), PL_E_IO);
}

static void folders_are_made_with_parents(void **state)
{
    (void)state;
    assert_int_equal(pl_folder_make(scratch_path(&dir, "a/b/c"), &err), PL_OK);
    assert_int_equal(pl_folder_make(scratch_path(&dir, "a/b/c/"), &err), PL_OK);
    assert_int_equal(scratch_count(scratch_path(&dir, "a/b")), 1);
    assert_int_equal(pl_folder_sync(scratch_path(&dir, "a/b"), &err), PL_OK);
    assert_int_equal(pl_folder_sync_of(scratch_path(&dir, "a/b/"), &err),
                     PL_OK);
    assert_int_equal(pl_folder_sync_of("relative", &err), PL_OK);
    scratch_write(scratch_path(&dir, "file"), "", 0);
    assert_int_equal(pl_folder_make(scratch_path(&dir, "file/x"), &err),
                     PL_E_IO);
    assert_int_equal(pl_folder_make(scratch_path(&dir, "file"), &err), PL_E_IO);
    assert_contains(err.text, "file");
}

static void a_flat_folder_is_removed_whole(void **state)
{
    (void)state;
    char name[32];
    const char *folder = scratch_path(&dir, "flat");
    int before = scratch_open_files();
    assert_int_equal(pl_folder_make(folder, &err), PL_OK);
    for (int i = 0; i < 300; i++) { /* more than one listing holds */
        snprintf(name, sizeof name, "flat/file-number-%03d", i);
        scratch_write(scratch_path(&dir, name), "x", 1);
    }
    folder = scratch_path(&dir, "flat");
    assert_int_equal(pl_folder_remove_flat(folder, &err), PL_OK);
    assert_false(scratch_has(folder));
    assert_int_equal(pl_folder_remove_flat(folder, &err), PL_OK);
    assert_int_equal(scratch_open_files(), before);
}

static void a_folder_in_the_folder_keeps_everything(void **state)
{
    (void)state;
    assert_int_equal(pl_folder_make(scratch_path(&dir, "x/mine"), &err), PL_OK);
    scratch_write(scratch_path(&dir, "x/a"), "1", 1);
    scratch_write(scratch_path(&dir, "x/z"), "1", 1);
    assert_int_equal(pl_folder_remove_flat(scratch_path(&dir, "x"), &err),
                     PL_E_IO);
    assert_contains(err.text, "holds the folder mine");
    assert_int_equal(scratch_count(scratch_path(&dir, "x")), 3);
}

static void renaming_replaces_and_removing_twice_is_fine(void **state)
{
    (void)state;
    const char *a = scratch_path(&dir, "a"), *b = scratch_path(&dir, "b");
    scratch_write(a, "from a", 6);
    scratch_write(b, "from b", 6);
    assert_int_equal(pl_file_rename(a, b, &err), PL_OK);
    assert_holds(b, "from a");
    assert_int_equal(pl_file_rename(a, b, &err), PL_E_IO);
    assert_contains(err.text, "cannot rename");
    assert_int_equal(pl_file_remove(b, &err), PL_OK);
    assert_int_equal(pl_file_remove(b, &err), PL_OK);
    assert_int_equal(pl_file_remove(dir.folder, &err), PL_E_IO);
}

static void a_link_is_made_replaced_and_read(void **state)
{
    (void)state;
    char target[PL_PATH_BYTES];
    const char *path = scratch_path(&dir, "link");
    assert_int_equal(pl_link_read(path, target, &err), PL_OK);
    assert_string_equal(target, "");
    assert_int_equal(pl_link_replace(path, "one", &err), PL_OK);
    assert_int_equal(pl_link_replace(path, "two", &err), PL_OK);
    assert_int_equal(pl_link_read(path, target, &err), PL_OK);
    assert_string_equal(target, "two");
    assert_int_equal(scratch_count(dir.folder), 1);
}

static void a_folder_is_no_link_and_is_not_replaced_by_one(void **state)
{
    (void)state;
    char target[PL_PATH_BYTES];
    const char *path = scratch_path(&dir, "folder");
    assert_int_equal(pl_folder_make(path, &err), PL_OK);
    assert_int_equal(pl_link_read(path, target, &err), PL_OK);
    assert_string_equal(target, "");
    assert_int_equal(pl_link_replace(path, "one", &err), PL_E_IO);
    assert_int_equal(scratch_count(dir.folder), 1);
}

static void count_name(void *context, const char *name)
{
    int *seen = context;
    seen[name[0] - 'a']++;
}

static void a_walk_sees_every_name_once(void **state)
{
    (void)state;
    int seen[3] = { 0 };
    scratch_write(scratch_path(&dir, "a"), "1", 1);
    assert_int_equal(pl_folder_make(scratch_path(&dir, "c"), &err), PL_OK);
    for (int i = 0; i < 300; i++) { /* more than one answer of the system's */
        char name[32];
        snprintf(name, sizeof name, "b%020d", i);
        scratch_write(scratch_path(&dir, name), "1", 1);
    }
    assert_int_equal(pl_folder_walk(dir.folder, count_name, seen, &err), PL_OK);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 300);
    assert_int_equal(seen[2], 1);
    assert_int_equal(
        pl_folder_walk(scratch_path(&dir, "none"), count_name, seen, &err),
        PL_E_IO);
}

static void a_file_that_was_cut_is_appended_to_there(void **state)
{
    (void)state;
    pl_file file;
    const char *path = scratch_path(&dir, "f");
    assert_int_equal(pl_file_create(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_append(&file, "abcdef", 6, &err), PL_OK);
    assert_int_equal(pl_file_resize(&file, 2, &err), PL_OK);
    assert_int_equal(pl_file_append(&file, "X", 1, &err), PL_OK);
    assert_int_equal(pl_file_close(&file, &err), PL_OK);
    assert_holds(path, "abX");
}

static void the_disk_is_asked_at_the_nearest_parent(void **state)
{
    (void)state;
    uint64_t here, deep;
    pl_disk_medium medium;
    assert_int_equal(pl_disk_free_bytes(dir.folder, &here, &err), PL_OK);
    assert_int_equal(
        pl_disk_free_bytes(scratch_path(&dir, "not/there/yet"), &deep, &err),
        PL_OK);
    assert_true(here > 0 && deep > 0);
    assert_int_equal(pl_disk_free_bytes("relative/not/there", &deep, &err),
                     PL_OK);
    assert_int_equal(pl_disk_look("/not/there", &medium, &err), PL_OK);
    if (scratch_has("/dev/shm")) {
        assert_int_equal(pl_disk_look("/dev/shm/deep/x", &medium, &err), PL_OK);
        assert_int_equal(medium, PL_DISK_MEMORY);
    }
}

static void a_fault_happens_once_at_the_nth_call(void **state)
{
    (void)state;
    pl_file_kind kind;
    pl_file_fail_at(2, ENOSPC);
    assert_int_equal(pl_file_look(dir.folder, &kind, &err), PL_OK);
    assert_false(pl_file_fault_happened());
    assert_int_equal(pl_file_look(dir.folder, &kind, &err), PL_E_IO);
    assert_true(pl_file_fault_happened());
    assert_contains(err.text, "No space left");
    assert_int_equal(pl_file_look(dir.folder, &kind, &err), PL_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void a_path_is_quoted_as_a_shell_reads_it(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "data/mine.txt", "data/mine.txt" },
        { "a-b_c:d,e@f%g+h=i", "a-b_c:d,e@f%g+h=i" },
        { "", "''" },
        { "my data", "'my data'" },
        { "it's", "'it'\\''s'" },
        { "$HOME", "'$HOME'" },
        { "~me", "'~me'" },
        { "a;b", "'a;b'" },
        { "a*b", "'a*b'" },
        { "caf\xc3\xa9", "caf\xc3\xa9" },
        { "-x", "./-x" },
        { "- x", "'./- x'" },
    };
    char longest[PL_PATH_BYTES];
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        assert_string_equal(pl_path_quoted(pairs[i][0]).text, pairs[i][1]);
    for (size_t bytes = 1; bytes + 1 < sizeof longest; bytes += 7) {
        for (int kind = 0; kind < 3; kind++) {
            memset(longest, "a '"[kind], bytes);
            longest[bytes] = '\0';
            pl_path_word word = pl_path_quoted(longest);
            assert_true(strlen(word.text) < sizeof word.text);
            if (bytes < 100)
                assert_true(word.text[0] == "a''"[kind]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_was_appended_is_read_back),
        TEST(a_lock_is_held_by_one_until_it_is_closed),
        TEST(a_lock_that_was_removed_is_made_again),
        TEST(a_write_that_fails_says_which_bytes),
        TEST(a_link_is_seen_as_itself_or_as_what_it_leads_to),
        TEST(a_short_file_names_path_wanted_and_found),
        TEST(streaming_ends_with_less_than_was_asked),
        TEST(a_missing_file_gets_a_hint),
        TEST(only_plain_files_are_read_and_nothing_hangs),
        TEST(a_full_disk_gets_a_hint),
        TEST(a_whole_file_is_read_with_a_zero_behind),
        TEST(files_whose_size_lies_are_read_to_their_end),
        TEST(a_heap_that_is_too_small_is_reported),
        TEST(replacing_swaps_the_whole_content),
        TEST(interrupted_calls_are_resumed),
        TEST(paths_are_joined_as_python_does),
        TEST(a_path_that_is_too_long_is_an_error_that_still_says_why),
        TEST(looking_tells_the_kinds_apart),
        TEST(folders_are_made_with_parents),
        TEST(a_flat_folder_is_removed_whole),
        TEST(a_folder_in_the_folder_keeps_everything),
        TEST(renaming_replaces_and_removing_twice_is_fine),
        TEST(a_link_is_made_replaced_and_read),
        TEST(a_folder_is_no_link_and_is_not_replaced_by_one),
        TEST(a_walk_sees_every_name_once),
        TEST(a_file_that_was_cut_is_appended_to_there),
        TEST(the_disk_is_asked_at_the_nearest_parent),
        TEST(a_fault_happens_once_at_the_nth_call),
        TEST(a_path_is_quoted_as_a_shell_reads_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
