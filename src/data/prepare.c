/* prepare.c: see prepare.h. Owns the steps and the split; crew.h has the
 * threads, shard_out.h the files, prepare_keep.c what goes on after a stop. */
#include "data/prepare.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "base/utf8.h"
#include "data/charset.h"
#include "data/crew.h"
#include "data/prepare_parts.h"
#include "data/prepare_state.h"
#include "data/publish.h"
#include "text/tokfile.h"

#include <string.h>

enum {
    MIN_CACHE_BYTES = 256 * 1024,
    MAX_LOAD_BYTES = 8 * 1024 * 1024,
    MOVE_TOKENS = 64 * 1024, /* of the end that validates, at once */
};
static const double save_seconds = 10.0; /* between two states */

/* ---- memory ---- */

static size_t fixed_bytes(void)
{
    return (size_t)PL_CHARSET_BYTES + 2 * (size_t)PL_SHARD_OUT_BUFFER_BYTES +
           MOVE_TOKENS * sizeof(int32_t) + 64 * 1024;
}

/* Ids for each byte of text. */
static size_t id_room(const pl_tokenizer *tokenizer)
{
    return tokenizer ? pl_tokenizer_most_ids(tokenizer, 1) : 1;
}

size_t pl_prepare_min_bytes(int threads, const pl_tokenizer *tokenizer)
{
    return (size_t)PL_SOURCE_MIN_BYTES + fixed_bytes() +
           pl_crew_bytes(PL_CREW_MIN_LOAD_BYTES, id_room(tokenizer)) +
           (size_t)threads * MIN_CACHE_BYTES;
}

typedef struct shares {
    size_t cache_bytes, load_bytes, source_bytes;
    size_t scratch_bytes; /* all but the source's */
} shares;

/* A little for what was read before, loads that keep the threads busy, the
 * rest for documents. */
static shares share_of(size_t all, size_t threads,
                       const pl_tokenizer *tokenizer)
{
    size_t ids = id_room(tokenizer);
    size_t spare = all - pl_prepare_min_bytes((int)threads, tokenizer);
    shares s = { .cache_bytes = MIN_CACHE_BYTES };
    while (s.cache_bytes < PL_BPE_CACHE_BYTES &&
           threads * s.cache_bytes <= spare / 4) {
        spare -= threads * s.cache_bytes;
        s.cache_bytes *= 2;
    }
    /* A load takes ten times its text, and a bit; more if it is normalized. */
    s.load_bytes = PL_CREW_MIN_LOAD_BYTES + spare / 2 / (8 * ids + 3);
    if (s.load_bytes > MAX_LOAD_BYTES)
        s.load_bytes = MAX_LOAD_BYTES;
    size_t loads = pl_crew_bytes(s.load_bytes, ids);
    s.source_bytes = all - fixed_bytes() - threads * s.cache_bytes - loads;
    PL_CHECK(s.source_bytes >= PL_SOURCE_MIN_BYTES);
    s.scratch_bytes = fixed_bytes() + threads * s.cache_bytes + loads +
                      threads * 4096;
    return s;
}

static pl_status share_out(pl_prepare_job *j)
{
    size_t all = j->options->memory_bytes;
    size_t threads = (size_t)j->options->threads;
    size_t least = pl_prepare_min_bytes(j->options->threads,
                                        j->options->tokenizer);
    if (all < least)
        return pl_fail(
            j->err, PL_E_MEMORY,
            "preparing with %zu threads needs %s of memory beside the "
            "tokenizer, there are %s. Raise memory, or lower threads",
            threads, pl_units_bytes(least).text, pl_units_bytes(all).text);
    shares s = share_of(all, threads, j->options->tokenizer);
    j->cache_bytes = s.cache_bytes;
    j->load_bytes = s.load_bytes;
    j->source_bytes = s.source_bytes;
    j->scratch = pl_heap_make(s.scratch_bytes);
    return PL_OK;
}

