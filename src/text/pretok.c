/* pretok.c: see pretok.h. Owns the scanner. Text is mostly ASCII and its
 * pieces mostly words: these are found eight bytes at a time. */
#include "text/pretok.h"

#include "base/check.h"
#include "base/utf8.h"
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

size_t pl_pretok_next(const char *text, size_t bytes)
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

/* Whether the character that ends before `at` > 0 is white space. Nothing is
 * read from `bytes` on. */
static int space_before(const char *text, size_t at)
{
    size_t begin = at - 1, length;
    while (begin > 0 && at - begin < PL_UTF8_MAX_BYTES &&
           !pl_utf8_starts(text[begin]))
        begin--;
    unsigned class = class_at(text, begin, at, &length);
    return class == S && begin + length == at;
}

size_t pl_pretok_cut(const char *text, size_t bytes)
{
    for (size_t at = bytes; at-- > 1;)
        if (byte_class[(unsigned char)text[at]] == S && !space_before(text, at))
            return at;
    return 0;
}
