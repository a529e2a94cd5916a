/* embed.cl: token and position tables. Gradients without atomics: a group has
 * the first row of a token and adds all later rows of it, in ascending order;
 * it looks for them itself, since reading all tokens is cheap beside the
 * products. */
#include "kernels/gpu/memory.clh"

KERNEL(embed, 256, gpu_embed)
{
    const uint32_t r = GROUP, c = GROUP_Y * 256 + ITEM, sequence = r / g.T;
    const uint32_t first = g.positions ? (uint32_t)READ(
                                             AT(int32_t, g.positions) +
                                             sequence)
                                       : g.position,
                   position = first + r % g.T;
    if (c >= g.C)
        return;
    const uint32_t token = (uint32_t)READ(
        AT(int32_t, g.tokens) + (uint64_t)sequence * g.token_stride + r % g.T);
    float x = get(AT(uint8_t, g.wte), (uint64_t)token * g.C + c, g.wte_storage);
    if (g.wpe)
        x = x + get(AT(uint8_t, g.wpe), (uint64_t)position * g.C + c,
                    g.wpe_storage);
    WRITE(AT(float, g.x) + (uint64_t)r * g.C + c,
          dropped(&g.dropout, 0, position, g.dropout.sequence + sequence, c,
                  x));
}

PL_INLINE int32_t token_at(GLOBAL const int32_t *tokens, const gpu_embed_bwd *g,
                           uint32_t r)
{
    return READ(tokens + (uint64_t)(r / g->T) * g->token_stride + r % g->T);
}

PL_INLINE float embed_dx(GLOBAL const float *dx, const gpu_embed_bwd *g,
                         uint32_t r, uint32_t c)
{
    return dropped(&g->dropout, 0, r % g->T, g->dropout.sequence + r / g->T, c,
                   READ(dx + (uint64_t)r * g->C + c));
}

/* Row GROUP, columns of GROUP_Y. */
KERNEL(embed_dwte, 256, gpu_embed_bwd)
{
    LOCAL uint32_t same[256];
    LOCAL uint32_t words[8]; /* the same, bit by bit */
    LOCAL uint32_t earlier;
    const uint32_t own = GROUP, c = GROUP_Y * 256 + ITEM;
    GLOBAL const int32_t *tokens = AT(int32_t, g.tokens);
    GLOBAL const float *dx = AT(float, g.dx);
    const int32_t token = token_at(tokens, &g, own);
    GLOBAL float *to = AT(float, g.dwte) + (uint64_t)token * g.C + c;
    float sum = 0.0f;
    if (ITEM == 0)
        PUT(&earlier, 0u);
    BARRIER();
    uint32_t found = 0;
    for (uint32_t r = ITEM; r < own; r += 256)
        found |= token_at(tokens, &g, r) == token;
    PUT(same + ITEM, found);
    BARRIER();
    if (ITEM == 0)
        for (uint32_t i = 0; i < 256; i++)
            if (TAKE(same + i))
                PUT(&earlier, 1u);
    BARRIER();
    if (TAKE(&earlier))
        return; /* all of the group does */
    if (c < g.C)
        sum = READ(to);
    for (uint32_t r0 = own; r0 < g.rows; r0 += 256) {
        BARRIER();
        PUT(same + ITEM, r0 + ITEM < g.rows &&
                                 token_at(tokens, &g, r0 + ITEM) == token
                             ? 1u
                             : 0u);
        BARRIER();
        if (ITEM < 8) {
            uint32_t bits = 0;
            for (uint32_t i = 0; i < 32; i++)
                bits |= TAKE(same + 32 * ITEM + i) << i;
            PUT(words + ITEM, bits);
        }
        BARRIER();
        for (uint32_t w = 0; w < 8 && c < g.C; w++)
            for (uint32_t bits = TAKE(words + w); bits; bits &= bits - 1)
                sum = pl_sum_start(
                    sum +
                    embed_dx(dx, &g, r0 + 32 * w + LOWEST_BIT(bits), c));
    }
    if (c < g.C)
        WRITE(to, sum);
}

/* Position GROUP, columns of GROUP_Y. */
KERNEL(embed_dwpe, 256, gpu_embed_bwd)
{
    const uint32_t t = GROUP, c = GROUP_Y * 256 + ITEM;
    GLOBAL const float *dx = AT(float, g.dx);
    GLOBAL float *to = AT(float, g.dwpe) + (uint64_t)t * g.C + c;
    if (c >= g.C)
        return;
    float sum = READ(to);
    for (uint32_t r = t; r < g.rows; r += g.T)
        sum = sum + embed_dx(dx, &g, r, c);
    WRITE(to, sum);
}