/* Where the source had too little: with which budget it has enough. */
static pl_status say_needed(pl_prepare_job *j, pl_status failure)
{
    const uint64_t step = 1000 * 1000;
    size_t all = j->options->memory_bytes;
    uint64_t wanted = j->source ? pl_source_wanted_bytes(j->source) : 0;
    char text[PL_ERROR_TEXT_BYTES];
    if (failure != PL_E_MEMORY || !j->err || !j->options->budget_bytes ||
        wanted <= j->source_bytes || wanted > SIZE_MAX / 4)
        return failure;
    /* The source's share grows with the whole, though not in steps that could
     * be solved for. */
    uint64_t more = wanted - j->source_bytes;
    while (
        share_of(all + more, (size_t)j->options->threads, j->options->tokenizer)
            .source_bytes < wanted)
        more += step;
    uint64_t budget = (j->options->budget_bytes + more + step - 1) / step;
    memcpy(text, j->err->text, sizeof text);
    return pl_fail(j->err, failure, "%s. It would fit with --memory=%llu", text,
                   (unsigned long long)(budget * step));
}

/* ---- opening ---- */

static pl_status check_options(const pl_prepare_options *options, pl_error *err)
{
    PL_CHECK(!options->tokenizer ||
             options->tokenizer->kind != PL_TOKENIZER_NONE);
    PL_CHECK(options->threads > 0 && options->threads <= PL_MAX_THREADS);
    if (options->source.path_count == 0)
        return pl_fail(err, PL_E_USAGE, "no text was given");
    if (!(options->val_fraction > 0.0 && options->val_fraction < 1.0))
        return pl_fail(err, PL_E_CONFIG,
                       "val_fraction is %g; it must lie between 0 and 1",
                       options->val_fraction);
    if (options->tokenizer && options->kind != PL_SHARD_WIDE &&
        options->tokenizer->vocab_size > PL_SHARD_NARROW_VOCAB)
        return pl_fail(err, PL_E_CONFIG,
                       "a vocabulary of %d doesn't fit 16-bit tokens: write "
                       "32-bit ones, with --format=llmc",
                       (int)options->tokenizer->vocab_size);
    return PL_OK;
}

static pl_stream_wish ask(void *context)
{
    const pl_prepare_options *o = ((const pl_prepare_job *)context)->options;
    return o->wish && o->wish(o->context) == PL_PREPARE_STOP ? PL_STREAM_STOP
                                                             : PL_STREAM_GO_ON;
}

static pl_status open_source(pl_prepare_job *j)
{
    pl_source_options options = j->options->source;
    options.memory_bytes = j->source_bytes;
    options.cuts.at = !j->options->tokenizer ||
                              j->options->tokenizer->kind != PL_TOKENIZER_BPE
                          ? PL_CUTTER_ANYWHERE
                          : PL_CUTTER_AT_WORDS;
    if (j->options->tokenizer)
        options.cuts.splitting = pl_tokenizer_splitting(j->options->tokenizer);
    options.ask = ask;
    options.ask_context = j;
    pl_status status = pl_source_open(&j->source, &options, j->err);
    if (status)
        return status;
    pl_source_list_say(pl_source_files(j->source), j->options->log);
    j->from_input = pl_source_list_reading(pl_source_files(j->source)) ==
                    PL_SOURCE_ONCE;
    j->total_bytes = pl_source_files(j->source)->total_bytes;
    if (!j->from_input && j->total_bytes == 0)
        return pl_fail(j->err, PL_E_FORMAT,
                       "%s: the text is empty, there is nothing to prepare "
                       "(files that were read: %zu)",
                       pl_path_shown(pl_source_files(j->source)->files[0].path),
                       pl_source_files(j->source)->count);
    return PL_OK;
}

static pl_status open_encoders(pl_prepare_job *j)
{
    const pl_tokenizer *tokenizer = &j->result->tokenizer;
    pl_status status = PL_OK;
    if (tokenizer->kind == PL_TOKENIZER_CHAR && !j->charset.ids) {
        status = pl_charset_open(&j->charset, &j->scratch, j->err);
        if (!status)
            pl_charset_fill(&j->charset, tokenizer);
    }
    if (status || tokenizer->kind != PL_TOKENIZER_BPE)
        return status;
    for (int i = 0; i < j->options->threads && !status; i++)
        status = pl_bpe_encoder_open(&j->encoders[i], tokenizer->bpe,
                                     j->cache_bytes, &j->scratch, j->err);
    return status;
}

