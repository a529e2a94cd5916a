/* embed.c: token and position tables, forward by rows and backward by columns:
 * two rows may hold the same token, no two threads the same column. */
#include "kernels/plain/convert.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"

/* x = the stored numbers a and b, element for element; a alone where there is
 * no b. */
static void add_rows(float *restrict x, const void *a, pl_storage a_storage,
                     const void *b, pl_storage b_storage, size_t count)
{
    float word[STACK_FLOATS], place[STACK_FLOATS];
    for (size_t i = 0; i < count; i += STACK_FLOATS) {
        const size_t n = stack_count(i, count);
        widen(word, pl_storage_at(a, i, a_storage), n, a_storage);
        if (!b) {
            memcpy(x + i, word, n * sizeof *x);
            continue;
        }
        widen(place, pl_storage_at(b, i, b_storage), n, b_storage);
        for (size_t c = 0; c < n; c++)
            x[i + c] = word[c] + place[c];
    }
}

void PL_K(embed)(const pl_embed *args, int ith, int nth)
{
    const size_t T = args->T, C = args->C;
    const pl_dropout *drop = &args->dropout;
    size_t begin, end;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const size_t sequence = r / T,
                     first = args->positions ? (size_t)args->positions[sequence]
                                             : args->position,
                     position = first + r % T;
        const int32_t token =
            args->tokens[sequence * args->token_stride + r % T];
        float *x = args->x + r * C;
        add_rows(x,
                 pl_storage_at(args->wte, (size_t)token * C, args->wte_storage),
                 args->wte_storage,
                 args->wpe
                     ? pl_storage_at(args->wpe, position * C, args->wpe_storage)
                     : NULL,
                 args->wpe_storage, C);
        if (drop->threshold)
            mask_apply(drop, 0, (uint32_t)position,
                       drop->sequence + (uint32_t)sequence, 0, C, x, x);
    }
}

static void add_columns(float *restrict to, const float *restrict from,
                        size_t begin, size_t end)
{
    for (size_t c = begin; c < end; c++)
        to[c] += from[c];
}

/* The same for a gradient that a product may carry on from. */
static void add_to_start(float *restrict to, const float *restrict from,
                         size_t begin, size_t end)
{
    for (size_t c = begin; c < end; c++)
        to[c] = pl_sum_start(to[c] + from[c]);
}

/* One row's share of both tables, the mask in pieces on the stack. */
static void embed_bwd_row(const pl_embed_bwd *args, size_t r, size_t begin,
                          size_t end)
{
    const size_t T = args->T, C = args->C, sequence = r / T;
    const pl_dropout *drop = &args->dropout;
    const int32_t token = args->tokens[sequence * args->token_stride + r % T];
    float *dword = args->dwte + (size_t)token * C;
    float *dplace = args->dwpe ? args->dwpe + r % T * C : NULL;
    const float *dx = args->dx + r * C;
    if (!drop->threshold) {
        add_to_start(dword, dx, begin, end);
        if (dplace)
            add_columns(dplace, dx, begin, end);
        return;
    }
    for (size_t c = begin; c < end; c += MASK_COLUMNS) {
        const size_t count = end - c < MASK_COLUMNS ? end - c : MASK_COLUMNS;
        uint32_t words[MASK_COLUMNS];
        float kept[MASK_COLUMNS];
        mask_words(drop, 0, (uint32_t)(r % T),
                   drop->sequence + (uint32_t)sequence, (uint32_t)c, words);
        for (size_t i = 0; i < count; i++) {
            const float scaled = dx[c + i] * drop->scale;
            kept[i] = words[i] >= drop->threshold ? scaled : 0.0f;
        }
        add_to_start(dword + c, kept, 0, count);
        if (dplace)
            add_columns(dplace + c, kept, 0, count);
    }
}

void PL_K(embed_bwd)(const pl_embed_bwd *args, int ith, int nth)
{
    size_t begin, end;
    share_elements(args->C, ith, nth, &begin, &end);
    if (begin == end)
        return;
    for (size_t r = 0; r < args->rows; r++)
        embed_bwd_row(args, r, begin, end);
}
