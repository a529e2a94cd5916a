/* bpe_ranks.c: reads OpenAI's ranks; see bpe_read.h. */
#include "text/bpe_read.h"

#include "base/units.h"
#include "text/bpe_draft.h"

#include <string.h>

/* ---- lines ---- */

typedef struct line {
    const char *token; /* in base64 */
    size_t token_bytes;
    int64_t rank;
} line;

typedef struct lines {
    const char *text, *name;
    size_t bytes, at, number;
} lines;

static pl_status bad_line(const lines *in, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "%s:%zu: %s: a line has a token's bytes in base64, a blank "
                   "and its rank, as in \"IQ== 0\"",
                   in->name, in->number, what);
}

/* The next line that isn't empty, without its end; 0 when there is none. */
static int take_line(lines *in, const char **text, size_t *bytes)
{
    while (in->at < in->bytes) {
        *text = in->text + in->at;
        const char *stop = memchr(*text, '\n', in->bytes - in->at);
        *bytes = stop ? (size_t)(stop - *text) : in->bytes - in->at;
        in->at += *bytes + (stop != NULL);
        in->number++;
        if (*bytes > 0 && (*text)[*bytes - 1] == '\r')
            --*bytes;
        if (*bytes > 0)
            return 1;
    }
    return 0;
}

/* *found is 0 at the end. */
static pl_status next_line(lines *in, line *out, int *found, pl_error *err)
{
    const char *text;
    size_t bytes;
    *found = take_line(in, &text, &bytes);
    if (!*found)
        return PL_OK;
    const char *end = text + bytes, *blank = memchr(text, ' ', bytes);
    if (!blank)
        return bad_line(in, "no blank here", err);
    out->token = text;
    out->token_bytes = (size_t)(blank - text);
    out->rank = 0;
    if (blank + 1 == end)
        return bad_line(in, "no rank behind the blank", err);
    for (const char *digit = blank + 1; digit < end; digit++) {
        if (*digit < '0' || *digit > '9')
            return bad_line(in, "the rank is no number", err);
        out->rank = out->rank * 10 + (*digit - '0');
        if (out->rank >= PL_BPE_MAX_VOCAB - 1)
            return pl_fail(err, PL_E_FORMAT,
                           "%s:%zu: the rank is larger than %d, the largest "
                           "that is supported",
                           in->name, in->number, PL_BPE_MAX_VOCAB - 2);
    }
    return PL_OK;
}

/* ---- base64 ---- */

static int six_bits(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Returns the number of bytes, or -1. `out` has room for 3/4 of `bytes`. */
static long decode_base64(const char *text, size_t bytes, char *out)
{
    long used = 0;
    if (bytes == 0 || bytes % 4 != 0)
        return -1;
    size_t pads = 0;
    pads += text[bytes - 1] == '=';
    pads += text[bytes - 2] == '=';
    for (size_t i = 0; i < bytes; i += 4) {
        uint32_t word = 0;
        size_t padded = i + 4 == bytes ? pads : 0;
        for (size_t k = 0; k < 4; k++) {
            int six = k >= 4 - padded ? 0 : six_bits(text[i + k]);
            if (six < 0)
                return -1;
            word = word << 6 | (uint32_t)six;
        }
        for (size_t k = 0; k < 3 - padded; k++)
            out[used++] = (char)(word >> (16 - 8 * k));
    }
    return text[bytes - 1] != '=' && text[bytes - 2] == '=' ? -1 : used;
}

/* ---- merges ---- */

enum { MOST = PL_BPE_TOKEN_BYTES };

/* A token cut into parts: part i is [starts[i], starts[i + 1]), and joined to
 * the next it has ranks[i]. */
typedef struct parts {
    const pl_bpe_draft *draft;
    const char *text;
    uint16_t starts[MOST + 1];
    int32_t ranks[MOST];
    size_t count;
} parts;

static int32_t rank_of_join(const parts *p, size_t i, int32_t below)
{
    if (i + 1 >= p->count)
        return below;
    size_t bytes = (size_t)(p->starts[i + 2] - p->starts[i]);
    int32_t rank = pl_bpe_map_find(&p->draft->map, p->text + p->starts[i],
                                   bytes);
    return rank >= 0 && rank < below ? rank : below;
}

/* Joins what ranks below `id` can join. */
static void join(parts *p, int32_t id)
{
    for (size_t i = 0; i < p->count; i++)
        p->ranks[i] = rank_of_join(p, i, id);
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i < p->count; i++)
            if (p->ranks[i] < p->ranks[best])
                best = i;
        if (p->ranks[best] >= id)
            return;
        size_t after = p->count - best - 1;
        memmove(&p->starts[best + 1], &p->starts[best + 2],
                after * sizeof p->starts[0]);
        memmove(&p->ranks[best + 1], &p->ranks[best + 2],
                (after - 1) * sizeof p->ranks[0]);
        p->count--;
        p->ranks[best] = rank_of_join(p, best, id);
        if (best > 0)
            p->ranks[best - 1] = rank_of_join(p, best - 1, id);
    }
}