/* ---- the crew's work ---- */

/* Says which document brings the share nearer to what was asked for. The first
 * one always trains. */
static int goes_to_val(void *context, const pl_crew_tally *tally, uint64_t size)
{
    const pl_prepare_job *j = context;
    double half = 0.5 * (double)size;
    double all = (double)tally->text_bytes + (double)size;
    if (j->result->tokenizer.kind != PL_TOKENIZER_BPE || tally->documents == 0)
        return 0;
    return (double)tally->marked_bytes + half <= j->options->val_fraction * all;
}

static void encode(void *context, int ith, pl_crew_part *part)
{
    pl_prepare_job *j = context;
    const pl_tokenizer *tokenizer = &j->result->tokenizer;
    switch (tokenizer->kind) {
    case PL_TOKENIZER_BPE:
        part->count = pl_bpe_encode(&j->encoders[ith], part->text, part->bytes,
                                    PL_BPE_SPECIALS_AS_TEXT, part->ids);
        if (part->ends && j->options->end_token >= 0)
            part->ids[part->count++] = j->options->end_token;
        break;
    case PL_TOKENIZER_CHAR: {
        size_t done = pl_charset_encode(&j->charset, tokenizer, part->text,
                                        part->bytes, part->ids, &part->count);
        if (done < part->bytes)
            part->count = PL_PREPARE_UNKNOWN;
        break;
    }
    default:
        for (size_t i = 0; i < part->bytes; i++)
            part->ids[i] = (unsigned char)part->text[i];
        part->count = part->bytes;
    }
}

static pl_status unknown(pl_prepare_job *j, const pl_crew_part *part)
{
    char shown[PL_UTF8_NAME_BYTES];
    uint32_t code = 0;
    size_t at = 0;
    if (!j->options->tokenizer)
        return pl_prepare_changed(j);
    while (at < part->bytes) {
        int length = pl_utf8_decode(part->text + at, part->bytes - at, &code);
        if (length <= 0)
            return pl_fail(j->err, PL_E_FORMAT,
                           "the text has 0x%02X where UTF-8 can't have it. "
                           "Prepare it with --tokenizer=byte",
                           (unsigned)(unsigned char)part->text[at]);
        if (pl_tokenizer_id_of(&j->result->tokenizer, code) < 0)
            break;
        at += (size_t)length;
    }
    return pl_fail(j->err, PL_E_FORMAT,
                   "the text has %s, which the vocabulary of %d characters "
                   "hasn't. Prepare it with --tokenizer=char, for a vocabulary "
                   "of its own",
                   pl_utf8_name(code, shown),
                   (int)j->result->tokenizer.vocab_size);
}

/* All of a load into the files, so that the state never counts tokens that a
 * failure to come could lose. */
static pl_status put_all(pl_prepare_job *j, const pl_crew_load *load,
                         pl_error *err)
{
    uint64_t tokens = 0;
    for (size_t i = 0; i < load->count; i++) {
        if (load->parts[i].count == PL_PREPARE_UNKNOWN)
            return unknown(j, &load->parts[i]);
        tokens += load->parts[i].count;
    }
    pl_status status = pl_prepare_check_disk(j, load->done_bytes, tokens);
    for (size_t i = 0; i < load->count && !status; i++) {
        const pl_crew_part *part = &load->parts[i];
        status = pl_shard_out_put(&j->outs[part->mark], part->ids, part->count,
                                  err);
    }
    for (int i = 0; i < 2 && !status; i++)
        status = pl_shard_out_flush(&j->outs[i], err);
    return status;
}

