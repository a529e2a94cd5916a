/* bpe_train.c: merges the most frequent pair until the vocabulary is full; see
 * bpe_train.h.
 *
 * All different pieces lie one behind the other in an array of cells, one for
 * each byte. A token takes as many cells as it has bytes, the first and the
 * last of which name it, so that both neighbours are found without a list. A
 * pair is at the place of its left token, and the places of each pair are
 * chained: a merge touches exactly the places that it changes. */
#include "text/bpe_train.h"

#include "base/check.h"
#include "base/units.h"
#include "text/bpe_count.h"
#include "text/bpe_draft.h"
#include "text/bpe_pairs.h"
#include "text/bpe_passes.h"

#include <string.h>

#define EDGE UINT32_MAX /* the token between pieces */

enum { MERGES_PER_WISH = 64 };

typedef struct cell {
    uint32_t token;
    uint32_t next, before; /* in the pair's chain */
    uint32_t piece;
} cell;

typedef struct trainer {
    pl_heap heap;
    cell *cells;
    size_t cell_count;
    uint64_t *counts; /* of each piece */
    size_t piece_count;
    uint16_t *lengths; /* of each token */
    pl_bpe_merge *merges;
    size_t merge_count, merge_limit;
    pl_pairs pairs;
    size_t peak_bytes;
    pl_error *err;
} trainer;

/* ---- the chains ---- */

static uint64_t key_at(const trainer *t, uint32_t place)
{
    uint32_t left = t->cells[place].token;
    uint32_t right = t->cells[place + t->lengths[left]].token;
    return (uint64_t)left << 32 | right;
}

static int can_join(const trainer *t, uint32_t left, uint32_t right)
{
    return left != EDGE && right != EDGE &&
           t->lengths[left] + t->lengths[right] <= PL_BPE_TOKEN_BYTES;
}

static int can_join_at(const trainer *t, uint32_t place)
{
    uint32_t left = t->cells[place].token;
    return can_join(t, left, t->cells[place + t->lengths[left]].token);
}

/* The pair at `place` is there. */
static pl_status chain(trainer *t, uint32_t place)
{
    uint32_t which;
    if (!can_join_at(t, place))
        return PL_OK;
    pl_status status = pl_pairs_get(&t->pairs, key_at(t, place), &which,
                                    t->err);
    if (status)
        return status;
    pl_pair *pair = &t->pairs.pairs[which];
    cell *here = &t->cells[place];
    here->before = PL_PAIR_NOWHERE;
    here->next = pair->head;
    if (pair->head != PL_PAIR_NOWHERE)
        t->cells[pair->head].before = place;
    pair->head = place;
    pair->count += t->counts[here->piece];
    return PL_OK;
}

/* The pair at `place` is going to change. */
static void unchain(trainer *t, uint32_t place)
{
    if (!can_join_at(t, place))
        return;
    uint32_t which = pl_pairs_find(&t->pairs, key_at(t, place));
    PL_CHECK(which != 0);
    pl_pair *pair = &t->pairs.pairs[which];
    cell *here = &t->cells[place];
    if (here->before != PL_PAIR_NOWHERE)
        t->cells[here->before].next = here->next;
    else
        pair->head = here->next;
    if (here->next != PL_PAIR_NOWHERE)
        t->cells[here->next].before = here->before;
    pair->count -= t->counts[here->piece];
    if (pair->head == PL_PAIR_NOWHERE)
        pl_pairs_empty(&t->pairs, which);
}

/* ---- merging ---- */

/* Joins the two tokens at `place` to `made`. */
static pl_status join(trainer *t, uint32_t place, uint32_t made)
{
    uint32_t second = place + t->lengths[t->cells[place].token];
    uint32_t after = second + t->lengths[t->cells[second].token];
    uint32_t left = t->cells[place - 1].token, before = 0;
    unchain(t, place);
    if (left != EDGE) {
        before = place - t->lengths[left];
        unchain(t, before);
    }
    if (t->cells[after].token != EDGE)
        unchain(t, second);
    t->cells[place].token = t->cells[after - 1].token = made;
    pl_status status = left != EDGE ? chain(t, before) : PL_OK;
    if (!status && t->cells[after].token != EDGE)
        status = chain(t, place);
    return status;
}

