/* nfc.c: see nfc.h. Owns the look-ups in the generated tables.
 *
 * Most characters are inert: nothing in front of them changes them, and alone
 * they stay. A text is cut before each inert character; what follows one up to
 * the next is a segment, and only segments of more than one character are
 * worked on:
 *
 *   taken apart   by canonical decomposition, into the scratch behind the text
 *   ordered       each row of marks by combining class, stable
 *   composed      with the last character of class 0, into the text */
#include "text/nfc.h"

#include "base/utf8.h"
#include "text/nfc_tables.h"

#include <string.h>

/* Hangul's syllables are computed, as chapter 3.12 of the standard says. */
enum {
    HANGUL_L = 0x1100,
    HANGUL_V = 0x1161,
    HANGUL_T = 0x11A7,
    HANGUL_S = 0xAC00,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    S_COUNT = L_COUNT * V_COUNT * T_COUNT,
};

/* ---- the tables ---- */

static int is_inert(uint32_t code)
{
    uint32_t place = code >> NFC_SHIFT, bit = code % (1u << NFC_SHIFT);
    return place >= NFC_PLACES ||
           !(nfc_blocks[nfc_places[place]][bit / 8] >> bit % 8 & 1);
}

static unsigned class_of(uint32_t code)
{
    size_t low = 0, high = NFC_MARKS;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        uint32_t first = nfc_marks[middle] >> 8;
        if (code < first)
            high = middle;
        else if (code > first + nfc_mark_runs[middle])
            low = middle + 1;
        else
            return nfc_marks[middle] & 0xff;
    }
    return 0;
}

