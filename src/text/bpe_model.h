/* bpe_model.h: what a vocabulary is inside, for the files that make, use and
 * write one.
 *
 * Inside, tokens are numbered by their rank: the byte b has rank b, and the
 * token that the k-th merge makes has rank 256 + k. A token is made of two of
 * lower rank, its left and right part, and of these alone: which tokens are
 * joined within some bytes depends on these bytes only, as long as no merge
 * reaches over their ends. So
 *   - a list of tokens is the encoding of its bytes if and only if each two
 *     neighbours are the encoding of theirs (they are compatible), and
 *   - whether two tokens are compatible is found by undoing their merges in
 *     turn, the highest first, and looking for a merge across the border that
 *     would have come before.
 * Encoding hence needs no priority queue: it takes the longest token that is
 * compatible with the one before, and backtracks from a dead end. A place that
 * was left as a dead end is never entered again, which makes it linear.
 *
 * In a list that was trained, the parts of a token are made by merges before
 * its own. Llama 3's list isn't like that: it has tokens of which a part has a
 * higher rank. Such merges are late: each happens as soon as its parts are
 * there, out of turn. A piece that may hold a late token is merged as Hugging
 * Face's tokenizers do it, pair by pair (text/bpe_late.c). */
#ifndef PL_TEXT_BPE_MODEL_H
#define PL_TEXT_BPE_MODEL_H

#include "text/bpe.h"
#include "text/pretok.h"

enum {
    PL_BPE_NONE = 0x7fffffff,
    PL_BPE_INDEX_BITS = 20, /* of PL_BPE_MAX_VOCAB */
    PL_BPE_MAX_NODES = 1 << 24,
    PL_BPE_MAX_SPECIALS = 4096,
    PL_BPE_LATE_BYTES = 1 << 13, /* a bit for each hash of 16 bits */
};

typedef enum pl_bpe_token_kind {
    PL_BPE_ABSENT,
    PL_BPE_ORDINARY,
    PL_BPE_SPECIAL, /* found in a text if that is asked for */
    PL_BPE_ADDED,   /* always found: Qwen's "<think>" */
} pl_bpe_token_kind;

/* Whether it is looked for in the text, before that is cut into pieces. */
static inline int pl_bpe_is_added(unsigned kind)
{
    return kind == PL_BPE_SPECIAL || kind == PL_BPE_ADDED;
}

/* In which text an added token is looked for. */
typedef enum pl_bpe_look {
    PL_BPE_LOOK_RAW,        /* as it is */
    PL_BPE_LOOK_NORMALIZED, /* then in what is left, once it is normalized */
    PL_BPE_LOOKS,
} pl_bpe_look;

typedef struct pl_bpe_entry {
    uint32_t offset; /* in `text` */
    uint16_t length;
    uint8_t kind;  /* pl_bpe_token_kind */
    uint8_t flags; /* of an added token */
} pl_bpe_entry;

enum {
    PL_BPE_NORMALIZED = 1, /* its look is PL_BPE_LOOK_NORMALIZED */
    PL_BPE_MERGED_TOO = 2, /* merges may make it, or use it, as any other */
};

static inline pl_bpe_look pl_bpe_look_of(const pl_bpe_entry *entry)
{
    return entry->flags & PL_BPE_NORMALIZED ? PL_BPE_LOOK_NORMALIZED
                                            : PL_BPE_LOOK_RAW;
}

/* Whether merges may make it. */
static inline int pl_bpe_is_merged(const pl_bpe_entry *entry)
{
    return entry->kind == PL_BPE_ORDINARY || entry->flags & PL_BPE_MERGED_TOO;
}

typedef struct pl_bpe_merge {
    int32_t left, right, made; /* ids */
} pl_bpe_merge;

/* ---- tokens by their bytes ---- */

typedef struct pl_bpe_map {
    const char *text;
    const pl_bpe_entry *entries;
    uint32_t *slots; /* id + 1 */
    size_t mask;
} pl_bpe_map;

/* The added tokens of one look, by first byte, longest first. */
typedef struct pl_bpe_added {
    int32_t *ids;
    size_t count;
    size_t always;                   /* how many of them are PL_BPE_ADDED */
    int32_t head;                    /* the byte with which all begin, or -1 */
    uint16_t from[PL_BPE_BYTES + 1]; /* where those of a byte begin */
} pl_bpe_added;

/* Merges that happen out of turn. */
typedef struct pl_bpe_late {
    const pl_bpe_merge *merges; /* all of the list; NULL: none is late */
    size_t count;
    /* left << 44 | right << 24 | place in the list */
    uint64_t *pairs;
    size_t pair_mask;
    /* Hashes of the first two bytes of short late tokens, and of the first four
     * of others. */
    uint8_t *twos, *fours;
} pl_bpe_late;

