/* loss.cl: cross entropy and its gradient, rows by lanes, in three passes:
 * maximum, sum, gradient. Exponentials are taken twice, not stored. */
#include "kernels/gpu/double.clh"
#include "kernels/gpu/lanes.clh"
#include "kernels/vmath.h"

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
    }
    BARRIER_ALL(); /* another lane will write there */
    for (uint32_t c = 4 * lane_of(); c < V && there; c += LANE_COLUMNS) {
        get4(v, x, at + c, V - c, g.storage, g.vector, -INFINITY);
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
            const float p = exp_down1(v[e] - max) * inverse;
            v[e] = (c + e == target ? p - 1.0f : p) * g.scale;
        }
        set4(x, at + c, v, V - c, g.storage, g.vector);
    }
    if (there && lane_of() == 0)
        WRITE(AT(float, g.loss) + r, log_sum1(max, total, logit));
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
