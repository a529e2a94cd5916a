/* bpe_count.c: counts pieces, one table for each thread; see bpe_train.h. Owns
 * the tables and the names of the runs. */
#include "text/bpe_count.h"

#include "base/check.h"
#include "base/threads.h"
#include "base/units.h"
#include "base/utf8.h"
#include "text/nfc.h"
#include "text/pretok.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST_CAPACITY = 4096,
    RESERVE_BYTES = 640 * 1024,
    NORMAL_BYTES = 8 * 1024, /* of text that is normalized at once */
};

/* ---- opening ---- */

static pl_status open_table(pl_count_table *table, size_t capacity,
                            pl_error *err)
{
    *table = (pl_count_table){ .heap = pl_heap_make(SIZE_MAX / 4),
                               .capacity = capacity };
    return pl_heap_take(&table->heap, &table->slots, capacity + PL_COUNT_SPARE,
                        sizeof *table->slots, err);
}

static pl_status check_specials(const pl_bpe_train_options *options,
                                pl_error *err)
{
    for (size_t i = 0; i < options->special_count; i++) {
        const char *text = options->specials[i];
        size_t bytes = strlen(text);
        if (bytes < 2 || bytes > PL_BPE_TOKEN_BYTES ||
            !pl_utf8_is_valid(text, bytes))
            return pl_fail(err, PL_E_CONFIG,
                           "the special token \"%.40s\" must be valid UTF-8 "
                           "of 2 to %s",
                           text, pl_units_exact(PL_BPE_TOKEN_BYTES).text);
        for (size_t k = 0; k < i; k++)
            if (strcmp(options->specials[k], text) == 0)
                return pl_fail(err, PL_E_CONFIG,
                               "the special token \"%.40s\" is given twice",
                               text);
    }
    return PL_OK;
}

static pl_status check_options(const pl_bpe_train_options *options,
                               pl_error *err)
{
    PL_CHECK(options->threads >= 1 && options->threads <= PL_MAX_THREADS);
    size_t threads = (size_t)options->threads;
    size_t least = PL_BPE_BYTES + options->special_count;
    if (options->vocab_size < 0 || (size_t)options->vocab_size < least ||
        options->vocab_size > PL_BPE_MAX_VOCAB)
        return pl_fail(err, PL_E_CONFIG,
                       "a vocabulary of %d tokens can't be trained: 256 bytes "
                       "and %zu special tokens are %zu, and %d is the most",
                       (int)options->vocab_size, options->special_count, least,
                       PL_BPE_MAX_VOCAB);
    if (options->memory_bytes / threads < PL_BPE_MIN_SHARE_BYTES)
        return pl_fail(err, PL_E_MEMORY,
                       "%s of memory are too few to train a tokenizer with %d "
                       "threads: give %s or use fewer threads",
                       pl_units_bytes(options->memory_bytes).text,
                       options->threads,
                       pl_units_bytes(threads * PL_BPE_MIN_SHARE_BYTES).text);
    return check_specials(options, err);
}

pl_status pl_bpe_counter_open(pl_bpe_counter **out,
                              const pl_bpe_train_options *options,
                              pl_heap *heap, pl_error *err)
{
    pl_bpe_counter *counter;
    size_t threads = (size_t)options->threads;
    pl_status status = check_options(options, err);
    if (!status)
        status = pl_heap_take(heap, &counter, 1, sizeof *counter, err);
    if (!status)
        status = pl_heap_take(heap, &counter->workers, threads,
                              sizeof *counter->workers, err);
    if (status)
        return status;
    counter->options = options;
    counter->share_bytes = options->memory_bytes / threads;
    if (options->splitting.normal != PL_NORMAL_NONE)
        counter->share_bytes -= NORMAL_BYTES * PL_NFC_ROOM;
    for (size_t i = 0; i < threads; i++) {
        pl_count_worker *worker = &counter->workers[i];
        worker->long_limit = counter->share_bytes / 8;
        worker->longs = pl_heap_make(worker->long_limit);
        worker->names = pl_heap_make(SIZE_MAX / 4);
        status = open_table(&worker->table, FIRST_CAPACITY, err);
        if (status)
            goto close_counter;
    }
    *out = counter;
    return PL_OK;

close_counter:
    pl_bpe_counter_close(counter);
    return status;
}

