/* kind.c: see kind.h. */
#include "data/kind.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* One row for each kind: `bytes` bytes at `offset`. */
static const struct {
    const char *name;
    size_t offset, bytes;
    const char *magic;
} rows[] = {
    { "a bzip2 file", 0, 3, "BZh" },
    { "a zip archive", 0, 4, "PK\x03\x04" },
    { "a zip archive", 0, 4, "PK\x05\x06" },
    { "a PDF", 0, 5, "%PDF-" },
    { "a 7-Zip archive", 0, 6, "7z\xbc\xaf\x27\x1c" },
    { "a RAR archive", 0, 6, "Rar!\x1a\x07" },
    { "an lzip file", 0, 4, "LZIP" },
    { "an lz4 file of the old format", 0, 4, "\x02\x21\x4c\x18" },
    { "a compress (.Z) file", 0, 2, "\x1f\x9d" },
    { "a tar archive", 257, 5, "ustar" },
    { "a PNG image", 0, 8, "\x89PNG\r\n\x1a\n" },
    { "a JPEG image", 0, 3, "\xff\xd8\xff" },
    { "a GIF image", 0, 4, "GIF8" },
    { "an ELF program", 0, 4,
      "\x7f"
      "ELF" },
    { "an SQLite database", 0, 16, "SQLite format 3" },
    { "an Arrow file", 0, 6, "ARROW1" },
    { "an HDF5 file", 0, 8, "\x89HDF\r\n\x1a\n" },
    { "a GGUF model", 0, 4, "GGUF" },
    { "a git pack", 0, 4, "PACK" },
    { "UTF-16 text", 0, 2, "\xff\xfe" },
    { "UTF-16 text", 0, 2, "\xfe\xff" },
};

const char *pl_kind_refused(const unsigned char *begin, size_t bytes)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (bytes >= rows[i].offset + rows[i].bytes &&
            !memcmp(begin + rows[i].offset, rows[i].magic, rows[i].bytes))
            return rows[i].name;
    return NULL;
}

int pl_kind_is_text(const unsigned char *begin, size_t bytes)
{
    const char *text = (const char *)begin;
    size_t at = 0;
    uint32_t code;
    int length;
    while ((length = pl_utf8_decode(text + at, bytes - at, &code)) > 0) {
        if (code == 0)
            return 0;
        at += (size_t)length;
    }
    return at == bytes ||
           (bytes == PL_KIND_BYTES && bytes - at < PL_UTF8_MAX_BYTES);
}
