/* qk.cl: RMSNorm and rotation of the heads of queries and keys.
 *
 * A rotation mixes elements that are half a head apart. Whoever writes has both,
 * four of each, so that it may be done in place:
 *
 *     | low ...          | high ...         |     item i: 4i .. of either
 *     0                span                 D
 *
 * A norm's sums need every element in its lane; for those an item reads its own
 * four and what is mixed into them. A head is a row of lanes.clh. */
#include "kernels/gpu/lanes.clh"

/* Of row r, whose sequence begins at position `first`. */
PL_INLINE uint64_t angles_at(uint32_t first, uint32_t r, uint32_t T, uint32_t D)
{
    return (uint64_t)(first + r % T) * D;
}

/* Rotates by the angles of four columns from i on, or back. A sine of the other
 * sign is all that differs, and changes no rounding. */
PL_INLINE void rotate4(float low[4], float high[4], GLOBAL const uint8_t *table,
                       uint64_t angles, uint32_t i, uint32_t span,
                       uint32_t vector, const int back)
{
    float cosine[4], sine[4];
    get4(cosine, table, angles + i, span - i, PL_STORE_F32, vector, 0.0f);
    get4(sine, table, angles + span + i, span - i, PL_STORE_F32, vector, 0.0f);
    UNROLL
    for (int e = 0; e < 4; e++) {
        const float a = low[e], b = high[e], c = cosine[e],
                    s = back ? -sine[e] : sine[e];
        low[e] = fma1(a, c, -(b * s));
        high[e] = fma1(b, c, a * s);
    }
}

/* ---- forward ---- */

PL_INLINE uint32_t first_of(const gpu_qk *g, GLOBAL const int32_t *positions,
                            uint32_t r)
{
    return g->positions ? (uint32_t)READ(positions + r / g->T) : g->position;
}

/* Without weights: row GROUP, its heads one after another, values behind them
 * if they are to be copied. */
KERNEL(qk_rotate, 256, gpu_qk)
{
    const uint32_t r = GROUP, span = g.span, fours = (span + 3) / 4,
                   unit = GROUP_Y * 256 + ITEM, h = unit / fours,
                   i = 4 * (unit % fours), heads = g.H + g.KV;
    const uint64_t at = ((uint64_t)r * (heads + g.KV) + h) * g.D + i;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x);
    GLOBAL uint8_t *y = AT(uint8_t, g.y);
    float low[4], high[4];
    if (h >= (g.y == g.x ? heads : heads + g.KV))
        return;
    get4(low, x, at, span - i, g.storage, g.vector, 0.0f);
    get4(high, x, at + span, span - i, g.storage, g.vector, 0.0f);
    if (h < heads) {
        const uint32_t first = first_of(&g, AT(int32_t, g.positions), r);
        rotate4(low, high, AT(uint8_t, g.table), angles_at(first, r, g.T, g.D),
                i, span, g.vector, (int)g.back);
    }
    set4(y, at, low, span - i, g.storage, g.vector);
    set4(y, at + span, high, span - i, g.storage, g.vector);
}

/* v = v * rstd * weight. */
PL_INLINE void scale4(float v[4], GLOBAL const uint8_t *weight, uint32_t c,
                      uint32_t left, float rstd, uint32_t vector)
{
    float w[4];
    get4(w, weight, c, left, PL_STORE_F32, vector, 0.0f);
    UNROLL
    for (int e = 0; e < 4; e++)
        v[e] = v[e] * rstd * w[e];
}

/* With weights. Heads of values are copied. */
KERNEL(qk_norm, 256, gpu_qk)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t all = g.H + 2 * g.KV, heads = g.H + g.KV,
                   n = GROUP * LANE_ROWS + lane_row(), r = n / all, h = n % all,
                   D = g.D, span = g.span;
    const uint64_t at = (uint64_t)n * D;
    const int there = r < g.rows, normed = there && h < heads;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x),
                         *w = AT(uint8_t, h < g.H ? g.q_weight : g.k_weight);
    GLOBAL uint8_t *y = AT(uint8_t, g.y);
    float low[4], high[4], squares = 0.0f;
    for (uint32_t c0 = 0; c0 < D; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = normed && c < D ? D - c : 0u;
        get4(low, x, at + c, left, g.storage, g.vector, 0.0f);
        lanes_turn(room, low);
        for (int e = 0; e < 4; e++)
            squares = fma1(low[e], low[e], squares);
    }
    const float square = lanes_total(room, squares) / (float)D,
                rstd = 1.0f / sqrt1(square + g.eps);
    const uint32_t first =
        normed && g.table ? first_of(&g, AT(int32_t, g.positions), r) : 0u;
    const uint64_t angles = angles_at(first, r, g.T, D);
    for (uint32_t i = 4 * lane_of(); i < span && there; i += LANE_COLUMNS) {
        get4(low, x, at + i, span - i, g.storage, g.vector, 0.0f);
        if (normed)
            scale4(low, w, i, span - i, rstd, g.vector);
        if (g.table) {
            get4(high, x, at + span + i, span - i, g.storage, g.vector, 0.0f);
            if (normed) {
                scale4(high, w, span + i, span - i, rstd, g.vector);
                rotate4(low, high, AT(uint8_t, g.table), angles, i, span,
                        g.vector, 0);
            }
            set4(y, at + span + i, high, span - i, g.storage, g.vector);
        }
        set4(y, at + i, low, span - i, g.storage, g.vector);
    }
    if (normed && lane_of() == 0)
        WRITE(AT(float, g.rstd) + (uint64_t)r * heads + h, rstd);
}