/* Of a token and itself the leftmost must be joined first: the whole row, from
 * its beginning. */
static pl_status join_row(trainer *t, uint32_t place, uint32_t token,
                          uint32_t made)
{
    uint32_t length = t->lengths[token];
    pl_status status = PL_OK;
    while (t->cells[place - 1].token == token)
        place -= length;
    while (!status && t->cells[place].token == token &&
           t->cells[place + length].token == token) {
        status = join(t, place, made);
        place += 2 * length;
    }
    return status;
}

static pl_status merge(trainer *t, uint32_t which)
{
    uint64_t key = t->pairs.pairs[which].key;
    uint32_t left = (uint32_t)(key >> 32), right = (uint32_t)key;
    uint32_t made = PL_BPE_BYTES + (uint32_t)t->merge_count;
    pl_status status = PL_OK;
    t->merges[t->merge_count++] = (pl_bpe_merge){ (int32_t)left, (int32_t)right,
                                                  (int32_t)made };
    t->lengths[made] = (uint16_t)(t->lengths[left] + t->lengths[right]);
    while (!status && t->pairs.pairs[which].head != PL_PAIR_NOWHERE) {
        uint32_t place = t->pairs.pairs[which].head;
        status = left == right ? join_row(t, place, left, made)
                               : join(t, place, made);
    }
    return status ? status : pl_pairs_settle(&t->pairs, t->err);
}

static pl_status merge_all(trainer *t, const pl_bpe_train_options *options)
{
    while (t->merge_count < t->merge_limit) {
        if (options->wish && t->merge_count % MERGES_PER_WISH == 0 &&
            options->wish(options->context, t->merge_count, t->merge_limit) ==
                PL_BPE_STOP)
            return pl_fail(t->err, PL_E_STOPPED,
                           "stopped after %zu of %zu merges", t->merge_count,
                           t->merge_limit);
        uint32_t which = pl_pairs_next(&t->pairs);
        if (!which)
            break;
        pl_status status = merge(t, which);
        if (status)
            return status;
    }
    return PL_OK;
}

/* ---- from counts to cells ---- */

typedef struct totals {
    uint64_t unique, pieces, bytes;
} totals;

static pl_status add_up(void *context, const pl_run_count *count, pl_error *err)
{
    totals *sum = context;
    char room[PL_PRETOKEN_SHORT_BYTES + 1];
    size_t bytes;
    (void)err;
    pl_run_text(count, room, &bytes);
    sum->unique++;
    if (bytes > 1) {
        sum->pieces++;
        sum->bytes += bytes;
    }
    return PL_OK;
}

static pl_status lay_out(void *context, const pl_run_count *count,
                         pl_error *err)
{
    trainer *t = context;
    char room[PL_PRETOKEN_SHORT_BYTES + 1];
    size_t bytes;
    const char *text = pl_run_text(count, room, &bytes);
    (void)err;
    if (bytes < 2)
        return PL_OK; /* nothing to merge */
    for (size_t i = 0; i < bytes; i++) {
        cell *each = &t->cells[t->cell_count++];
        each->token = (unsigned char)text[i]; /* an id later */
        each->piece = (uint32_t)t->piece_count;
    }
    t->cells[t->cell_count++].token = EDGE;
    t->counts[t->piece_count++] = count->count;
    return PL_OK;
}

static uint64_t cell_count(const totals *sum)
{
    return sum->bytes + sum->pieces + 1;
}

/* Whether all pieces may lie in cells: they and the pairs, for which three
 * quarters as much again is what texts need, must fit. */
static int fits_memory(const trainer *t, const totals *sum, size_t memory_bytes)
{
    uint64_t cells = cell_count(sum);
    uint64_t need = cells * sizeof *t->cells + sum->pieces * sizeof *t->counts;
    return need < memory_bytes / 7 * 4 && cells < UINT32_MAX;
}

