/* tokenizer.json from outside: refused with a message, or a vocabulary that
 * encodes and decodes, and is written the same after reading what was
 * written. */
#include "fuzz/bpe_round_trip.h"
#include "fuzz/fuzz.h"
#include "text/bpe_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_heap heap = pl_heap_make(128 << 20);
    pl_bpe *first, *again;
    pl_error err = { .status = PL_OK };
    const char *json, *twice;
    size_t bytes, twice_bytes;
    pl_status status = pl_bpe_read_json(&first, (const char *)data, size,
                                        "fuzz", &heap, &err);
    if (status) {
        if (err.status != status || err.text[0] == '\0')
            abort();
    } else {
        check_round_trip(first, (const char *)data, size);
        if (pl_bpe_write_json(first, &heap, &json, &bytes, &err) ||
            pl_bpe_read_json(&again, json, bytes, "again", &heap, &err) ||
            pl_bpe_write_json(again, &heap, &twice, &twice_bytes, &err) ||
            bytes != twice_bytes || memcmp(json, twice, bytes) != 0)
            abort();
    }
    pl_heap_close(&heap);
    return 0;
}
