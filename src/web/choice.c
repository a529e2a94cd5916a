/* choice.c: see choice.h. */
#include "web/choice.h"
#include "base/check.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

static size_t places(const pl_completion *wish)
{
    return wish->logprobs < 0 ? 0 : 1 + (size_t)wish->logprobs;
}

size_t pl_choice_bytes(const pl_completion *wish, size_t most)
{
    const pl_choice *c = NULL;
    return sizeof(pl_choice) +
           most * (sizeof *c->text.tokens + sizeof *c->starts + sizeof *c->ids +
                   places(wish) * sizeof *c->scores);
}

int pl_choice_open(pl_choice *choice, const pl_completion *wish,
                   const pl_tokenizer *tokenizer, pl_heap *heap)
{
    const size_t most = choice->text.most;
    choice->wish = wish;
    choice->tokenizer = tokenizer;
    choice->end = SIZE_MAX;
    return !pl_heap_take(heap, &choice->starts, most, sizeof *choice->starts,
                         NULL) &&
           !pl_heap_take(heap, &choice->ids, most, sizeof *choice->ids, NULL) &&
           !pl_heap_take(heap, &choice->scores, most * places(wish),
                         sizeof *choice->scores, NULL);
}

void pl_choice_close(pl_choice *choice)
{
    pl_lump_free(choice->bytes);
    choice->bytes = NULL;
}

/* ---- what comes ---- */

static void append(pl_choice *choice, const char *bytes, size_t count)
{
    if (choice->used + count > choice->capacity) {
        const size_t capacity = 2 * (choice->used + count) + 64;
        if (pl_lump_resize(&choice->bytes, capacity, NULL)) {
            choice->failed = 1;
            return;
        }
        choice->capacity = capacity;
    }
    memcpy(choice->bytes + choice->used, bytes, count);
    choice->used += count;
}

/* Its bytes; a padded vocabulary has tokens without any. */
static size_t bytes_of(const pl_tokenizer *tokenizer, int32_t token,
                       char out[PL_TOKENIZER_TOKEN_BYTES])
{
    size_t count = 0;
    if (pl_tokenizer_decode(tokenizer, token, out, &count, NULL))
        return 0;
    return count;
}

/* Where the first stop begins that wasn't there before `from` bytes came, or
 * SIZE_MAX. */
static size_t find_stop(const pl_choice *choice, size_t from)
{
    const pl_completion *wish = choice->wish;
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < wish->stop_count; i++) {
        const size_t n = wish->stop_bytes[i];
        size_t at = choice->written;
        if (from > at + n - 1)
            at = from - (n - 1);
        for (; at + n <= choice->used && at < found; at++)
            if (memcmp(choice->bytes + at, wish->stops[i], n) == 0)
                found = at;
    }
    return found;
}

static void keep_score(pl_choice *choice, const pl_score *score)
{
    const size_t each = places(choice->wish);
    pl_score_choice *to = choice->scores + choice->told * each;
    for (size_t i = 0; i < each; i++)
        to[i].token = -1;
    if (!score || each == 0)
        return;
    to[0] = score->own;
    PL_CHECK(score->top_count < each);
    for (size_t i = 0; i < score->top_count; i++)
        to[1 + i] = score->top[i];
}

pl_decoding_end pl_choice_take(pl_choice *choice, int32_t token,
                               const pl_score *score, int is_echo)
{
    char bytes[PL_TOKENIZER_TOKEN_BYTES];
    const size_t before = choice->used;
    PL_CHECK(choice->told < choice->text.most);
    choice->starts[choice->told] = before;
    choice->ids[choice->told] = token;
    keep_score(choice, score);
    choice->told++;
    if (is_echo || token != choice->text.end_token)
        append(choice, bytes, bytes_of(choice->tokenizer, token, bytes));
    if (is_echo) {
        choice->written = choice->used;
        return PL_DECODING_GOES_ON;
    }
    choice->end = find_stop(choice, before);
    return choice->failed || choice->end != SIZE_MAX ? PL_DECODING_FINISHED
                                                     : PL_DECODING_GOES_ON;
}

void pl_choice_end(pl_choice *choice, const char *reason)
{
    choice->reason = reason;
    if (choice->end > choice->used)
        choice->end = choice->used;
}

/* ---- what may be shown ---- */

/* How many of the last bytes may be the beginning of a stop. */
static size_t may_be_stop(const pl_choice *choice)
{
    const pl_completion *wish = choice->wish;
    size_t most = 0;
    for (size_t i = 0; i < wish->stop_count; i++)
        for (size_t n = wish->stop_bytes[i] - 1; n > most; n--)
            if (n <= choice->used - choice->written &&
                memcmp(choice->bytes + choice->used - n, wish->stops[i], n) ==
                    0)
                most = n;
    return most;
}

/* Never less than was shown: what was can't have been the beginning of a stop
 * or of a character. */
static size_t bytes_ready(const pl_choice *choice)
{
    if (choice->reason)
        return choice->end;
    if (choice->used == 0)
        return 0;
    const size_t whole = pl_utf8_whole_bytes(
        choice->bytes, choice->used - may_be_stop(choice));
    return whole > choice->bytes_shown ? whole : choice->bytes_shown;
}