static pl_status take(void *context, const pl_crew_load *load, pl_error *err)
{
    pl_prepare_job *j = context;
    pl_status status = put_all(j, load, err);
    if (status)
        return status;
    if (load->between) {
        j->state.tally = load->tally;
        j->state.train_tokens = j->outs[0].n_tokens;
        j->state.val_tokens = j->outs[1].n_tokens;
    }
    status = pl_prepare_report(j, load->done_bytes, &load->tally);
    if (!status && !j->from_input &&
        pl_clock_seconds() - j->saved_at > save_seconds)
        status = pl_prepare_write_state(j);
    return status;
}

/* ---- the end ---- */

/* The tokens behind the first `train` to val, where no document went. */
static pl_status move_end(pl_prepare_job *j, uint64_t train)
{
    pl_shard_out_options options = pl_prepare_out_options(j, 0);
    uint64_t total = j->outs[0].n_tokens, each = options.shard_tokens;
    pl_status status = pl_shard_out_end(&j->outs[0], j->err);
    for (uint64_t at = train; at < total && !status;) {
        char name[PL_SHARD_OUT_NAME_BYTES], path[PL_PATH_BYTES];
        pl_shard shard;
        uint64_t number = each ? at / each : 0;
        pl_shard_out_name(&options, number, name);
        status = pl_path_join(path, j->part, name, j->err);
        if (!status)
            status = pl_shard_open(&shard, path, j->err);
        if (status)
            break;
        uint64_t first = at - number * each;
        while (first < shard.n_tokens && !status) {
            uint64_t left = shard.n_tokens - first;
            size_t now = left < MOVE_TOKENS ? (size_t)left : MOVE_TOKENS;
            status = pl_shard_read(&shard, first, now, j->moved,
                                   options.vocab_size, j->err);
            if (!status)
                status = pl_shard_out_put(&j->outs[1], j->moved, now, j->err);
            first += now;
            at += now;
        }
        pl_shard_close(&shard);
    }
    /* From here on the next run finds the split made. */
    if (!status && !j->from_input) {
        j->state.train_tokens = train;
        j->state.val_tokens = j->outs[1].n_tokens;
        status = pl_prepare_write_state(j);
    }
    /* What is left of the last shard that trains. */
    if (!status)
        status = pl_shard_out_open(&j->outs[0], &options, train, j->buffers[0],
                                   j->err);
    return status;
}

static pl_status split(pl_prepare_job *j)
{
    uint64_t tokens = j->outs[0].n_tokens;
    /* Python's int(n * 0.9), in the same double arithmetic. */
    double share = 1.0 - j->options->val_fraction;
    uint64_t train = (uint64_t)((double)tokens * share);
    if (j->outs[1].n_tokens > 0)
        return PL_OK;
    if (train == 0 || train >= tokens)
        return pl_fail(j->err, PL_E_FORMAT,
                       "the text has %llu tokens: too few to keep a share of "
                       "%g for validation. Give more text",
                       (unsigned long long)tokens, j->options->val_fraction);
    return move_end(j, train);
}

static pl_status finish(pl_prepare_job *j)
{
    char path[PL_PATH_BYTES];
    pl_prepare_result *result = j->result;
    const pl_crew_tally *tally = &j->state.tally;
    if (!j->options->tokenizer && tally->text_bytes != j->seen_bytes)
        return pl_prepare_changed(j);
    pl_status status = split(j);
    for (int i = 0; i < 2 && !status; i++) {
        pl_shard_out_options options = pl_prepare_out_options(j, i);
        status = pl_shard_out_end(&j->outs[i], j->err);
        result->files += pl_shard_out_files(&options, j->outs[i].n_tokens);
    }
    result->text_bytes = tally->text_bytes;
    result->documents = tally->documents;
    result->train_tokens = j->outs[0].n_tokens;
    result->val_tokens = j->outs[1].n_tokens;
    result->tokenizer_file = j->file.name;
    if (!status)
        status = pl_path_join(path, j->part, j->file.name, j->err);
    if (!status)
        status = pl_file_replace(path, j->file.text, j->file.bytes, j->err);
    if (!status)
        status = pl_folder_sync(j->part, j->err);
    return status ? status : pl_publish(j->options->folder, j->part, j->err);
}

