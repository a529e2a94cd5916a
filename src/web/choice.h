/* choice.h: one text of an answer while it is written: its bytes, its tokens
 * with their scores, and how much of it may be shown.
 *
 * A token may be a part of a character, and a text may turn out to be the
 * beginning of a stop: what might is held back until that is known. */
#ifndef PL_WEB_CHOICE_H
#define PL_WEB_CHOICE_H

#include "text/tokenizer.h"
#include "train/decoder.h"
#include "web/completions.h"
#include "web/json_line.h"

typedef struct pl_choice {
    pl_decoding text;
    size_t index;
    const pl_completion *wish;
    const pl_tokenizer *tokenizer;
    /* what came so far; its bytes are a lump */
    char *bytes;
    size_t used, capacity;
    size_t written; /* the byte from which on it was written, not echoed */
    size_t told;    /* tokens */
    size_t *starts; /* [most]: the first byte of each */
    int32_t *ids;   /* [most] */
    pl_score_choice *scores; /* [most, 1 + logprobs]: itself, then the
                              * likeliest; its token -1: none */
    /* what was shown of it in parts */
    size_t bytes_shown, tokens_shown;
    size_t end;         /* bytes that belong to it: less than `used` before a
                         * stop */
    const char *reason; /* why it ended: "stop" or "length"; NULL: it hasn't */
    int failed;         /* no memory was left */
} pl_choice;

/* Memory that a choice of `most` tokens takes from its heap. */
size_t pl_choice_bytes(const pl_completion *wish, size_t most);

/* Room for text.most tokens, which are set. 0: there is none. */
PL_MUST_CHECK int pl_choice_open(pl_choice *choice, const pl_completion *wish,
                                 const pl_tokenizer *tokenizer, pl_heap *heap);
void pl_choice_close(pl_choice *choice);

/* The next token: one of the prompt that is echoed, or a new one. Returns
 * whether the text goes on. */
pl_decoding_end pl_choice_take(pl_choice *choice, int32_t token,
                               const pl_score *score, int is_echo);
/* It has ended. */
void pl_choice_end(pl_choice *choice, const char *reason);

/* Whether a part that wasn't shown may be. */
int pl_choice_has_news(const pl_choice *choice);

/* One element of `choices`: what is new since the last call, or all of it if
 * there was none. Then that was shown. */
void pl_choice_put(pl_choice *choice, pl_json_line *line);

/* A token as a text of its own: itself, "bytes:\xe2\x80" where it isn't UTF-8,
 * or "token_id:7" where it has no bytes. */
void pl_choice_put_token(const pl_tokenizer *tokenizer, int32_t token,
                         pl_json_line *line);

#endif
