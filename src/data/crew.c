/* crew.c: documents through several threads, in order; see crew.h.
 *
 *   source --> load, cut into parts --> work, on any thread --> take, in order
 *
 *   round      1                   2                   3
 *   thread 0   read B, work on A   deliver A, read C,  deliver B, read D,
 *                                  work on B           work on C
 *   thread 1   work on A           work on B           work on C
 *
 * A, B, C, D are loads: buffers of text, of which there are two, used in turns.
 * In each round all threads work on one of them, while thread 0 first hands the
 * results of the other one to `take` and refills it. A part is some 128 KiB of
 * text that a tokenizer may be given alone; threads take the next part from an
 * atomic counter. So the result depends neither on the number of threads nor on
 * which of them is faster. A word that is longer than a load is not copied: it
 * is worked on where the source has it, as a load of one part. */
#include "data/crew.h"

#include "base/check.h"
#include "base/hash.h"
#include "data/cutter.h"
#include "text/pretok.h"

#include <stdatomic.h>
#include <string.h>

enum {
    PART_BYTES = 128 * 1024,
    /* Of two neighbouring parts one has at least half of PART_BYTES, except at
     * the end. */
    PIECE_PARTS = 4 * (PL_SOURCE_PIECE_BYTES / PART_BYTES) + 4,
};

typedef struct load {
    pl_crew_load out;
    char *text;
    size_t bytes;
    pl_crew_part *parts;
    int32_t *ids;
} load;

typedef struct crew {
    const pl_crew_options *options;
    load loads[2];
    size_t part_room;
    pl_fragment piece; /* the one that is being cut; PL_FRAGMENT_NONE: none */
    uint64_t sum;      /* the checksum up to its end */
    /* A word that is too long for a load is being worked on in the source's own
     * memory: nothing else may be read until its results are delivered. */
    int holds;
    pl_block held; /* the memory of its ids */
    size_t used;   /* bytes of the piece that are in loads already */
    pl_crew_tally tally;
    int ended;
    /* a round: the load that is worked on, and the one that is refilled */
    load *now, *other;
    atomic_size_t next;
    pl_status status;
    pl_error *err;
} crew;

static size_t part_room(size_t load_bytes)
{
    return load_bytes / 512 + PIECE_PARTS;
}

size_t pl_crew_bytes(size_t load_bytes, size_t id_room)
{
    size_t parts = part_room(load_bytes);
    size_t one = load_bytes + parts * sizeof(pl_crew_part);
    if (id_room > 0)
        one += (id_room * load_bytes + parts) * sizeof(int32_t);
    return 2 * one + sizeof(crew) + 4096;
}

static pl_status open_load(crew *c, load *l, pl_heap *heap)
{
    size_t bytes = c->options->load_bytes;
    pl_status status = pl_heap_take(heap, &l->text, bytes, 1, c->err);
    if (!status)
        status = pl_heap_take(heap, &l->parts, c->part_room, sizeof *l->parts,
                              c->err);
    if (!status && c->options->id_room > 0)
        status = pl_heap_take(heap, &l->ids,
                              c->options->id_room * bytes + c->part_room,
                              sizeof *l->ids, c->err);
    l->out.parts = l->parts;
    return status;
}

/* ---- reading ---- */

static void begin_document(crew *c)
{
    const pl_crew_options *o = c->options;
    uint64_t size = c->piece.bytes;
    if (c->piece.part == PL_FRAGMENT_FIRST &&
        pl_source_last_file_bytes(o->source) > size)
        size = pl_source_last_file_bytes(o->source);
    c->tally.mark = o->mark && o->mark(o->context, &c->tally, size);
    c->tally.documents++;
}

/* Cuts text into parts of up to PART_BYTES; a part is longer where the text has
 * no place to cut. */
static void add_parts(crew *c, load *l, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t size = bytes - at, cut = 0;
        const char *text = l->text + l->bytes + at;
        if (size > PART_BYTES)
            cut = pl_pretok_cut(c->options->splitting.pattern, text,
                                PART_BYTES);
        if (cut)
            size = cut;
        size_t ids_at = c->options->id_room * (l->bytes + at);
        PL_CHECK(l->out.count < c->part_room);
        l->parts[l->out.count] = (pl_crew_part){
            .text = text,
            .bytes = size,
            .mark = (int)c->tally.mark,
            .ids = l->ids ? l->ids + ids_at + l->out.count : NULL,
        };
        l->out.count++;
        at += size;
    }
}

/* How many bytes of the piece go into a load next. */
static size_t next_bytes(const crew *c)
{
    const char *text = c->piece.text + c->used;
    size_t left = c->piece.bytes - c->used, cut = 0;
    pl_cutter_cuts cuts = { .at = c->options->ends == PL_CREW_LINE_ENDS
                                      ? PL_CUTTER_ANYWHERE
                                      : PL_CUTTER_AT_WORDS,
                            .splitting = c->options->splitting };
    for (size_t limit = PL_SOURCE_PIECE_BYTES; limit < left && !cut; limit *= 2)
        cut = pl_cutter_cut(text, limit, cuts);
    return cut ? cut : left;
}

static void count_taken(crew *c, size_t bytes)
{
    c->used += bytes;
    c->tally.text_bytes += bytes;
    c->tally.marked_bytes += c->tally.mark ? bytes : 0;
}

