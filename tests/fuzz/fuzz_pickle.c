/* meta.pkl from outside: refused with a message, or a vocabulary in which
 * every id survives decoding and encoding. */
#include "fuzz/fuzz.h"
#include "text/pickle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_heap heap = pl_heap_make(8 << 20);
    pl_tokenizer tokenizer;
    pl_error err = { .status = PL_OK };
    pl_status status = pl_pickle_read_meta(&tokenizer, data, size, "fuzz",
                                           &heap, &err);
    if (status && (err.status != status || err.text[0] == '\0'))
        abort();
    for (int32_t id = 0; !status && id < tokenizer.vocab_size; id++) {
        char text[PL_TOKENIZER_TOKEN_BYTES];
        size_t bytes, count;
        int32_t back;
        if (pl_tokenizer_decode(&tokenizer, id, text, &bytes, &err) ||
            pl_tokenizer_encode(&tokenizer, text, bytes, "back", &back, 1,
                                &count, &err) ||
            count != 1 || back != id)
            abort();
    }
    pl_heap_close(&heap);
    return 0;
}