static pl_status take_tokens(trainer *t)
{
    size_t tokens = PL_BPE_BYTES + t->merge_limit;
    pl_status status = pl_heap_take(&t->heap, &t->lengths, tokens,
                                    sizeof *t->lengths, t->err);
    if (!status)
        status = pl_heap_take(&t->heap, &t->merges, t->merge_limit,
                              sizeof *t->merges, t->err);
    return status;
}

static pl_status take_cells(trainer *t, const totals *sum)
{
    pl_status status = pl_heap_take(&t->heap, &t->cells, cell_count(sum),
                                    sizeof *t->cells, t->err);
    if (!status)
        status = pl_heap_take(&t->heap, &t->counts, sum->pieces,
                              sizeof *t->counts, t->err);
    return status;
}

/* All runs of all threads, in memory or not. */
static pl_status gather(pl_bpe_counter *counter, pl_sorted_run *runs,
                        size_t *count, pl_error *err)
{
    size_t files = 0;
    int threads = counter->options->threads;
    for (int i = 0; i < threads; i++)
        files += counter->workers[i].run_count;
    *count = 0;
    for (int i = 0; i < threads; i++) {
        pl_count_worker *worker = &counter->workers[i];
        pl_status status = PL_OK;
        if (files > 0)
            status = pl_count_spill(counter, i, err);
        if (!status && files > 4 * PL_RUN_MOST)
            status = pl_count_unite(counter, i, err);
        if (status)
            return status;
        for (size_t k = 0; k < worker->run_count; k++)
            runs[(*count)++] = worker->runs[k];
        if (files == 0)
            pl_count_freeze(counter, i, &runs[(*count)++]);
    }
    if (files > 0)
        pl_count_release(counter);
    return PL_OK;
}

static uint64_t table_bytes(const pl_bpe_counter *counter)
{
    uint64_t tables = 0;
    for (int i = 0; i < counter->options->threads; i++)
        tables += counter->workers[i].table.heap.taken_bytes +
                  counter->workers[i].longs.taken_bytes;
    return tables;
}

/* The tables go to files, to make space for what is to come. */
static pl_status make_space(pl_bpe_counter *counter, pl_sorted_run *runs,
                            size_t *count, pl_error *err)
{
    int threads = counter->options->threads;
    if (table_bytes(counter) == 0)
        return PL_OK;
    *count = 0;
    for (int i = 0; i < threads; i++) {
        pl_status status = pl_count_spill(counter, i, err);
        if (status)
            return status;
        for (size_t k = 0; k < counter->workers[i].run_count; k++)
            runs[(*count)++] = counter->workers[i].runs[k];
    }
    pl_count_release(counter);
    return PL_OK;
}

static pl_status chain_all(trainer *t)
{
    uint32_t id_of[PL_BPE_BYTES];
    pl_status status = PL_OK;
    for (unsigned place = 0; place < PL_BPE_BYTES; place++) {
        id_of[pl_bpe_byte_at(place)] = place;
        t->lengths[place] = 1;
    }
    for (size_t i = 0; i < t->cell_count; i++)
        if (t->cells[i].token != EDGE)
            t->cells[i].token = id_of[t->cells[i].token];
    for (size_t i = 0; !status && i < t->cell_count; i++)
        if (t->cells[i].token != EDGE)
            status = chain(t, (uint32_t)i);
    return status ? status : pl_pairs_settle(&t->pairs, t->err);
}

/* All pieces into cells, and merged there. */
static pl_status merge_in_memory(trainer *t, pl_bpe_counter *counter,
                                 const totals *sum, const pl_sorted_run *runs,
                                 size_t count)
{
    const pl_bpe_train_options *options = counter->options;
    pl_status status = take_cells(t, sum);
    if (!status) {
        t->cells[t->cell_count++].token = EDGE;
        status = pl_run_merge(runs, count, SIZE_MAX / 4, lay_out, t, t->err);
    }
    pl_count_release(counter);
    if (!status)
        status = pl_pairs_open(&t->pairs, options->min_count,
                               options->memory_bytes - t->heap.taken_bytes,
                               t->err);
    if (!status)
        status = chain_all(t);
    return status ? status : merge_all(t, options);
}