void pl_count_release(pl_bpe_counter *counter)
{
    for (int i = 0; i < counter->options->threads; i++) {
        pl_heap_close(&counter->workers[i].table.heap);
        pl_heap_close(&counter->workers[i].longs);
    }
}

void pl_bpe_counter_close(pl_bpe_counter *counter)
{
    if (!counter)
        return;
    pl_count_release(counter);
    for (int i = 0; i < counter->options->threads; i++) {
        pl_count_worker *worker = &counter->workers[i];
        while (worker->run_count > 0)
            pl_file_remove_quietly(worker->runs[--worker->run_count].path);
        pl_heap_close(&worker->names);
        pl_lump_free(worker->normal);
        worker->normal = NULL;
    }
}

/* ---- the table ---- */

static size_t place_of(const pl_count_table *table, pl_pretoken_key key)
{
    return (size_t)((pl_pretoken_hash(key) >> 32) * table->capacity >> 32);
}

static void note_peak(pl_count_worker *worker, size_t more)
{
    size_t bytes = worker->table.heap.taken_bytes + worker->longs.taken_bytes +
                   more;
    worker->peak_bytes = bytes > worker->peak_bytes ? bytes
                                                    : worker->peak_bytes;
}

/* The slot that has the piece or where it belongs; NULL if there is none. */
static pl_run_count *slot_of(const pl_count_table *table, pl_pretoken_key key,
                             const char *text, size_t bytes)
{
    pl_run_count *slot = &table->slots[place_of(table, key)];
    pl_run_count *end = table->slots + table->capacity + PL_COUNT_SPARE;
    for (; slot < end; slot++) {
        if (slot->count == 0)
            return slot;
        if (pl_pretoken_same(slot->key, key) &&
            (bytes <= PL_PRETOKEN_SHORT_BYTES ||
             (slot->bytes->length == bytes &&
              memcmp(slot->bytes->text, text, bytes) == 0)))
            return slot;
    }
    return NULL;
}

/* A table twice as large in the place of the old one; *done is 0, and nothing
 * has happened, if the memory doesn't allow it. */
static pl_status grow(pl_bpe_counter *counter, pl_count_worker *worker,
                      int *done, pl_error *err)
{
    pl_count_table bigger, *table = &worker->table;
    size_t slots = 3 * table->capacity + 2 * PL_COUNT_SPARE;
    size_t bytes = slots * sizeof *table->slots;
    *done = 0;
    if (bytes > counter->share_bytes - worker->long_limit - RESERVE_BYTES ||
        table->capacity > UINT32_MAX / 4)
        return PL_OK;
    pl_status status = open_table(&bigger, 2 * table->capacity, err);
    if (status)
        return status;
    note_peak(worker, bigger.heap.taken_bytes);
    const pl_run_count *end = bigger.slots + bigger.capacity + PL_COUNT_SPARE;
    for (size_t i = 0; i < table->capacity + PL_COUNT_SPARE; i++) {
        const pl_run_count *old = &table->slots[i];
        if (old->count == 0)
            continue;
        /* All are different: the first empty slot is the right one. */
        pl_run_count *slot = &bigger.slots[place_of(&bigger, old->key)];
        while (slot < end && slot->count != 0)
            slot++;
        if (slot == end) { /* chosen to collide */
            pl_heap_close(&bigger.heap);
            return PL_OK;
        }
        *slot = *old;
    }
    bigger.used = table->used;
    pl_heap_close(&table->heap);
    *table = bigger;
    *done = 1;
    return PL_OK;
}

/* ---- runs ---- */

/* Moves what is used to the front, in order. The table is nearly in order:
 * a piece lies at most a few places behind where its hash wants it. */
static void sort(pl_count_table *table)
{
    size_t used = 0;
    for (size_t i = 0; i < table->capacity + PL_COUNT_SPARE; i++) {
        if (table->slots[i].count == 0)
            continue;
        pl_run_count moved = table->slots[i];
        table->slots[i].count = 0;
        size_t place = used++;
        for (;
             place > 0 && pl_run_compare(&moved, &table->slots[place - 1]) < 0;
             place--)
            table->slots[place] = table->slots[place - 1];
        table->slots[place] = moved;
    }
    PL_CHECK(used == table->used);
}

