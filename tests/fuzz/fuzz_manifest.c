/* manifest.json from outside: refused with a message, or files that lie in the
 * folder itself. The input is read as it is, and once more with a checksum that
 * is right, so that what lies behind it is reached. */
#include "fuzz/fuzz.h"
#include "store/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_one(const char *text, size_t bytes)
{
    pl_manifest manifest;
    pl_error err = { .status = PL_OK };
    pl_status status = pl_manifest_read(&manifest, text, bytes, "fuzz", &err);
    if (status) {
        if (err.status != status || err.text[0] == '\0')
            abort();
        return;
    }
    if (manifest.count > PL_MANIFEST_MAX_FILES)
        abort();
    for (size_t i = 0; i < manifest.count; i++)
        if (manifest.files[i].name[0] == '\0' ||
            strchr(manifest.files[i].name, '/') ||
            strlen(manifest.files[i].sum.text) != PL_HASH_TEXT_BYTES - 1)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[PL_MANIFEST_MAX_BYTES];
    read_one((const char *)data, size);
    if (size > sizeof text - 64)
        return 0;
    memcpy(text, data, size);
    int tail = snprintf(text + size, 64, ",\n  \"xxh128\": \"%s\"\n}\n",
                        pl_hash_of(data, size).text);
    read_one(text, size + (size_t)tail);
    return 0;
}