static pl_status merge_on_disk(trainer *t, pl_bpe_counter *counter,
                               const pl_sorted_run *runs, size_t count)
{
    const pl_bpe_train_options *options = counter->options;
    size_t held = t->heap.taken_bytes + pl_bpe_passes_bytes(t->merge_limit);
    pl_bpe_passes passes = {
        .options = options,
        .runs = runs,
        .run_count = count,
        .pairs = &t->pairs,
        .lengths = t->lengths,
        .merges = t->merges,
        .merge_limit = t->merge_limit,
    };
    pl_count_release(counter);
    pl_status status = pl_pairs_open(
        &t->pairs, options->min_count,
        options->memory_bytes > held ? options->memory_bytes - held : 0,
        t->err);
    if (!status)
        status = pl_bpe_passes_run(&passes, t->err);
    t->merge_count = passes.merge_count;
    return status;
}

/* Gives back what merging took. */
static void let_go(trainer *t)
{
    const size_t bytes = t->heap.taken_bytes + t->pairs.peak_bytes;
    if (bytes > t->peak_bytes)
        t->peak_bytes = bytes;
    pl_pairs_close(&t->pairs);
    pl_heap_close(&t->heap);
}

/* In memory if all pieces may lie there; if then the pairs don't fit beside
 * them, on the disk after all. */
static pl_status merge_runs(trainer *t, pl_bpe_counter *counter,
                            const totals *sum, const pl_sorted_run *runs,
                            size_t count, int fits)
{
    trainer again = *t;
    pl_status status = take_tokens(t);
    if (!status && fits) {
        status = merge_in_memory(t, counter, sum, runs, count);
        if (status != PL_E_MEMORY || !runs[0].path)
            return status;
        let_go(t);
        again.peak_bytes = t->peak_bytes;
        *t = again;
        status = take_tokens(t);
    }
    return status ? status : merge_on_disk(t, counter, runs, count);
}

/* All pieces that were counted, and the merges of them. */
static pl_status work(trainer *t, pl_bpe_counter *counter, totals *sum)
{
    const pl_bpe_train_options *options = counter->options;
    pl_heap names = pl_heap_make(SIZE_MAX / 4);
    pl_sorted_run *runs;
    size_t count;
    int fits = 0;
    pl_status status = pl_heap_take(
        &names, &runs, (size_t)options->threads * (PL_RUN_MOST + 1),
        sizeof *runs, t->err);
    if (!status)
        status = gather(counter, runs, &count, t->err);
    if (!status)
        status = pl_run_merge(runs, count, SIZE_MAX / 4, add_up, sum, t->err);
    if (!status) {
        uint64_t cells = cell_count(sum) * sizeof(cell);
        fits = fits_memory(t, sum, options->memory_bytes);
        /* in files they can be read again, unless any pairs will fit */
        if (!fits || cells >= options->memory_bytes / 10 ||
            table_bytes(counter) + cells >= options->memory_bytes / 4 * 3)
            status = make_space(counter, runs, &count, t->err);
    }
    if (!status)
        status = merge_runs(t, counter, sum, runs, count, fits);
    pl_count_release(counter);
    pl_heap_close(&names);
    return status;
}

static pl_status too_many(const totals *sum, const pl_bpe_train_options *o,
                          pl_error *err)
{
    return pl_fail(err, PL_E_MEMORY,
                   "the text has %llu different pieces: the pairs in them "
                   "need more than the %s that there are. Raise --memory to "
                   "%s, lower --vocab_size or train on a part "
                   "of the text",
                   (unsigned long long)sum->unique,
                   pl_units_bytes(o->memory_bytes).text,
                   pl_units_bytes(2 * o->memory_bytes).text);
}

/* ---- the vocabulary ---- */

