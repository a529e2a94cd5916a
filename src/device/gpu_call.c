/* gpu_call.c: see gpu_call.h. */
#include "device/gpu_call.h"
#include "base/clock.h"
#include "base/units.h"

#include <math.h>

pl_status pl_gpu_refused(const pl_gpu_card *card, const char *call,
                         const char *error, pl_status status, pl_error *err)
{
    return pl_fail(err, status, "%s:%d (%s): %s: %s", card->api->name,
                   card->number, card->name, call, error);
}

pl_status pl_gpu_ungiven(const pl_gpu_card *card, size_t bytes,
                         const char *error, pl_error *err)
{
    return pl_fail(err, PL_E_MEMORY,
                   "%s:%d (%s) doesn't give %s of its memory: %s. End what "
                   "else uses the card, or set a smaller memory",
                   card->api->name, card->number, card->name,
                   pl_units_bytes(bytes).text, error);
}

/* ---- waiting ---- */

double pl_gpu_patience = 600.0;

pl_status pl_gpu_wait(const pl_gpu_card *card, int (*is_over)(void *context),
                      void *context, int *is_hung, pl_error *err)
{
    const double began = pl_clock_seconds(), least = 20e-6, most = 2e-3;
    while (!is_over(context)) {
        const double waited = pl_clock_seconds() - began;
        if (waited > pl_gpu_patience && !card->is_processor) {
            *is_hung = 1;
            return pl_fail(err, PL_E_IO,
                           "%s:%d (%s) hasn't answered for %s: it hangs, or "
                           "its driver does. `dmesg` may say why",
                           card->api->name, card->number, card->name,
                           pl_units_duration(waited).text);
        }
        if (waited > least)
            pl_clock_sleep(fmin(fmax(waited / 8.0, least), most));
    }
    return PL_OK;
}

pl_status pl_gpu_finish(const pl_gpu_api *api, pl_gpu *gpu, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < 2 && !status; i++)
        status = api->reach(gpu, i, err);
    if (!status)
        status = api->mark(gpu, 0, err);
    return status ? status : api->reach(gpu, 0, err);
}

/* ---- for tests ---- */

static long countdown, seen;
static int fault;

long pl_gpu_fail_at(long nth, int code)
{
    const long before = seen;
    countdown = nth;
    fault = code;
    seen = 0;
    return before;
}

int pl_gpu_seen(int code)
{
    seen++;
    return countdown > 0 && --countdown == 0 ? fault : code;
}