/* The merge that makes a token is the last one of its own encoding: what is
 * left when only lower ranks may join. A token of which more is left gets
 * none, and is refused at the end. */
static pl_status find_merges(pl_bpe_draft *draft, pl_error *err)
{
    parts p = { .draft = draft };
    pl_status status = PL_OK;
    for (int32_t id = 0; !status && id < draft->vocab_size; id++) {
        const pl_bpe_entry *entry = &draft->entries[id];
        if (entry->kind != PL_BPE_ORDINARY || entry->length < 2)
            continue;
        p.text = draft->text + entry->offset;
        p.count = entry->length;
        for (size_t i = 0; i <= p.count; i++)
            p.starts[i] = (uint16_t)i;
        join(&p, id);
        if (p.count == 2)
            status = pl_bpe_draft_merge(
                draft, (size_t)id, p.text, p.starts[1], p.text + p.starts[1],
                (size_t)entry->length - p.starts[1], err);
    }
    return status;
}

/* ---- the file ---- */

static pl_status add_tokens(pl_bpe_draft *draft, const char *text, size_t bytes,
                            pl_error *err)
{
    lines in = { .text = text, .bytes = bytes, .name = draft->name };
    line each;
    int found;
    char token[PL_BPE_TOKEN_BYTES + 3];
    for (;;) {
        pl_status status = next_line(&in, &each, &found, err);
        if (status || !found)
            return status;
        if (each.token_bytes > (PL_BPE_TOKEN_BYTES + 2) / 3 * 4)
            return pl_fail(err, PL_E_FORMAT,
                           "%s:%zu: the token is longer than %s", in.name,
                           in.number, pl_units_exact(PL_BPE_TOKEN_BYTES).text);
        long length = decode_base64(each.token, each.token_bytes, token);
        if (length < 0)
            return bad_line(&in, "the token isn't base64", err);
        status = pl_bpe_draft_add(draft, each.rank, token, (size_t)length,
                                  PL_BPE_ORDINARY, err);
        if (status)
            return status;
    }
}

static pl_status add_end_of_text(pl_bpe_draft *draft, pl_error *err)
{
    static const char text[] = "<|endoftext|>";
    int32_t id = 0;
    while (draft->entries[id].kind != PL_BPE_ABSENT)
        id++;
    if (id < draft->vocab_size - 1)
        draft->vocab_size--; /* a gap among the ranks was left for it */
    return pl_bpe_draft_add(draft, id, text, strlen(text), PL_BPE_SPECIAL, err);
}

pl_status pl_bpe_read_ranks(pl_bpe **bpe, const char *text, size_t bytes,
                            const char *name, pl_heap *heap, pl_error *err)
{
    lines in = { .text = text, .bytes = bytes, .name = name };
    line each;
    int found = 1;
    int64_t largest = -1;
    size_t count = 0, text_bytes = 16;
    while (found) {
        pl_status status = next_line(&in, &each, &found, err);
        if (status)
            return status;
        if (!found)
            break;
        largest = each.rank > largest ? each.rank : largest;
        text_bytes += each.token_bytes;
        count++;
    }
    pl_bpe_draft draft;
    pl_status status = pl_bpe_draft_open(&draft, name, largest + 2, text_bytes,
                                         count, heap, err);
    if (!status)
        status = add_tokens(&draft, text, bytes, err);
    if (!status)
        status = add_end_of_text(&draft, err);
    if (!status)
        status = find_merges(&draft, err);
    if (!status)
        status = pl_bpe_draft_finish(&draft, PL_BPE_UNMADE_REFUSED, bpe, err);
    pl_bpe_draft_close(&draft);
    return status;
}
