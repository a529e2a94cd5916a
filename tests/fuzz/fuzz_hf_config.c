/* config.json of a model from outside: refused with a message, or a shape that
 * this program can count with. */
#include "config/config.h"
#include "fuzz/fuzz.h"
#include "store/hf_config.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_hf_config config;
    pl_error err = { .status = PL_OK };
    pl_status status = pl_hf_config_parse(&config, (const char *)data, size,
                                          "fuzz", &err);
    const pl_shape s = status ? (pl_shape){ 0 } : config.shape;
    const size_t most = (size_t)1 << 30;
    if (status) {
        if (err.status != status || err.text[0] == '\0')
            abort();
    } else if (s.L < 1 || s.L > PL_MAX_LAYERS || s.H < 1 || s.D < 1 ||
               s.A != s.H * s.D || s.A > (size_t)1 << 28 || s.C < 1 ||
               s.KV < 1 || s.H % s.KV != 0 || s.F < 1 || s.F > most ||
               !(s.norm_eps > 0.0) || !(s.rope_theta >= 1.0) ||
               (s.position == PL_POSITION_ROTARY && s.D % 2 != 0) ||
               s.C > most || s.V < 1 || s.V > most || s.T < 1 || s.T > most) {
        abort();
    }
    return 0;
}
