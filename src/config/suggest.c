/* suggest.c: the name that a misspelled one was meant to be. */
#include "config/keys.h"

#include <string.h>

enum { LONGEST = 40 };

static char lower(char c)
{
    if (c == '-')
        return '_';
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Insertions, deletions and replacements that turn one into the other. `b`
 * has at most LONGEST bytes. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t row[LONGEST + 1]; /* of the first i bytes of a to each j of b */
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (lower(a[i - 1]) != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

size_t pl_name_nearest(const char *name, size_t bytes, const char *const *known,
                       size_t count)
{
    size_t nearest = count, least = bytes / 3 + 1;
    if (bytes < 2 || bytes > LONGEST)
        return count;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(known[i]);
        if (length > LONGEST)
            continue;
        size_t distance = edit_distance(name, bytes, known[i], length);
        if (distance <= least && distance < length) {
            /* A tie goes to the first: tables start with what is used
             * most. */
            if (nearest == count || distance < least) {
                nearest = i;
                least = distance;
            }
        }
    }
    return nearest;
}

bool pl_name_is_near(const char *name, size_t bytes, const char *known)
{
    size_t length = strlen(known);
    if (bytes < 2 || bytes > LONGEST || length > LONGEST)
        return false;
    size_t distance = edit_distance(name, bytes, known, length);
    return distance <= (bytes + 2) / 4 && distance < length;
}

pl_key pl_key_nearest(const char *name, size_t bytes)
{
    const char *known[PL_KEY_COUNT];
    for (int key = 0; key < PL_KEY_COUNT; key++)
        known[key] = pl_key_row((pl_key)key)->name;
    return (pl_key)pl_name_nearest(name, bytes, known, PL_KEY_COUNT);
}
