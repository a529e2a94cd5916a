/* pretok.c: see pretok.h. Owns the scanners. Text is mostly ASCII and its
 * pieces mostly words: these are found eight bytes at a time. */
#include "text/pretok.h"

#include "base/check.h"
#include "base/utf8.h"
#include "text/nfc.h"
#include "text/unicode.h"

#include <stdint.h>
#include <string.h>

/* pl_unicode_class of an ASCII byte; WIDE: part of a longer character. */
enum { O = PL_UNICODE_OTHER, L, N, S, WIDE };

static const uint8_t byte_class[256] = {
    O,    O,    O,    O,    O,    O,    O,    O,    /* 00 */
    O,    S,    S,    S,    S,    S,    O,    O,    /* 08: tab to return */
    O,    O,    O,    O,    O,    O,    O,    O,    /* 10 */
    O,    O,    O,    O,    O,    O,    O,    O,    /* 18 */
    S,    O,    O,    O,    O,    O,    O,    O,    /* 20 */
    O,    O,    O,    O,    O,    O,    O,    O,    /* 28 */
    N,    N,    N,    N,    N,    N,    N,    N,    /* 30 */
    N,    N,    O,    O,    O,    O,    O,    O,    /* 38 */
    O,    L,    L,    L,    L,    L,    L,    L,    /* 40 */
    L,    L,    L,    L,    L,    L,    L,    L,    /* 48 */
    L,    L,    L,    L,    L,    L,    L,    L,    /* 50 */
    L,    L,    L,    O,    O,    O,    O,    O,    /* 58 */
    O,    L,    L,    L,    L,    L,    L,    L,    /* 60 */
    L,    L,    L,    L,    L,    L,    L,    L,    /* 68 */
    L,    L,    L,    L,    L,    L,    L,    L,    /* 70 */
    L,    L,    L,    O,    O,    O,    O,    O,    /* 78 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* 80 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* 88 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* 90 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* 98 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* a0 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* a8 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* b0 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* b8 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* c0 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* c8 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* d0 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* d8 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* e0 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* e8 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* f0 */
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, /* f8 */
};

/* The class of the character at `at` < `bytes`, and its length. */
static unsigned class_at(const char *text, size_t at, size_t bytes,
                         size_t *length)
{
    unsigned class = byte_class[(unsigned char)text[at]];
    uint32_t code;
    *length = 1;
    if (class != WIDE)
        return class;
    int wide = pl_utf8_decode(text + at, bytes - at, &code);
    if (wide <= 0)
        return O;
    *length = (size_t)wide;
    return pl_unicode_class_of(code);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Skips ASCII letters. In each byte of `word` the high bit of `from_a` says
 * "a" or above, of `past_z` above "z", once upper case was folded. */
static size_t skip_letters(const char *text, size_t at, size_t bytes)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x80 * ones;
    while (bytes - at >= 8) {
        uint64_t word, low;
        memcpy(&word, text + at, 8);
        low = (word | 0x20 * ones) & ~highs;
        uint64_t from_a = low + (0x80 - 'a') * ones;
        uint64_t past_z = low + (0x80 - 'z' - 1) * ones;
        uint64_t stop = ~(from_a & ~past_z & ~word) & highs;
        if (stop)
            return at + (size_t)__builtin_ctzll(stop) / 8;
        at += 8;
    }
    return at;
}
#else
static size_t skip_letters(const char *text, size_t at, size_t bytes)
{
    (void)text;
    (void)bytes;
    return at;
}
#endif

/* The end of the characters of `class` that begin at `at`. */
static size_t skip(const char *text, size_t at, size_t bytes, unsigned class)
{
    size_t length;
    for (;;) {
        if (class == L)
            at = skip_letters(text, at, bytes);
        while (at < bytes && byte_class[(unsigned char)text[at]] == class)
            at++;
        if (at == bytes || byte_class[(unsigned char)text[at]] != WIDE ||
            class_at(text, at, bytes, &length) != class)
            return at;
        at += length;
    }
}

/* ---- GPT-2's ---- */

/* White space goes together, but for the last one before a word: a blank then
 * begins the word's piece, any other stands alone. */
