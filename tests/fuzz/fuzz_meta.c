/* meta.json from outside: refused with a message, or a tokenizer that comes
 * back the same after writing it. */
#include "fuzz/fuzz.h"
#include "text/meta.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_heap heap = pl_heap_make(32 << 20);
    pl_tokenizer first, again;
    pl_error err = { .status = PL_OK };
    const char *text;
    size_t bytes;
    pl_status status = pl_meta_read(&first, (const char *)data, size, "fuzz",
                                    &heap, &err);
    if (status) {
        if (err.status != status || err.text[0] == '\0')
            abort();
    } else {
        if (pl_meta_write(&first, &heap, &text, &bytes, &err) ||
            pl_meta_read(&again, text, bytes, "again", &heap, &err) ||
            first.kind != again.kind || first.vocab_size != again.vocab_size)
            abort();
        if (first.kind == PL_TOKENIZER_CHAR &&
            memcmp(first.codes, again.codes,
                   (size_t)first.vocab_size * sizeof *first.codes) != 0)
            abort();
    }
    pl_heap_close(&heap);
    return 0;
}
