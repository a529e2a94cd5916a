/* decoder.c: see decoder.h. */
#include "train/decoder.h"
#include "base/check.h"
#include "base/rng.h"

pl_status pl_decoder_open(pl_decoder *decoder, pl_slots *slots, pl_heap *heap,
                          pl_error *err)
{
    *decoder = (pl_decoder){ .slots = slots };
    pl_status status = pl_heap_take(heap, &decoder->in_slot, slots->count,
                                    sizeof(void *), err);
    if (!status)
        status = pl_heap_take(heap, &decoder->tokens, slots->count,
                              sizeof *decoder->tokens, err);
    if (!status)
        status = pl_heap_take(heap, &decoder->positions, slots->count,
                              sizeof *decoder->positions, err);
    return status;
}

/* ---- who is where ---- */

void pl_decoder_add(pl_decoder *decoder, pl_decoding *text)
{
    PL_CHECK(text->count > 0 && text->most >= text->count &&
             text->most <= decoder->slots->T);
    text->next = NULL;
    text->number = decoder->added++;
    text->prompt = text->count;
    text->cached = 0;
    text->is_there = 1;
    if (decoder->last_waiting)
        decoder->last_waiting->next = text;
    else
        decoder->first_waiting = text;
    decoder->last_waiting = text;
    decoder->waiting++;
}

/* Takes it out of the queue. 0: it isn't there. */
static int unqueue(pl_decoder *decoder, const pl_decoding *text)
{
    pl_decoding **at = &decoder->first_waiting, *before = NULL;
    while (*at && *at != text) {
        before = *at;
        at = &(*at)->next;
    }
    if (!*at)
        return 0;
    *at = text->next;
    if (decoder->last_waiting == text)
        decoder->last_waiting = before;
    decoder->waiting--;
    return 1;
}

void pl_decoder_drop(pl_decoder *decoder, pl_decoding *text)
{
    if (!text->is_there)
        return;
    text->is_there = 0;
    if (unqueue(decoder, text))
        return;
    for (size_t i = 0; i < decoder->slots->count; i++)
        if (decoder->in_slot[i] == text) {
            decoder->in_slot[i] = NULL;
            decoder->running--;
        }
}

int pl_decoder_busy(const pl_decoder *decoder)
{
    return decoder->waiting + decoder->running > 0;
}

/* The lowest slots first: a round covers all up to the last one in use. */
static void fill_slots(pl_decoder *decoder)
{
    for (size_t i = 0; i < decoder->slots->count && decoder->waiting; i++)
        if (!decoder->in_slot[i]) {
            decoder->in_slot[i] = decoder->first_waiting;
            decoder->running++;
            unqueue(decoder, decoder->in_slot[i]);
        }
}

static void end(pl_decoder *decoder, pl_decoding *text, pl_decoding_end why)
{
    pl_decoder_drop(decoder, text);
    text->taker.ended(text->taker.context, text, why);
}

/* ---- tokens ---- */

/* Tells of token `index` with its score by row `row` of the last round. */
static pl_status tell(pl_decoder *decoder, pl_decoding *text, size_t index,
                      size_t row, pl_decoding_end *said, pl_error *err)
{
    const pl_slots *slots = decoder->slots;
    pl_score score;
    float *logits;
    pl_status status = pl_slots_logits(decoder->slots, row, &logits, err);
    if (status)
        return status;
    if (!pl_score_make(&score, logits, slots->V, text->tokens[index],
                       text->top))
        return pl_score_broken(err);
    *said = text->taker.token(text->taker.context, text, index, &score);
    return PL_OK;
}

/* Chooses the next token by row `row` of the last round's logits. */
static pl_status write_token(pl_decoder *decoder, pl_decoding *text, size_t row,
                             pl_error *err)
{
    pl_decoding_end said = PL_DECODING_GOES_ON;
    uint32_t words[4];
    float *logits;
    pl_status status = pl_slots_logits(decoder->slots, row, &logits, err);
    if (status)
        return status;
    pl_rng_words(PL_RNG_SAMPLE, text->sampling.seed, (uint32_t)text->count,
                 text->sample, 0, 0, words);
    const int32_t token = pl_sampler_choose(logits, decoder->slots->V,
                                            &text->sampling, words);
    if (token < 0)
        return pl_score_broken(err);
    text->tokens[text->count++] = token;
    if (text->scored)
        status = tell(decoder, text, text->count - 1, row, &said, err);
    else
        said = text->taker.token(text->taker.context, text, text->count - 1,
                                 NULL);
    if (status)
        return status;
    if (said == PL_DECODING_FINISHED || token == text->end_token)
        end(decoder, text, PL_DECODING_FINISHED);
    else if (text->count == text->most)
        end(decoder, text, PL_DECODING_LENGTH);
    return PL_OK;
}

