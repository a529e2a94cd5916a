/* replay.c: a main for fuzz targets where libFuzzer isn't there: runs every
 * file given, or in a folder given, and 1000 mutations of each, or
 * 4000 with PL_TEST_LONG=1. The same mutations every time, so that a failure
 * comes back. With PLIMSOLL_FUZZ_KEEP=PATH each input is written to PATH before
 * it runs, so that after a crash the culprit lies there.
 *
 *   fuzz_x tests/fuzz/corpus/x */
#include "fuzz/fuzz.h"
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MUTATIONS = 1000,
    LONG_MUTATIONS = 4000,
    MAX_INPUT_BYTES = 4 << 20,
    MAX_EDITS = 6
};

static int mutations(void)
{
    return getenv("PL_TEST_LONG") ? LONG_MUTATIONS : MUTATIONS;
}

static uint64_t random_state;

static uint64_t next_random(void)
{
    /* splitmix64 */
    uint64_t z = random_state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static size_t below(size_t bound)
{
    return bound ? (size_t)(next_random() % bound) : 0;
}

/* In memory of exactly its size, so that a sanitizer sees every over-read. */
static void run_one(const uint8_t *data, size_t size)
{
    const char *keep = getenv("PLIMSOLL_FUZZ_KEEP");
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    if (size)
        memcpy(exact, data, size);
    FILE *file = keep ? fopen(keep, "wb") : NULL;
    if (file) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void edit_byte(uint8_t *data, size_t size)
{
    static const uint8_t corners[] = { 0,   1,   0x7F, 0x80, 0xFF, '\n', '"',
                                       '[', '{', '(',  '-',  '9',  '\\' };
    uint8_t *at = data + below(size);
    switch (below(3)) {
    case 0:
        *at = (uint8_t)(*at ^ 1u << below(8));
        break;
    case 1:
        *at = (uint8_t)next_random();
        break;
    default:
        *at = corners[below(sizeof corners)];
    }
}

/* Changes data (with room for twice its size and a bit) a little. */
static size_t edit(uint8_t *data, size_t size, size_t capacity)
{
    size_t at = below(size),
           length = 1 + below(size - at < 64 ? size - at : 64);
    if (size == 0) {
        data[0] = (uint8_t)next_random();
        return 1;
    }
    switch (below(6)) {
    case 0: /* cut the end off */
        return at;
    case 1: /* remove a part */
        if (length > size - at)
            length = size - at;
        memmove(data + at, data + at + length, size - at - length);
        return size - length;
    case 2: /* repeat a part */
        if (length > size - at)
            length = size - at;
        if (size + length > capacity)
            return size;
        memmove(data + at + length, data + at, size - at);
        return size + length;
    default:
        edit_byte(data, size);
        return size;
    }
}

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = MAX_INPUT_BYTES;
    uint8_t *original = malloc(capacity), *changed = malloc(2 * capacity);
    if (!file || !original || !changed) {
        fprintf(stderr, "replay: cannot read %s\n", path);
        exit(1);
    }
    size_t size = fread(original, 1, capacity, file);
    fclose(file);
    run_one(original, size);
    random_state = size;
    for (size_t i = 0; i < size && i < 64; i++)
        random_state = random_state * 31 + original[i];
    for (int i = 0; i < mutations(); i++) {
        size_t now = size;
        memcpy(changed, original, size);
        for (size_t edits = 1 + below(MAX_EDITS); edits > 0; edits--)
            now = edit(changed, now, 2 * capacity);
        run_one(changed, now);
    }
    free(original);
    free(changed);
    return 1;
}

static int replay_folder(const char *folder)
{
    struct dirent **entries;
    int files = 0, count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            files += replay_file(path);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return files;
}

int main(int argc, char **argv)
{
    int files = 0;
    for (int i = 1; i < argc; i++) {
        struct stat info;
        int is_folder = stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode);
        files += is_folder ? replay_folder(argv[i]) : replay_file(argv[i]);
    }
    if (files == 0) {
        fprintf(stderr, "replay: no corpus: give files or folders\n");
        return 1;
    }
    printf("%d files and %d mutations of each\n", files, mutations());
    return 0;
}