static pl_status open_run(pl_bpe_counter *counter, int ith, pl_heap *buffers,
                          pl_run_writer *writer, pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    char name[64], path[PL_PATH_BYTES];
    const char *kept;
    snprintf(name, sizeof name, "counts-%d-%zu.run", ith, worker->run_number++);
    pl_status status = pl_path_join(path, counter->options->folder, name, err);
    if (!status)
        status = pl_heap_text(&worker->names, &kept, path, strlen(path), err);
    return status ? status : pl_run_writer_open(writer, kept, buffers, err);
}

static pl_status write_sorted(void *context, const pl_run_count *count,
                              pl_error *err)
{
    return pl_run_write(context, count, err);
}

pl_status pl_count_unite(pl_bpe_counter *counter, int ith, pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    pl_heap buffers = pl_heap_make(RESERVE_BYTES);
    pl_run_writer writer;
    pl_sorted_run united;
    if (worker->run_count < 2)
        return PL_OK;
    pl_status status = open_run(counter, ith, &buffers, &writer, err);
    if (status)
        goto close_buffers;
    status = pl_run_merge(worker->runs, worker->run_count, SIZE_MAX / 4,
                          write_sorted, &writer, err);
    if (status) {
        pl_run_writer_discard(&writer);
        goto close_buffers;
    }
    status = pl_run_writer_close(&writer, &united, err);
    if (status)
        goto close_buffers;
    while (worker->run_count > 0)
        pl_file_remove_quietly(worker->runs[--worker->run_count].path);
    worker->runs[worker->run_count++] = united;

close_buffers:
    pl_heap_close(&buffers);
    return status;
}

static pl_status write_run(pl_bpe_counter *counter, int ith,
                           const pl_run_count *counts, size_t count,
                           pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    pl_heap buffers = pl_heap_make(RESERVE_BYTES);
    pl_run_writer writer;
    pl_status status = PL_OK;
    if (worker->run_count == PL_RUN_MOST)
        status = pl_count_unite(counter, ith, err);
    if (!status)
        status = open_run(counter, ith, &buffers, &writer, err);
    if (status)
        goto close_buffers;
    for (size_t i = 0; !status && i < count; i++)
        status = pl_run_write(&writer, &counts[i], err);
    if (status) {
        pl_run_writer_discard(&writer);
        goto close_buffers;
    }
    status = pl_run_writer_close(&writer, &worker->runs[worker->run_count],
                                 err);
    if (status)
        goto close_buffers;
    worker->run_count++;
    worker->spilled++;

close_buffers:
    pl_heap_close(&buffers);
    return status;
}

pl_status pl_count_spill(pl_bpe_counter *counter, int ith, pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    pl_count_table *table = &worker->table;
    if (table->used == 0)
        return PL_OK;
    note_peak(worker, RESERVE_BYTES);
    sort(table);
    pl_status status = write_run(counter, ith, table->slots, table->used, err);
    if (status)
        return status;
    memset(table->slots, 0,
           (table->capacity + PL_COUNT_SPARE) * sizeof *table->slots);
    table->used = 0;
    pl_heap_close(&worker->longs);
    return PL_OK;
}

void pl_count_freeze(pl_bpe_counter *counter, int ith, pl_sorted_run *run)
{
    pl_count_worker *worker = &counter->workers[ith];
    note_peak(worker, 0);
    sort(&worker->table);
    *run = (pl_sorted_run){ .counts = worker->table.slots,
                            .count = worker->table.used,
                            .longest_bytes = worker->longest_bytes };
}

/* ---- counting ---- */

/* Room for one more piece: a larger table, or an empty one. */
static pl_status make_room(pl_bpe_counter *counter, int ith, pl_error *err)
{
    int done;
    pl_status status = grow(counter, &counter->workers[ith], &done, err);
    if (!status && !done)
        status = pl_count_spill(counter, ith, err);
    return status;
}

/* A piece that is larger than the memory for long ones: a run of its own. */
static pl_status add_huge(pl_bpe_counter *counter, int ith, pl_pretoken_key key,
                          const char *text, size_t bytes, pl_error *err)
{
    pl_heap room = pl_heap_make(bytes + sizeof(pl_run_bytes));
    pl_run_bytes *copy;
    pl_status status = pl_heap_take(&room, &copy, sizeof *copy + bytes, 1, err);
    if (!status) {
        pl_run_count one = { .key = key, .count = 1, .bytes = copy };
        copy->length = (uint32_t)bytes;
        memcpy(copy->text, text, bytes);
        status = write_run(counter, ith, &one, 1, err);
    }
    pl_heap_close(&room);
    return status;
}

