/* parquet_value.c: see parquet_value.h. */
#include "data/parquet_value.h"

#include <string.h>

/* ---- bits ---- */

/* `width` (up to 32) bits from bit `bit` on, of which all are there. */
static uint32_t read_bits(const unsigned char *at, uint64_t bit, uint64_t bits,
                          unsigned width)
{
    uint64_t word = 0;
    size_t first = (size_t)(bit / 8), end = (size_t)((bits + 7) / 8);
    size_t bytes = end - first < 8 ? end - first : 8;
    memcpy(&word, at + first, bytes); /* little-endian machines only */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return (uint32_t)(word >> bit % 8 & (((uint64_t)1 << width) - 1));
}

static int read_varint(pl_span *span, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (span->bytes == 0)
            return 0;
        unsigned char byte = *span->at++;
        span->bytes--;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return 1;
    }
    return 0;
}

static void pass(pl_span *span, size_t bytes)
{
    span->at += bytes;
    span->bytes -= bytes;
}

/* ---- runs ---- */

const char *pl_runs_make(pl_runs *runs, pl_span span, unsigned width)
{
    if (width > 32)
        return "its numbers are said to have more than 32 bits";
    *runs = (pl_runs){ .rest = span, .width = width };
    return NULL;
}

static const char *begin_run(pl_runs *r)
{
    uint64_t head;
    if (!read_varint(&r->rest, &head))
        return "its runs of numbers end too early";
    r->is_packed = (int)(head & 1);
    r->left = head >> 1;
    if (!r->is_packed) {
        size_t bytes = (r->width + 7) / 8;
        if (bytes > r->rest.bytes)
            return "its runs of numbers end within a run";
        r->value = 0;
        for (size_t i = 0; i < bytes; i++)
            r->value |= (uint32_t)r->rest.at[i] << 8 * i;
        pass(&r->rest, bytes);
        return NULL;
    }
    /* Groups of eight. The last may be cut off where nothing of it counts. */
    uint64_t room = r->width ? (uint64_t)r->rest.bytes * 8 / r->width
                             : UINT64_MAX;
    r->left = r->left > UINT64_MAX / 8 ? UINT64_MAX : r->left * 8;
    r->left = r->left < room ? r->left : room;
    if (r->left == 0 && head > 1)
        return "its runs of numbers end within a packed run";
    r->at = r->rest.at;
    r->bit = 0;
    r->bits = r->left * r->width;
    if (r->width)
        pass(&r->rest, (size_t)((r->bits + 7) / 8));
    return NULL;
}

const char *pl_runs_next(pl_runs *runs, uint64_t most, uint32_t *value,
                         uint64_t *count)
{
    while (runs->left == 0) {
        const char *why = begin_run(runs);
        if (why)
            return why;
    }
    if (runs->is_packed && runs->width > 0) {
        *value = read_bits(runs->at, runs->bit, runs->bits, runs->width);
        runs->bit += runs->width;
        *count = 1;
    } else {
        *value = runs->is_packed ? 0 : runs->value;
        *count = runs->left < most ? runs->left : most;
    }
    runs->left -= *count;
    return NULL;
}

/* ---- deltas ---- */

static const char early[] = "its packed lengths end too early";

static uint64_t unzigzag(uint64_t raw)
{
    return raw >> 1 ^ (0 - (raw & 1));
}

/* The head of a block: the smallest delta and the widths. */
static const char *begin_block(pl_deltas *d)
{
    uint64_t raw;
    if (!read_varint(&d->rest, &raw) || d->minis > d->rest.bytes)
        return early;
    d->min_delta = unzigzag(raw);
    d->widths = d->rest.at;
    d->mini = 0;
    pass(&d->rest, (size_t)d->minis);
    return NULL;
}

static const char *begin_mini(pl_deltas *d)
{
    const char *why = d->mini == d->minis ? begin_block(d) : NULL;
    if (why)
        return why;
    d->width = d->widths[d->mini++];
    /* Lengths are 32-bit numbers, and so are their deltas. */
    if (d->width > 32)
        return "its packed lengths are said to have more than 32 bits";
    d->bits = d->per_mini * d->width;
    if ((d->bits + 7) / 8 > d->rest.bytes)
        return early;
    d->at = d->rest.at;
    d->bit = 0;
    d->mini_left = d->per_mini;
    pass(&d->rest, (size_t)((d->bits + 7) / 8));
    return NULL;
}

const char *pl_deltas_make(pl_deltas *deltas, pl_span *span)
{
    uint64_t block, first;
    pl_deltas *d = deltas;
    *d = (pl_deltas){ .rest = *span };
    if (!read_varint(&d->rest, &block) || !read_varint(&d->rest, &d->minis) ||
        !read_varint(&d->rest, &d->count) || !read_varint(&d->rest, &first))
        return early;
    if (d->minis == 0 || block % d->minis || block / d->minis % 32 ||
        block == 0 || block > (uint64_t)1 << 31)
        return "its packed lengths have blocks of an impossible size";
    d->per_mini = block / d->minis;
    d->left = d->count;
    d->value = (uint32_t)unzigzag(first);
    d->mini = d->minis;
    /* To the end, a miniblock at a time; a block takes a byte at least. */
    pl_deltas walk = *d;
    for (uint64_t more = d->count ? d->count - 1 : 0; more > 0;) {
        const char *why = begin_mini(&walk);
        if (why)
            return why;
        more -= more < d->per_mini ? more : d->per_mini;
    }
    *span = walk.rest;
    return NULL;
}

