/* card_words.h: PL_CARD in the environment, which describes an emulated card:
 * words separated by commas, some with "=value". What OpenCL's and CUDA's cards
 * both know:
 *
 *   bytes=N      its memory
 *   wrong=NAME   that kernel leaves a wrong bit behind
 *   broken       the program doesn't compile
 *   lost=N       the Nth launch fails, and everything after it
 *   hangs=N      the Nth launch never ends
 *   none         there is no card
 *   blind        races are not looked for, which is faster
 *   report=FILE  the most that was allocated, the pinned slices apart, is
 *                written there when the context ends */
#ifndef PL_TESTS_GPU_CARD_WORDS_H
#define PL_TESTS_GPU_CARD_WORDS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What follows `word`, up to a comma; NULL: it isn't there. */
static inline const char *said(const char *word)
{
    const char *at = getenv("PL_CARD");
    const size_t n = strlen(word);
    for (; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, n) == 0 &&
            (at[n] == '=' || at[n] == ',' || !at[n]))
            return at[n] == '=' ? at + n + 1 : at + n;
    }
    return NULL;
}

static inline uint64_t number(const char *word, uint64_t otherwise)
{
    const char *at = said(word);
    return at ? strtoull(at, NULL, 10) : otherwise;
}

/* Whether that is the name of the kernel that is to be wrong. */
static inline int is_wrong(const char *kernel)
{
    const char *wrong = said("wrong");
    return wrong && strcspn(wrong, ",") == strlen(kernel) &&
           strncmp(wrong, kernel, strlen(kernel)) == 0;
}

static inline void report(size_t bytes)
{
    const char *path = said("report");
    char name[512];
    if (!path)
        return;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(path, ","), path);
    FILE *file = fopen(name, "w");
    if (file) {
        fprintf(file, "%zu\n", bytes);
        fclose(file);
    }
}

#endif
