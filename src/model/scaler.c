/* scaler.c: see scaler.h. */
#include "model/scaler.h"

#include <math.h>

static const double largest = 0x1p24;

pl_scaler pl_scaler_make(int active)
{
    return (pl_scaler){ .scale = active ? 65536.0 : 1.0, .active = active };
}

int pl_scaler_update(pl_scaler *scaler, int skipped)
{
    if (!scaler->active)
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