static pl_status add_new(pl_bpe_counter *counter, int ith, pl_pretoken_key key,
                         const char *text, size_t bytes, pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    pl_run_bytes *copy = NULL;
    pl_status status = PL_OK;
    if (bytes > PL_PRETOKEN_SHORT_BYTES) {
        size_t take = sizeof *copy + bytes;
        if (take > worker->long_limit)
            return add_huge(counter, ith, key, text, bytes, err);
        if (take > worker->long_limit - worker->longs.taken_bytes)
            status = pl_count_spill(counter, ith, err);
        if (!status)
            status = pl_heap_take(&worker->longs, &copy, take, 1, err);
        if (status)
            return status;
        copy->length = (uint32_t)bytes;
        memcpy(copy->text, text, bytes);
        if (copy->length > worker->longest_bytes)
            worker->longest_bytes = copy->length;
    }
    pl_run_count *slot = NULL;
    if (worker->table.used < worker->table.capacity / 4 * 3)
        slot = slot_of(&worker->table, key, text, bytes);
    if (!slot) {
        /* Spilling gives long pieces back, so that `copy` would be lost. */
        status = make_room(counter, ith, err);
        return status ? status : add_new(counter, ith, key, text, bytes, err);
    }
    *slot = (pl_run_count){ .key = key, .count = 1, .bytes = copy };
    worker->table.used++;
    return PL_OK;
}

static pl_status count_pieces(pl_bpe_counter *counter, int ith,
                              const char *text, size_t bytes, pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    pl_pretok_fn *next = pl_pretok_of(counter->options->splitting.pattern);
    for (size_t at = 0; at < bytes;) {
        size_t length = next(text + at, bytes - at);
        pl_pretoken_key key;
        if (length <= PL_PRETOKEN_SHORT_BYTES)
            key = pl_pretoken_key_of(text + at, length, bytes - at);
        else if (length <= UINT32_MAX)
            key = pl_run_long_key(text + at, length);
        else
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "a piece of %s without a break is more than a "
                           "tokenizer is trained on",
                           pl_units_bytes(length).text);
        pl_run_count *slot = slot_of(&worker->table, key, text + at, length);
        worker->piece_count++;
        if (slot && slot->count > 0) {
            slot->count++;
        } else {
            pl_status status = add_new(counter, ith, key, text + at, length,
                                       err);
            if (status)
                return status;
        }
        at += length;
    }
    return PL_OK;
}

/* Normalizes some text, up to where it may be cut, and counts its pieces. */
static pl_status count_normal(pl_bpe_counter *counter, int ith,
                              const char *text, size_t bytes, pl_error *err)
{
    pl_count_worker *worker = &counter->workers[ith];
    size_t need = PL_NFC_ROOM * bytes;
    if (pl_nfc_quick(text, bytes))
        return count_pieces(counter, ith, text, bytes, err);
    if (need > worker->normal_bytes) {
        if (need < NORMAL_BYTES * PL_NFC_ROOM)
            need = NORMAL_BYTES * PL_NFC_ROOM;
        pl_status status = pl_lump_resize(&worker->normal, need, err);
        if (status)
            return status;
        worker->normal_bytes = need;
    }
    size_t length = pl_nfc_write(text, bytes, worker->normal);
    return count_pieces(counter, ith, worker->normal, length, err);
}

pl_status pl_bpe_counter_add(pl_bpe_counter *counter, int ith, const char *text,
                             size_t bytes, pl_error *err)
{
    const pl_splitting splitting = counter->options->splitting;
    pl_status status = PL_OK;
    if (splitting.normal == PL_NORMAL_NONE)
        return count_pieces(counter, ith, text, bytes, err);
    for (size_t at = 0; at < bytes && !status;) {
        size_t part = bytes - at, cut = 0;
        if (part > NORMAL_BYTES)
            cut = pl_pretok_cut(splitting.pattern, text + at, NORMAL_BYTES);
        part = cut ? cut : part;
        status = count_normal(counter, ith, text + at, part, err);
        at += part;
    }
    return status;
}