/* ---- backward ---- */

/* Elements c .. c + 3 of a head, of which `left` are there: before its middle
 * those from `low` on, behind it those from `high` on. */
PL_INLINE void halves4(float v[4], GLOBAL const uint8_t *p, uint64_t low,
                       uint64_t high, uint32_t c, uint32_t left, uint32_t span,
                       const uint32_t storage, uint32_t vector)
{
    if (vector) {
        get4(v, p, c < span ? low + c : high + (c - span), left, storage, 1,
             0.0f);
        return;
    }
    for (uint32_t e = 0; e < 4; e++) {
        const uint32_t k = c + e;
        v[e] = e < left ? get(p, k < span ? low + k : high + (k - span),
                              storage)
                        : 0.0f;
    }
}

/* Elements c .. c + 3 of dn: of the head at `at` of d. */
PL_INLINE void dn4(float dn[4], const gpu_qk_bwd *g, GLOBAL const uint8_t *d,
                   GLOBAL const uint8_t *table, uint64_t at, uint64_t angles,
                   uint32_t c, uint32_t left)
{
    const uint32_t span = g->span;
    float other[4], cosine[4], sine[4];
    get4(dn, d, at + c, left, g->d_storage, g->vector, 0.0f);
    if (!g->table)
        return;
    halves4(other, d, at + span, at, c, left, span, g->d_storage, g->vector);
    halves4(cosine, table, angles, angles, c, left, span, PL_STORE_F32,
            g->vector);
    halves4(sine, table, angles + span, angles + span, c, left, span,
            PL_STORE_F32, g->vector);
    UNROLL
    for (uint32_t e = 0; e < 4; e++) {
        const float mixed = other[e] * sine[e];
        dn[e] = fma1(dn[e], cosine[e], c + e < span ? mixed : -mixed);
    }
}

/* dn = fma(h, -mean, dn * weight) * rstd, of four columns from c on. */
PL_INLINE void through_norm4(float dn[4], GLOBAL const uint8_t *x, uint64_t at,
                             GLOBAL const uint8_t *weight, uint32_t c,
                             uint32_t left, float rstd, float mean,
                             const gpu_qk_bwd *g)
{
    float v[4], w[4];
    get4(v, x, at + c, left, g->x_storage, g->vector, 0.0f);
    get4(w, weight, c, left, PL_STORE_F32, g->vector, 0.0f);
    UNROLL
    for (int e = 0; e < 4; e++)
        dn[e] = fma1(v[e] * rstd, -mean, dn[e] * w[e]) * rstd;
}

/* With weights; without them qk_rotate has the way back, too. */
KERNEL(qk_dx, 256, gpu_qk_bwd)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t heads = g.H + g.KV, n = GROUP * LANE_ROWS + lane_row(),
                   r = n / heads, h = n % heads, D = g.D, span = g.span;
    const uint64_t at = ((uint64_t)r * (heads + g.KV) + h) * D,
                   angles = angles_at(0, r, g.T, D);
    const int there = r < g.rows;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x), *table = AT(uint8_t, g.table),
                         *w = AT(uint8_t, h < g.H ? g.q_weight : g.k_weight);
    GLOBAL uint8_t *d = AT(uint8_t, g.d);
    float low[4], high[4], v[4], weight[4], rstd = 0.0f, sum_gh = 0.0f;
    if (there)
        rstd = READ(AT(float, g.rstd) + n);
    for (uint32_t c0 = 0; c0 < D; c0 += LANE_COLUMNS) {
        const uint32_t c = c0 + 4 * lane_of(),
                       left = there && c < D ? D - c : 0u;
        dn4(low, &g, d, table, at, angles, c, left);
        get4(v, x, at + c, left, g.x_storage, g.vector, 0.0f);
        get4(weight, w, c, left, PL_STORE_F32, g.vector, 0.0f);
        for (int e = 0; e < 4; e++) {
            v[e] = v[e] * rstd;
            low[e] = low[e] * weight[e];
        }
        lanes_turn(room, v);
        lanes_turn(room, low);
        for (int e = 0; e < 4; e++)
            sum_gh = fma1(low[e], v[e], sum_gh);
    }
    const float mean = lanes_total(room, sum_gh) / (float)D;
    BARRIER_ALL(); /* d was read by other lanes than those that write it */
    for (uint32_t i = 4 * lane_of(); i < span && there; i += LANE_COLUMNS) {
        const uint32_t left = span - i;
        get4(low, d, at + i, left, g.d_storage, g.vector, 0.0f);
        if (g.table) {
            get4(high, d, at + span + i, left, g.d_storage, g.vector, 0.0f);
            rotate4(low, high, table, angles, i, span, g.vector, 1);
            through_norm4(high, x, at, w, span + i, left, rstd, mean, &g);
            set4(d, at + span + i, high, left, g.d_storage, g.vector);
        }
        through_norm4(low, x, at, w, i, left, rstd, mean, &g);
        set4(d, at + i, low, left, g.d_storage, g.vector);
    }
}