/* Tokens that lie within so many bytes; all, where nothing was cut off. */
static size_t tokens_ready(const pl_choice *choice, size_t bytes)
{
    size_t count = choice->tokens_shown;
    if (choice->reason && choice->end == choice->used)
        return choice->told;
    while (count < choice->told) {
        const size_t end = count + 1 < choice->told ? choice->starts[count + 1]
                                                    : choice->used;
        if (choice->reason ? choice->starts[count] >= bytes : end > bytes)
            break;
        count++;
    }
    return count;
}

int pl_choice_has_news(const pl_choice *choice)
{
    return choice->reason || bytes_ready(choice) > choice->bytes_shown;
}

/* ---- as JSON ---- */

void pl_choice_put_token(const pl_tokenizer *tokenizer, int32_t token,
                         pl_json_line *line)
{
    char bytes[PL_TOKENIZER_TOKEN_BYTES],
        text[8 + 4 * PL_TOKENIZER_TOKEN_BYTES];
    const size_t count = bytes_of(tokenizer, token, bytes);
    size_t used = 0;
    if (count > 0 && pl_utf8_is_valid(bytes, count)) {
        pl_json_line_string(line, bytes, count);
        return;
    }
    if (count == 0)
        used = (size_t)snprintf(text, sizeof text, "token_id:%d", (int)token);
    else
        used = (size_t)snprintf(text, sizeof text, "bytes:");
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "\\x%02x",
                                 (unsigned)(unsigned char)bytes[i]);
    pl_json_line_string(line, text, used);
}

static void put_top(const pl_choice *choice, size_t token, pl_json_line *line)
{
    const size_t each = places(choice->wish);
    const pl_score_choice *s = choice->scores + token * each;
    int is_among = 0, first = 1;
    if (s[0].token < 0) {
        pl_json_line_raw(line, "null");
        return;
    }
    for (size_t i = 1; i < each; i++)
        is_among |= s[i].token == s[0].token;
    pl_json_line_raw(line, "{");
    for (size_t i = is_among ? 1 : 0; i < each; i++) {
        const size_t k = is_among ? i : (i + 1) % each; /* itself last */
        if (s[k].token < 0)
            continue;
        pl_json_line_raw(line, first ? "" : ", ");
        pl_choice_put_token(choice->tokenizer, s[k].token, line);
        pl_json_line_raw(line, ": ");
        pl_json_line_real(line, s[k].logprob);
        first = 0;
    }
    pl_json_line_raw(line, "}");
}

/* Characters that begin before byte `at`. */
static size_t characters_before(const pl_choice *choice, size_t at)
{
    size_t count = 0;
    for (size_t i = 0; i < at; i++)
        count += (size_t)pl_utf8_starts(choice->bytes[i]);
    return count;
}

enum list { TOKENS, LOGPROBS, TOP, OFFSETS };

static void put_list(const pl_choice *choice, enum list which, size_t first,
                     size_t end, pl_json_line *line)
{
    size_t characters = 0, byte = 0;
    pl_json_line_raw(line, "[");
    for (size_t i = first; i < end; i++) {
        const pl_score_choice *own = choice->scores + i * places(choice->wish);
        pl_json_line_raw(line, i > first ? ", " : "");
        switch (which) {
        case TOKENS:
            pl_choice_put_token(choice->tokenizer, choice->ids[i], line);
            break;
        case LOGPROBS:
            if (own->token < 0)
                pl_json_line_raw(line, "null");
            else
                pl_json_line_real(line, own->logprob);
            break;
        case TOP:
            put_top(choice, i, line);
            break;
        case OFFSETS:
            if (i == first)
                characters = characters_before(choice, choice->starts[i]);
            else
                for (; byte < choice->starts[i]; byte++)
                    characters += (size_t)pl_utf8_starts(choice->bytes[byte]);
            byte = choice->starts[i];
            pl_json_line_format(line, "%zu", characters);
            break;
        }
    }
    pl_json_line_raw(line, "]");
}

void pl_choice_put(pl_choice *choice, pl_json_line *line)
{
    const size_t bytes = bytes_ready(choice),
                 tokens = tokens_ready(choice, bytes),
                 first = choice->tokens_shown;
    pl_json_line_raw(line, "{\"text\": ");
    pl_json_line_string(
        line, choice->bytes ? choice->bytes + choice->bytes_shown : "",
        bytes - choice->bytes_shown);
    pl_json_line_format(line,
                        ", \"index\": %zu, \"logprobs\": ", choice->index);
    if (choice->wish->logprobs < 0) {
        pl_json_line_raw(line, "null");
    } else {
        pl_json_line_raw(line, "{\"tokens\": ");
        put_list(choice, TOKENS, first, tokens, line);
        pl_json_line_raw(line, ", \"token_logprobs\": ");
        put_list(choice, LOGPROBS, first, tokens, line);
        pl_json_line_raw(line, ", \"top_logprobs\": ");
        put_list(choice, TOP, first, tokens, line);
        pl_json_line_raw(line, ", \"text_offset\": ");
        put_list(choice, OFFSETS, first, tokens, line);
        pl_json_line_raw(line, "}");
    }
    pl_json_line_raw(line, ", \"finish_reason\": ");
    if (choice->reason)
        pl_json_line_string(line, choice->reason, strlen(choice->reason));
    else
        pl_json_line_raw(line, "null");
    pl_json_line_raw(line, "}");
    choice->bytes_shown = bytes;
    choice->tokens_shown = tokens;
}
