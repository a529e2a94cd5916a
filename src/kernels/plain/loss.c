/* loss.c: cross entropy and its gradient in three passes over a row. Logits of
 * float32 hold their exponentials between the passes; those of 16 bits can't,
 * and take them twice; so do capped logits, whose gradient needs what the cap
 * left of them. */
#include "kernels/plain/convert.h"
#include "kernels/plain/lanes.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"
#include "kernels/vmath.h"

/* Exponentials are summed while they are in the first-level cache. */
enum { CHUNK = 64 * LANES };

/* x[c] = exp(x[c] - max); returns their sum. */
static float exp_and_sum(float *x, size_t V, float max)
{
    lanes sum = lanes_all(0);
    for (size_t begin = 0; begin < V; begin += CHUNK) {
        const size_t count = V - begin < CHUNK ? V - begin : CHUNK;
        float *part = x + begin;
        for (size_t c = 0; c < count; c++)
            part[c] = exp_down1(part[c] - max);
        sum = lanes_sum_on(sum, part, count);
    }
    return lanes_total(sum);
}

static float cross_entropy_row(float *x, size_t V, size_t target, float scale)
{
    const float max = lanes_max(x, V), logit = x[target];
    const float sum = exp_and_sum(x, V, max), inverse = 1.0f / sum;
    if (scale != 0.0f) {
        const float at_target = (x[target] * inverse - 1.0f) * scale;
        for (size_t c = 0; c < V; c++)
            x[c] = x[c] * inverse * scale;
        x[target] = at_target;
    }
    return log_sum1(max, sum, logit);
}

/* ---- logits of 16 bits ---- */

static float stored_max(const void *x, pl_storage storage, size_t V)
{
    float room[STACK_FLOATS], most = -INFINITY;
    for (size_t c = 0; c < V; c += STACK_FLOATS) {
        const size_t count = stack_count(c, V);
        const float max = lanes_max(as_floats(room, x, c, count, storage),
                                    count);
        most = max <= most ? most : max;
    }
    return most;
}

/* room[i] = exp(x[c + i] - max). */
static void stored_exp(float room[STACK_FLOATS], const void *x,
                       pl_storage storage, size_t c, size_t count, float max)
{
    widen(room, pl_storage_at(x, c, storage), count, storage);
    for (size_t i = 0; i < count; i++)
        room[i] = exp_down1(room[i] - max);
}

static float stored_sum(const void *x, pl_storage storage, size_t V, float max)
{
    float room[STACK_FLOATS];
    lanes sum = lanes_all(0);
    for (size_t c = 0; c < V; c += STACK_FLOATS) {
        const size_t count = stack_count(c, V);
        stored_exp(room, x, storage, c, count, max);
        sum = lanes_sum_on(sum, room, count);
    }
    return lanes_total(sum);
}

/* x = cap * tanh(x / cap). */
static void cap_all(float *restrict x, size_t count, float cap, float inverse)
{
    for (size_t i = 0; i < count; i++)
        x[i] = cap * tanh1(x[i] * inverse);
}

static void cap_row(void *x, pl_storage storage, size_t V, float cap)
{
    float room[STACK_FLOATS];
    for (size_t c = 0; c < V; c += STACK_FLOATS) {
        const size_t count = stack_count(c, V);
        widen(room, pl_storage_at(x, c, storage), count, storage);
        cap_all(room, count, cap, 1.0f / cap);
        narrow(pl_storage_at(x, c, storage), room, count, storage);
    }
}

/* d *= 1 - t^2, the slope at the capped logits z. */
static void cap_slope(float *restrict d, const float *restrict z, size_t count,
                      float inverse)
{
    for (size_t i = 0; i < count; i++) {
        const float t = z[i] * inverse;
        d[i] *= fma1(-t, t, 1.0f);
    }
}

static void stored_gradient(void *x, pl_storage storage, size_t V,
                            size_t target, float max, float inverse,
                            float scale, float cap)
{
    float room[STACK_FLOATS], before[STACK_FLOATS];
    for (size_t c = 0; c < V; c += STACK_FLOATS) {
        const size_t count = stack_count(c, V);
        stored_exp(room, x, storage, c, count, max);
        const float own = target - c < count ? room[target - c] : 0;
        for (size_t i = 0; i < count; i++)
            room[i] = room[i] * inverse * scale;
        if (target - c < count)
            room[target - c] = (own * inverse - 1.0f) * scale;
        if (cap != 0.0f)
            cap_slope(room, as_floats(before, x, c, count, storage), count,
                      1.0f / cap);
        narrow(pl_storage_at(x, c, storage), room, count, storage);
    }
}

static float stored_cross_entropy_row(void *x, pl_storage storage, size_t V,
                                      size_t target, float scale, float cap)
{
    if (cap != 0.0f)
        cap_row(x, storage, V, cap);
    const float max = stored_max(x, storage, V),
                logit = pl_storage_get(x, target, storage);
    const float sum = stored_sum(x, storage, V, max);
    if (scale != 0.0f)
        stored_gradient(x, storage, V, target, max, 1.0f / sum, scale, cap);
    return log_sum1(max, sum, logit);
}

void PL_K(cross_entropy)(const pl_cross_entropy *args, int ith, int nth)
{
    const size_t T = args->T, V = args->V;
    size_t begin, end;
    if (V == 0)
        return;
    pl_threads_slice(args->rows, ith, nth, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const size_t r = args->first + i;
        const int32_t target =
            args->tokens[r / T * args->token_stride + r % T + 1];
        void *x = pl_storage_at(args->logits, i * V, args->storage);
        args->loss[r] =
            args->storage == PL_STORE_F32 && args->cap == 0.0f
                ? cross_entropy_row(x, V, (size_t)target, args->scale)
                : stored_cross_entropy_row(x, args->storage, V, (size_t)target,
                                           args->scale, args->cap);
    }
}

void PL_K(softcap)(const pl_softcap *args, int ith, int nth)
{
    size_t begin, end;
    share_elements(args->count, ith, nth, &begin, &end);
    cap_all(args->x + begin, end - begin, args->cap, 1.0f / args->cap);
}

void PL_K(loss_sum)(const pl_loss_sum *args, int ith, int nth)
{
    size_t begin, end;
    pl_threads_slice(args->sequences, ith, nth, &begin, &end);
    for (size_t s = begin; s < end; s++) {
        double sum = 0;
        for (size_t t = 0; t < args->T; t++)
            sum += (double)args->loss[s * args->T + t];
        args->sums[s] = sum;
    }
}