static size_t space_piece(const char *text, size_t bytes)
{
    size_t at = 0, length = 0, last = 0;
    while (at < bytes && class_at(text, at, bytes, &length) == S) {
        last = at;
        at += length;
    }
    return at == bytes || last == 0 ? at : last;
}

static size_t contraction(const char *text, size_t bytes)
{
    if (bytes < 2)
        return 0;
    char a = text[1], b = bytes > 2 ? text[2] : '\0';
    if (a == 's' || a == 'd' || a == 'm' || a == 't')
        return 2;
    return (a == 'l' && b == 'l') || (a == 'v' && b == 'e') ||
                   (a == 'r' && b == 'e')
               ? 3
               : 0;
}

static size_t next_gpt2(const char *text, size_t bytes)
{
    size_t at = text[0] == ' ' && bytes > 1, length;
    if (text[0] == '\'') {
        length = contraction(text, bytes);
        if (length)
            return length;
    }
    unsigned class = class_at(text, at, bytes, &length);
    if (class == S)
        return space_piece(text, bytes);
    return skip(text, at + length, bytes, class);
}

/* ---- SmolLM2's ---- */

/* Hugging Face's "Digits" asks Rust's char::is_numeric, whose Unicode is newer:
 * in 17.0 these are numbers, too. */
static int is_new_number(uint32_t code)
{
    return (code >= 0x11DE0 && code <= 0x11DE9) ||
           (code >= 0x16FF4 && code <= 0x16FF6);
}

/* class_at, with N for them. */
static unsigned digit_class_at(const char *text, size_t at, size_t bytes,
                               size_t *length)
{
    uint32_t code;
    unsigned class = class_at(text, at, bytes, length);
    if (class == O && *length == 4 &&
        pl_utf8_decode(text + at, bytes - at, &code) == 4 &&
        is_new_number(code))
        return N;
    return class;
}

/* GPT-2's pattern sees only what is between two digits, as if it were all. */
static size_t next_smollm2(const char *text, size_t bytes)
{
    size_t at = 0, length, last = 0;
    unsigned class = digit_class_at(text, 0, bytes, &length);
    if (class == N)
        return length;
    if (class == S) {
        unsigned after = S;
        while (at < bytes) {
            after = digit_class_at(text, at, bytes, &length);
            if (after != S)
                break;
            last = at;
            at += length;
        }
        if (at == bytes || after == N)
            return at;
        if (last > 0)
            return last;
        if (text[0] != ' ')
            return at;
        class = after;
        at += length;
    } else {
        size_t short_form = text[0] == '\'' ? contraction(text, bytes) : 0;
        if (short_form)
            return short_form;
        at = length;
    }
    if (class == L)
        return skip(text, at, bytes, L);
    while (at < bytes && digit_class_at(text, at, bytes, &length) == O)
        at += length;
    return at;
}

/* ---- Llama 3's and Qwen's ---- */

/* class_at, where the bytes that are the beginning of a character are one. */
static unsigned whole_class_at(const char *text, size_t at, size_t bytes,
                               size_t *length)
{
    uint32_t code;
    unsigned class = class_at(text, at, bytes, length);
    if (class == O && *length == 1 && (unsigned char)text[at] >= 0x80)
        while (*length < bytes - at && *length < PL_UTF8_MAX_BYTES - 1 &&
               pl_utf8_decode(text + at, *length + 1, &code) == PL_UTF8_CUT_OFF)
            ++*length;
    return class;
}

static int is_line_end(char byte)
{
    return byte == '\r' || byte == '\n';
}

/* 's, 't, 're, 've, 'm, 'll and 'd in upper and lower case. U+017F, the long s,
 * is an s by case folding. */
static size_t folded_contraction(const char *text, size_t bytes)
{
    if (bytes < 2)
        return 0;
    char a = (char)(text[1] | 0x20), b = bytes > 2 ? (char)(text[2] | 0x20) : 0;
    if (a == 's' || a == 'd' || a == 'm' || a == 't')
        return 2;
    if ((a == 'l' && b == 'l') || (a == 'v' && b == 'e') ||
        (a == 'r' && b == 'e'))
        return 3;
    return bytes > 2 && memcmp(text + 1, "\u017f", 2) == 0 ? 3 : 0;
}