/* Makes a load of one word, which stays where the source has it. */
static pl_status fill_held(crew *c, load *l, size_t bytes)
{
    const pl_crew_options *o = c->options;
    if (o->id_room > 0) {
        pl_status status = pl_source_lend(
            o->source, &c->held, (o->id_room * bytes + 1) * sizeof(int32_t),
            c->err);
        if (status)
            return status;
    }
    if (c->used == 0 && pl_fragment_begins(c->piece.part))
        begin_document(c);
    l->parts[0] = (pl_crew_part){
        .text = c->piece.text + c->used,
        .bytes = bytes,
        .ends = c->used + bytes == c->piece.bytes &&
                pl_fragment_ends(c->piece.part),
        .mark = (int)c->tally.mark,
        .ids = (int32_t *)(void *)c->held.data,
    };
    l->out.count = 1;
    c->holds = 1;
    count_taken(c, bytes);
    return PL_OK;
}

/* Adds the next bytes of the piece to the load; *bytes is 0 if the load has no
 * room for them. */
static pl_status fill_piece(crew *c, load *l, size_t *bytes)
{
    const pl_crew_options *o = c->options;
    const char *text = c->piece.text + c->used;
    size_t left = c->piece.bytes - c->used, take = next_bytes(c), extra = 0;
    *bytes = 0;
    if (take + 1 > o->load_bytes && l->out.count == 0) {
        *bytes = take;
        return fill_held(c, l, take);
    }
    if (take + 1 > o->load_bytes - l->bytes ||
        c->part_room - l->out.count < PIECE_PARTS)
        return PL_OK;
    if (c->used == 0 && pl_fragment_begins(c->piece.part))
        begin_document(c);
    memcpy(l->text + l->bytes, text, take);
    int ends = take == left && pl_fragment_ends(c->piece.part);
    if (ends && o->ends == PL_CREW_LINE_ENDS &&
        pl_source_last_format(o->source) != PL_SOURCE_TEXT) {
        l->text[l->bytes + take] = '\n';
        extra = 1;
    }
    add_parts(c, l, take + extra);
    l->parts[l->out.count - 1].ends = ends;
    l->bytes += take + extra;
    count_taken(c, take);
    *bytes = take;
    return PL_OK;
}

static pl_status read_load(crew *c, load *l)
{
    pl_source *source = c->options->source;
    l->bytes = l->out.count = 0;
    while (!c->ended && !c->holds) {
        size_t bytes;
        if (c->piece.part == PL_FRAGMENT_NONE) {
            pl_status status = pl_source_next(source, &c->piece, c->err);
            if (status)
                return status;
            c->ended = c->piece.part == PL_FRAGMENT_NONE;
            c->sum = pl_hash_chain(c->tally.sum, c->piece.text, c->piece.bytes);
            c->used = 0;
            continue;
        }
        pl_status status = fill_piece(c, l, &bytes);
        if (status)
            return status;
        if (bytes == 0)
            break;
        if (c->used < c->piece.bytes)
            continue;
        c->tally.in_document = !pl_fragment_ends(c->piece.part);
        c->tally.place = pl_source_tell(source);
        c->tally.sum = c->sum;
        c->piece.part = PL_FRAGMENT_NONE;
    }
    l->out.between = c->piece.part == PL_FRAGMENT_NONE || c->used == 0;
    l->out.tally = c->tally;
    l->out.done_bytes = pl_source_done_bytes(source);
    return PL_OK;
}

/* ---- the rounds ---- */

static pl_status deliver(crew *c, load *l)
{
    const pl_crew_options *o = c->options;
    if (l->out.count == 0)
        return PL_OK;
    pl_status status = o->take(o->context, &l->out, c->err);
    if (l->parts[0].text != l->text) { /* a word that was held */
        pl_source_take_back(o->source, &c->held);
        c->holds = 0;
    }
    return status;
}

static void run_round(void *context, int ith, int nth)
{
    crew *c = context;
    size_t i;
    (void)nth;
    if (ith == 0) {
        c->status = deliver(c, c->other);
        if (!c->status)
            c->status = read_load(c, c->other);
    }
    while ((i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed)) <
           c->now->out.count)
        c->options->work(c->options->context, ith, &c->now->parts[i]);
}

pl_status pl_crew_run(const pl_crew_options *options, pl_heap *heap,
                      pl_error *err)
{
    crew *c;
    PL_CHECK(options->load_bytes >= PL_CREW_MIN_LOAD_BYTES);
    pl_status status = pl_heap_take(heap, &c, 1, sizeof *c, err);
    if (status)
        return status;
    c->options = options;
    c->tally = options->tally;
    c->err = err;
    c->part_room = part_room(options->load_bytes);
    c->now = &c->loads[0];
    c->other = &c->loads[1];
    status = open_load(c, c->now, heap);
    if (!status)
        status = open_load(c, c->other, heap);
    if (!status)
        status = read_load(c, c->now);
    while (!status && (c->now->out.count > 0 || c->holds)) {
        atomic_store(&c->next, 0);
        pl_threads_run(options->threads, run_round, c);
        status = c->status;
        load *worked = c->now;
        c->now = c->other;
        c->other = worked;
    }
    if (!status)
        status = deliver(c, c->other);
    pl_source_take_back(options->source, &c->held);
    return status;
}
