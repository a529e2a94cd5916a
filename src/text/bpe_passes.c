/* bpe_passes.c: BPE training over a file, where the pieces don't fit in memory.
 *
 *   pieces-0:  9 "a t" | 6 "i n" | 2 "i n t o"    count and tokens of a piece
 *      |
 *      |  one pass with the batch  a+t -> at, i+n -> in
 *      v
 *   pieces-1:  2 "in t o"                         the two files take turns
 *
 * Pieces that have become one token are left out: they have no pair any more.
 *
 * The table of pairs, with their counts, is in memory. Before each pass the
 * most frequent pairs are taken from its queue, as many as one pass can join
 * without one of them changing the count of another (bpe_passes.h says why that
 * is right): this is the batch. The pass reads one file, joins these pairs,
 * updates the counts of the pairs around each place, and writes the other file.
 *
 * A file has for each piece its count, then each token + 1, then 0, all of them
 * as varints (LEB128: seven bits to a byte, the lowest first). */
#include "text/bpe_passes.h"

#include "base/check.h"
#include "base/file.h"

#include <string.h>

enum {
    BUFFER_BYTES = 256 * 1024,
    VARINT_BYTES = 10, /* of the longest */
    BATCH = 4096,
    BATCH_SLOTS = 4 * BATCH,
    IS_LEFT = 1,
    IS_RIGHT = 2,
};

typedef struct batch_slot {
    uint64_t key;
    uint32_t made; /* 0: an empty slot */
} batch_slot;

typedef struct stream {
    pl_file file;
    char path[PL_PATH_BYTES];
    unsigned char *buffer;
    size_t at, filled;
} stream;

/* A token of the new file, and the first and last token that it was made of. */
typedef struct output {
    uint32_t token, first, last;
    int is_made;
} output;

typedef struct pass {
    pl_bpe_passes *p;
    stream in, out;
    batch_slot *batch; /* the pairs to be joined: a hash table */
    uint64_t keys[BATCH];
    size_t batch_count;
    unsigned char *roles; /* of each token, in the batch */
    uint32_t id_of[PL_BPE_BYTES];
    pl_error *err;
} pass;

size_t pl_bpe_passes_bytes(size_t merge_limit)
{
    return sizeof(pass) + 2 * (size_t)BUFFER_BYTES +
           BATCH_SLOTS * sizeof(batch_slot) + PL_BPE_BYTES + merge_limit + 4096;
}

/* ---- varints in files ---- */

static pl_status flush(pass *s)
{
    pl_status status = pl_file_append(&s->out.file, s->out.buffer, s->out.at,
                                      s->err);
    s->out.at = 0;
    return status;
}

static pl_status put_varint(pass *s, uint64_t number)
{
    if (BUFFER_BYTES - s->out.at < VARINT_BYTES) {
        pl_status status = flush(s);
        if (status)
            return status;
    }
    for (; number >= 0x80; number >>= 7)
        s->out.buffer[s->out.at++] = (unsigned char)(number | 0x80);
    s->out.buffer[s->out.at++] = (unsigned char)number;
    return PL_OK;
}

/* Sees to it that the whole next varint is in the buffer, unless the file has
 * ended. */
static pl_status refill(pass *s)
{
    stream *in = &s->in;
    size_t left = in->filled - in->at, got;
    if (left >= VARINT_BYTES)
        return PL_OK;
    memmove(in->buffer, in->buffer + in->at, left);
    pl_status status = pl_file_read_some(&in->file, in->buffer + left,
                                         BUFFER_BYTES - left, &got, s->err);
    in->at = 0;
    in->filled = status ? 0 : left + got;
    return status;
}

static pl_status get_varint(pass *s, uint64_t *number)
{
    stream *in = &s->in;
    pl_status status = in->filled - in->at < VARINT_BYTES ? refill(s) : PL_OK;
    *number = 0;
    for (int shift = 0; !status && shift < 64; shift += 7) {
        if (in->at == in->filled)
            break;
        unsigned byte = in->buffer[in->at++];
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return PL_OK;
    }
    return status ? status
                  : pl_fail(s->err, PL_E_IO,
                            "%s was cut off while it was in use. Is another "
                            "process working in its folder?",
                            pl_path_shown(in->path));
}

static pl_status open_out(pass *s, unsigned number)
{
    s->out.at = 0;
    pl_status status = pl_path_join(s->out.path, s->p->options->folder,
                                    number % 2 ? "pieces-1" : "pieces-0",
                                    s->err);
    return status ? status : pl_file_create(&s->out.file, s->out.path, s->err);
}