static pl_status add_specials(pl_bpe_draft *draft, const trainer *t,
                              const pl_bpe_train_options *options,
                              pl_error *err)
{
    for (size_t i = 0; i < options->special_count; i++) {
        const char *text = options->specials[i];
        if (pl_bpe_map_find(&draft->map, text, strlen(text)) >= 0)
            return pl_fail(err, PL_E_CONFIG,
                           "the special token \"%.40s\" is also an ordinary "
                           "one of this text: choose another, like <|%.40s|>",
                           text, text);
        pl_status status = pl_bpe_draft_add(
            draft, (int64_t)(PL_BPE_BYTES + t->merge_count + i), text,
            strlen(text), PL_BPE_SPECIAL, err);
        if (status)
            return status;
    }
    return PL_OK;
}

static pl_status add_tokens(pl_bpe_draft *draft, const trainer *t,
                            pl_error *err)
{
    char text[PL_BPE_TOKEN_BYTES];
    pl_status status = PL_OK;
    for (unsigned place = 0; !status && place < PL_BPE_BYTES; place++) {
        text[0] = (char)pl_bpe_byte_at(place);
        status = pl_bpe_draft_add(draft, place, text, 1, PL_BPE_ORDINARY, err);
    }
    for (size_t i = 0; !status && i < t->merge_count; i++) {
        const pl_bpe_merge *each = &t->merges[i];
        const pl_bpe_entry *left = &draft->entries[each->left];
        const pl_bpe_entry *right = &draft->entries[each->right];
        memcpy(text, draft->text + left->offset, left->length);
        memcpy(text + left->length, draft->text + right->offset, right->length);
        status = pl_bpe_draft_add(draft, each->made, text,
                                  (size_t)left->length + right->length,
                                  PL_BPE_ORDINARY, err);
        draft->merges[draft->merge_count++] = *each;
    }
    return status;
}

static pl_status finish(trainer *t, const pl_bpe_train_options *options,
                        pl_bpe **bpe, pl_heap *heap)
{
    pl_bpe_draft draft;
    size_t tokens = PL_BPE_BYTES + t->merge_count, bytes = 0;
    for (size_t id = 0; id < tokens; id++)
        bytes += t->lengths[id];
    for (size_t i = 0; i < options->special_count; i++)
        bytes += strlen(options->specials[i]);
    pl_status status = pl_bpe_draft_open(
        &draft, "the trained vocabulary",
        (int64_t)(tokens + options->special_count), bytes, t->merge_count, heap,
        t->err);
    draft.splitting = options->splitting;
    if (!status)
        status = add_tokens(&draft, t, t->err);
    if (!status)
        status = add_specials(&draft, t, options, t->err);
    if (!status)
        status = pl_bpe_draft_finish(&draft, PL_BPE_UNMADE_REFUSED, bpe,
                                     t->err);
    pl_bpe_draft_close(&draft);
    return status;
}

pl_status pl_bpe_train(pl_bpe_counter *counter, pl_bpe_train_result *result,
                       pl_heap *heap, pl_error *err)
{
    const pl_bpe_train_options *options = counter->options;
    trainer t = { .err = err };
    totals sum = { 0 };
    t.merge_limit = (size_t)options->vocab_size - PL_BPE_BYTES -
                    options->special_count;
    t.heap = pl_heap_make(SIZE_MAX / 4);
    pl_status status = work(&t, counter, &sum);
    if (status == PL_E_MEMORY && t.pairs.limit_bytes > 0)
        status = too_many(&sum, options, err);
    *result = (pl_bpe_train_result){ .unique_count = sum.unique };
    for (int i = 0; i < options->threads; i++) {
        result->piece_count += counter->workers[i].piece_count;
        result->spilled_runs += counter->workers[i].spilled;
        result->peak_bytes += counter->workers[i].peak_bytes;
    }
    if (!status)
        status = finish(&t, options, &result->bpe, heap);
    let_go(&t);
    if (t.peak_bytes > result->peak_bytes)
        result->peak_bytes = t.peak_bytes;
    return status;
}
