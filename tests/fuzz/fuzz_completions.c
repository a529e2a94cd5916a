/* Bodies of /v1/completions from outside: what is taken keeps within its
 * bounds, and what isn't has a complaint. Its texts then go through a choice,
 * as if a model had written them: its parts are valid JSON. */
#include "base/json.h"
#include "fuzz/fuzz.h"
#include "web/choice.h"

#include <stdlib.h>
#include <string.h>

enum { HEAP_BYTES = 1 << 20, VOCABULARY = 256, MOST_TOP = 20, MOST = 512 };

static void expect(int is_true)
{
    if (!is_true)
        abort();
}

static void check_bounds(const pl_completion *c)
{
    expect(c->prompt_count >= 1 && c->prompt_count <= PL_COMPLETION_PROMPTS);
    expect(c->n >= 1 && c->n <= PL_COMPLETION_N);
    expect(c->temperature >= 0.0 && c->temperature <= 2.0);
    expect(c->top_p >= 0.0 && c->top_p <= 1.0);
    expect(c->logprobs >= -1 && c->logprobs <= MOST_TOP);
    expect(c->stop_count <= PL_COMPLETION_STOPS);
    for (size_t i = 0; i < c->stop_count; i++)
        expect(c->stop_bytes[i] >= 1 &&
               c->stop_bytes[i] <= PL_COMPLETION_STOP_BYTES);
    for (size_t i = 0; i < c->prompt_count; i++)
        for (size_t k = 0; !c->prompts[i].text && k < c->prompts[i].count; k++)
            expect(c->prompts[i].tokens[k] >= 0 &&
                   c->prompts[i].tokens[k] < VOCABULARY);
}

static void check_part(pl_choice *choice, pl_json_line *line)
{
    json_t *parsed;
    const size_t before = choice->bytes_shown;
    pl_json_line_empty(line);
    pl_choice_put(choice, line);
    expect(!line->failed && choice->bytes_shown >= before);
    expect(!pl_json_parse(line->text, line->used, "part", &parsed, NULL));
    json_decref(parsed);
}

/* The bytes of the first prompt, as tokens that come one by one. */
static void write_choice(const pl_completion *c, pl_heap *heap)
{
    const pl_tokenizer bytes = pl_tokenizer_make_byte();
    const pl_completion_prompt *p = &c->prompts[0];
    const size_t count = p->text ? p->bytes : p->count;
    pl_choice choice = { .text = { .most = MOST, .end_token = 'Z' } };
    pl_json_line line = { 0 };
    if (!pl_choice_open(&choice, c, &bytes, heap))
        return;
    pl_decoding_end end = PL_DECODING_GOES_ON;
    for (size_t i = 0; i < count && i < MOST && end == PL_DECODING_GOES_ON;
         i++) {
        const int32_t token = p->text ? (unsigned char)p->text[i]
                                      : p->tokens[i];
        end = pl_choice_take(&choice, token, NULL, c->echo && i < 3);
        if (end == PL_DECODING_GOES_ON && pl_choice_has_news(&choice))
            check_part(&choice, &line);
    }
    pl_choice_end(&choice, "length");
    check_part(&choice, &line);
    expect(choice.bytes_shown == choice.end);
    pl_choice_close(&choice);
    pl_json_line_free(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const pl_completion_limits limits = { VOCABULARY, MOST_TOP };
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_complaint complaint = { 0 };
    pl_completion completion;
    if (pl_completion_read(&completion, (const char *)data, size, &limits,
                           &heap, &complaint)) {
        check_bounds(&completion);
        write_choice(&completion, &heap);
    } else {
        expect(complaint.status >= 400 && complaint.message[0] != '\0');
    }
    pl_heap_close(&heap);
    return 0;
}