/* Closes what was written, to read it next, and removes what was read. */
static pl_status swap_files(pass *s)
{
    pl_status status = flush(s);
    pl_file_discard(&s->in.file);
    if (!status)
        status = pl_file_close(&s->out.file, s->err);
    if (status)
        return status;
    memcpy(s->in.path, s->out.path, sizeof s->in.path);
    s->in.at = s->in.filled = 0;
    return pl_file_open_read(&s->in.file, s->in.path, s->err);
}

/* ---- pairs ---- */

static int can_join(const pass *s, uint32_t left, uint32_t right)
{
    const uint16_t *lengths = s->p->lengths;
    return lengths[left] + lengths[right] <= PL_BPE_TOKEN_BYTES;
}

static pl_status add_pair(pass *s, uint32_t left, uint32_t right,
                          uint64_t count)
{
    uint32_t which;
    if (!can_join(s, left, right))
        return PL_OK;
    pl_status status = pl_pairs_get(s->p->pairs, (uint64_t)left << 32 | right,
                                    &which, s->err);
    if (status)
        return status;
    s->p->pairs->pairs[which].count += count;
    s->p->pairs->pairs[which].head = 1; /* it occurs: where isn't kept */
    return PL_OK;
}

static void take_pair(pass *s, uint32_t left, uint32_t right, uint64_t count)
{
    if (!can_join(s, left, right))
        return;
    uint32_t which = pl_pairs_find(s->p->pairs, (uint64_t)left << 32 | right);
    PL_CHECK(which != 0);
    pl_pair *pair = &s->p->pairs->pairs[which];
    PL_CHECK(pair->count >= count);
    pair->count -= count;
    if (pair->count == 0) {
        pair->head = PL_PAIR_NOWHERE;
        pl_pairs_empty(s->p->pairs, which);
    }
}

/* ---- the first file ---- */

static pl_status write_piece(void *context, const pl_run_count *count,
                             pl_error *err)
{
    pass *s = context;
    char room[PL_PRETOKEN_SHORT_BYTES + 1];
    size_t bytes;
    const char *text = pl_run_text(count, room, &bytes);
    (void)err;
    if (bytes < 2)
        return PL_OK;
    pl_status status = put_varint(s, count->count);
    for (size_t i = 0; i < bytes && !status; i++) {
        uint32_t token = s->id_of[(unsigned char)text[i]];
        if (i > 0)
            status = add_pair(s, s->id_of[(unsigned char)text[i - 1]], token,
                              count->count);
        if (!status)
            status = put_varint(s, (uint64_t)token + 1);
    }
    return status ? status : put_varint(s, 0);
}

static pl_status write_first(pass *s)
{
    for (unsigned place = 0; place < PL_BPE_BYTES; place++) {
        s->id_of[pl_bpe_byte_at(place)] = place;
        s->p->lengths[place] = 1;
    }
    pl_status status = open_out(s, 0);
    if (!status)
        status = pl_run_merge(s->p->runs, s->p->run_count, SIZE_MAX / 4,
                              write_piece, s, s->err);
    if (!status)
        status = swap_files(s);
    return status ? status : pl_pairs_settle(s->p->pairs, s->err);
}

/* ---- a batch ---- */

static batch_slot *slot_of(const pass *s, uint64_t key)
{
    size_t slot = pl_bpe_mix(key * 0x9e3779b97f4a7c15u) % BATCH_SLOTS;
    while (s->batch[slot].made && s->batch[slot].key != key)
        slot = (slot + 1) % BATCH_SLOTS;
    return &s->batch[slot];
}

static void clear_batch(pass *s)
{
    for (size_t i = 0; i < s->batch_count; i++) {
        s->roles[s->keys[i] >> 32] = 0;
        s->roles[(uint32_t)s->keys[i]] = 0;
    }
    memset(s->batch, 0, BATCH_SLOTS * sizeof *s->batch);
    s->batch_count = 0;
}

/* The next merges that none of the others in the batch can change. */
static void choose_batch(pass *s)
{
    pl_bpe_passes *p = s->p;
    while (p->merge_count < p->merge_limit && s->batch_count < BATCH) {
        uint32_t which = pl_pairs_next(p->pairs);
        if (!which)
            return;
        uint64_t key = p->pairs->pairs[which].key;
        uint32_t left = (uint32_t)(key >> 32), right = (uint32_t)key;
        if ((s->roles[left] & IS_RIGHT) || (s->roles[right] & IS_LEFT)) {
            pl_pairs_put_back(p->pairs, which);
            return;
        }
        uint32_t made = PL_BPE_BYTES + (uint32_t)p->merge_count;
        p->merges[p->merge_count++] =
            (pl_bpe_merge){ (int32_t)left, (int32_t)right, (int32_t)made };
        p->lengths[made] = (uint16_t)(p->lengths[left] + p->lengths[right]);
        s->roles[left] |= IS_LEFT;
        s->roles[right] |= IS_RIGHT;
        s->keys[s->batch_count++] = key;
        *slot_of(s, key) = (batch_slot){ key, made };
        if (left == right)
            return;
    }
}