/* ---- the weights' gradients ---- */

/* A column's chain runs through all rows and heads, and there are only 2 D
 * columns: what counts is how fast one gets on. So a group has few of them; its
 * first warp adds, one item per column, while the others read what it will add
 * next. A chain's links lie side by side in local memory, in a pitch with which
 * neither side meets itself in a bank. */
enum {
    CHAIN_COLUMNS = 8,
    CHAIN_ADDERS = 32,
    CHAIN_LINKS = (256 - CHAIN_ADDERS) * 4 / CHAIN_COLUMNS,
    CHAIN_PITCH = CHAIN_LINKS + 4,
    CHAIN_ROOM = CHAIN_COLUMNS * CHAIN_PITCH
};

/* Links first .. of columns c0 .., four columns of one link in each item.
 * Where there is none, a product of -0 changes no sum. */
PL_INLINE void chain_read(const gpu_qk_bwd *g, GLOBAL const uint8_t *d,
                          GLOBAL const uint8_t *x, GLOBAL const uint8_t *table,
                          GLOBAL const float *rstds, LOCAL_PTR float *room_d,
                          LOCAL_PTR float *room_h, uint32_t first, uint32_t c0,
                          uint32_t head, uint32_t count)
{
    const uint32_t own = ITEM - CHAIN_ADDERS, quad = own % (CHAIN_COLUMNS / 4),
                   link = own / (CHAIN_COLUMNS / 4), n = first + link,
                   r = n / count, h = head + n % count, heads = g->H + g->KV,
                   c = c0 + 4 * quad,
                   left = r < g->rows && c < g->D ? g->D - c : 0u;
    const uint64_t at = ((uint64_t)r * (heads + g->KV) + h) * g->D;
    LOCAL_PTR float *to_d = room_d + 4 * quad * CHAIN_PITCH + link,
                    *to_h = room_h + 4 * quad * CHAIN_PITCH + link;
    float dn[4], v[4], rstd = 0.0f;
    if (left)
        rstd = READ(rstds + (uint64_t)r * heads + h);
    dn4(dn, g, d, table, at, angles_at(0, r, g->T, g->D), c, left);
    get4(v, x, at + c, left, g->x_storage, g->vector, 0.0f);
    UNROLL
    for (uint32_t e = 0; e < 4; e++) {
        PUT(to_d + e * CHAIN_PITCH, e < left ? dn[e] : -0.0f);
        PUT(to_h + e * CHAIN_PITCH, e < left ? v[e] * rstd : 0.0f);
    }
}

/* Columns of GROUP, of queries' weights or, if GROUP_Y is 1, of keys'. */
KERNEL(qk_dw, 256, gpu_qk_bwd)
{
    LOCAL ALIGNED_16 float room_d[2 * CHAIN_ROOM], room_h[2 * CHAIN_ROOM];
    const uint32_t c0 = GROUP * CHAIN_COLUMNS, head = GROUP_Y ? g.H : 0u,
                   count = GROUP_Y ? g.KV : g.H, links = g.rows * count;
    GLOBAL const uint8_t *d = AT(uint8_t, g.d), *x = AT(uint8_t, g.x),
                         *table = AT(uint8_t, g.table);
    GLOBAL const float *rstds = AT(float, g.rstd);
    GLOBAL float *to = AT(float, GROUP_Y ? g.dk_weight : g.dq_weight) + c0 +
                       ITEM;
    const int adds = ITEM < CHAIN_COLUMNS && c0 + ITEM < g.D;
    uint32_t here = 0, next = CHAIN_ROOM;
    float sum = 0.0f, dn[4], h[4];
    if (adds)
        sum = READ(to);
    if (ITEM >= CHAIN_ADDERS)
        chain_read(&g, d, x, table, rstds, room_d, room_h, 0, c0, head, count);
    BARRIER();
    for (uint32_t first = 0; first < links; first += CHAIN_LINKS) {
        if (ITEM >= CHAIN_ADDERS) {
            if (first + CHAIN_LINKS < links)
                chain_read(&g, d, x, table, rstds, room_d + next, room_h + next,
                           first + CHAIN_LINKS, c0, head, count);
        } else if (adds) {
            const uint32_t row = here + ITEM * CHAIN_PITCH;
            UNROLL
            for (uint32_t i = 0; i < CHAIN_LINKS; i += 4) {
                take4(dn, room_d + row + i);
                take4(h, room_h + row + i);
                for (int e = 0; e < 4; e++)
                    sum = fma1(dn[e], h[e], sum);
            }
        }
        BARRIER();
        next = here;
        here = CHAIN_ROOM - here;
    }
    if (adds)
        WRITE(to, sum);
}