const char *pl_deltas_next(pl_deltas *deltas, int32_t *value)
{
    pl_deltas *d = deltas;
    if (d->left == 0)
        return "it has fewer lengths than strings";
    if (d->value > INT32_MAX)
        return "it has a string of a negative length";
    *value = (int32_t)d->value;
    if (--d->left == 0)
        return NULL;
    if (d->mini_left == 0) {
        const char *why = begin_mini(d);
        if (why)
            return why;
    }
    uint32_t delta = d->width ? read_bits(d->at, d->bit, d->bits, d->width) : 0;
    d->bit += d->width;
    d->mini_left--;
    d->value += delta + (uint32_t)d->min_delta;
    return NULL;
}

/* ---- strings ---- */

const char *pl_encoding_name(int64_t encoding)
{
    static const char *const names[] = {
        "PLAIN",
        NULL,
        "PLAIN_DICTIONARY",
        "RLE",
        "BIT_PACKED",
        "DELTA_BINARY_PACKED",
        "DELTA_LENGTH_BYTE_ARRAY",
        "DELTA_BYTE_ARRAY",
        "RLE_DICTIONARY",
        "BYTE_STREAM_SPLIT",
    };
    return encoding >= 0 && encoding < (int64_t)(sizeof names / sizeof *names)
               ? names[encoding]
               : NULL;
}

static const char past[] = "it has a string that runs past its end";

static const char *take_plain(pl_span *rest, pl_span *text)
{
    if (rest->bytes < 4)
        return "it has fewer strings than its header says";
    const unsigned char *p = rest->at;
    uint32_t bytes = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                     (uint32_t)p[3] << 24;
    pass(rest, 4);
    if (bytes > rest->bytes)
        return past;
    *text = (pl_span){ rest->at, bytes };
    pass(rest, bytes);
    return NULL;
}

const char *pl_dictionary_make(pl_dictionary *dictionary, pl_span page,
                               uint32_t *offsets, uint32_t count)
{
    const unsigned char *begin = page.at;
    for (uint32_t i = 0; i < count; i++) {
        pl_span text;
        offsets[i] = (uint32_t)(page.at - begin);
        const char *why = take_plain(&page, &text);
        if (why)
            return why;
    }
    *dictionary = (pl_dictionary){ begin, offsets, count };
    return NULL;
}

static void take_entry(const pl_dictionary *dictionary, uint32_t i,
                       pl_span *text)
{
    const unsigned char *p = dictionary->bytes + dictionary->offsets[i];
    text->bytes = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                  (uint32_t)p[3] << 24;
    text->at = p + 4;
}

const char *pl_strings_make(pl_strings *strings, pl_encoding encoding,
                            pl_span page, const pl_dictionary *dictionary)
{
    const char *why = NULL;
    *strings = (pl_strings){ .encoding = encoding,
                             .rest = page,
                             .dictionary = dictionary };
    switch (encoding) {
    case PL_ENCODING_PLAIN:
        return NULL;
    case PL_ENCODING_DELTA_STRINGS:
        why = pl_deltas_make(&strings->prefixes, &strings->rest);
        if (why)
            return why;
        return pl_deltas_make(&strings->lengths, &strings->rest);
    case PL_ENCODING_DELTA_LENGTH:
        return pl_deltas_make(&strings->lengths, &strings->rest);
    default:
        break;
    }
    if (!dictionary)
        return "it refers to a dictionary, but there was none before it";
    if (page.bytes == 0) /* all of the page is null */
        return pl_runs_make(&strings->indices, page, 0);
    pass(&page, 1);
    return pl_runs_make(&strings->indices, page, page.at[-1]);
}

static const char *take_index(pl_strings *s, pl_span *text)
{
    uint32_t index;
    uint64_t one;
    const char *why = pl_runs_next(&s->indices, 1, &index, &one);
    if (why)
        return why;
    if (index >= s->dictionary->count)
        return "it refers to a string that its dictionary doesn't have";
    take_entry(s->dictionary, index, text);
    return NULL;
}

const char *pl_strings_next(pl_strings *strings, uint32_t *prefix,
                            pl_span *text)
{
    pl_strings *s = strings;
    int32_t bytes = 0, before = 0;
    const char *why = NULL;
    *prefix = 0;
    if (s->encoding == PL_ENCODING_PLAIN)
        return take_plain(&s->rest, text);
    if (s->encoding != PL_ENCODING_DELTA_LENGTH &&
        s->encoding != PL_ENCODING_DELTA_STRINGS)
        return take_index(s, text);
    if (s->encoding == PL_ENCODING_DELTA_STRINGS)
        why = pl_deltas_next(&s->prefixes, &before);
    if (!why)
        why = pl_deltas_next(&s->lengths, &bytes);
    if (why)
        return why;
    if ((size_t)bytes > s->rest.bytes)
        return past;
    *prefix = (uint32_t)before;
    *text = (pl_span){ s->rest.at, (size_t)bytes };
    pass(&s->rest, (size_t)bytes);
    return NULL;
}

const char *pl_strings_end(const pl_strings *strings)
{
    const pl_strings *s = strings;
    int is_plain = s->encoding == PL_ENCODING_PLAIN;
    int is_delta = s->encoding == PL_ENCODING_DELTA_LENGTH ||
                   s->encoding == PL_ENCODING_DELTA_STRINGS;
    if ((is_plain && s->rest.bytes > 0) || (is_delta && s->lengths.left > 0))
        return "it has more strings than its header says";
    return NULL;
}
