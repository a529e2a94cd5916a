/* loss.cl: cross entropy and its gradient, rows by lanes, in three passes:
 * maximum, sum, gradient. Exponentials are taken twice, not stored. Capped
 * logits are stored by the first pass. */
#include "kernels/gpu/double.clh"
#include "kernels/gpu/lanes.clh"
#include "kernels/vmath.h"

/* cap * tanh(x / cap). */
PL_INLINE float capped(float x, float cap, float inverse)
{
    return cap * tanh1(x * inverse);
}

KERNEL(cross_entropy, 256, gpu_cross_entropy)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t i = GROUP * LANE_ROWS + lane_row(), V = g.V,
                   r = g.first + i;
    const int there = i < g.rows;
    const uint64_t at = (uint64_t)i * V;
    GLOBAL uint8_t *x = AT(uint8_t, g.logits);
    GLOBAL const int32_t *tokens = AT(int32_t, g.tokens);
    uint32_t target = 0;
    float v[4], logit = 0.0f, most = -INFINITY, sum = 0.0f;
    if (there) {
        target = (uint32_t)READ(tokens +
                                (uint64_t)(r / g.T) * g.token_stride +
                                r % g.T + 1);
        logit = get(x, at + target, g.storage);
        if (g.cap != 0.0f)
            logit = rounded(capped(logit, g.cap, g.inverse), g.storage);
    }
    BARRIER_ALL(); /* another lane will write there */
    for (uint32_t c = 4 * lane_of(); c < V && there; c += LANE_COLUMNS) {
        get4(v, x, at + c, V - c, g.storage, g.vector, -INFINITY);
        if (g.cap != 0.0f) {
            /* what isn't there becomes the least that a logit can be */
            for (int e = 0; e < 4; e++)
                v[e] = rounded(capped(v[e], g.cap, g.inverse), g.storage);
            set4(x, at + c, v, V - c, g.storage, g.vector);
        }
        for (int e = 0; e < 4; e++)
            most = larger(most, v[e]);
    }
    const float max = lanes_most(room, most);
    for (uint32_t c0 = 0; c0 < V; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = there && c < V ? V - c : 0u;
        get4(v, x, at + c, left, g.storage, g.vector, 0.0f);
        for (uint32_t e = 0; e < 4; e++)
            v[e] = e < left ? exp_down1(v[e] - max) : 0.0f;
        lanes_turn(room, v);
        for (int e = 0; e < 4; e++)
            sum = sum + v[e];
    }
    const float total = lanes_total(room, sum), inverse = 1.0f / total;
    for (uint32_t c = 4 * lane_of(); c < V && there && g.scale != 0.0f;
         c += LANE_COLUMNS) {
        get4(v, x, at + c, V - c, g.storage, g.vector, 0.0f);
        for (uint32_t e = 0; e < 4; e++) {
            const float p = exp_down1(v[e] - max) * inverse,
                        d = (c + e == target ? p - 1.0f : p) * g.scale,
                        t = v[e] * g.inverse;
            v[e] = g.cap != 0.0f ? d * fma1(-t, t, 1.0f) : d;
        }
        set4(x, at + c, v, V - c, g.storage, g.vector);
    }
    if (there && lane_of() == 0)
        WRITE(AT(float, g.loss) + r, log_sum1(max, total, logit));
}

KERNEL(softcap, 256, gpu_softcap)
{
    const uint64_t i = 4 * ((uint64_t)GROUP * 256 + ITEM);
    GLOBAL uint8_t *x = AT(uint8_t, g.x);
    float v[4];
    if (i >= g.count)
        return;
    const uint32_t left = g.count - i < 4 ? (uint32_t)(g.count - i) : 4u;
    get4(v, x, i, left, PL_STORE_F32, g.vector, 0.0f);
    for (int e = 0; e < 4; e++)
        v[e] = capped(v[e], g.cap, g.inverse);
    set4(x, i, v, left, PL_STORE_F32, g.vector);
}

KERNEL(loss_sum, 64, gpu_loss_sum)
{
    const uint32_t s = GROUP * 64 + ITEM;
    GLOBAL const float *loss = AT(float, g.loss);
    real64 sum = real64_of(0.0f);
    if (s >= g.sequences)
        return;
    for (uint32_t t = 0; t < g.T; t++)
        sum = real64_add(sum, real64_of(READ(loss + (uint64_t)s * g.T + t)));
    WRITE(AT(real64, g.sums) + s, sum);
}
