/* layernorm.cl: rows by lanes; the parameters' gradients by columns, 32 of them
 * in a group, whose items all read and whose first 32 add. */
#include "kernels/gpu/lanes.clh"

enum { NORM_WIDE = 32, NORM_TALL = 64 };

KERNEL(layernorm, 256, gpu_norm)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t r = GROUP * LANE_ROWS + lane_row(), C = g.C;
    const uint64_t at = (uint64_t)r * C;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x), *w = AT(uint8_t, g.weight),
                         *bias = AT(uint8_t, g.bias);
    GLOBAL uint8_t *y = AT(uint8_t, g.y);
    GLOBAL float *stats = AT(float, g.stats);
    float v[4], sum = 0.0f, squares = 0.0f;
    for (uint32_t c0 = 0; c0 < C; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = r < g.rows && c < C ? C - c : 0u;
        get4(v, x, at + c, left, PL_STORE_F32, g.vector, 0.0f);
        lanes_turn(room, v);
        for (int i = 0; i < 4; i++)
            sum = sum + v[i];
    }
    const float mean = lanes_total(room, sum) / (float)C;
    for (uint32_t c0 = 0; c0 < C; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = r < g.rows && c < C ? C - c : 0u;
        get4(v, x, at + c, left, PL_STORE_F32, g.vector, mean);
        lanes_turn(room, v);
        for (int i = 0; i < 4; i++) {
            const float d = v[i] - mean;
            squares = fma1(d, d, squares);
        }
    }
    const float var = lanes_total(room, squares) / (float)C;
    const float rstd = 1.0f / sqrt1(var + g.eps);
    for (uint32_t c = 4 * lane_of(); c < C && r < g.rows; c += LANE_COLUMNS) {
        float weight[4], b[4];
        get4(v, x, at + c, C - c, PL_STORE_F32, g.vector, 0.0f);
        get4(weight, w, c, C - c, PL_STORE_F32, g.vector, 0.0f);
        if (g.bias)
            get4(b, bias, c, C - c, PL_STORE_F32, g.vector, 0.0f);
        for (int i = 0; i < 4; i++) {
            const float h = (v[i] - mean) * rstd;
            v[i] = g.bias ? fma1(h, weight[i], b[i]) : h * weight[i];
        }
        set4(y, at + c, v, C - c, g.y_storage, g.vector);
    }
    if (r < g.rows && lane_of() == 0) {
        WRITE(stats + 2 * (uint64_t)r, mean);
        WRITE(stats + 2 * (uint64_t)r + 1, rstd);
    }
}

KERNEL(layernorm_dx, 256, gpu_norm_bwd)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t r = GROUP * LANE_ROWS + lane_row(), C = g.C;
    const uint64_t at = (uint64_t)r * C;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x), *dy = AT(uint8_t, g.dy),
                         *w = AT(uint8_t, g.weight);
    GLOBAL uint8_t *dx = AT(uint8_t, g.dx);
    GLOBAL const float *stats = AT(float, g.stats);
    float mean = 0.0f, rstd = 0.0f, sum_g = 0.0f, sum_gh = 0.0f;
    float v[4], d[4], weight[4], old[4];
    if (r < g.rows) {
        mean = READ(stats + 2 * (uint64_t)r);
        rstd = READ(stats + 2 * (uint64_t)r + 1);
    }
    for (uint32_t c0 = 0; c0 < C; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = r < g.rows && c < C ? C - c : 0u;
        get4(v, x, at + c, left, PL_STORE_F32, g.vector, mean);
        get4(d, dy, at + c, left, g.dy_storage, g.vector, 0.0f);
        get4(weight, w, c, left, PL_STORE_F32, g.vector, 0.0f);
        for (int i = 0; i < 4; i++) {
            v[i] = (v[i] - mean) * rstd;
            d[i] = d[i] * weight[i];
        }
        lanes_turn(room, v);
        lanes_turn(room, d);
        for (int i = 0; i < 4; i++) {
            sum_g = sum_g + d[i];
            sum_gh = fma1(d[i], v[i], sum_gh);
        }
    }
    const float mean_g = lanes_total(room, sum_g) / (float)C,
                mean_gh = lanes_total(room, sum_gh) / (float)C;
    for (uint32_t c = 4 * lane_of(); c < C && r < g.rows; c += LANE_COLUMNS) {
        get4(v, x, at + c, C - c, PL_STORE_F32, g.vector, 0.0f);
        get4(d, dy, at + c, C - c, g.dy_storage, g.vector, 0.0f);
        get4(weight, w, c, C - c, PL_STORE_F32, g.vector, 0.0f);
        if (g.accumulate)
            get4(old, dx, at + c, C - c, PL_STORE_F32, g.vector, 0.0f);
        for (int i = 0; i < 4; i++) {
            const float h = (v[i] - mean) * rstd;
            const float it = fma1(h, -mean_gh, d[i] * weight[i] - mean_g) *
                             rstd;
            v[i] = g.accumulate ? old[i] + it : it;
        }
        set4(dx, at + c, v, C - c, PL_STORE_F32, g.vector);
    }
}

KERNEL(layernorm_dw, 256, gpu_norm_bwd)
{
    LOCAL float room_y[NORM_TALL * NORM_WIDE], room_h[NORM_TALL * NORM_WIDE];
    const uint32_t at = ITEM % NORM_WIDE, c = GROUP * NORM_WIDE + at;
    const int adds = ITEM < NORM_WIDE && c < g.C;
    GLOBAL const float *x = AT(float, g.x), *stats = AT(float, g.stats);
    GLOBAL const uint8_t *dy = AT(uint8_t, g.dy);
    float w = 0.0f, b = 0.0f;
    if (adds && g.dweight)
        w = READ(AT(float, g.dweight) + c);
    if (adds && g.dbias)
        b = READ(AT(float, g.dbias) + c);
    for (uint32_t r0 = 0; r0 < g.rows; r0 += NORM_TALL) {
        for (uint32_t i = ITEM / NORM_WIDE; i < NORM_TALL;
             i += 256 / NORM_WIDE) {
            const uint64_t r = r0 + i;
            if (r < g.rows && c < g.C) {
                const float mean = READ(stats + 2 * r),
                            rstd = READ(stats + 2 * r + 1);
                PUT(room_y + i * NORM_WIDE + at,
                    get(dy, r * g.C + c, g.dy_storage));
                PUT(room_h + i * NORM_WIDE + at,
                    (READ(x + r * g.C + c) - mean) * rstd);
            }
        }
        BARRIER();
        if (adds)
            for (uint32_t i = 0; i < NORM_TALL && r0 + i < g.rows; i++) {
                const float d = TAKE(room_y + i * NORM_WIDE + at);
                w = fma1(d, TAKE(room_h + i * NORM_WIDE + at), w);
                b = b + d;
            }
        BARRIER();
    }
    if (adds && g.dweight)
        WRITE(AT(float, g.dweight) + c, w);
    if (adds && g.dbias)
        WRITE(AT(float, g.dbias) + c, b);
}
