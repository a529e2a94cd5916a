/* scaler.c: see scaler.h. */
#include "model/scaler.h"

#include <math.h>

static const double largest = 0x1p24;

/* The power of two next to `x` >= 1, by ratio: the upper one from sqrt(2) times
 * the lower one on. */
static double power_next_to(double x)
{
    double power = 1.0;
    while (x * x >= 2.0 * power * power)
        power *= 2.0;
    return power;
}

pl_scaler pl_scaler_make(pl_dtype dtype, double tokens)
{
    if (dtype == PL_F16)
        return (pl_scaler){ .scale = 65536.0, .adaptive = 1 };
    return (pl_scaler){ .scale = dtype == PL_BF16 ? power_next_to(tokens)
                                                  : 1.0 };
}

int pl_scaler_update(pl_scaler *scaler, int skipped)
{
    if (!scaler->adaptive)
        return 0;
    if (skipped) {
        int room = scaler->scale > 1.0;
        scaler->good = 0;
        if (room)
            scaler->scale *= 0.5;
        return room;
    }
    if (++scaler->good == PL_SCALER_GROWTH_UPDATES) {
        scaler->good = 0;
        if (scaler->scale < largest)
            scaler->scale *= 2.0;
    }
    return 1;
}

int pl_scaler_is_valid(double scale)
{
    int exponent;
    return scale >= 1.0 && scale <= largest && frexp(scale, &exponent) == 0.5;
}