/* White space: up to its last line end; without one, all but the last
 * character, unless it ends the text. */
static size_t space_with_lines(const char *text, size_t bytes)
{
    size_t at = 0, length = 0, last = 0, lines = 0;
    while (at < bytes && class_at(text, at, bytes, &length) == S) {
        last = at;
        at += length;
        if (is_line_end(text[last]))
            lines = at;
    }
    if (lines)
        return lines;
    return at == bytes || last == 0 ? at : last;
}

static size_t others_and_lines(const char *text, size_t at, size_t bytes)
{
    at = skip(text, at, bytes, O);
    while (at < bytes && is_line_end(text[at]))
        at++;
    return at;
}

static inline size_t next_modern(const char *text, size_t bytes, int digits)
{
    size_t first, second = 0;
    unsigned char head = (unsigned char)text[0];
    if (head == '\'') {
        first = folded_contraction(text, bytes);
        if (first)
            return first;
    }
    unsigned class = whole_class_at(text, 0, bytes, &first), after = O;
    if (class == L)
        return skip(text, first, bytes, L);
    if (class == N) {
        while (--digits > 0 && first < bytes &&
               class_at(text, first, bytes, &second) == N)
            first += second;
        return first;
    }
    if (first < bytes)
        after = class_at(text, first, bytes, &second);
    if (second && after == L && !is_line_end((char)head))
        return skip(text, first + second, bytes, L);
    if (class == O)
        return others_and_lines(text, first, bytes);
    if (head == ' ' && second && after == O)
        return others_and_lines(text, first, bytes);
    return space_with_lines(text, bytes);
}

static size_t next_llama3(const char *text, size_t bytes)
{
    return next_modern(text, bytes, 3);
}

static size_t next_qwen2(const char *text, size_t bytes)
{
    return next_modern(text, bytes, 1);
}

/* ---- the table ---- */

enum { LINES_APART, LINES_JOIN };

#define X(id, word, regex, lines)                                              \
    [PL_PATTERN_##id] = { #word, regex, next_##word, LINES_##lines },
static const struct {
    const char *name, *regex;
    pl_pretok_fn *next;
    int lines;
} patterns[PL_PATTERN_COUNT] = { PL_PATTERN_TABLE(X) };
#undef X

const char *pl_pattern_name(pl_pattern pattern)
{
    return patterns[pattern].name;
}

const char *pl_pattern_regex(pl_pattern pattern)
{
    return patterns[pattern].regex;
}

pl_pretok_fn *pl_pretok_of(pl_pattern pattern)
{
    return patterns[pattern].next;
}

/* ---- where a text may be cut ---- */

/* Where the character begins that ends before `at` > 0, or the byte that is
 * none. Nothing is read from `at` on. */
static size_t before(const char *text, size_t at)
{
    size_t begin = at - 1, length;
    while (begin > 0 && at - begin < PL_UTF8_MAX_BYTES &&
           !pl_utf8_starts(text[begin]))
        begin--;
    class_at(text, begin, at, &length);
    return begin + length == at ? begin : at - 1;
}

static int space_before(const char *text, size_t at)
{
    size_t length;
    return class_at(text, before(text, at), at, &length) == S;
}

int pl_pretok_joins(pl_pattern pattern, const char *text, size_t at)
{
    uint32_t code;
    size_t length, begin = before(text, at);
    if (patterns[pattern].lines == LINES_APART || !is_line_end(text[at]))
        return 0;
    unsigned class = class_at(text, begin, at, &length);
    if (class != L && class != N)
        return 1;
    /* Some letters are a letter and a mark once they are normalized. */
    return pl_utf8_decode(text + begin, at - begin, &code) <= 0 ||
           !pl_nfc_keeps(code);
}

size_t pl_pretok_cut(pl_pattern pattern, const char *text, size_t bytes)
{
    for (size_t at = bytes; at-- > 1;)
        if (byte_class[(unsigned char)text[at]] == S &&
            !space_before(text, at) && !pl_pretok_joins(pattern, text, at))
            return at;
    return 0;
}