/* ---- all of it ---- */

static pl_status encode_all(pl_prepare_job *j)
{
    pl_crew_options options = {
        .source = j->source,
        .threads = j->threads,
        .load_bytes = j->load_bytes,
        .id_room = id_room(j->options->tokenizer),
        .splitting = pl_tokenizer_splitting(&j->result->tokenizer),
        .ends = j->result->tokenizer.kind == PL_TOKENIZER_BPE
                    ? PL_CREW_AS_THEY_ARE
                    : PL_CREW_LINE_ENDS,
        .tally = j->state.tally,
        .mark = goes_to_val,
        .work = encode,
        .take = take,
        .context = j,
    };
    j->saved_at = pl_clock_seconds();
    return pl_crew_run(&options, &j->scratch, j->err);
}

static pl_status stopped(pl_prepare_job *j)
{
    int keeps = !j->from_input && j->state.tally.text_bytes > 0;
    pl_status saved = keeps ? pl_prepare_write_state(j) : PL_OK;
    if (saved)
        return saved;
    return keeps ? pl_fail(j->err, PL_E_STOPPED,
                           "stopped: what is done is in %s; the same command "
                           "goes on there",
                           pl_path_shown(j->part))
                 : pl_fail(j->err, PL_E_STOPPED,
                           "stopped: nothing was changed in %s",
                           j->options->folder);
}

static pl_status hold_folder(pl_prepare_job *j)
{
    const char *folder = j->options->folder;
    pl_status status = pl_folder_hold(&j->lock, folder, j->err);
    return status ? pl_fail_in(j->err, status,
                               "%s can't be prepared: ", pl_path_shown(folder))
                  : PL_OK;
}

static pl_status open_all(pl_prepare_job *j)
{
    pl_status status = share_out(j);
    for (int i = 0; i < 2 && !status; i++)
        status = pl_heap_take(&j->scratch, &j->buffers[i],
                              PL_SHARD_OUT_BUFFER_BYTES, 1, j->err);
    if (!status)
        status = pl_heap_take(&j->scratch, &j->moved, MOVE_TOKENS,
                              sizeof *j->moved, j->err);
    if (!status)
        status = pl_path_join(j->part, j->options->folder, PL_PREPARE_PART,
                              j->err);
    if (!status)
        status = open_source(j);
    if (!status)
        status = hold_folder(j);
    if (!status)
        status = pl_prepare_vocabulary(j);
    if (!status)
        status = open_encoders(j);
    if (!status)
        status = pl_tokenizer_write(&j->result->tokenizer, j->heap, &j->file,
                                    j->err);
    if (!status)
        status = pl_threads_open(&j->threads, j->options->threads, &j->scratch,
                                 j->err);
    return status;
}

pl_status pl_prepare(const pl_prepare_options *options, pl_heap *heap,
                     pl_prepare_result *result, pl_error *err)
{
    pl_prepare_job j = {
        .options = options, .result = result, .heap = heap, .err = err
    };
    pl_status status = check_options(options, err);
    if (status)
        return status;
    *result = (pl_prepare_result){ 0 };
    j.outs[0].file.fd = j.outs[1].file.fd = j.lock.fd = -1;
    if (options->tokenizer)
        result->tokenizer = *options->tokenizer;
    status = open_all(&j);
    if (status == PL_E_STOPPED)
        status = stopped(&j);
    if (status)
        goto close_source;
    status = pl_prepare_begin(&j);
    if (!status)
        status = encode_all(&j);
    if (status == PL_E_STOPPED)
        status = stopped(&j);
    if (!status)
        status = finish(&j);
    if (status)
        pl_prepare_keep(&j, status);

close_source:
    status = say_needed(&j, status);
    if (j.threads)
        pl_threads_close(j.threads);
    pl_source_close(j.source);
    pl_heap_close(&j.scratch);
    pl_folder_let_go(&j.lock);
    return status;
}
