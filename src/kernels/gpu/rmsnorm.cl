/* rmsnorm.cl: as layernorm.cl, without a mean and without a bias. */
#include "kernels/gpu/lanes.clh"

KERNEL(rmsnorm, 256, gpu_norm)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t r = GROUP * LANE_ROWS + lane_row(), C = g.C;
    const uint64_t at = (uint64_t)r * C;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x), *w = AT(uint8_t, g.weight);
    GLOBAL uint8_t *y = AT(uint8_t, g.y);
    float v[4], weight[4], squares = 0.0f;
    for (uint32_t c0 = 0; c0 < C; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = r < g.rows && c < C ? C - c : 0u;
        get4(v, x, at + c, left, PL_STORE_F32, g.vector, 0.0f);
        lanes_turn(room, v);
        for (int i = 0; i < 4; i++)
            squares = fma1(v[i], v[i], squares);
    }
    const float square = lanes_total(room, squares) / (float)C;
    const float rstd = 1.0f / sqrt1(square + g.eps);
    for (uint32_t c = 4 * lane_of(); c < C && r < g.rows; c += LANE_COLUMNS) {
        get4(v, x, at + c, C - c, PL_STORE_F32, g.vector, 0.0f);
        get4(weight, w, c, C - c, PL_STORE_F32, g.vector, 0.0f);
        for (int i = 0; i < 4; i++)
            v[i] = v[i] * rstd * weight[i];
        set4(y, at + c, v, C - c, g.y_storage, g.vector);
    }
    if (r < g.rows && lane_of() == 0)
        WRITE(AT(float, g.stats) + r, rstd);
}

KERNEL(rmsnorm_dx, 256, gpu_norm_bwd)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t r = GROUP * LANE_ROWS + lane_row(), C = g.C;
    const uint64_t at = (uint64_t)r * C;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x), *dy = AT(uint8_t, g.dy),
                         *w = AT(uint8_t, g.weight);
    GLOBAL uint8_t *dx = AT(uint8_t, g.dx);
    float v[4], d[4], weight[4], old[4], rstd = 0.0f, sum_gh = 0.0f;
    if (r < g.rows)
        rstd = READ(AT(float, g.stats) + r);
    for (uint32_t c0 = 0; c0 < C; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = r < g.rows && c < C ? C - c : 0u;
        get4(v, x, at + c, left, PL_STORE_F32, g.vector, 0.0f);
        get4(d, dy, at + c, left, g.dy_storage, g.vector, 0.0f);
        get4(weight, w, c, left, PL_STORE_F32, g.vector, 0.0f);
        for (int i = 0; i < 4; i++) {
            v[i] = v[i] * rstd;
            d[i] = d[i] * weight[i];
        }
        lanes_turn(room, v);
        lanes_turn(room, d);
        for (int i = 0; i < 4; i++)
            sum_gh = fma1(d[i], v[i], sum_gh);
    }
    const float mean_gh = lanes_total(room, sum_gh) / (float)C;
    for (uint32_t c = 4 * lane_of(); c < C && r < g.rows; c += LANE_COLUMNS) {
        get4(v, x, at + c, C - c, PL_STORE_F32, g.vector, 0.0f);
        get4(d, dy, at + c, C - c, g.dy_storage, g.vector, 0.0f);
        get4(weight, w, c, C - c, PL_STORE_F32, g.vector, 0.0f);
        if (g.accumulate)
            get4(old, dx, at + c, C - c, PL_STORE_F32, g.vector, 0.0f);
        for (int i = 0; i < 4; i++) {
            const float it = fma1(v[i] * rstd, -mean_gh, d[i] * weight[i]) *
                             rstd;
            v[i] = g.accumulate ? old[i] + it : it;
        }
        set4(dx, at + c, v, C - c, PL_STORE_F32, g.vector);
    }
}

KERNEL(rmsnorm_dw, 256, gpu_norm_bwd)
{
    LOCAL float room_y[NORM_TALL * NORM_WIDE], room_h[NORM_TALL * NORM_WIDE];
    const uint32_t at = ITEM % NORM_WIDE, c = GROUP * NORM_WIDE + at;
    const int adds = ITEM < NORM_WIDE && c < g.C;
    GLOBAL const float *x = AT(float, g.x), *stats = AT(float, g.stats);
    GLOBAL const uint8_t *dy = AT(uint8_t, g.dy);
    float w = 0.0f;
    if (adds)
        w = READ(AT(float, g.dweight) + c);
    for (uint32_t r0 = 0; r0 < g.rows; r0 += NORM_TALL) {
        for (uint32_t i = ITEM / NORM_WIDE; i < NORM_TALL;
             i += 256 / NORM_WIDE) {
            const uint64_t r = r0 + i;
            if (r < g.rows && c < g.C) {
                PUT(room_y + i * NORM_WIDE + at,
                    get(dy, r * g.C + c, g.dy_storage));
                PUT(room_h + i * NORM_WIDE + at,
                    READ(x + r * g.C + c) * READ(stats + r));
            }
        }
        BARRIER();
        if (adds)
            for (uint32_t i = 0; i < NORM_TALL && r0 + i < g.rows; i++)
                w = fma1(TAKE(room_y + i * NORM_WIDE + at),
                         TAKE(room_h + i * NORM_WIDE + at), w);
        BARRIER();
    }
    if (adds)
        WRITE(AT(float, g.dweight) + c, w);
}