/* The place of `code` in an ascending list, `count` if it has none. */
static size_t place_of(uint32_t code, const uint32_t *list, size_t count)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle] == code)
            return middle;
        if (list[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return count;
}

static size_t step_of(uint32_t code)
{
    return place_of(code, nfc_codes, NFC_STEPS);
}

/* What the two become, 0 if they stay apart. */
static uint32_t compose(uint32_t first, uint32_t second)
{
    if (first - HANGUL_L < L_COUNT && second - HANGUL_V < V_COUNT)
        return HANGUL_S +
               ((first - HANGUL_L) * V_COUNT + second - HANGUL_V) * T_COUNT;
    if (first - HANGUL_S < S_COUNT && (first - HANGUL_S) % T_COUNT == 0 &&
        second - HANGUL_T - 1 < T_COUNT - 1)
        return first + second - HANGUL_T;
    size_t low = 0, high = NFC_PAIRS;
    while (low < high) {
        size_t middle = low + (high - low) / 2, step = nfc_pairs[middle];
        if (nfc_firsts[step] == first && nfc_seconds[step] == second)
            return nfc_codes[step];
        if (nfc_firsts[step] < first ||
            (nfc_firsts[step] == first && nfc_seconds[step] < second))
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

int pl_nfc_keeps(uint32_t code)
{
    size_t step = is_inert(code) ? NFC_STEPS : step_of(code);
    return step == NFC_STEPS ||
           compose(nfc_firsts[step], nfc_seconds[step]) == code;
}

/* ---- looking for what isn't inert ---- */

/* The character at `at`, as U+FFFD if it is none, and its length. */
static size_t next_code(const char *text, size_t at, size_t bytes,
                        uint32_t *code)
{
    int length = pl_utf8_decode(text + at, bytes - at, code);
    if (length > 0)
        return (size_t)length;
    *code = 0xFFFD;
    return 1;
}

static size_t skip_ascii(const char *text, size_t at, size_t bytes)
{
    uint64_t word;
    for (; bytes - at >= sizeof word; at += sizeof word) {
        memcpy(&word, text + at, sizeof word);
        if (word & 0x8080808080808080u)
            break;
    }
    while (at < bytes && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

/* Where the next character begins that isn't inert, `bytes` if there is none;
 * *last is where the one before it begins. */
static size_t find_awake(const char *text, size_t at, size_t bytes,
                         size_t *last)
{
    uint32_t code;
    *last = at;
    while (at < bytes) {
        if ((unsigned char)text[at] < 0x80) {
            at = skip_ascii(text, at, bytes);
            *last = at - 1;
            continue;
        }
        size_t length = next_code(text, at, bytes, &code);
        if (!is_inert(code))
            return at;
        *last = at;
        at += length;
    }
    return bytes;
}

int pl_nfc_quick(const char *text, size_t bytes)
{
    unsigned before = 0;
    size_t last, end = 0;
    for (size_t at = 0;;) {
        uint32_t code;
        at = find_awake(text, at, bytes, &last);
        if (at == bytes)
            return 1;
        size_t length = next_code(text, at, bytes, &code);
        unsigned class = class_of(code);
        if (class == 0 || (at == end && before > class) ||
            !pl_nfc_keeps(code) ||
            place_of(code, nfc_joins, NFC_JOINS) < NFC_JOINS)
            return 0;
        before = class;
        at += length;
        end = at;
    }
}

/* ---- a segment ---- */

/* Appends the canonical decomposition. */
static size_t take_apart(uint32_t code, char *out)
{
    size_t used = 0, step;
    if (code - HANGUL_S < S_COUNT) {
        uint32_t s = code - HANGUL_S, t = s % T_COUNT;
        used += (size_t)pl_utf8_encode(HANGUL_L + s / (V_COUNT * T_COUNT), out);
        used += (size_t)pl_utf8_encode(HANGUL_V + s / T_COUNT % V_COUNT,
                                       out + used);
        if (t)
            used += (size_t)pl_utf8_encode(HANGUL_T + t, out + used);
        return used;
    }
    step = step_of(code);
    if (step == NFC_STEPS)
        return (size_t)pl_utf8_encode(code, out);
    used = take_apart(nfc_firsts[step], out);
    if (nfc_seconds[step])
        used += (size_t)pl_utf8_encode(nfc_seconds[step], out + used);
    return used;
}

/* Orders a row of marks by class; those of one class stay as they stood.
 * `spare` has room for as much. */
static void order(char *marks, size_t bytes, char *spare)
{
    unsigned class = 0, next = 0, least = 255, last = 0;
    int sorted = 1;
    uint32_t code;
    for (size_t at = 0; at < bytes; last = class) {
        at += next_code(marks, at, bytes, &code);
        class = class_of(code);
        least = class < least ? class : least;
        sorted &= class >= last;
    }
    if (sorted)
        return;
    size_t used = 0;
    for (class = least; used < bytes; class = next) {
        next = 256;
        for (size_t at = 0; at < bytes;) {
            size_t length = next_code(marks, at, bytes, &code);
            unsigned here = class_of(code);
            if (here == class) {
                memcpy(spare + used, marks + at, length);
                used += length;
            } else if (here > class && here < next) {
                next = here;
            }
            at += length;
        }
    }
    memcpy(marks, spare, bytes);
}

/* Orders each row of marks of a segment that was taken apart. */
static void order_all(char *text, size_t bytes, char *spare)
{
    size_t begin = 0, at = 0;
    while (at < bytes) {
        uint32_t code;
        size_t length = next_code(text, at, bytes, &code);
        if (class_of(code) == 0) {
            order(text + begin, at - begin, spare);
            begin = at + length;
        }
        at += length;
    }
    order(text + begin, bytes - begin, spare);
}

/* Composes a segment into `out`. */
static size_t compose_all(const char *text, size_t bytes, char *out)
{
    size_t used = 0, starter_at = 0, starter_bytes = 0;
    uint32_t starter = 0, code;
    unsigned before = 0; /* the class of what stands behind the starter */
    int has_starter = 0, adjacent = 0;
    for (size_t at = 0; at < bytes;) {
        size_t length = next_code(text, at, bytes, &code);
        unsigned class = class_of(code);
        uint32_t made = has_starter && (adjacent || before < class)
                            ? compose(starter, code)
                            : 0;
        if (made) {
            char bare[PL_UTF8_MAX_BYTES];
            size_t wide = (size_t)pl_utf8_encode(made, bare);
            memmove(out + starter_at + wide, out + starter_at + starter_bytes,
                    used - starter_at - starter_bytes);
            memcpy(out + starter_at, bare, wide);
            used += wide - starter_bytes;
            starter = made;
            starter_bytes = wide;
        } else {
            memcpy(out + used, text + at, length);
            if (class == 0) {
                starter = code;
                starter_at = used;
                starter_bytes = length;
                has_starter = 1;
            }
            adjacent = class == 0;
            before = class;
            used += length;
        }
        at += length;
    }
    return used;
}

size_t pl_nfc_write(const char *text, size_t bytes, char *out)
{
    char *spare = out + PL_NFC_GROWTH * bytes;
    size_t at = 0, used = 0, last;
    while (at < bytes) {
        uint32_t code;
        size_t awake = find_awake(text, at, bytes, &last);
        size_t plain = awake == bytes ? bytes : last;
        memcpy(out + used, text + at, plain - at);
        used += plain - at;
        at = plain;
        size_t apart = 0;
        while (at < bytes) {
            size_t length = next_code(text, at, bytes, &code);
            if (apart > 0 && at > last && is_inert(code))
                break;
            if (length == 1) /* ASCII, or no character */
                spare[apart++] = text[at];
            else
                apart += take_apart(code, spare + apart);
            at += length;
        }
        /* What isn't written yet of `out` is as long as the segment at least:
         * ordering may use it. */
        order_all(spare, apart, out + used);
        used += compose_all(spare, apart, out + used);
    }
    return used;
}