/* ---- a pass ---- */

/* Writes a token behind `before`, and updates the counts of pairs. The first
 * token of a piece, and its count, are written only with the second. */
static pl_status put_token(pass *s, output *before, const output *now,
                           uint64_t count, size_t place)
{
    pl_status status = PL_OK;
    if (now->is_made)
        take_pair(s, now->first, now->last, count);
    if (place > 0 && (now->is_made || before->is_made)) {
        take_pair(s, before->last, now->first, count);
        status = add_pair(s, before->token, now->token, count);
    }
    if (!status && place == 1)
        status = put_varint(s, count);
    if (!status && place == 1)
        status = put_varint(s, (uint64_t)before->token + 1);
    if (!status && place > 0)
        status = put_varint(s, (uint64_t)now->token + 1);
    *before = *now;
    return status;
}

static pl_status rewrite_piece(pass *s, uint64_t count)
{
    output before = { 0 };
    uint64_t token, next;
    size_t place = 0;
    pl_status status = get_varint(s, &token);
    for (; !status && token != 0; place++) {
        uint32_t first = (uint32_t)(token - 1);
        output now = { .token = first, .first = first, .last = first };
        status = get_varint(s, &next);
        if (status)
            break;
        if (next != 0 && (s->roles[first] & IS_LEFT)) {
            const batch_slot *found = slot_of(s, (uint64_t)first << 32 |
                                                     (next - 1));
            if (found->made) {
                now.last = (uint32_t)(next - 1);
                now.token = found->made;
                now.is_made = 1;
                status = get_varint(s, &next);
            }
        }
        if (!status)
            status = put_token(s, &before, &now, count, place);
        token = next;
    }
    if (!status && place > 1)
        status = put_varint(s, 0);
    return status;
}

static pl_status run_pass(pass *s, unsigned number)
{
    uint64_t count;
    pl_status status = open_out(s, number);
    while (!status) {
        status = refill(s);
        if (status || s->in.at == s->in.filled)
            break;
        status = get_varint(s, &count);
        if (!status)
            status = rewrite_piece(s, count);
    }
    if (!status)
        status = swap_files(s);
    if (!status)
        status = pl_pairs_settle(s->p->pairs, s->err);
    for (size_t i = 0; i < s->batch_count && !status; i++)
        PL_CHECK(pl_pairs_find(s->p->pairs, s->keys[i]) == 0);
    return status;
}

static pl_status merge_all(pass *s)
{
    const pl_bpe_train_options *options = s->p->options;
    pl_status status = write_first(s);
    for (unsigned number = 1; !status; number++) {
        if (options->wish && options->wish(options->context, s->p->merge_count,
                                           s->p->merge_limit) == PL_BPE_STOP)
            return pl_fail(s->err, PL_E_STOPPED,
                           "stopped after %zu of %zu merges", s->p->merge_count,
                           s->p->merge_limit);
        clear_batch(s);
        choose_batch(s);
        /* After the last merge nobody needs the counts of pairs any more. */
        if (s->batch_count == 0 || s->p->merge_count == s->p->merge_limit)
            break;
        status = run_pass(s, number);
    }
    return status;
}

pl_status pl_bpe_passes_run(pl_bpe_passes *passes, pl_error *err)
{
    pl_heap heap = pl_heap_make(pl_bpe_passes_bytes(passes->merge_limit));
    pass *s;
    pl_status status = pl_heap_take(&heap, &s, 1, sizeof *s, err);
    if (status)
        goto close_heap;
    s->p = passes;
    s->err = err;
    s->in.file.fd = s->out.file.fd = -1;
    status = pl_heap_take(&heap, &s->in.buffer, BUFFER_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(&heap, &s->out.buffer, BUFFER_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(&heap, &s->batch, BATCH_SLOTS, sizeof *s->batch,
                              err);
    if (!status)
        status = pl_heap_take(&heap, &s->roles,
                              PL_BPE_BYTES + passes->merge_limit, 1, err);
    if (!status)
        status = merge_all(s);
    pl_file_discard(&s->in.file);
    pl_file_discard(&s->out.file);

close_heap:
    pl_heap_close(&heap);
    return status;
}