/* ---- rounds ---- */

static int is_reading(const pl_decoding *text)
{
    return text && text->cached < text->prompt;
}

/* The slot of the text that came first among those that are read; `count`:
 * there is none. */
static size_t find_reading(const pl_decoder *decoder)
{
    const size_t count = decoder->slots->count;
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        const pl_decoding *text = decoder->in_slot[i];
        if (is_reading(text) &&
            (best == count || text->number < decoder->in_slot[best]->number))
            best = i;
    }
    return best;
}

/* What the taker learns of the part of the prompt that was just read. *over:
 * the text has ended with it, and isn't ours any more. */
static pl_status tell_prompt(pl_decoder *decoder, pl_decoding *text,
                             size_t first, size_t rows, int *over,
                             pl_error *err)
{
    pl_decoding_end said = PL_DECODING_GOES_ON;
    pl_status status = PL_OK;
    if (first == 0)
        said = text->taker.token(text->taker.context, text, 0, NULL);
    for (size_t i = 0; i < rows && first + i + 1 < text->prompt && !status &&
                       said == PL_DECODING_GOES_ON;
         i++)
        status = tell(decoder, text, first + i + 1, i, &said, err);
    *over = !status && said == PL_DECODING_FINISHED;
    if (*over)
        end(decoder, text, PL_DECODING_FINISHED);
    return status;
}

static pl_status read_prompt(pl_decoder *decoder, size_t slot, pl_error *err)
{
    pl_slots *slots = decoder->slots;
    pl_decoding *text = decoder->in_slot[slot];
    const size_t first = text->cached, left = text->prompt - first,
                 most = text->prompt_scored ? slots->logits : slots->rows,
                 rows = left < most ? left : most;
    const int32_t position = (int32_t)first;
    pl_status status = pl_slots_run(
        slots,
        &(pl_slots_round){ .slot = slot,
                           .sequences = 1,
                           .queries = rows,
                           .logits = text->prompt_scored ? rows : 1,
                           .tokens = text->tokens + first,
                           .positions = &position },
        err);
    if (status || decoder->in_slot[slot] != text)
        return status; /* or it was dropped meanwhile */
    int over = 0;
    text->cached += rows;
    if (text->prompt_scored)
        status = tell_prompt(decoder, text, first, rows, &over, err);
    if (status || over || text->cached < text->prompt)
        return status;
    if (text->count == text->most) {
        end(decoder, text, PL_DECODING_LENGTH);
        return PL_OK;
    }
    return write_token(decoder, text, text->prompt_scored ? rows - 1 : 0, err);
}

/* One token of every text that is read. A slot below the last of them takes
 * part all the same, with a row that nobody reads: its key and value go where
 * the slot's next ones will, or to the end of a full window. */
static pl_status write_all(pl_decoder *decoder, pl_error *err)
{
    pl_slots *slots = decoder->slots;
    size_t used = 0;
    pl_status status;
    for (size_t i = 0; i < slots->count; i++) {
        const pl_decoding *text = decoder->in_slot[i];
        const int writes = text && !is_reading(text);
        const size_t at = text ? text->cached : 0;
        decoder->tokens[i] = writes ? text->tokens[at] : 0;
        decoder->positions[i] = (int32_t)(at < slots->T ? at : slots->T - 1);
        used = writes ? i + 1 : used;
    }
    status = pl_slots_run(slots,
                          &(pl_slots_round){ .sequences = used,
                                             .queries = 1,
                                             .logits = used,
                                             .tokens = decoder->tokens,
                                             .positions = decoder->positions },
                          err);
    for (size_t i = 0; i < used && !status; i++) {
        pl_decoding *text = decoder->in_slot[i];
        if (!text || is_reading(text))
            continue;
        text->cached++;
        status = write_token(decoder, text, i, err);
    }
    return status;
}

static int anyone_writes(const pl_decoder *decoder)
{
    for (size_t i = 0; i < decoder->slots->count; i++)
        if (decoder->in_slot[i] && !is_reading(decoder->in_slot[i]))
            return 1;
    return 0;
}

pl_status pl_decoder_step(pl_decoder *decoder, pl_error *err)
{
    fill_slots(decoder);
    const size_t slot = find_reading(decoder);
    const int reads = slot < decoder->slots->count,
              writes = anyone_writes(decoder);
    if (reads && !(writes && decoder->read_last)) {
        decoder->read_last = 1;
        return read_prompt(decoder, slot, err);
    }
    decoder->read_last = 0;
    return writes ? write_all(decoder, err) : PL_OK;
}