struct pl_bpe {
    /* by id */
    int32_t vocab_size;
    const pl_bpe_entry *entries;
    const char *text;
    uint32_t *rank_of; /* PL_BPE_NONE: no merge makes it */
    /* by rank */
    uint32_t rank_count;
    int32_t *ids;
    uint32_t *left, *right; /* of a byte: itself */
    uint32_t *shorter;      /* the longest token that begins this one */
    uint16_t *lengths;      /* in bytes */
    /* (left, right) -> rank, as left << 40 | right << 20 | rank */
    uint64_t *pairs;
    size_t pair_mask;
    /* The tokens as a trie, whose edges are a hash table:
     * node << 40 | byte << 32 | child. The node where a token ends is its rank,
     * others are rank_count and up; there is no root, since the node of a
     * single byte is the byte. */
    uint64_t *edges;
    size_t edge_mask;
    pl_splitting splitting;
    pl_bpe_added added[PL_BPE_LOOKS];
    /* Tokens that no merge makes, where a piece that is a token stays one; no
     * slots: there are none, or merges alone make tokens. */
    pl_bpe_map whole;
    pl_bpe_late late;
};

/* ---- making one ---- */

typedef enum pl_bpe_unmade {
    PL_BPE_UNMADE_DECODED, /* tokens that no merge makes are only decoded */
    PL_BPE_UNMADE_REFUSED, /* they are an error */
    PL_BPE_UNMADE_WHOLE,   /* a piece that is one becomes it: "ignore_merges" */
} pl_bpe_unmade;

typedef struct pl_bpe_parts {
    const char *name; /* begins every message: a path */
    const char *text;
    const pl_bpe_entry *entries;
    int32_t vocab_size;
    const pl_bpe_merge *merges;
    size_t merge_count;
    pl_bpe_unmade unmade;
    pl_splitting splitting;
} pl_bpe_parts;

/* The vocabulary. Takes over `text` and `entries`, which must live in `heap`
 * too. PL_E_FORMAT if a byte has no token, or a merge's parts aren't its
 * result. */
PL_MUST_CHECK pl_status pl_bpe_make(pl_bpe **out, const pl_bpe_parts *parts,
                                    pl_heap *heap, pl_error *err);

/* Whether the two are the encoding of their bytes. */
int pl_bpe_compatible(const pl_bpe *bpe, uint32_t first, uint32_t second);

/* The merge with this place, below pl_bpe_merge_count. */
pl_bpe_merge pl_bpe_merge_at(const pl_bpe *bpe, size_t place);

/* ---- late merges ---- */

/* Takes what encoding with `merges` needs. Nothing
 * is marked yet. */
PL_MUST_CHECK pl_status pl_bpe_late_open(pl_bpe *bpe, const pl_bpe_parts *parts,
                                         pl_heap *heap, pl_error *err);
/* This token is made by a late merge. */
void pl_bpe_late_mark(pl_bpe *bpe, int32_t id);
/* Whether a piece may hold one of them. */
int pl_bpe_late_may(const pl_bpe *bpe, const char *text, size_t bytes);
/* Merges a piece pair by pair. The time grows with the number of different
 * merges in the piece, too. */
size_t pl_bpe_late_encode(const pl_bpe *bpe, const char *text, size_t bytes,
                          int32_t *ids);

/* ---- tokens by their bytes, while one is read ---- */

PL_MUST_CHECK pl_status pl_bpe_map_open(pl_bpe_map *map, const char *text,
                                        const pl_bpe_entry *entries,
                                        size_t count, pl_heap *heap,
                                        pl_error *err);
/* The id of these bytes, -1 if none has them. */
int32_t pl_bpe_map_find(const pl_bpe_map *map, const char *bytes,
                        size_t length);
/* Adds entries[id]; what had the same bytes before is returned, or -1. */
int32_t pl_bpe_map_add(pl_bpe_map *map, int32_t id);

/* A power of two, at least `count` * 2 and 16. */
size_t pl_bpe_table_size(size_t count);

static inline uint64_t pl_bpe_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    return x;
}

/* ---- the printable names of bytes in Hugging Face's files ---- */

/* The character that stands for a byte, and the way back: -1 for others. The
 * place of a byte in GPT-2's vocabulary is that of its character. */
uint32_t pl_bpe_char_of(unsigned byte);
int pl_bpe_byte_of(uint32_t character);
/* The byte with this place, 0 to 255, in the order of the characters. */
unsigned pl_bpe_byte_at(unsigned place);

#endif
