/* state.json from outside: refused with a message, or numbers within bounds
 * and a config of known keys. */
#include "fuzz/fuzz.h"
#include "store/checkpoint.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_heap heap = pl_heap_make(32 << 20);
    static pl_config config;
    pl_checkpoint_state state;
    pl_error err = { .status = PL_OK };
    const char *text = (const char *)data;
    pl_status status = pl_checkpoint_parse_state(&state, text, size, "fuzz",
                                                 &err);
    if (status && (err.status != status || err.text[0] == '\0'))
        abort();
    if (!status) {
        const pl_shape *s = &state.shape;
        const size_t most = (size_t)1 << 30;
        if (s->L < 1 || s->L > most || s->V < 1 || s->V > most || s->C < 1 ||
            s->C > most || s->H < 1 || s->T < 1 || s->A != s->H * s->D)
            abort();
        if (!pl_scaler_is_valid(state.scaler.scale))
            abort();
    }
    err = (pl_error){ .status = PL_OK };
    status = pl_checkpoint_parse_config(&config, text, size, "fuzz", &heap,
                                        &err);
    if (status && (err.status != status || err.text[0] == '\0'))
        abort();
    pl_heap_close(&heap);
    return 0;
}
